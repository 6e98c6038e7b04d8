"""Reading, in both dialects: scanners of both kinds, projections, filters, limits, errors."""

import asyncio
import time
from datetime import UTC, datetime
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pytest

from fluss.errors import (
    ClosedError,
    FlussError,
    InvalidSchemaError,
    InvalidValueError,
    OffsetOutOfRangeError,
    PartitionNotFoundError,
    SchemaMismatchError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from fluss.model.predicates.predicate import col
from tests.support.servers.dialects import settle

COLUMNS = {"id": pa.int32(), "name": pa.string(), "score": pa.float64()}
QUICK_S = 20


def rows(count, start=0):
    return [
        {"id": each, "name": None if each % 3 == 0 else f"n{each}", "score": each / 2}
        for each in range(start, start + count)
    ]


# --- scanners of records --------------------------------------------------------------------------


async def test_records_come_with_offset_time_and_change_type(dialect):
    fluss = dialect.fluss
    table = await dialect.filled(COLUMNS, rows(5))
    scanner = await table.new_scan().create_log_scanner()
    scanner.subscribe(bucket_id=0, start_offset=fluss.EARLIEST_OFFSET)
    records = await dialect.poll(scanner, 5)
    assert [each.offset for each in records] == [0, 1, 2, 3, 4]
    assert [each.row for each in records] == rows(5)
    assert {each.change_type for each in records} == {fluss.ChangeType.AppendOnly}
    assert records[0].change_type.short_string() == "+A"
    now = datetime.now(UTC).timestamp() * 1_000
    assert all(abs(each.timestamp - now) < 3_600_000 for each in records)
    assert "offset=0" in repr(records[0])


async def test_the_result_of_a_poll_is_a_sequence_and_a_mapping(dialect):
    table = await dialect.table(COLUMNS, bucket_count=3, bucket_keys=["id"])
    writer = table.new_append().create_writer()
    for each in rows(60):
        writer.append(each)
    await writer.flush()
    scanner = await table.new_scan().create_log_scanner()
    scanner.subscribe_buckets(dict.fromkeys(range(3), dialect.fluss.EARLIEST_OFFSET))
    seen = []
    while len(seen) < 60:
        found = await settle(scanner.poll(2_000))
        assert len(found) == found.count() == len(list(found))
        assert found.is_empty() == (len(found) == 0)
        assert found.buckets() == found.keys() == list(dict(found.items()))
        assert [each for several in found.values() for each in several] == list(found)
        assert found[:2] == list(found)[:2]
        if not found.is_empty():
            *_, last = found
            assert (found[0].row, found[-1].row) == (next(iter(found)).row, last.row)
            bucket = found.buckets()[0]
            assert bucket in found
            assert found[bucket] == found.records(bucket)
        absent = dialect.fluss.TableBucket(99_999, 0)
        assert absent not in found
        assert found.records(absent) == []
        with pytest.raises(KeyError):
            found[absent]
        seen += [each.row["id"] for each in found]
    assert sorted(seen) == list(range(60))


async def test_a_poll_gives_no_more_records_than_is_set_and_loses_none(dialect):
    config = dialect.connection.config()
    config.scanner_log_max_poll_records = 7
    connection = await dialect.fluss.FlussConnection.create(config)
    table = await dialect.filled(COLUMNS, rows(30))
    again = await connection.get_table(table.get_table_path())
    scanner = await again.new_scan().create_log_scanner()
    scanner.subscribe(0, -2)
    sizes, seen = [], []
    while len(seen) < 30:
        found = await settle(scanner.poll(2_000))
        sizes.append(len(found))
        seen += [each.offset for each in found]
    assert seen == list(range(30))
    assert max(sizes) == 7
    await settle(connection.close())


async def test_a_changelog_has_the_change_of_each_row(dialect):
    table = await dialect.table(COLUMNS, primary_keys=["id"])
    writer = table.new_upsert().create_writer()
    await writer.upsert([1, "a", 1.0]).wait()
    await writer.upsert([1, "b", 2.0]).wait()
    await writer.delete({"id": 1}).wait()
    scanner = await table.new_scan().create_log_scanner()
    scanner.subscribe(0, dialect.fluss.EARLIEST_OFFSET)
    records = await dialect.poll(scanner, 4)
    found = [(each.change_type.short_string(), each.row["name"]) for each in records]
    assert found == [("+I", "a"), ("-U", "a"), ("+U", "b"), ("-D", "b")]
    batches = await table.new_scan().create_record_batch_log_scanner()
    batches.subscribe(0, -2)
    changes = []
    while len(changes) < 4:
        for batch in await settle(batches.poll_record_batch(2_000)):
            changes += [each.short_string() for each in batch.change_types]
    assert changes == ["+I", "-U", "+U", "-D"]


async def test_a_poll_waits_no_longer_than_its_timeout(dialect):
    table = await dialect.table(COLUMNS)
    scanner = await table.new_scan().create_log_scanner()
    assert (await settle(scanner.poll(5_000))).is_empty(), "nothing is subscribed"
    scanner.subscribe(0, dialect.fluss.EARLIEST_OFFSET)
    began = time.monotonic()
    assert (await settle(scanner.poll(timeout_ms=300))).is_empty()
    assert 0.25 < time.monotonic() - began < QUICK_S
    assert (await settle(scanner.poll(0))).is_empty()
    for wrong in (-1, 1.5, "1", True):
        with pytest.raises(InvalidValueError, match="timeout"):
            await settle(scanner.poll(wrong))


async def test_rows_written_later_come_with_later_polls(dialect):
    table = await dialect.filled(COLUMNS, rows(2))
    scanner = await table.new_scan().create_log_scanner()
    scanner.subscribe(0, -2)
    assert len(await dialect.poll(scanner, 2)) == 2
    writer = table.new_append().create_writer()
    await writer.append(rows(3)[2]).wait()
    assert [each.offset for each in await dialect.poll(scanner, 1)] == [2]


# --- scanners of batches --------------------------------------------------------------------------


async def test_tables_frames_and_batches_are_read(dialect):
    table = await dialect.filled(COLUMNS, rows(10))
    scan = table.new_scan()
    scanner = await scan.create_record_batch_log_scanner()
    scanner.subscribe_buckets({0: dialect.fluss.EARLIEST_OFFSET})
    arrow = await settle(scanner.to_arrow())
    assert arrow.schema == table.arrow_schema
    assert arrow.to_pylist() == rows(10)
    frame = await settle(scanner.to_pandas())
    assert isinstance(frame, pd.DataFrame)
    assert list(frame["id"]) == list(range(10)), "the same rows again"
    polled = await settle(scanner.poll_arrow(timeout_ms=2_000))
    assert polled.to_pylist() == rows(10)
    assert (await settle(scanner.poll_arrow(10))).num_rows == 0
    scanner.subscribe(0, 4)
    for name in ("poll_record_batch", "poll_batches"):
        scanner.subscribe(0, 4)
        (batch,) = await settle(getattr(scanner, name)(timeout_ms=2_000))
        assert batch.batch.to_pylist() == rows(6, start=4)
        assert (batch.base_offset, batch.last_offset, batch.num_records) == (4, 9, 6)
        assert batch.bucket == dialect.bucket(table)


async def test_a_bounded_read_ends_where_the_log_ended_when_it_began(dialect):
    table = await dialect.filled(COLUMNS, rows(3))
    scanner = await table.new_scan().create_batch_scanner()
    scanner.subscribe(0, 1)
    assert (await settle(scanner.to_arrow())).to_pylist() == rows(2, start=1)
    writer = table.new_append().create_writer()
    await writer.append(rows(4)[3]).wait()
    assert (await settle(scanner.to_arrow())).to_pylist() == rows(3, start=1)


async def test_a_reader_of_batches_is_plain_and_works_inside_a_running_loop(dialect):
    table = await dialect.filled(COLUMNS, rows(10))
    scanner = await table.new_scan().create_record_batch_log_scanner()
    scanner.subscribe(0, -2)
    reader = scanner.to_arrow_batch_reader()
    assert isinstance(reader, pa.RecordBatchReader)
    assert asyncio.get_running_loop().is_running()
    assert reader.read_all().to_pylist() == rows(10)


async def test_nothing_subscribed_is_nothing_to_read(dialect):
    table = await dialect.table(COLUMNS)
    scanner = await table.new_scan().create_record_batch_log_scanner()
    with pytest.raises(FlussError, match="No buckets are subscribed"):
        await settle(scanner.to_arrow())


async def test_an_empty_table_gives_an_empty_result_with_its_columns(dialect):
    table = await dialect.table(COLUMNS)
    scanner = await table.new_scan().create_record_batch_log_scanner()
    scanner.subscribe(0, -2)
    assert (await settle(scanner.to_arrow())) == table.arrow_schema.empty_table()
    assert list((await settle(scanner.to_pandas())).columns) == list(COLUMNS)


async def test_async_for_gives_records_and_batches_as_they_come(dialect):
    if not dialect.is_awaited:
        pytest.skip("reads of this dialect are not awaited")
    table = await dialect.filled(COLUMNS, rows(3))
    scanner = await table.new_scan().create_log_scanner()
    with pytest.raises(FlussError, match="nothing to wait for"):
        await anext(aiter(scanner))
    scanner.subscribe(0, -2)
    found = []
    async for record in scanner:
        found.append(record.row)
        if len(found) == 3:
            break
    assert found == rows(3)
    batches = await table.new_scan().create_record_batch_log_scanner()
    batches.subscribe(0, -2)
    async for batch in batches:
        assert batch.batch.to_pylist() == rows(3)
        batches.unsubscribe(0)


# --- subscriptions --------------------------------------------------------------------------------


async def test_reading_may_begin_at_the_latest_offset(dialect):
    table = await dialect.filled(COLUMNS, rows(3))
    path = table.get_table_path()
    latest = (await dialect.admin.list_offsets(path, [0], dialect.fluss.OffsetSpec.latest()))[0]
    for offset in (latest, dialect.fluss.LATEST_OFFSET):
        scanner = await table.new_scan().create_log_scanner()
        scanner.subscribe(bucket_id=0, start_offset=offset)
        await asyncio.sleep(0.3)
        writer = table.new_append().create_writer()
        await writer.append([100, "new", 0.0]).wait()
        assert [each.row["id"] for each in await dialect.poll(scanner, 1)] == [100]


async def test_what_is_unsubscribed_is_not_read_any_more(dialect):
    table = await dialect.table(COLUMNS, bucket_count=2, bucket_keys=["id"])
    writer = table.new_append().create_writer()
    for each in rows(50):
        writer.append(each)
    await writer.flush()
    scanner = await table.new_scan().create_record_batch_log_scanner()
    scanner.subscribe_buckets({0: -2, 1: -2})
    assert not scanner.is_partitioned()
    assert len(scanner.get_subscribed_buckets()) == 2
    scanner.unsubscribe(bucket_id=0)
    assert scanner.get_subscribed_buckets() == [(dialect.bucket(table, 1), -2)]
    some = await settle(scanner.to_arrow())
    assert 0 < some.num_rows < 50
    scanner.subscribe(0, -2)
    assert (await settle(scanner.to_arrow())).num_rows == 50


async def test_partitions_are_read_by_their_ids(dialect):
    table = await dialect.table({"id": pa.int32(), "r": pa.string()}, partition_keys=["r"])
    path = table.get_table_path()
    for value in ("US", "EU"):
        await dialect.admin.create_partition(path, {"r": value})
    writer = table.new_append().create_writer()
    writer.append([1, "US"])
    writer.append([2, "EU"])
    writer.append([3, "US"])
    await writer.flush()
    infos = await dialect.admin.list_partition_infos(path)
    ids = {each.partition_name: each.partition_id for each in infos}
    scanner = await table.new_scan().create_batch_scanner()
    assert scanner.is_partitioned()
    scanner.subscribe_partition(partition_id=ids["US"], bucket_id=0, start_offset=-2)
    assert (await settle(scanner.to_arrow()))["id"].to_pylist() == [1, 3]
    scanner.subscribe_partition_buckets({(each, 0): -2 for each in ids.values()})
    assert sorted((await settle(scanner.to_arrow()))["id"].to_pylist()) == [1, 2, 3]
    scanner.unsubscribe_partition(ids["US"], 0)
    assert (await settle(scanner.to_arrow()))["id"].to_pylist() == [2]
    with pytest.raises(FlussError, match="is partitioned"):
        scanner.subscribe(0, -2)
    records = await table.new_scan().create_log_scanner()
    records.subscribe_partition(123_456_789, 0, -2)
    with pytest.raises(PartitionNotFoundError):
        await settle(records.poll(5_000))


@pytest.mark.parametrize(
    ("bucket", "offset", "message"),
    [(7, 0, "no bucket 7"), (-1, 0, "no bucket -1"), ("0", 0, "A bucket is a number"),
     (0, -3, "no offset -3"), (0, "earliest", "An offset is a number")],
)  # fmt: skip
async def test_a_subscription_that_cannot_be_is_refused(dialect, bucket, offset, message):
    table = await dialect.table(COLUMNS)
    scanner = await table.new_scan().create_log_scanner()
    with pytest.raises(InvalidValueError, match=message):
        scanner.subscribe(bucket, offset)
    with pytest.raises(FlussError, match="not partitioned"):
        scanner.subscribe_partition(1, 0, 0)


# --- projections ----------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [["id"], ["score", "id"], ["name"], ["score", "name", "id"]])
async def test_columns_are_chosen_by_position_or_by_name(dialect, columns):
    table = await dialect.filled(COLUMNS, rows(4))
    expected = [{name: row[name] for name in columns} for row in rows(4)]
    positions = [list(COLUMNS).index(name) for name in columns]
    for scan in (table.new_scan().project(positions), table.new_scan().project_by_name(columns)):
        found = await dialect.rows(scan)
        assert found == expected
        assert [list(each) for each in found] == [columns] * 4
        scanner = await scan.create_log_scanner()
        scanner.subscribe(0, -2)
        assert [each.row for each in await dialect.poll(scanner, 4)] == expected


async def test_rows_can_be_counted_without_any_column(dialect):
    table = await dialect.filled(COLUMNS, rows(4))
    scanner = await table.new_scan().project([]).create_record_batch_log_scanner()
    scanner.subscribe(0, -2)
    assert (await settle(scanner.to_arrow())).num_rows == 4


async def test_a_description_is_changed_and_returned(dialect):
    table = await dialect.table(COLUMNS)
    scan = table.new_scan()
    assert scan.project([0]) is scan
    assert scan.project_by_name(["id"]) is scan
    assert scan.filter(col("id") > 1) is scan
    assert scan.limit(3) is scan
    assert scan.with_fixed_schema(True) is scan
    assert scan.with_fixed_schema(False) is scan
    assert "columns=[id], filter=id > 1, limit=3" in repr(scan)


async def test_a_column_that_does_not_exist_is_refused_with_the_nearest(dialect):
    table = await dialect.table(COLUMNS)
    with pytest.raises(InvalidSchemaError) as caught:
        table.new_scan().project_by_name(["nmae"])
    assert caught.value.hint == "did you mean 'name'?"
    for wrong in ([3], [-1], ["id"], [True], [0, 0]):
        with pytest.raises(SchemaMismatchError):
            table.new_scan().project(wrong)
    with pytest.raises(SchemaMismatchError, match="twice"):
        table.new_scan().project_by_name(["id", "id"])


# --- filters --------------------------------------------------------------------------------------


async def test_a_filter_is_exact_and_may_look_at_columns_that_are_not_read(dialect):
    table = await dialect.filled(COLUMNS, rows(20))
    for predicate, holds in (
        (col("id") > 15, lambda row: row["id"] > 15),
        (
            col("name").is_null() & (col("score") < 5),
            lambda r: r["name"] is None and r["score"] < 5,
        ),
        (col("name").is_in(["n1", "n2"]), lambda row: row["name"] in {"n1", "n2"}),
        (col("id") < 0, lambda row: row["id"] < 0),
    ):
        expected = [row for row in rows(20) if holds(row)]
        assert await dialect.rows(table.new_scan().filter(predicate)) == expected
        projected = table.new_scan().project_by_name(["score"]).filter(predicate)
        assert await dialect.rows(projected) == [{"score": row["score"]} for row in expected]


async def test_filtered_records_keep_their_offsets(dialect):
    table = await dialect.filled(COLUMNS, rows(9))
    scan = table.new_scan().filter(col("name").is_null())
    scanner = await scan.create_log_scanner()
    scanner.subscribe(0, -2)
    records = await dialect.poll(scanner, 3)
    assert [(each.offset, each.row["id"]) for each in records] == [(0, 0), (3, 3), (6, 6)]
    batches = await scan.create_record_batch_log_scanner()
    batches.subscribe(0, 1)
    (batch,) = await settle(batches.poll_record_batch(2_000))
    assert (batch.base_offset, batch.last_offset, batch.num_records) == (3, 6, 2)


async def test_filters_of_every_kind_of_value_work_on_stored_rows(dialect):
    columns = {
        "money": pa.decimal128(10, 2),
        "moment": pa.timestamp("us", "UTC"),
        "flag": pa.bool_(),
        "real": pa.float32(),
    }
    moment = datetime(2024, 1, 1, tzinfo=UTC)
    stored = [
        {"money": Decimal("1.50"), "moment": moment, "flag": True, "real": 0.5},
        {
            "money": Decimal("-2.25"),
            "moment": moment.replace(year=1960),
            "flag": False,
            "real": None,
        },
        {"money": None, "moment": None, "flag": None, "real": float("nan")},
    ]
    table = await dialect.filled(columns, stored)
    for predicate, expected in (
        (col("money") < 0, [1]),
        (col("money") == Decimal("1.5"), [0]),
        (col("moment") >= moment, [0]),
        (col("flag") == False, [1]),  # noqa: E712 - that is how it is written
        (col("real") > 0, [0]),
    ):
        found = await dialect.rows(table.new_scan().filter(predicate))
        assert [each["money"] for each in found] == [stored[each]["money"] for each in expected]


async def test_two_filters_must_both_hold(dialect):
    table = await dialect.filled(COLUMNS, rows(9))
    scan = table.new_scan().filter(col("id") > 2).filter(col("id") < 5)
    assert [each["id"] for each in await dialect.rows(scan)] == [3, 4]


async def test_a_filter_that_does_not_fit_the_table_is_refused(dialect):
    table = await dialect.table(COLUMNS)
    with pytest.raises(InvalidSchemaError) as caught:
        table.new_scan().filter(col("scoer") > 1)
    assert caught.value.hint == "did you mean 'score'?"
    with pytest.raises(InvalidValueError, match="'id' is INT"):
        table.new_scan().filter(col("id") > "1")
    with pytest.raises(UnsupportedOperationError):
        table.new_scan().filter(col("id").starts_with("1"))
    with pytest.raises(InvalidValueError, match="A filter is a predicate"):
        table.new_scan().filter("id > 1")


# --- limits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("keys", [None, ["id"]])
async def test_a_few_rows_of_a_bucket_are_read_without_its_log(dialect, keys):
    table = await dialect.filled(COLUMNS, rows(10), primary_keys=keys)
    expected = rows(3) if keys else rows(3, start=7)
    bucket = dialect.bucket(table)
    scan = table.new_scan().limit(3)
    scanner = scan.create_bucket_batch_scanner(bucket)
    assert scanner.bucket == bucket
    arrow = await settle(scanner.to_arrow())
    assert arrow.schema == table.arrow_schema
    assert arrow.to_pylist() == expected
    assert (await settle(scanner.to_pandas()))["id"].tolist() == [row["id"] for row in expected]
    batches = await settle(scanner.collect_all_batches())
    assert [row for batch in batches for row in batch.batch.to_pylist()] == expected
    handed_out = []
    while (batch := await settle(scanner.next_batch())) is not None:
        handed_out += batch.batch.to_pylist()
        assert batch.bucket == bucket
    assert handed_out == expected
    assert await settle(scanner.next_batch()) is None
    assert await settle(scanner.collect_all_batches()) == []
    assert (await settle(scanner.to_arrow())).num_rows == 0


@pytest.mark.parametrize("keys", [None, ["id"]])
async def test_a_limit_counts_rows_that_are_chosen_and_projected(dialect, keys):
    table = await dialect.filled(COLUMNS, rows(40), primary_keys=keys)
    scan = table.new_scan().project_by_name(["score"]).filter(col("name").is_null()).limit(5)
    found = await settle(scan.create_bucket_batch_scanner(dialect.bucket(table)).to_arrow())
    matching = [row for row in rows(40) if row["name"] is None]
    expected = matching[:5] if keys else matching[-5:]
    assert found.to_pylist() == [{"score": row["score"]} for row in expected]


async def test_fewer_rows_than_the_limit_and_none_at_all(dialect):
    table = await dialect.filled(COLUMNS, rows(2))
    scanner = table.new_scan().limit(100).create_bucket_batch_scanner(dialect.bucket(table))
    assert (await settle(scanner.to_arrow())).to_pylist() == rows(2)
    for keys in (None, ["id"]):
        empty = await dialect.table(COLUMNS, primary_keys=keys)
        scanner = empty.new_scan().limit(100).create_bucket_batch_scanner(dialect.bucket(empty))
        assert await settle(scanner.to_arrow()) == empty.arrow_schema.empty_table()
        assert await settle(scanner.next_batch()) is None


async def test_a_bucket_of_a_partition_is_read_up_to_a_limit(dialect):
    table = await dialect.table({"id": pa.int32(), "r": pa.string()}, partition_keys=["r"])
    await dialect.admin.create_partition(table.get_table_path(), {"r": "US"})
    await table.new_append().create_writer().append([5, "US"]).wait()
    (info,) = await dialect.admin.list_partition_infos(table.get_table_path())
    table_id = table.get_table_info().table_id
    bucket = dialect.fluss.TableBucket.with_partition(table_id, info.partition_id, 0)
    scanner = table.new_scan().limit(3).create_bucket_batch_scanner(bucket)
    assert (await settle(scanner.to_arrow())).to_pylist() == [{"id": 5, "r": "US"}]
    with pytest.raises(FlussError, match="partitioned"):
        table.new_scan().limit(3).create_bucket_batch_scanner(dialect.bucket(table))


async def test_limits_are_for_buckets_and_above_zero(dialect):
    table = await dialect.table(COLUMNS)
    for wrong in (0, -1, 1.5, "3", True, 2**31):
        with pytest.raises(InvalidValueError, match="A limit is"):
            table.new_scan().limit(wrong)
    with pytest.raises(FlussError, match="needs a limit"):
        table.new_scan().create_bucket_batch_scanner(dialect.bucket(table))
    for create in ("create_log_scanner", "create_record_batch_log_scanner"):
        with pytest.raises(FlussError, match="no limit") as caught:
            await getattr(table.new_scan().limit(3), create)()
        assert "create_bucket_batch_scanner" in caught.value.hint
    for wrong in (dialect.fluss.TableBucket(99_999, 0), dialect.bucket(table, 9), 0):
        with pytest.raises(InvalidValueError):
            table.new_scan().limit(3).create_bucket_batch_scanner(wrong)


# --- trouble --------------------------------------------------------------------------------------


async def test_the_wrong_kind_of_scanner_is_refused_with_the_right_one(dialect):
    table = await dialect.table(COLUMNS)
    records = await table.new_scan().create_log_scanner()
    batches = await table.new_scan().create_record_batch_log_scanner()
    for scanner, calls, hint in (
        (records, ("poll_arrow", "poll_record_batch"), "create_record_batch_log_scanner()"),
        (batches, ("poll",), "create_log_scanner()"),
    ):
        for call in calls:
            with pytest.raises(FlussError) as caught:
                await settle(getattr(scanner, call)(10))
            assert hint in caught.value.hint
    for call in ("to_arrow", "to_pandas", "to_arrow_batch_reader"):
        with pytest.raises(FlussError, match=call):
            await settle(getattr(records, call)())


async def test_an_offset_beyond_the_log_is_refused_with_what_there_is(dialect):
    table = await dialect.filled(COLUMNS, rows(3))
    scanner = await table.new_scan().create_log_scanner()
    scanner.subscribe(0, 1_000)
    began = time.monotonic()
    with pytest.raises(OffsetOutOfRangeError) as caught:
        await settle(scanner.poll(10_000))
    assert time.monotonic() - began < QUICK_S
    assert caught.value.bucket == 0
    assert caught.value.offset == 1_000
    assert str(table.get_table_path()) in str(caught.value)
    assert caught.value.hint


async def test_a_table_that_is_dropped_while_it_is_read_is_missed(dialect):
    table = await dialect.filled(COLUMNS, rows(3))
    scanner = await table.new_scan().create_log_scanner()
    scanner.subscribe(0, -2)
    assert len(await dialect.poll(scanner, 3)) == 3
    await dialect.admin.drop_table(table.get_table_path())
    began = time.monotonic()
    with pytest.raises(TableNotFoundError, match=str(table.get_table_path())):
        await dialect.poll(scanner, 1)
    assert time.monotonic() - began < QUICK_S


async def test_a_scanner_of_a_closed_connection_is_closed(dialect):
    table = await dialect.filled(COLUMNS, rows(3))
    other = await dialect.fluss.FlussConnection.create(dialect.connection.config())
    again = await other.get_table(table.get_table_path())
    scanner = await again.new_scan().create_log_scanner()
    scanner.subscribe(0, -2)
    await dialect.poll(scanner, 3)
    await settle(other.close())
    with pytest.raises(ClosedError):
        await dialect.poll(scanner, 1)


async def test_a_poll_that_is_cancelled_leaves_the_scanner_usable(dialect):
    if not dialect.is_awaited:
        pytest.skip("reads of this dialect are not awaited")
    table = await dialect.table(COLUMNS)
    scanner = await table.new_scan().create_log_scanner()
    scanner.subscribe(0, -2)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(scanner.poll(60_000), timeout=0.2)
    await table.new_append().create_writer().append(rows(1)[0]).wait()
    assert [each.row for each in await dialect.poll(scanner, 1)] == rows(1)
