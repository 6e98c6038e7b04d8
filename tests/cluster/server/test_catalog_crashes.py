"""kill -9 during DDL and writes: no start is refused, and nothing acknowledged is lost.

A kill between the writes of catalog, ledger, manifests and lists of segments must never look like
damage. One client creates, alters, fills and drops tables; it knows what was acknowledged, and
which one change may or may not have been made.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

import pytest

from fluss.model.schema.schema import Schema
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.types.factory import DataTypes
from fluss.wire import messages as pb
from fluss_server.directory_lock import read_holder
from tests.support.hypothesis_profiles import IS_EXHAUSTIVE
from tests.support.servers.bucket_logs import batch_bytes
from tests.support.servers.raw_client import RawConnection

ROUNDS = 60 if IS_EXHAUSTIVE else 4
NAMES = ("a", "b", "c")
SCHEMA = Schema.builder().column("id", DataTypes.int()).column("name", DataTypes.string()).build()
PARTITIONED = (
    Schema.builder()
    .column("id", DataTypes.int())
    .column("name", DataTypes.string())
    .column("place", DataTypes.string())
    .build()
)


@dataclass
class Known:
    """The client's record of a table; `rows` counts acknowledged rows."""

    table_id: int
    columns: int
    rows: int = 0
    partitions: set[str] = field(default_factory=set)


class Client:
    """Makes one change after the other until the server is killed."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.tables: dict[str, Known] = {}
        self.ids: set[int] = set()
        self.changes = 0
        self.failures: list[str] = []
        # The last request without a response: it may or may not have been done.
        self.doubtful: str | None = None

    def run(self, address: str) -> None:
        connection = RawConnection(address)
        try:
            while True:
                self.change(connection)
        except OSError:
            pass
        except Exception as error:  # noqa: BLE001 - the test fails with it
            self.failures.append(repr(error))
        finally:
            connection.close()

    def change(self, connection: RawConnection) -> None:
        name = self.doubtful = self.chance.choice(NAMES)
        known = self.tables.get(name)
        path = pb.PbTablePath(database_name="fluss", table_name=name)
        if known is None:
            self.create(connection, name, path)
        else:
            what = self.chance.choice((self.drop, self.alter, *[self.fill] * 20))
            what(connection, name, path, known)
        self.doubtful = None
        self.changes += 1

    def create(self, connection, name, path) -> None:
        schema = PARTITIONED if name == "c" else SCHEMA
        made = TableDescriptor(
            schema, bucket_count=1, partition_keys=["place"] if name == "c" else None
        )
        connection.call(
            pb.CreateTableRequest(
                table_path=path, table_json=made.to_json().encode(), ignore_if_exists=False
            )
        )
        table_id = connection.call(pb.GetTableInfoRequest(table_path=path)).table_id
        assert table_id not in self.ids, "a number is given again"
        self.ids.add(table_id)
        self.tables[name] = Known(table_id, len(schema.columns))

    def drop(self, connection, name, path, _) -> None:
        connection.call(pb.DropTableRequest(table_path=path, ignore_if_not_exists=False))
        del self.tables[name]

    def alter(self, connection, _, path, known) -> None:
        request = pb.AlterTableRequest(table_path=path, ignore_if_not_exists=False)
        request.add_columns.add(
            column_name=f"more_{known.columns}",
            data_type_json=b'{"type":"INTEGER"}',
            column_position_type=0,
        )
        connection.call(request)
        known.columns += 1

    def fill(self, connection, name, path, known) -> None:
        if name == "c":
            place = f"p{self.chance.randrange(4)}"
            if place in known.partitions:
                request = pb.DropPartitionRequest(table_path=path, ignore_if_not_exists=False)
                known.partitions.discard(place)
            else:
                request = pb.CreatePartitionRequest(table_path=path, ignore_if_not_exists=False)
                known.partitions.add(place)
            self.doubtful = f"{name} {place}"
            request.partition_spec.partition_key_values.add(key="place", value=place)
            connection.call(request)
            return
        request = pb.ProduceLogRequest(acks=-1, table_id=known.table_id, timeout_ms=1_000)
        request.buckets_req.add(bucket_id=0, records=batch_bytes(3, first=known.rows))
        (answer,) = connection.call(request).buckets_resp
        assert not answer.HasField("error_code"), answer.error_message
        known.rows += 3

    # --- afterwards -----------------------------------------------------------------------------

    def look(self, address: str) -> None:
        """Compare; accept either outcome of the change in doubt."""
        connection = RawConnection(address)
        listed = set(connection.call(pb.ListTablesRequest(database_name="fluss")).table_name)
        doubtful, self.doubtful = self.doubtful or "", None
        name = doubtful.split(" ")[0]
        assert listed - {name} == set(self.tables) - {name}
        for table in listed:
            path = pb.PbTablePath(database_name="fluss", table_name=table)
            info = connection.call(pb.GetTableInfoRequest(table_path=path))
            columns = len(TableDescriptor.from_json(info.table_json).schema.columns)
            known = self.tables.get(table)
            if known is None:
                assert info.table_id not in self.ids
                self.ids.add(info.table_id)
                known = self.tables[table] = Known(info.table_id, columns)
            assert info.table_id == known.table_id
            assert columns - known.columns in ({0, 1} if table == name else {0})
            known.columns = columns
            if table == "c":
                self.look_at_partitions(connection, path, known, doubtful)
            else:
                self.look_at_rows(connection, known, is_doubtful=table == name)
        for table in set(self.tables) - listed:
            del self.tables[table]
        connection.close()

    def look_at_partitions(self, connection, path, known, doubtful) -> None:
        listed = connection.call(pb.ListPartitionInfosRequest(table_path=path)).partitions_info
        places = {each.partition_spec.partition_key_values[0].value for each in listed}
        assert places - {doubtful[2:]} == known.partitions - {doubtful[2:]}
        known.partitions = places

    def look_at_rows(self, connection, known, *, is_doubtful) -> None:
        request = pb.ListOffsetsRequest(
            follower_server_id=-1, offset_type=1, table_id=known.table_id, bucket_id=[0]
        )
        (answer,) = connection.call(request).buckets_resp
        assert not answer.HasField("error_code"), answer.error_message
        assert answer.offset - known.rows in ({0, 3} if is_doubtful else {0})
        known.rows = answer.offset


@pytest.mark.slow  # kills and starts a server in every round
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("durability", ["process", "none"])
def test_a_kill_at_any_moment_does_not_look_like_damage(tmp_path, durability):
    chance = Random(durability)
    client = Client(chance)
    for _ in range(ROUNDS):
        with served(tmp_path / "data", durability) as (address, process):
            client.look(address)
            thread = threading.Thread(target=client.run, args=(address,))
            thread.start()
            time.sleep(chance.random())  # the moment is what is tested
            process.kill()
            thread.join()
    with served(tmp_path / "data", durability) as (address, _):
        client.look(address)
    assert client.changes > 10 * ROUNDS
    assert not client.failures


@contextmanager
def served(directory, durability):
    """Start a server with small segments; yield its address and its process."""
    command = [
        sys.executable, "-m", "fluss_server", "-d", str(directory), "--port", "0",
        "--segment-size", "2kb", "--durability", durability,
    ]  # fmt: skip
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        line = process.stdout.readline()
        assert "ready at" in line, process.communicate()[1]
        yield read_holder(directory).bootstrap_servers, process
        process.kill()
