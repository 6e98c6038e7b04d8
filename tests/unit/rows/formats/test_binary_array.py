"""Arrays and maps: hand-worked bytes, and sections that lie about themselves."""

from __future__ import annotations

import struct
import tracemalloc

import numpy as np
import pytest

from fluss.errors import CorruptDataError
from fluss.model.types.data_type import (
    ArrayType,
    BigIntType,
    BooleanType,
    BytesType,
    DecimalType,
    DoubleType,
    FloatType,
    IntType,
    MapType,
    SmallIntType,
    StringType,
    TimestampType,
)
from fluss.rows.formats.compacted import read_compacted_rows, write_compacted_keys
from fluss.rows.formats.compacted_row import CompactedRowReader, CompactedRowWriter
from fluss.rows.formats.varint import varint
from tests.support.generators.encoded import joined
from tests.support.generators.random_columns import columns_of, rows_in


def int32(*values):
    return struct.pack(f"<{len(values)}i", *values)


def write(data_type, value):
    """The section of a value by both paths, without the length in front of it."""
    types = (data_type.not_null(),)
    encoded = CompactedRowWriter(types, is_key=True).write((value,))
    assert list(write_compacted_keys(columns_of(types, [(value,)]))) == [encoded]
    section = encoded[len(varint(len(encoded) - 1)) :]
    assert varint(len(section)) + section == encoded
    return section


def read(data_type, section):
    types = (data_type.not_null(),)
    encoded = varint(len(section)) + section
    (by_columns,) = rows_in(read_compacted_rows(*joined([b"\0" + encoded]), types), length=1)
    assert repr(CompactedRowReader(types, is_key=True).read(encoded)) == repr(by_columns)
    return by_columns[0]


def refused(data_type, section, why):
    """Both paths refuse, and neither asks for much memory before it does."""
    types = (data_type.not_null(),)
    encoded = varint(len(section)) + section
    tracemalloc.start()
    try:
        with pytest.raises(CorruptDataError, match=why):
            CompactedRowReader(types, is_key=True).read(encoded)
        with pytest.raises(CorruptDataError, match=why):
            read_compacted_rows(*joined([b"\0" + encoded]), types)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000 + 100 * len(section)
    finally:
        tracemalloc.stop()


LONG = "longer than seven"
CASES = [
    (ArrayType(IntType()), [], int32(0) + bytes(4)),
    (ArrayType(IntType()), [1, None, 3], int32(3, 2, 1, 0, 3) + bytes(4)),
    (ArrayType(BooleanType()), [True, None], int32(2, 2) + b"\1\0" + bytes(6)),
    (ArrayType(SmallIntType()), [-1] * 4, int32(4, 0) + b"\xff" * 8),
    (ArrayType(BigIntType()), [5], int32(1, 0, 5, 0)),
    (ArrayType(DecimalType(10, 2)), [-1], int32(1, 0, -1, -1)),
    (ArrayType(StringType()), ["", None], int32(2, 2) + bytes(7) + b"\x80" + bytes(8)),
    (ArrayType(StringType()), ["1234567"], int32(1, 0) + b"1234567\x87"),
    (ArrayType(BytesType()), [b"12345678"], int32(1, 0, 8, 16) + b"12345678"),
    (
        ArrayType(StringType()),
        [LONG, "é", LONG[:9]],
        int32(3, 0, 17, 32)
        + b"\xc3\xa9\0\0\0\0\0\x82"
        + int32(9, 56)
        + LONG.encode()
        + bytes(7)
        + LONG[:9].encode()
        + bytes(7),
    ),
    (ArrayType(DecimalType(19, 0)), [-129], int32(1, 0, 2, 16) + b"\xff\x7f" + bytes(14)),
    (ArrayType(TimestampType(6)), [-1, None], int32(2, 2, 999_000, 24, 0, 0, -1, -1)),
    (
        ArrayType(ArrayType(IntType())),
        [[], None, [9]],
        int32(3, 2, 8, 32, 0, 0, 16, 40) + int32(0, 0) + int32(1, 0, 9, 0),
    ),
    (
        MapType(IntType(), StringType()),
        [(1, "x"), (2, None)],
        int32(16) + int32(2, 0, 1, 2) + int32(2, 2) + b"x" + bytes(6) + b"\x81" + bytes(8),
    ),
]


@pytest.mark.parametrize(("data_type", "value", "section"), CASES, ids=str)
def test_sections_have_their_hand_worked_bytes(data_type, value, section):
    assert write(data_type, value) == section
    assert read(data_type, section) == value


@pytest.mark.parametrize("count", [31, 32, 33, 64, 65])
def test_null_bits_come_in_words_of_four_bytes(count):
    value = [None if index % 5 == 0 else index for index in range(count)]
    section = write(ArrayType(IntType()), value)
    words = (count + 31) // 32
    bits = int.from_bytes(section[4 : 4 + words * 4], "little")
    assert [bits >> index & 1 for index in range(count)] == [
        int(index % 5 == 0) for index in range(count)
    ]
    assert len(section) == (4 + words * 4 + count * 4 + 7) // 8 * 8
    assert read(ArrayType(IntType()), section) == value


def test_every_nan_is_written_as_the_one_nan():
    """Java's BinaryArrayWriter does so; rows keep the bits of theirs."""
    (odd,) = struct.unpack("<d", b"\1\0\0\0\0\0\xf8\xff")
    assert write(ArrayType(DoubleType()), [odd, -0.0, 1.0])[8:24].hex() == (
        "000000000000f87f" + "0000000000000080"
    )
    assert (
        write(ArrayType(FloatType()), [odd, None, float("inf")])[8:16].hex() == "0000c07f00000000"
    )


def test_infinities_that_sum_to_nan_stay_infinities():
    value = [float("inf"), float("-inf")]
    assert read(ArrayType(DoubleType()), write(ArrayType(DoubleType()), value)) == value


@pytest.mark.parametrize(
    ("element", "slot"),
    [
        (StringType(), b"\xff" * 8),
        (DecimalType(3, 0), b"\xff" * 7 + b"\x7f"),
        (TimestampType(9), b"\xff" * 8),
        (ArrayType(IntType()), b"\xff" * 8),
    ],
    ids=str,
)
def test_old_bytes_in_the_slot_of_a_null_element_are_not_read(element, slot):
    """Java reuses its buffers and clears only some of the slots."""
    assert read(ArrayType(element), int32(1, 1) + slot) == [None]


def test_bits_after_the_last_element_mean_nothing():
    assert read(ArrayType(IntType()), int32(1, -2, 5, 0)) == [5]
    keys = int32(1, -2, 5, 0)
    assert read(MapType(IntType(), IntType()), int32(16) + keys + keys) == [(5, 5)]


def test_runs_may_lie_in_any_order():
    section = int32(2, 0, 8, 32, 8, 24) + b"firstone" + b"then two"
    assert read(ArrayType(StringType()), section) == ["then two", "firstone"]


@pytest.mark.parametrize("count", [-1, -(2**31), 2**31 - 1, 2**28, 9])
@pytest.mark.parametrize("element", [IntType(), BooleanType(), StringType()], ids=str)
def test_a_count_that_the_bytes_do_not_bear_out_is_refused(element, count):
    section = int32(count, 0) + bytes(8)
    refused(ArrayType(element), section, "count is negative|more elements|has no")


@pytest.mark.parametrize("section", [b"", b"\0\0\0"])
def test_a_section_too_short_for_its_count_is_refused(section):
    refused(ArrayType(IntType()), section, "middle of a value|too few")
    refused(MapType(IntType(), IntType()), section, "middle of a value|too few")


@pytest.mark.parametrize(
    "slot",
    [int32(8, 17), int32(9, 16), int32(-1, 16), int32(8, 2**31 - 1), int32(2**31 - 1, 0)],
    ids=lambda slot: slot.hex(),
)
@pytest.mark.parametrize("element", [StringType(), ArrayType(IntType())], ids=str)
def test_a_slot_that_points_out_of_its_section_is_refused(element, slot):
    refused(ArrayType(element), int32(1, 0) + slot + bytes(8), "points out of its")


def test_a_timestamp_that_lies_outside_is_refused():
    refused(ArrayType(TimestampType(6)), int32(1, 0, 0, 16), "points out of its")
    refused(ArrayType(TimestampType(6)), int32(1, 0, 10**6, 16, 0, 0), "nanoseconds")


def test_an_inline_text_longer_than_its_slot_is_refused():
    refused(ArrayType(StringType()), int32(1, 0) + b"1234567\x88", "room for")


def test_slots_that_share_one_long_run_are_refused():
    """Otherwise 1,000 slots of 8 bytes would become 1,000 times the run."""
    count, run = 1000, bytes(20_000)
    fixed = 4 + 128 + 8 * count + 4
    slots = int32(len(run), fixed) * count
    section = int32(count) + bytes(128) + slots + bytes(4) + run
    refused(ArrayType(StringType()), section, "share their bytes")
    refused(ArrayType(BytesType()), section, "share their bytes")


def test_nested_arrays_that_share_their_bytes_are_refused():
    inner = int32(2000, *[0] * 63) + bytes(8000)
    count = 500
    header = 4 + 64
    fixed = header + 8 * count + 4
    section = int32(count) + bytes(64) + int32(len(inner), fixed) * count + bytes(4) + inner
    refused(ArrayType(ArrayType(IntType())), section, "share their bytes")


@pytest.mark.parametrize("key_bytes", [-1, 9, 2**31 - 1])
def test_a_key_array_that_does_not_fit_is_refused(key_bytes):
    refused(MapType(IntType(), IntType()), int32(key_bytes, 0, 0), "does not fit")


def test_a_map_with_more_keys_than_values_is_refused():
    keys, values = int32(1, 0, 7, 0), int32(0, 0)
    refused(MapType(IntType(), IntType()), int32(16) + keys + values, "another number of keys")


def test_a_null_key_is_refused():
    keys, values = int32(2, 2, 7, 0), int32(2, 0, 7, 7)
    refused(MapType(IntType(), IntType()), int32(16) + keys + values, "key.* is NULL")


def test_a_long_column_of_long_lists_keeps_every_list_apart():
    rng = np.random.default_rng(5)
    rows = [
        ([float(each) for each in rng.integers(0, 99, rng.integers(0, 700))],) for _ in range(50)
    ]
    types = (ArrayType(FloatType()).not_null(),)
    encoded = list(write_compacted_keys(columns_of(types, rows)))
    assert encoded == [CompactedRowWriter(types, is_key=True).write(row) for row in rows]
    assert (
        rows_in(read_compacted_rows(*joined([b"\0" + each for each in encoded]), types), length=50)
        == rows
    )
