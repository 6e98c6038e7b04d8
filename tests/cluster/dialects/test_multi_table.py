"""Many tables in the awaited dialect: one writer, and one scanner of logs."""

import pytest

import fluss
import fluss.aio
from fluss.aio import EARLIEST_OFFSET, LATEST_OFFSET, MultiTableWriteRecord, TablePath
from fluss.errors import ClosedError, FlussError, InvalidValueError, UnsupportedOperationError

LOG = {"id": "BIGINT", "note": "STRING"}
KEYED = {"id": "BIGINT NOT NULL", "name": "STRING"}


@pytest.fixture
def session(cluster, database):
    with fluss.connect(f"fluss://{cluster.bootstrap}/{database}") as opened:
        opened.create_table("clicks", LOG, buckets=1)
        opened.create_table("users", KEYED, primary_key="id", buckets=1)
        yield opened


@pytest.fixture
async def many(session, cluster):
    config = fluss.aio.Config({"bootstrap.servers": cluster.bootstrap})
    async with await fluss.aio.FlussConnection.create(config) as connection:
        yield connection.get_multi_table()


@pytest.fixture
def names(session):
    return str(session.path_of("clicks")), str(session.path_of("users"))


async def taken(scanner, count):
    found = []
    for _ in range(200):
        found += await scanner.poll(100)
        if len(found) >= count:
            return found
    return found


async def test_records_of_many_tables_are_written(session, many, names):
    clicks, users = names
    async with many.new_multi_table_write().create_writer() as writer:
        handle = writer.write(MultiTableWriteRecord.for_append(clicks, {"id": 1, "note": "a"}))
        writer.write(MultiTableWriteRecord.for_append(TablePath.parse(clicks), [2, "b"]))
        writer.write(MultiTableWriteRecord.for_upsert(users, {"id": 1, "name": "one"}))
        writer.write(MultiTableWriteRecord.for_upsert(users, (2, "two")))
        writer.write(MultiTableWriteRecord.for_delete(users, {"id": 1}))
        await handle
        assert handle.done
        report = await writer.flush()
        assert {name: each.rows for name, each in report.items()} == {clicks: 2, users: 3}
        with pytest.raises(UnsupportedOperationError):
            writer.write(MultiTableWriteRecord.for_upsert(clicks, {"id": 3}))
        with pytest.raises(InvalidValueError):
            writer.write(MultiTableWriteRecord.for_upsert(users, {"id": "x"}))
    with pytest.raises(ClosedError):
        writer.write(MultiTableWriteRecord.for_append(clicks, {"id": 3}))
    assert session.table("users").to_arrow().to_pylist() == [{"id": 2, "name": "two"}]
    assert session.table("clicks").count() == 2


async def test_a_failed_table_is_reported_after_the_others_are_written(session, many, names):
    clicks, _ = names
    gone = session.create_table("gone", LOG).name
    writer = many.new_multi_table_write().create_writer()
    writer.write(MultiTableWriteRecord.for_append(gone, {"id": 1}))
    await writer.flush()
    session.drop_table("gone")
    for _ in range(200):  # servers of 0.9.1 take rows until they have dropped the table
        writer.write(MultiTableWriteRecord.for_append(gone, {"id": 2}))
        writer.write(MultiTableWriteRecord.for_append(clicks, {"id": 2}))
        try:
            await writer.flush()
        except FlussError as error:
            failed = error
            break
    assert failed.table == gone
    assert failed.delivered[clicks].rows == 1
    await writer.close()


async def test_logs_of_many_tables_are_read(session, many, names):
    clicks, users = names
    session.append("clicks", [{"id": 1, "note": "a"}, {"id": 2}])
    session.upsert("users", [{"id": 1, "name": "one"}])
    session.delete("users", [1])
    async with many.new_multi_table_scan().create_log_scanner() as scanner:
        assert (await scanner.poll(10)).is_empty()
        await scanner.subscribe(clicks, 0, EARLIEST_OFFSET)
        await scanner.subscribe_from_beginning(users, 0)
        found = await taken(scanner, 4)
        rows = [(str(each.table_path), each.scan_record.row["id"]) for each in found]
        assert sorted(rows) == sorted([(clicks, 1), (clicks, 2), (users, 1), (users, 1)])
        changes = [each.scan_record.change_type for each in found if str(each.table_path) == users]
        assert [each.short_string() for each in changes] == ["+I", "-D"]
        session.append("clicks", [{"id": 3}])
        records = await scanner.poll(5_000)
        (bucket,) = records.buckets(clicks)
        assert records.table_paths() == [TablePath.parse(clicks)]
        assert (records.count(), records.has_progress()) == (1, True)
        assert records.consumed_up_to_offset(bucket) == 3
        assert records.records(clicks, bucket)[0].scan_record.offset == 2
        scanner.unsubscribe(clicks, 0)
        await scanner.subscribe(users, 0, LATEST_OFFSET)
        session.append("clicks", [{"id": 4}])
        session.upsert("users", [{"id": 9, "name": "new"}])
        (record,) = await taken(scanner, 1)
        assert record.scan_record.row == {"id": 9, "name": "new"}
        with pytest.raises(FlussError, match="bucket"):
            await scanner.subscribe(clicks, 7, 0)
        with pytest.raises(FlussError, match="partition"):
            await scanner.subscribe_partition(clicks, 1, 0, 0)
        with pytest.raises(InvalidValueError, match="no offset -5"):
            await scanner.subscribe(clicks, 0, -5)
