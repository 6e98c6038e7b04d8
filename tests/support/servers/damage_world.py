"""A data directory with tables of all kinds, and everything that a client can read from it.

A separate process fills the directory, because it is killed at the end. The model of the expected
rows is the last result of `look`; everything in it was acknowledged.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from fluss.model.types.factory import DataTypes
from fluss.model.types.type_json import type_to_json
from fluss.records.log.log_batch import iter_log_batches
from fluss.wire import messages as pb
from fluss_server.server_config import Durability
from tests.support.differential.differential_tables import KINDS, DifferentialTable, Row
from tests.support.servers.embedded import Clock, RunningServer, running
from tests.support.servers.raw_client import RawConnection, RefusedError

ALL_BYTES = 1 << 26
DATABASE = "shop"
SEGMENT_BYTES = 2_500
START_MS = 1_700_000_000_000
STEP_MS = 1_000
TIMES = 9
KEPT_AFTER = 2
EARLIER = ".earlier"
KINDS_USED = (
    "log", "log_none", "log_rows", "log_by_place", "keyed", "wal", "by_place", "numbered",
)  # fmt: skip
TRIMMED = ("log_none", "keyed")
PLACES = ("north", "south")
EMPTY_PLACE = "west"
_KIND_BY_NAME = {each.name: each for each in KINDS}

Bucket = tuple[int, int | None, int]


@dataclass(frozen=True, slots=True)
class Refused:
    """The error that a client received instead of a response."""

    message: str


@dataclass
class World:
    """What was written, and what a client can read of it."""

    tables: dict[str, DifferentialTable] = field(default_factory=dict)
    ids: dict[str, int] = field(default_factory=dict)
    partitions: dict[str, dict[str, int]] = field(default_factory=dict)
    sequences: dict[Bucket, int] = field(default_factory=dict)
    last_sent: dict[Bucket, tuple[bytes, int]] = field(default_factory=dict)
    writer: int = -1
    now_ms: int = START_MS
    times: list[int] = field(default_factory=list)
    seen: dict[Any, Any] = field(default_factory=dict)

    def buckets(self) -> list[tuple[DifferentialTable, Bucket]]:
        found = []
        for name, table in self.tables.items():
            parts = list(self.partitions[name].values()) if table.kind.partition_by else [None]
            for partition in parts:
                count = table.descriptor.bucket_count or 1
                found += [(table, (self.ids[name], partition, bucket)) for bucket in range(count)]
        return found


# --- filling --------------------------------------------------------------------------------------


def fill(world: World, server: RunningServer, chance: Random, earlier: Path) -> None:
    """Create tables where there are none yet; write, alter, flush and trim.

    A copy of an earlier state of the directory is kept, like a backup.
    """
    connection = RawConnection(server.address)
    try:
        if not world.tables:
            _create(world, connection)
        for round_number in range(6):
            for table, place in world.buckets():
                if chance.random() < 0.85:
                    _write(world, connection, table, place, chance)
            if round_number == 2:
                _alter(world, connection)
            if round_number in {1, 3}:
                for tablet in server.node.tablets:
                    if tablet.state is not None:
                        server.on_loop(lambda t=tablet: _flush(server, t))
            if round_number == KEPT_AFTER:
                shutil.rmtree(earlier, ignore_errors=True)
                shutil.copytree(server.node.config.directory, earlier)
            if round_number == 4:
                _trim(world, server)
        now_ms = server.node.now_ms()
        world.times = list(range(START_MS, now_ms, max((now_ms - START_MS) // TIMES, 1)))
        world.seen = look(world, connection)
    finally:
        connection.close()


def _create(world: World, connection: RawConnection) -> None:
    for name in (DATABASE, "empty", "gone"):
        connection.call(
            pb.CreateDatabaseRequest(
                database_name=name,
                database_json=b'{"version":1,"comment":"%s"}' % name.encode(),
                ignore_if_exists=False,
            )
        )
    for name in (*KINDS_USED, "dropped"):
        table = DifferentialTable(_KIND_BY_NAME["log" if name == "dropped" else name])
        path = pb.PbTablePath(database_name=DATABASE, table_name=name)
        connection.call(
            pb.CreateTableRequest(
                table_path=path,
                table_json=table.descriptor.to_json().encode(),
                ignore_if_exists=False,
            )
        )
        world.tables[name] = table
        world.ids[name] = connection.call(pb.GetTableInfoRequest(table_path=path)).table_id
        if table.kind.partition_by:
            for place in (*PLACES, EMPTY_PLACE):
                request = pb.CreatePartitionRequest(table_path=path, ignore_if_not_exists=False)
                request.partition_spec.partition_key_values.add(key="place", value=place)
                connection.call(request)
            listed = connection.call(pb.ListPartitionInfosRequest(table_path=path))
            world.partitions[name] = {
                each.partition_spec.partition_key_values[0].value: each.partition_id
                for each in listed.partitions_info
            }
    connection.call(
        pb.DropTableRequest(
            table_path=pb.PbTablePath(database_name=DATABASE, table_name="dropped"),
            ignore_if_not_exists=False,
        )
    )
    del world.tables["dropped"]
    connection.call(
        pb.DropDatabaseRequest(database_name="gone", ignore_if_not_exists=False, cascade=True)
    )
    world.writer = connection.call(pb.InitWriterRequest()).writer_id
    connection.call(pb.RegisterProducerOffsetsRequest(producer_id="producer", ttl_ms=10**9))


def _alter(world: World, connection: RawConnection) -> None:
    for name in ("log", "keyed"):
        table = world.tables[name]
        column = f"extra_{len(table.schemas)}"
        data_type = DataTypes.string()
        request = pb.AlterTableRequest(
            table_path=pb.PbTablePath(database_name=DATABASE, table_name=name),
            ignore_if_not_exists=False,
        )
        request.add_columns.add(
            column_name=column,
            data_type_json=_json_of(type_to_json(data_type)),
            column_position_type=0,
        )
        connection.call(request)
        table.add_column(column, data_type)


def _json_of(value: Any) -> bytes:
    import json

    return json.dumps(value).encode()


def _write(
    world: World, connection: RawConnection, table: DifferentialTable, place: Bucket, chance: Random
) -> None:
    """Write one batch, except to the partitions that remain empty."""
    table_id, partition, bucket = place
    name = next(key for key, value in world.ids.items() if value == table_id)
    place_name = _place_name(world, name, partition)
    if place_name == EMPTY_PLACE:
        return
    sequence = world.sequences.get(place, 0)
    writer = (world.writer, sequence)
    rows: list[Row] = [
        table.random_row(chance, table.newest, place_name) for _ in range(chance.randrange(5, 30))
    ]
    schema_id = len(table.schemas)
    if table.kind.keys:
        records = [(row, chance.random() < 0.2) for row in rows]
        if table.kind.auto_increment:
            # The server assigns the numbers; only the other columns are written.
            records = [((row[0], None, row[2]), gone) for row, gone in records]
        batch = table.kv_batch(records, schema_id=schema_id, writer=writer)
        request: Any = pb.PutKvRequest(acks=-1, table_id=table_id, timeout_ms=1_000)
    else:
        batch = table.log_batch(rows, schema_id=schema_id, writer=writer)
        request = pb.ProduceLogRequest(acks=-1, table_id=table_id, timeout_ms=1_000)
    asked = request.buckets_req.add(bucket_id=bucket, records=batch, partition_id=partition)
    if table.kind.auto_increment:
        request.target_columns.extend([0, 2])
    del asked
    (answer,) = connection.call(request).buckets_resp
    assert not answer.HasField("error_code"), answer.error_message
    world.sequences[place] = sequence + 1
    if not table.kind.keys:
        world.last_sent[place] = (batch, answer.base_offset)


def _place_name(world: World, name: str, partition: int | None) -> str | None:
    known = world.partitions.get(name, {})
    return next((key for key, value in known.items() if value == partition), None)


async def _flush(server: RunningServer, tablet: Any) -> None:
    async with tablet.lock.reserve():
        await server.node.in_storage(tablet.log.sync)
        await server.node.in_storage(tablet.state.flush)


def _trim(world: World, server: RunningServer) -> None:
    for tablet in server.node.tablets:
        if tablet.bucket.table_id not in {world.ids[each] for each in TRIMMED}:
            continue
        if tablet.state is not None:
            server.on_loop(lambda t=tablet: _flush(server, t))
        server.on_loop(lambda t=tablet: server.server._maintenance._expire(t))


# --- reading --------------------------------------------------------------------------------------


def look(world: World, connection: RawConnection) -> dict[Any, Any]:
    """Return everything that a client can read, by request; `Refused` for errors."""
    seen: dict[Any, Any] = {}

    def ask(key: Any, question: Any) -> Any:
        try:
            seen[key] = question()
        except RefusedError as error:
            seen[key] = Refused(error.message)
        return seen[key]

    databases = ask(
        "databases",
        lambda: sorted(connection.call(pb.ListDatabasesRequest()).database_name),
    )
    for name in databases if isinstance(databases, list) else ():
        ask(
            ("database", name),
            lambda name=name: _bytes(connection, pb.GetDatabaseInfoRequest(database_name=name)),
        )
        ask(
            ("tables", name),
            lambda name=name: sorted(
                connection.call(pb.ListTablesRequest(database_name=name)).table_name
            ),
        )
    for name, table in world.tables.items():
        path = pb.PbTablePath(database_name=DATABASE, table_name=name)
        ask(
            ("table", name),
            lambda path=path: _table(connection, path),
        )
        for schema_id in range(1, len(table.schemas) + 1):
            ask(
                ("schema", name, schema_id),
                lambda path=path, schema_id=schema_id: _bytes(
                    connection, pb.GetTableSchemaRequest(table_path=path, schema_id=schema_id)
                ),
            )
        if table.kind.partition_by:
            ask(
                ("partitions", name),
                lambda path=path: sorted(
                    (each.partition_id, each.partition_spec.partition_key_values[0].value)
                    for each in connection.call(
                        pb.ListPartitionInfosRequest(table_path=path)
                    ).partitions_info
                ),
            )
    ask(
        "producer", lambda: _bytes(connection, pb.GetProducerOffsetsRequest(producer_id="producer"))
    )
    for table, place in world.buckets():
        _look_at_bucket(world, connection, table, place, ask)
    return seen


def _table(connection: RawConnection, path: Any) -> bytes:
    answer = connection.call(pb.GetTableInfoRequest(table_path=path))
    if answer.bucket_count_epoch == 0:
        answer.ClearField("bucket_count_epoch")  # earlier versions do not say it
    data: bytes = answer.SerializeToString(deterministic=True)
    return data


def _bytes(connection: RawConnection, request: Any) -> bytes:
    answer: bytes = connection.call(request).SerializeToString(deterministic=True)
    return answer


def _look_at_bucket(
    world: World, connection: RawConnection, table: DifferentialTable, place: Bucket, ask: Any
) -> None:
    for kind in (0, 1):
        ask(("offset", place, kind), lambda kind=kind: _offset(connection, place, kind))
    for since in world.times:
        ask(
            ("since", place, since),
            lambda since=since: _offset(connection, place, 2, since=since),
        )
    ask(("log", place), lambda: _batches(connection, place, None))
    if table.descriptor.options.log_format.value == "ARROW":
        ask(("projected", place), lambda: _batches(connection, place, [0]))
    if table.kind.keys:
        ask(("state", place), lambda: _state(connection, place))
        ask(("count", place), lambda: _count(connection, place))


def _offset(connection: RawConnection, place: Bucket, kind: int, *, since: int = 0) -> Any:
    table_id, partition, bucket = place
    request = pb.ListOffsetsRequest(
        follower_server_id=-1, offset_type=kind, table_id=table_id, partition_id=partition,
        bucket_id=[bucket],
    )  # fmt: skip
    if kind == 2:
        request.startTimestamp = since
    (answer,) = connection.call(request).buckets_resp
    _refuse_if(answer)
    return answer.offset


def _refuse_if(answer: Any) -> None:
    if answer.HasField("error_code"):
        raise RefusedError(answer.error_code, answer.error_message)


def _batches(connection: RawConnection, place: Bucket, projected: list[int] | None) -> Any:
    table_id, partition, bucket = place
    offset, found = -2, []
    start = None
    while True:
        request = pb.FetchLogRequest(follower_server_id=-1, max_bytes=ALL_BYTES)
        asked = request.tables_req.add(
            table_id=table_id,
            projection_pushdown_enabled=projected is not None,
            projected_fields=projected or (),
        )
        asked.buckets_req.add(
            bucket_id=bucket, partition_id=partition, fetch_offset=offset,
            max_fetch_bytes=ALL_BYTES,
        )  # fmt: skip
        ((answer,),) = (each.buckets_resp for each in connection.call(request).tables_resp)
        _refuse_if(answer)
        start = answer.log_start_offset if start is None else start
        if not answer.records:
            return (start, answer.high_watermark, found)
        for batch in iter_log_batches(answer.records, tail="refuse", verify_crc=False):
            header = batch.header
            found.append(
                (
                    header.base_offset,
                    header.commit_timestamp,
                    hashlib.blake2b(bytes(batch.data)[21:], digest_size=8).hexdigest(),
                )
            )
            offset = batch.next_offset


def _state(connection: RawConnection, place: Bucket) -> Any:
    table_id, partition, bucket = place
    request = pb.LimitScanRequest(
        table_id=table_id, partition_id=partition, bucket_id=bucket, limit=1_000_000
    )
    answer = connection.call(request)
    _refuse_if(answer)
    return bytes(answer.records)


def _count(connection: RawConnection, place: Bucket) -> Any:
    table_id, partition, bucket = place
    request = pb.GetTableStatsRequest(table_id=table_id)
    request.buckets_req.add(bucket_id=bucket, partition_id=partition)
    (answer,) = connection.call(request).buckets_resp
    if answer.HasField("error_code") and "Row count is disabled" in answer.error_message:
        return "disabled"
    _refuse_if(answer)
    return answer.row_count


def build(directory: str, model_path: str, end: str, durability: str, seed: str) -> None:
    """Fill a directory, save the model, and exit."""
    model = Path(model_path)
    world = _loaded(model) if model.exists() else World()
    clock = Ticking(world.now_ms)
    config = {"segment_bytes": SEGMENT_BYTES, "retention_bytes": 2 * SEGMENT_BYTES}
    with running(
        Path(directory), clock=clock, durability=Durability(durability), **config
    ) as server:
        fill(world, server, Random(seed), Path(f"{directory}{EARLIER}"))
        world.now_ms = clock.now_ms
        model.write_bytes(pickle.dumps(world))
        if end == "kill":
            os.kill(os.getpid(), signal.SIGKILL)


class Ticking(Clock):
    """A clock that advances with every read."""

    def __call__(self) -> int:
        self.now_ms += STEP_MS
        return self.now_ms


def filled(folder: Path, history: tuple[str, ...]) -> tuple[Path, World]:
    """Fill a directory with several servers, one after the other.

    Args:
        folder: The parent of the directory.
        history: The durability, and how each of the servers ended: `clean`, or `kill` by SIGKILL.
    """
    durability, *ends = history
    directory, model = folder / "data", folder / "model"
    program = f"import sys; from {__name__} import build; build(*sys.argv[1:])"
    for number, end in enumerate(ends):
        arguments = [str(directory), str(model), end, durability, f"{history} {number}"]
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments],
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == (-signal.SIGKILL if end == "kill" else 0), done.stderr
    return directory, _loaded(model)


def _loaded(model: Path) -> World:
    world = pickle.loads(model.read_bytes())  # noqa: S301 - written by this very test
    assert isinstance(world, World)
    return world
