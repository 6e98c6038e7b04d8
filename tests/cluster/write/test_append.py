"""Appending to log tables of a real cluster."""

import collections
import datetime as dt
import threading
import time
from itertools import pairwise
from random import Random

import pyarrow as pa
import pytest

from fluss.errors import (
    ClosedError,
    InvalidValueError,
    LimitExceededError,
    PartitionNotFoundError,
    SchemaMismatchError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from fluss.model.schema.column import Column
from fluss.model.schema.schema import Schema
from fluss.model.types.type_to_arrow import to_arrow_schema
from fluss.model.values.conversion import from_physical, to_physical
from tests.support.generators.random_values import ALL_TYPES, exact, random_rows
from tests.support.servers.write_harness import wait

SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int32()), ("s", pa.string())])


# Every test runs with the function in Python, and with the one in C before it.
pytestmark = pytest.mark.usefixtures("row_functions")


def row(number):
    return {"id": number, "n": number * 2, "s": f"row {number}"}


def test_rows_of_every_shape_are_appended_in_order(harness):
    table = harness.table(SCHEMA)
    core = harness.appender(table)
    core.append(row(0))
    core.append([1, 2, "row 1"])
    core.append((2, 4, "row 2"))
    core.append({"id": 3})
    harness.flush(core)
    assert harness.rows(table) == [row(0), row(1), row(2), {"id": 3, "n": None, "s": None}]
    assert core.rows_taken == 4


def test_a_handle_has_the_bucket_and_offset_of_its_row(harness):
    table = harness.table(SCHEMA)
    core = harness.appender(table)
    first, second = core.append(row(0)), core.append(row(1))
    assert not first.done
    (batch,) = wait(second)
    assert (batch.bucket.table_id, batch.offset, batch.row_count) == (table.table_id, 0, 2)
    assert first.done
    assert wait(first) == (batch,)
    (later,) = wait(core.append(row(2)))
    assert later.offset == 2


def test_awaiting_a_row_does_not_wait_for_the_linger_time(harness):
    core = harness.appender(harness.table(SCHEMA), linger_ms=600_000)
    wait(core.append(row(0)))
    began = time.perf_counter()
    for number in range(20):
        wait(core.append(row(number)))
    assert time.perf_counter() - began < 60


def test_rows_that_are_not_awaited_are_sent_after_the_linger_time(harness):
    table = harness.table(SCHEMA)
    core = harness.appender(table, linger_ms=50)
    handle = core.append(row(0))
    deadline = time.monotonic() + 30
    while not handle.done and time.monotonic() < deadline:
        time.sleep(0.01)
    assert handle.done
    assert harness.rows(table) == [row(0)]


@pytest.mark.parametrize("acks", [-1, 1, 0])
def test_all_kinds_of_acks_are_answered(harness, acks):
    table = harness.table(SCHEMA)
    core = harness.appender(table, acks=acks, is_idempotent=acks == -1)
    wait(core.append(row(0)))
    assert harness.rows(table) == [row(0)]


def test_every_type_arrives_as_it_was_given(harness):
    columns = [Column(f"c{index}", each) for index, each in enumerate(ALL_TYPES)]
    schema = to_arrow_schema(Schema(columns))
    table = harness.table(schema)
    types = table.schema.column_types
    back = [from_physical(each) for each in types]
    forth = [to_physical(each, "") for each in types]
    core = harness.appender(table)
    expected = []
    for values in random_rows(Random(5), types, 400):
        try:
            given = [convert(value) for convert, value in zip(back, values, strict=True)]
            core.append(given)
        except InvalidValueError:
            continue  # a year that datetime does not have, a time of 25 hours
        expected.append(tuple(f(value) for f, value in zip(forth, given, strict=True)))
    harness.flush(core)
    assert len(expected) > 20
    assert exact(harness.physical_rows(table)) == exact(expected)


# --- frames --------------------------------------------------------------------------------------


def test_frames_small_and_large_keep_the_order_of_the_calls(harness):
    table = harness.table(SCHEMA)
    core = harness.appender(table, batch_bytes_max=20_000, batch_bytes_min=20_000)
    numbers = iter(range(100_000))
    expected = []

    def frame(count):
        rows = [row(next(numbers)) for _ in range(count)]
        expected.extend(rows)
        return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)

    core.append_arrow(frame(10))
    alone = row(next(numbers))
    expected.append(alone)
    core.append(alone)
    core.append_arrow(frame(3_000))
    core.append_arrow(pa.Table.from_batches([frame(5), frame(2_000)]))
    core.append_arrow(frame(1))
    harness.flush(core)
    assert harness.rows(table) == expected
    assert len(harness.batches(table)) > 5
    assert max(len(each.data) for each in harness.batches(table)) < 100_000


def test_columns_of_a_frame_are_matched_by_name_and_cast(harness):
    table = harness.table(SCHEMA)
    core = harness.appender(table)
    frame = pa.RecordBatch.from_pydict(
        {"s": pa.array(["a"], pa.large_string()), "n": pa.array([7], pa.int64()), "id": [1]}
    )
    written = wait(core.append_arrow(frame))
    assert sum(each.row_count for each in written) == 1
    assert harness.rows(table) == [{"id": 1, "n": 7, "s": "a"}]


def test_a_value_that_does_not_fit_is_refused_with_row_and_column(harness):
    core = harness.appender(harness.table(SCHEMA))
    frame = pa.RecordBatch.from_pydict({"id": [1, 2], "n": [7, 2**40], "s": ["a", "b"]})
    with pytest.raises(InvalidValueError) as caught:
        core.append_arrow(frame)
    assert (caught.value.column, caught.value.row) == ("n", 1)
    core.append(row(0))
    with pytest.raises(InvalidValueError) as caught:
        core.append({"id": 1, "n": 2**31, "s": "x"})
    assert (caught.value.column, caught.value.row) == ("n", 1)
    with pytest.raises(InvalidValueError, match="no column"):
        core.append({"id": 1, "nn": 1})
    with pytest.raises(SchemaMismatchError):
        core.append_arrow(frame.select(["id", "n"]))
    harness.flush(core)
    assert core.rows_taken == 1


def test_an_empty_frame_is_written_immediately(harness):
    core = harness.appender(harness.table(SCHEMA))
    handle = core.append_arrow(SCHEMA.empty_table())
    assert handle.done
    assert wait(handle) == ()


# --- formats -------------------------------------------------------------------------------------


@pytest.mark.parametrize("log_format", ["ARROW", "INDEXED", "COMPACTED"])
def test_every_log_format_is_written(harness, log_format):
    table = harness.table(SCHEMA, log_format=log_format)
    core = harness.appender(table)
    for number in range(50):
        core.append(row(number))
    harness.flush(core)
    assert harness.rows(table) == [row(each) for each in range(50)]


@pytest.mark.parametrize(
    ("compression", "level", "marker"),
    [("NONE", None, None), ("LZ4_FRAME", None, b"\x04\x22\x4d\x18"), ("ZSTD", "9", b"\x28\xb5")],
)
def test_the_codec_of_the_table_is_used(harness, compression, level, marker):
    properties = {"table.log.arrow.compression.type": compression}
    if level is not None:
        properties["table.log.arrow.compression.zstd.level"] = level
    table = harness.table(SCHEMA, properties=properties)
    core = harness.appender(table)
    rows = [row(each % 7) for each in range(5_000)]
    core.append_arrow(pa.RecordBatch.from_pylist(rows, schema=SCHEMA))
    harness.flush(core)
    assert harness.rows(table) == rows
    data = b"".join(bytes(each.data) for each in harness.batches(table))
    assert (marker is None) or marker in data
    assert (len(data) > 100_000) is (marker is None)


# --- where rows go -------------------------------------------------------------------------------


def test_sticky_rows_of_a_batch_stay_together_and_batches_move_on(harness):
    table = harness.table(SCHEMA, bucket_count=3)
    core = harness.appender(table)
    buckets = []
    for first in range(6):
        handles = [core.append(row(first * 10 + each)) for each in range(10)]
        (found,) = {batch.bucket for each in handles for batch in wait(each)}
        buckets.append(found.bucket_id)
    assert all(a != b for a, b in pairwise(buckets))
    rows = [each["id"] for bucket in range(3) for each in harness.rows(table, bucket)]
    assert sorted(rows) == [first * 10 + each for first in range(6) for each in range(10)]


def test_round_robin_spreads_rows_evenly(harness):
    table = harness.table(SCHEMA, bucket_count=3)
    core = harness.appender(table, is_round_robin=True)
    for number in range(30):
        core.append(row(number))
    harness.flush(core)
    found = [[each["id"] for each in harness.rows(table, bucket)] for bucket in range(3)]
    assert [len(each) for each in found] == [10, 10, 10]
    assert all(each == sorted(each) for each in found)


def test_rows_of_one_bucket_key_share_a_bucket(harness):
    table = harness.table(SCHEMA, bucket_count=4, bucket_keys=["s"])
    core = harness.appender(table)
    rows = [{"id": each, "n": 0, "s": f"key {each % 20}"} for each in range(200)]
    core.append_arrow(pa.RecordBatch.from_pylist(rows, schema=SCHEMA))
    for each in rows:
        core.append(each)
    harness.flush(core)
    places: dict[str, set[int]] = {}
    for bucket in range(4):
        ids = []
        for found in harness.rows(table, bucket):
            places.setdefault(found["s"], set()).add(bucket)
            ids.append(found["id"])
        assert ids[: len(ids) // 2] == ids[len(ids) // 2 :]
    assert len(places) == 20
    assert all(len(each) == 1 for each in places.values())


PARTITIONED = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("region", pa.string())])


def test_a_frame_for_many_buckets_is_not_crumbled(harness):
    table = harness.table(SCHEMA, bucket_count=32, bucket_keys=["id"])
    core = harness.appender(table, batch_bytes_max=16 * 1024)
    ids = pa.array(range(40_000), pa.int64())
    texts = pa.array([f"{Random(each).random()}" for each in range(40_000)])
    core.append_arrow(pa.table({"id": ids, "n": pa.nulls(40_000, pa.int32()), "s": texts}))
    harness.flush(core)
    batches = harness.batches(table, 7)
    # After a first small part it is known how many buckets share the next.
    assert len(batches) <= 4
    assert sum(each.record_count for each in batches) > 1_000


def test_a_frame_with_rows_of_several_partitions_lands_in_the_right_ones(harness):
    table = harness.table(PARTITIONED, partition_keys=["day", "region"], bucket_count=2)
    core = harness.appender(table, creates_partitions=True)
    days = [dt.date(2026, 1, 1), dt.date(2026, 1, 2)]
    rows = [
        {"id": each, "day": days[each % 2], "region": "EU" if each % 3 else "US"}
        for each in range(60)
    ]
    handle = core.append_arrow(pa.RecordBatch.from_pylist(rows, schema=PARTITIONED))
    assert sum(each.row_count for each in wait(handle)) == 60
    for day in days:
        for region in ("EU", "US"):
            expected = [r["id"] for r in rows if (r["day"], r["region"]) == (day, region)]
            found = [
                each["id"]
                for bucket in range(2)
                for each in harness.rows(table, bucket, partition=f"{day}${region}")
            ]
            assert found == expected


def test_a_missing_partition_fails_immediately_and_others_are_written(harness):
    table = harness.table(PARTITIONED, partition_keys=["region"])
    creator = harness.appender(table, creates_partitions=True)
    day = dt.date(2026, 1, 1)
    wait(creator.append({"id": 1, "day": day, "region": "EU"}))
    core = harness.appender(table, creates_partitions=False)
    good = core.append({"id": 2, "day": day, "region": "EU"})
    bad = core.append({"id": 3, "day": day, "region": "MARS"})
    began = time.monotonic()
    with pytest.raises(PartitionNotFoundError) as caught:
        wait(bad)
    assert time.monotonic() - began < 30
    assert caught.value.partition == "MARS"
    wait(good)
    with pytest.raises(PartitionNotFoundError):
        harness.flush(core)
    harness.flush(core)
    assert [each["id"] for each in harness.rows(table, partition="EU")] == [1, 2]


def test_a_null_names_no_partition(harness):
    core = harness.appender(harness.table(PARTITIONED, partition_keys=["region"]))
    handle = core.append({"id": 1, "day": None, "region": None})
    with pytest.raises(InvalidValueError, match="region"):
        wait(handle)


# --- limits and ends ----------------------------------------------------------------------


def test_a_row_that_no_request_can_hold_is_refused_with_both_numbers(harness):
    table = harness.table(SCHEMA, properties={"table.log.arrow.compression.type": "NONE"})
    core = harness.appender(table, request_bytes_max=10_000, batch_bytes_max=10_000)
    core.append(row(0))
    with pytest.raises(LimitExceededError) as caught:
        core.append({"id": 1, "n": 1, "s": "x" * 20_000})
    assert caught.value.limit == 10_000
    assert caught.value.size > 20_000
    with pytest.raises(LimitExceededError):
        core.append_arrow(
            pa.RecordBatch.from_pylist([{"id": 1, "n": 1, "s": "x" * 20_000}], schema=SCHEMA)
        )
    core.append({"id": 2, "n": 2, "s": "y" * 5_000})
    harness.flush(core)
    assert [each["id"] for each in harness.rows(table)] == [0, 2]


def test_a_full_buffer_blocks_the_writer_and_then_raises(harness):
    table = harness.table(SCHEMA)
    settings = {"buffer_bytes_max": 1, "buffer_wait_ms": 200, "batch_bytes_max": 1_000}
    core = harness.appender(table, **settings)
    pool = harness._pools[-1]
    pool.sender.memory.take(1)  # as if a server did not answer
    core.append(row(0))
    began = time.monotonic()
    with pytest.raises(LimitExceededError, match="buffer is full"):
        collections.deque(map(core.append, map(row, range(1, 1_000))), maxlen=0)
    assert 0.15 < time.monotonic() - began < 30
    taken = core.rows_taken
    pool.sender.memory.release(1)
    harness.flush(core)
    assert [each["id"] for each in harness.rows(table)] == list(range(taken))


def test_ten_thousand_rows_from_four_threads_all_arrive(harness):
    table = harness.table(SCHEMA, bucket_count=2)
    core = harness.appender(table, batch_bytes_max=30_000, buffer_bytes_max=50_000)

    def write(first):
        for number in range(first, first + 2_500):
            core.append(row(number))

    threads = [threading.Thread(target=write, args=(each * 2_500,)) for each in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    harness.flush(core)
    found = [each["id"] for bucket in range(2) for each in harness.rows(table, bucket)]
    assert sorted(found) == list(range(10_000))


def test_numbers_of_a_bucket_count_up_without_holes(harness):
    table = harness.table(SCHEMA)
    core = harness.appender(table)
    for number in range(12):
        wait(core.append(row(number)))
    headers = [each.header for each in harness.batches(table)]
    assert [each.batch_sequence for each in headers] == list(range(12))
    assert len({each.writer_id for each in headers}) == 1


def test_writers_of_one_connection_share_writer_id_and_numbers(harness):
    table = harness.table(SCHEMA)
    pool = harness.pool()
    for core in (pool.append_core(table), pool.append_core(table)):
        wait(core.append(row(0)))
    headers = [each.header for each in harness.batches(table)]
    assert [each.batch_sequence for each in headers] == [0, 1]
    assert headers[0].writer_id == headers[1].writer_id


def test_the_error_of_a_dropped_table_says_that_it_was_dropped(harness):
    table = harness.table(SCHEMA)
    core = harness.appender(table)
    wait(core.append(row(0)))
    harness.run(harness.admin.drop_table(table.table_path, ignore_if_not_exists=False))
    handle = core.append(row(1))
    began = time.monotonic()
    with pytest.raises(TableNotFoundError):
        wait(handle)
    assert time.monotonic() - began < 30


def test_a_table_with_a_primary_key_is_not_appended_to(harness):
    table = harness.table(SCHEMA, primary_keys=["id"])
    with pytest.raises(UnsupportedOperationError, match="primary key"):
        harness.appender(table)


def test_a_closed_writer_and_a_closed_connection_refuse_rows(harness):
    table = harness.table(SCHEMA)
    pool = harness.pool()
    closed, other = pool.append_core(table), pool.append_core(table)
    closed.append(row(0))
    harness.run(closed.close())
    with pytest.raises(ClosedError):
        closed.append(row(1))
    other.append(row(2))
    assert harness.run(pool.close(timeout_s=10)) == 0
    with pytest.raises(ClosedError):
        other.append(row(3))
    assert [each["id"] for each in harness.rows(table)] == [0, 2]


def test_a_batch_stays_below_what_is_read_again_uncompressed(harness, monkeypatch):
    monkeypatch.setattr("fluss.write.write_encoding.UNCOMPRESSED_BYTES_MAX", 1 << 20)
    table = harness.table(pa.schema([("id", pa.int64()), ("v", pa.binary())]))
    core = harness.appender(table)
    zeros = pa.RecordBatch.from_pydict({"id": range(4), "v": [bytes(600_000)] * 4})
    assert len(wait(core.append_arrow(zeros))) == 4  # compressed, one would hold them all
    with pytest.raises(LimitExceededError, match="uncompressed") as refused:
        core.append_arrow(zeros.set_column(1, "v", pa.array([b"", bytes(2 << 20), b"", b""])))
    assert refused.value.facts["row"] == 1
    assert refused.value.facts["limit"] == 1 << 20
    assert harness.rows(table) == [{"id": number, "v": bytes(600_000)} for number in range(4)]
