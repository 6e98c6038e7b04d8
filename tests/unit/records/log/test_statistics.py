"""Statistics: never narrower than the data, and worth nothing unless sound in every part."""

from __future__ import annotations

import dataclasses
import math
import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from fluss.model.tables.table_options import ArrowCompression
from fluss.model.types.data_type import (
    ArrayType,
    BigIntType,
    BinaryType,
    BooleanType,
    BytesType,
    CharType,
    DecimalType,
    DoubleType,
    FloatType,
    IntType,
    StringType,
    TimestampType,
    TimeType,
)
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.arrow.compression import BodyCodec
from fluss.records.log.log_batch import iter_log_batches
from fluss.records.log.log_writer import arrow_log_body, write_log_batch
from fluss.records.log.statistics import (
    BatchStatistics,
    collect_statistics,
    read_statistics,
    write_statistics,
)
from tests.support.generators.arrow_rows import batch_of
from tests.support.generators.random_values import ALL_TYPES, exact, tables

WITH_STATISTICS = [each for each in ALL_TYPES if each.has_statistics]


def collected(data_type, values):
    layout = BatchLayout.of(["c"], [data_type])
    batch = batch_of(layout.wire_schema, [data_type], [(each,) for each in values])
    found = collect_statistics(batch, layout, [0])
    return found.minimums[0], found.maximums[0], found.null_counts[0]


def read(block, *types, record_count=10):
    return read_statistics(memoryview(block), types, record_count=record_count)


def order(value):
    """Java's order of one column's values."""
    if isinstance(value, float):
        return (math.isnan(value), value, math.copysign(1, value))
    return value.encode() if isinstance(value, str) else value


@given(tables(depth=1))
def test_statistics_are_what_one_finds_by_looking_at_every_row(table):
    types, rows = table
    layout = BatchLayout.of([f"c{index}" for index in range(len(types))], types)
    batch = batch_of(layout.wire_schema, types, rows)
    found = collect_statistics(batch, layout, range(len(types)))
    assert found.positions == tuple(i for i, each in enumerate(types) if each.has_statistics)
    for index, position in enumerate(found.positions):
        values = [row[position] for row in rows if row[position] is not None]
        assert found.null_counts[index] == len(rows) - len(values)
        low, high = min(values, key=order, default=None), max(values, key=order, default=None)
        assert exact((found.minimums[index], found.maximums[index])) == exact((low, high))


@given(tables(depth=0))
def test_a_block_survives(table):
    types, rows = table
    layout = BatchLayout.of([f"c{index}" for index in range(len(types))], types)
    found = collect_statistics(batch_of(layout.wire_schema, types, rows), layout, range(len(types)))
    block = write_statistics(found, types)
    again = read(block, *types, record_count=len(rows))
    if not found.positions:
        assert again is None
        return
    for field in dataclasses.fields(BatchStatistics):
        # Field by field: a NaN within a dataclass is not equal to itself.
        assert exact(getattr(again, field.name)) == exact(getattr(found, field.name)), field.name


def test_a_block_is_what_the_layout_says():
    found = BatchStatistics(
        positions=(0, 2), null_counts=(1, 0), minimums=(-1, "a"), maximums=(7, "longer than 7")
    )
    types = (IntType(), BytesType(), StringType())
    slots = [struct.pack("<q", -1 % 2**32), b"a" + bytes(6) + b"\x81"]
    smallest = bytes(8) + b"".join(slots)
    largest = bytes(8) + struct.pack("<q", 7) + struct.pack("<q", 24 << 32 | 13)
    largest += b"longer than 7" + bytes(3)
    assert write_statistics(found, types) == b"".join((
        struct.pack("<bh2h2i", 1, 2, 0, 2, 1, 0),
        struct.pack("<i", len(smallest)), smallest,
        struct.pack("<i", len(largest)), largest,
    ))  # fmt: skip


def test_types_without_statistics_are_left_out():
    assert not any(
        each.has_statistics for each in (BinaryType(2), BytesType(), ArrayType(IntType()))
    )
    assert all(each.has_statistics for each in (CharType(2), BooleanType(), DecimalType(38, 2)))


def test_a_column_of_nulls_has_neither_minimum_nor_maximum():
    assert collected(IntType(), [None, None]) == (None, None, 2)
    assert collected(IntType(), []) == (None, None, 0)


@pytest.mark.parametrize("data_type", [FloatType(), DoubleType()], ids=str)
def test_floats_are_in_javas_order(data_type):
    low, high, _ = collected(data_type, [1.0, math.nan, -math.inf, None])
    assert low == -math.inf
    assert math.isnan(high)
    assert all(map(math.isnan, collected(data_type, [math.nan])[:2]))
    low, high, _ = collected(data_type, [0.0, -0.0, 0.0])
    assert (math.copysign(1, low), math.copysign(1, high)) == (-1, 1)


def test_a_nan_with_a_sign_is_the_largest_too():
    array = np.array([2.0, 0.0])
    array.view(np.uint64)[1] = 0xFFF8_0000_0000_0001
    layout = BatchLayout.of(["c"], [DoubleType()])
    found = collect_statistics(pa.record_batch([pa.array(array)], ["c"]), layout, [0])
    assert found.minimums == (2.0,)
    assert math.isnan(found.maximums[0])


def test_decimals_are_compared_in_all_their_digits():
    values = [10**37, -(10**37), 10**37 - 1, 2**64, -(2**64), 2**63, 0]
    assert collected(DecimalType(38, 0), values) == (-(10**37), 10**37, 0)
    assert collected(DecimalType(38, 0), [2**64 - 1, 2**63]) == (2**63, 2**64 - 1, 0)
    assert collected(DecimalType(38, 0), [-1, -(2**63)]) == (-(2**63), -1, 0)


def test_a_sliced_batch_is_judged_by_its_own_rows():
    layout = BatchLayout.of(["c"], [IntType()])
    batch = pa.record_batch([pa.array([100, 5, None, 6, -100], pa.int32())], ["c"])
    found = collect_statistics(batch.slice(1, 3), layout, [0])
    assert (found.minimums, found.maximums, found.null_counts) == ((5,), (6,), (1,))


@pytest.mark.parametrize(("precision", "step"), [(0, 1), (3, 1), (6, 1000), (9, 1_000_000)])
def test_a_time_is_written_in_milliseconds_and_never_too_small(precision, step):
    data_type = TimeType(precision)
    found = BatchStatistics(
        positions=(0,), null_counts=(0,), minimums=(step + 1,), maximums=(2 * step + 1,)
    )
    again = read(write_statistics(found, [data_type]), data_type)
    assert again.minimums[0] <= step + 1
    assert again.maximums[0] >= 2 * step + 1
    assert again.maximums[0] < 3 * step + 1


def test_timestamps_keep_every_digit():
    found = BatchStatistics(
        positions=(0,), null_counts=(0,), minimums=(-1,), maximums=(1_234_567_891,)
    )
    assert read(write_statistics(found, [TimestampType(9)]), TimestampType(9)) == found


def test_not_null_columns_of_an_empty_batch_are_read():
    found = BatchStatistics(positions=(0,), null_counts=(0,), minimums=(None,), maximums=(None,))
    data_type = IntType().not_null()
    assert read(write_statistics(found, [data_type.as_nullable()]), data_type) == found


SOUND = write_statistics(
    BatchStatistics(
        positions=(1, 0), null_counts=(2, 0), minimums=("aaaaaaaaaa", 1), maximums=("b", 5)
    ),
    (BigIntType(), StringType()),
)


def test_bytes_behind_a_block_are_ignored():
    assert read(SOUND + b"behind", BigIntType(), StringType()).positions == (1, 0)


def test_every_cut_makes_a_block_worthless():
    for cut in range(len(SOUND)):
        assert read(SOUND[:cut], BigIntType(), StringType()) is None


@pytest.mark.parametrize(
    ("at", "layout", "value"),
    [
        (0, "<b", 0), (0, "<b", 2), (1, "<h", 0), (1, "<h", -1), (1, "<h", 3), (1, "<h", 32767),
        (3, "<h", 2), (3, "<h", -1), (3, "<h", 0), (7, "<i", -1), (7, "<i", 11),
        (15, "<i", 0), (15, "<i", -1), (15, "<i", 2**31 - 1), (15, "<i", 7),
    ],
)  # fmt: skip
def test_numbers_that_lie_make_a_block_worthless(at, layout, value):
    block = bytearray(SOUND)
    struct.pack_into(layout, block, at, value)
    assert read(block, BigIntType(), StringType()) is None


def test_columns_that_cannot_have_statistics_make_a_block_worthless():
    assert read(SOUND, BigIntType(), BytesType()) is None
    assert read(SOUND, ArrayType(IntType()), StringType()) is None


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_worthless(block):
    read(b"\x01\x01\x00" + block, StringType())
    read(block, *WITH_STATISTICS)


def test_a_batch_carries_its_statistics():
    layout = BatchLayout.of(["a", "b"], [IntType(), StringType()])
    batch = batch_of(layout.wire_schema, layout.types, [(1, "x"), (None, "y")])
    found = collect_statistics(batch, layout, [0, 1])
    body = arrow_log_body(
        batch,
        BodyCodec(ArrowCompression.NONE),
        statistics=write_statistics(found, layout.types),
    )
    (stored,) = iter_log_batches(b"".join(write_log_batch(body, schema_id=1)))
    assert stored.header.magic == 1
    assert stored.statistics(layout.types) == found
    assert stored.record_batch(layout).column(1).to_pylist() == ["x", "y"]
