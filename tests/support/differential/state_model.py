"""A primary-key table with random writes, and a model of its rows at each moment.

Every round of writes is flushed and recorded: where each bucket's log ended, and which rows the
table had. The model follows the operations, not the log, so the client does not check itself.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from fluss.admin.admin import admin_of
from fluss.connection.connection import ClientConnection, TableHandle
from fluss.log.extents import fetch_extents
from fluss.model.options.config import Config
from fluss.model.paths import PhysicalTablePath, TableBucket, TablePath
from fluss.model.schema.schema import Schema
from fluss.model.tables.descriptor import TableDescriptor
from fluss.net.engine_thread import engine
from fluss.state.state_at_offset import read_state
from fluss.state.state_planner import StatePlan, plan_states
from fluss.wire import messages as pb
from fluss.write.writer_pool import upsert_core
from tests.support.servers.raw_client import COORDINATOR, RawClient

State = dict[Any, dict[str, Any]]
BucketEnds = dict[TableBucket, int]

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("name", pa.string()),
        ("amount", pa.float64()),
        ("place", pa.string()),
    ]
)
COORDINATOR_LAG_S = 1.0
PARTS = ("north", "south")


@dataclass(frozen=True, kw_only=True)
class Moment:
    """Where each bucket's log ended after a round, and the rows of the table."""

    pins: BucketEnds
    state: State


class StateTable:
    """One table of a cluster, its writers, and its past."""

    def __init__(
        self,
        bootstrap: str,
        database: str,
        *,  # the table is alone in its database, which ends with it
        partitioned: bool = False,
        composite: bool = False,
        seed: int = 0,
        key_space: int = 400,
        schema: pa.Schema = SCHEMA,
        **facts: Any,
    ) -> None:
        self.rng = random.Random(seed)
        self.engine = engine()
        self.connection = self.run(
            ClientConnection.open(self.engine, Config({"bootstrap.servers": bootstrap}))
        )
        self.raw = RawClient(bootstrap)
        create = pb.CreateDatabaseRequest(database_name=database, ignore_if_exists=True)
        self.raw.call(create, to=COORDINATOR)
        self.path = TablePath(database, f"s{self.rng.getrandbits(40)}")
        self.partitioned = partitioned
        self.key_space = key_space
        self.has_long_keys = partitioned or composite
        keys = ["place", "id"] if self.has_long_keys else ["id"]
        facts = {"bucket_count": 4} | facts
        if partitioned:
            facts["partition_keys"] = ["place"]
        if self.has_long_keys:
            schema = SCHEMA.set(3, pa.field("place", pa.string(), nullable=False))
        descriptor = TableDescriptor(Schema(schema, keys), **facts)
        admin = admin_of(self.connection)
        self.run(admin.create_table(self.path, descriptor, ignore_if_exists=False))
        if partitioned:
            # A coordinator of 0.9.1 that meets a partition before its table gives no leaders to
            # anything from then on; it hears of tables through ZooKeeper, a moment later.
            time.sleep(COORDINATOR_LAG_S)
        self.places: dict[TableBucket, PhysicalTablePath] = {}
        self.state: State = {}
        self.moments: list[Moment] = []
        self.open()

    def run(self, work: Any) -> Any:
        return self.engine.run(work)

    def open(self) -> None:
        """Open the table as it is now, with writers for its newest schema."""
        self.table: TableHandle = self.run(self.connection.table(self.path))
        self.writer = upsert_core(self.table)
        names = self.table.info.schema.column_names
        keys = set(self.table.info.primary_keys)
        chosen = [place for place, name in enumerate(names) if name in keys | {"amount"}]
        engine = self.table.info.options.merge_engine
        self.partial = self.writer if engine else upsert_core(self.table, chosen)

    def add_column(self, name: str, type_json: bytes = b'{"type":"INTEGER"}') -> None:
        """Add a column; a table handle that was opened before keeps its schema."""
        request = pb.AlterTableRequest(ignore_if_not_exists=False)
        request.table_path.database_name = self.path.database_name
        request.table_path.table_name = self.path.table_name
        request.add_columns.add(column_name=name, data_type_json=type_json, column_position_type=0)
        self.raw.call(request, to=COORDINATOR)
        for row in self.state.values():
            row[name] = None

    def close(self, *, drops: bool = True) -> None:
        self.run(self.connection.close())
        if drops:
            self._drop()
        self.raw.close()

    def _drop(self) -> None:
        drop = pb.DropDatabaseRequest(
            database_name=self.path.database_name, ignore_if_not_exists=True, cascade=True
        )
        self.raw.call(drop, to=COORDINATOR)

    # --- writing ------------------------------------------------------------------------------

    def write(self, count: int) -> None:
        """Perform a round of random operations, and record the moment after it."""
        for _ in range(count):
            self._operate()
        self.run(self.writer.flush())
        self.remember()

    def remember(self) -> None:
        state = {key: dict(row) for key, row in self.state.items()}
        self.moments.append(Moment(pins=self.ends(), state=state))

    def _operate(self) -> None:
        number = self.rng.randrange(-self.key_space // 2, self.key_space // 2)
        place = self.rng.choice(PARTS)
        key = (place, number) if self.has_long_keys else (number,)
        key_row = {"id": number} | ({"place": place} if self.has_long_keys else {})
        kind = self.rng.random()
        if kind < 0.5:
            row = self._row(number, place)
            self.writer.upsert(row)
            self.state[key] = row
        elif kind < 0.75:
            self.writer.delete(key_row)
            self.state.pop(key, None)
        else:
            # Both writers go to the same buckets; their order is that of the flushes.
            self.run(self.writer.flush())
            amount = self.rng.random()
            self.partial.upsert(key_row | {"amount": amount})
            self.run(self.partial.flush())
            blank = dict.fromkeys(self.table.info.schema.column_names)
            self.state[key] = self.state.get(key, blank) | key_row | {"amount": amount}

    def _row(self, number: int, place: str) -> dict[str, Any]:
        rng = self.rng
        row = {
            "id": number,
            "name": None if rng.random() < 0.2 else f"name {rng.randrange(10**6)}",
            "amount": rng.random(),
            "place": place,
        }
        for name in self.table.info.schema.column_names[len(row) :]:
            row[name] = rng.randrange(1_000)
        return row

    # --- looking ------------------------------------------------------------------------------

    def ends(self) -> BucketEnds:
        """Return where the buckets' logs end now."""
        info = self.table.info
        if self.partitioned:
            partitions = self.run(admin_of(self.connection).list_partition_infos(self.path))
            paths = {
                each.partition_id: PhysicalTablePath(self.path, each.partition_name)
                for each in partitions
            }
        else:
            paths = {None: PhysicalTablePath(self.path)}
        self.places = {
            TableBucket.with_partition(info.table_id, partition_id, bucket): path
            for partition_id, path in paths.items()
            for bucket in range(info.num_buckets)
        }
        extents = self.run(fetch_extents(self.connection.cluster, self.places))
        return {bucket: extent.end for bucket, extent in extents.items()}

    def plans(self, pins: BucketEnds, strategy: str | None = None, **facts: Any) -> list[StatePlan]:
        places = {bucket: self.places[bucket] for bucket in pins}
        work = plan_states(self.table, places, pins, strategy=strategy, **facts)
        return list(self.run(work).values())

    def read(self, plans: list[StatePlan], **facts: Any) -> State:
        """Return the rows of these plans by key; a duplicate key is an error."""
        keys = self.table.info.primary_keys
        found: State = {}
        for plan in plans:
            for batch in read_state(self.table, plan, **facts):
                batch.validate(full=True)
                for row in batch.to_pylist():
                    key = tuple(row[name] for name in keys)
                    assert key not in found, key
                    found[key] = row
        return found

    def read_at(self, moment: Moment, strategy: str | None = None, **facts: Any) -> State:
        return self.read(self.plans(moment.pins, strategy), **facts)

    def expected(self, moment: Moment) -> State:
        """Return a moment's rows in the columns of the opened table."""
        names = self.table.info.schema.column_names
        return {key: {name: row.get(name) for name in names} for key, row in moment.state.items()}
