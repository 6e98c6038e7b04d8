"""Scanning logs and changelogs of a real cluster."""

import time

import pyarrow as pa
import pytest

from fluss.admin.admin import admin_of
from fluss.errors import (
    FlussError,
    OffsetOutOfRangeError,
    PartitionNotFoundError,
    TableNotFoundError,
)
from fluss.model.change_type import ChangeType
from fluss.model.offsets import EARLIEST_OFFSET, LATEST_OFFSET
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.tables.partitions import PartitionSpec
from fluss.wire import messages as pb
from fluss.write.writer_pool import append_core
from tests.support.scripted.scripted_cluster import batch_bytes
from tests.support.servers.raw_client import RawClient
from tests.support.servers.read_harness import ReadHarness, poll_rows

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])
KEYED = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())])


@pytest.fixture
def harness(cluster, database):
    made = ReadHarness(cluster.bootstrap, database)
    yield made
    made.close()


def rows(numbers):
    return {"id": list(numbers), "name": [f"n{each}" for each in numbers]}


def keep_polling(scanner):
    for _ in range(60):
        scanner.poll_arrow(1_000)


def ids(table):
    return table.column("id").to_pylist()


# --- what is read ---------------------------------------------------------------------------------


def test_all_buckets_are_read_each_in_its_order(harness):
    table = harness.make(SCHEMA, bucket_count=7, bucket_keys=["id"])
    for start in range(0, 3_000, 500):
        harness.append(table, rows(range(start, start + 500)))
    with harness.scanner(table) as scanner:
        assert sorted(ids(scanner.to_arrow())) == list(range(3_000))
        found = {}
        deadline = time.monotonic() + 30
        while sum(map(len, found.values())) < 3_000 and time.monotonic() < deadline:
            for batch in scanner.poll_record_batch(500):
                before = found.setdefault(batch.bucket, [])
                assert batch.base_offset == len(before)
                before += ids(batch.batch)
    assert len(found) > 1
    assert all(each == sorted(each) for each in found.values())


def test_an_empty_table_is_read_immediately_from_any_offset(harness):
    table = harness.make(SCHEMA, bucket_count=3)
    for start in (EARLIEST_OFFSET, LATEST_OFFSET, 0):
        begin = time.monotonic()
        assert harness.read(table, start=start).num_rows == 0
        assert time.monotonic() - begin < 30


def test_partitions_are_read_by_their_ids(harness):
    schema = pa.schema([*SCHEMA, ("p", pa.string())])
    table = harness.make(schema, partition_keys=["p"], bucket_count=2)
    path = table.info.table_path
    admin = admin_of(harness.connection)
    for name in ("a", "b", "c"):
        harness.run(
            admin.create_partition(path, PartitionSpec({"p": name}), ignore_if_exists=False)
        )
        harness.append(table, {"id": [1, 2], "name": ["x", "y"], "p": [name, name]})
    partitions = {
        each.partition_name: each.partition_id
        for each in harness.run(admin.list_partition_infos(path))
    }
    with harness.scanner(table, start=None) as scanner:
        scanner.subscribe_partition_buckets(
            {(partitions[name], bucket): EARLIEST_OFFSET for name in "ab" for bucket in (0, 1)}
        )
        assert sorted(scanner.to_arrow().column("p").to_pylist()) == ["a", "a", "b", "b"]
        scanner.subscribe_partition(999_999, 0, EARLIEST_OFFSET)
        with pytest.raises(PartitionNotFoundError, match="999999"):
            scanner.to_arrow()


def test_offsets_choose_where_reading_begins(harness):
    table = harness.make(SCHEMA)
    harness.append(table, rows(range(10)))
    harness.append(table, rows(range(10, 15)))
    assert ids(harness.read(table, start=7)) == list(range(7, 15))
    assert ids(harness.read(table, start=15)) == []
    assert ids(harness.read(table, start=LATEST_OFFSET)) == []
    with harness.scanner(table, start=LATEST_OFFSET, gives_batches=False) as scanner:
        assert scanner.poll(100).is_empty()
        harness.append(table, rows([99]))
        (record,) = poll_rows(scanner, 1)
        assert (record.offset, record.row) == (15, {"id": 99, "name": "n99"})


def test_an_offset_out_of_range_is_refused_with_the_range(harness):
    table = harness.make(SCHEMA)
    harness.append(table, rows(range(3)))
    with pytest.raises(OffsetOutOfRangeError, match="the log ends at 3") as caught:
        harness.read(table, start=50)
    assert (caught.value.earliest_offset, caught.value.latest_offset) == (0, 3)


def test_a_tail_sees_rows_long_before_a_fetch_has_waited_out_its_time(harness, cluster):
    table = harness.make(SCHEMA)
    writer = append_core(table)
    waiting = {"scanner.log.fetch.wait-max-time": "10min"}
    tailing = ReadHarness(cluster.bootstrap, harness.database, **waiting)
    try:
        same = tailing.table(table.info.table_path)
        with tailing.scanner(same, start=LATEST_OFFSET, gives_batches=False) as scanner:
            scanner.poll(200)
            for number in range(20):
                writer.append({"id": number, "name": "x"})
                harness.run(writer.flush())
                (record,) = poll_rows(scanner, 1, timeout_s=30)
                assert record.row["id"] == number
    finally:
        tailing.close()


# --- changelogs -----------------------------------------------------------------------------------


def test_the_changelog_has_rows_before_and_after(harness):
    table = harness.make(KEYED, primary_keys=["id"])
    harness.upsert(table, {"id": 1, "name": "a"}, {"id": 2, "name": "b"}, {"id": 1, "name": "c"})
    harness.delete(table, {"id": 2})
    with harness.scanner(table, gives_batches=False) as scanner:
        records = poll_rows(scanner, 5)
    assert [
        (each.change_type, each.offset, each.row["id"], each.row["name"]) for each in records
    ] == [
        (ChangeType.Insert, 0, 1, "a"),
        (ChangeType.Insert, 1, 2, "b"),
        (ChangeType.UpdateBefore, 2, 1, "a"),
        (ChangeType.UpdateAfter, 3, 1, "c"),
        (ChangeType.Delete, 4, 2, "b"),
    ]


def test_writes_that_change_nothing_leave_offsets_without_rows(harness):
    table = harness.make(KEYED, primary_keys=["id"])
    harness.upsert(table, {"id": 1, "name": "a"})
    for _ in range(3):
        harness.delete(table, {"id": 77})
    assert ids(harness.read(table)) == [1]
    with harness.scanner(table, start=LATEST_OFFSET) as scanner:
        assert scanner.to_arrow().num_rows == 0
    harness.upsert(table, {"id": 2, "name": "b"})
    assert ids(harness.read(table)) == [1, 2]


# --- columns that came later ----------------------------------------------------------------------


def test_a_column_that_came_later_is_null_in_older_rows(harness):
    table = harness.make(SCHEMA)
    harness.append(table, rows([1, 2]))
    newer = harness.add_column(table, "extra", {"type": "INTEGER"})
    harness.append(newer, {"id": [3], "name": ["n3"], "extra": [30]})
    harness.append(table, rows([4]))  # an old writer goes on
    harness.append(newer, {"id": [5], "name": ["n5"], "extra": [50]})
    whole = {"id": [1, 2, 3, 4, 5], "name": ["n1", "n2", "n3", "n4", "n5"]}
    extra = [None, None, 30, None, 50]
    assert harness.read(newer).to_pydict() == {**whole, "extra": extra}
    assert harness.read(table).to_pydict() == whole
    assert harness.read(newer, [2, 0]).to_pydict() == {"extra": extra, "id": whole["id"]}
    assert harness.read(newer, [2]).to_pydict() == {"extra": extra}
    assert harness.read(newer, [0]).to_pydict() == {"id": whole["id"]}
    with harness.scanner(newer, [2], gives_batches=False) as scanner:
        assert [each.row["extra"] for each in poll_rows(scanner, 5)] == extra


def test_a_changelog_continues_over_a_new_column(harness):
    table = harness.make(KEYED, primary_keys=["id"])
    harness.upsert(table, {"id": 1, "name": "a"})
    newer = harness.add_column(table, "extra", {"type": "STRING"})
    harness.upsert(newer, {"id": 1, "name": "b", "extra": "e"})
    assert harness.read(newer, [2, 0]).to_pydict() == {"extra": [None, None, "e"], "id": [1, 1, 1]}
    assert harness.lookup(newer, {"id": 1}) == {"id": 1, "name": "b", "extra": "e"}
    assert harness.lookup(table, {"id": 1}) == {"id": 1, "name": "b"}


def test_a_batch_of_an_unknown_schema_is_named(harness, cluster):
    table = harness.make(SCHEMA)
    harness.append(table, rows([1]))
    quick = ReadHarness(cluster.bootstrap, harness.database, **{"operation-timeout": "2s"})
    try:
        other = quick.table(table.info.table_path)
        _append_with_schema(quick, other, 77)
        with quick.scanner(other) as scanner:
            assert ids(scanner.poll_arrow(5_000)) == [1]
            with pytest.raises(FlussError, match="schema"):
                scanner.poll_arrow(20_000)
    finally:
        quick.close()


def _append_with_schema(harness, table, schema_id):
    batch = pa.RecordBatch.from_pydict(rows([5]), table.info.schema.to_arrow())
    data = batch_bytes(batch, 0, schema=table.info.schema, schema_id=schema_id)
    path = table.info.table_path
    with RawClient(harness.bootstrap) as client:
        leader = client.leader(path.database_name, path.table_name)
        request = pb.ProduceLogRequest(acks=-1, table_id=table.info.table_id, timeout_ms=10_000)
        request.buckets_req.add(bucket_id=0, records=data)
        (answer,) = client.call(request, to=leader).buckets_resp
        assert not answer.HasField("error_code"), answer.error_message


# --- tables that go away --------------------------------------------------------------------------


def test_a_table_dropped_while_it_is_read_is_reported(harness):
    table = harness.make(SCHEMA)
    harness.append(table, rows([1]))
    with harness.scanner(table) as scanner:
        assert ids(scanner.poll_arrow(5_000)) == [1]
        admin = admin_of(harness.connection)
        harness.run(admin.drop_table(table.info.table_path, ignore_if_not_exists=False))
        with pytest.raises(TableNotFoundError):
            keep_polling(scanner)


def test_a_table_dropped_and_created_again_is_another(harness):
    table = harness.make(SCHEMA)
    harness.append(table, rows([1]))
    with harness.scanner(table) as scanner:
        assert ids(scanner.poll_arrow(5_000)) == [1]
        admin, path = admin_of(harness.connection), table.info.table_path
        harness.run(admin.drop_table(path, ignore_if_not_exists=False))
        again = TableDescriptor(table.info.schema, bucket_count=table.info.num_buckets)
        harness.run(admin.create_table(path, again, ignore_if_exists=False))
        with pytest.raises(TableNotFoundError):
            keep_polling(scanner)


def test_a_partition_dropped_while_it_is_read_stops_no_other(harness):
    schema = pa.schema([*SCHEMA, ("p", pa.string())])
    table = harness.make(schema, partition_keys=["p"])
    path, admin = table.info.table_path, admin_of(harness.connection)
    for name in "ab":
        harness.run(
            admin.create_partition(path, PartitionSpec({"p": name}), ignore_if_exists=False)
        )
        harness.append(table, {"id": [1], "name": ["x"], "p": [name]})
    partitions = {
        each.partition_name: each.partition_id
        for each in harness.run(admin.list_partition_infos(path))
    }
    with harness.scanner(table, start=None) as scanner:
        scanner.subscribe_partition_buckets(
            {(each, 0): EARLIEST_OFFSET for each in partitions.values()}
        )
        assert sorted(scanner.to_arrow().column("p").to_pylist()) == ["a", "b"]
        while scanner.poll_arrow(500).num_rows:
            pass
        harness.run(
            admin.drop_partition(path, PartitionSpec({"p": "a"}), ignore_if_not_exists=False)
        )
        harness.append(table, {"id": [2], "name": ["y"], "p": ["b"]})
        seen, errors = [], []
        deadline = time.monotonic() + 60
        # Which of the two comes first is the server's business.
        while not (seen and errors) and time.monotonic() < deadline:
            try:
                seen += ids(scanner.poll_arrow(500))
            except PartitionNotFoundError as error:
                errors = [error]
        assert seen == [2]
        assert errors


# --- the ways in ----------------------------------------------------------------------------------


def test_a_scanner_logs_in_where_servers_require_it(cluster, database, harness):
    table = harness.make(SCHEMA, bucket_count=2)
    harness.append(table, rows(range(10)))
    facts = {
        "security.protocol": "sasl",
        "security.sasl.username": cluster.user,
        "security.sasl.password": cluster.password,
    }
    other = ReadHarness(cluster.sasl_bootstrap, database, **facts)
    try:
        assert sorted(ids(other.read(other.table(table.info.table_path)))) == list(range(10))
    finally:
        other.close()
