"""The stored form of values, by columns and one by one, which must be the same."""

from __future__ import annotations

import struct
from random import Random

import numpy as np
import pytest

from fluss.errors import InvalidValueError
from fluss.model.types.data_type import (
    BinaryType,
    BooleanType,
    DecimalType,
    IntType,
    TimestampLtzType,
    TimestampType,
    TimeType,
)
from fluss.rows.buffers.byte_runs import Runs
from fluss.rows.buffers.columns import Column
from fluss.rows.formats.stored import (
    FixedWidth,
    SplitTimestamp,
    fixed_dtype,
    restore_fixed,
    restore_runs,
    restore_timestamps,
    store,
)
from fluss.rows.formats.stored_value import (
    join_timestamp,
    number_of,
    run_reader,
    run_writer,
    split_timestamp,
)
from tests.support.generators.random_columns import column_of, values_in
from tests.support.generators.random_values import LEAF_TYPES, exact, random_value

YEAR_9999_MILLIS = 253_402_300_799_999


class RefusedError(Exception):
    pass


def refuse(wrong, why):
    raise RefusedError(np.flatnonzero(wrong).tolist(), why)


def stored_one_by_one(data_type, values):
    """Bytes of each value, from the functions for single values."""
    number = number_of(data_type)
    if number is not None:
        pack = number.packer()
        return [bytes(number.width) if value is None else pack(value) for value in values]
    if isinstance(data_type, TimestampType | TimestampLtzType):
        split = split_timestamp(data_type.unit)
        return [(0, 0) if value is None else split(value) for value in values]
    write = run_writer(data_type)
    return [b"" if value is None else write(value) for value in values]


def stored_as_column(column):
    match store(column):
        case FixedWidth(values=values):
            width = values.dtype.itemsize
            raw = values.tobytes()
            return [raw[at : at + width] for at in range(0, len(raw), width)]
        case SplitTimestamp(millis=millis, nanos=nanos):
            return list(zip(millis.tolist(), nanos.tolist(), strict=True))
        case Runs(data=data, starts=starts, lengths=lengths):
            return [
                data[at : at + size].tobytes() for at, size in zip(starts, lengths, strict=True)
            ]


def restored(data_type, column):
    match store(column):
        case FixedWidth(values=values):
            assert values.dtype == np.dtype(fixed_dtype(data_type))
            return restore_fixed(data_type, values, refuse)
        case SplitTimestamp(millis=millis, nanos=nanos):
            return restore_timestamps(data_type, millis, nanos, refuse)
        case runs:
            return restore_runs(data_type, runs.data, runs.starts, runs.lengths, refuse)


@pytest.mark.parametrize("data_type", LEAF_TYPES, ids=str)
def test_columns_and_single_values_have_one_stored_form(data_type):
    rng = Random(str(data_type))
    values = [random_value(rng, data_type) for _ in range(200)]
    assert stored_as_column(column_of(data_type, values)) == stored_one_by_one(data_type, values)


@pytest.mark.parametrize("data_type", LEAF_TYPES, ids=str)
def test_what_was_stored_is_restored(data_type):
    rng = Random(str(data_type))
    values = [random_value(rng, data_type, null_rate=0) for _ in range(200)]
    column = column_of(data_type, values, rubbish=False)
    assert exact(values_in(restored(data_type, column))) == exact(values)


@pytest.mark.parametrize(
    ("precision", "value", "parts"),
    [
        (6, -1, (-1, 999_000)),
        (6, -1_000_001, (-1001, 999_000)),
        (9, -1, (-1, 999_999)),
        (9, 1_000_001, (1, 1)),
    ],
)
def test_instants_before_1970_are_rounded_down(precision, value, parts):
    column = column_of(TimestampType(precision), [value])
    assert stored_as_column(column) == [parts]
    unit = TimestampType(precision).unit
    assert split_timestamp(unit)(value) == parts
    assert join_timestamp(unit)(*parts) == value


@pytest.mark.parametrize(
    ("precision", "value", "millis"), [(0, 86_399, 86_399_000), (6, 1_999, 1), (9, 1_999_999, 1)]
)
def test_a_time_is_stored_as_milliseconds_whatever_its_precision(precision, value, millis):
    data_type = TimeType(precision)
    assert stored_as_column(column_of(data_type, [value])) == [struct.pack("<i", millis)]
    assert stored_one_by_one(data_type, [value]) == [struct.pack("<i", millis)]


@pytest.mark.parametrize("data_type", [TimeType(0), TimestampType(0)], ids=str)
def test_seconds_are_cut_from_milliseconds_as_java_divides(data_type):
    values = np.array([1999, -1, -1999, -2000], np.dtype(fixed_dtype(data_type)))
    restored_column = restore_fixed(data_type, values, refuse)
    assert restored_column.values.tolist() == [1, 0, -1, -2]
    from_stored = number_of(data_type).from_stored
    assert [from_stored(each) for each in values.tolist()] == [1, 0, -1, -2]


def test_a_time_that_no_day_has_is_refused():
    with pytest.raises(InvalidValueError, match="does not fit 32 bits") as caught:
        store(column_of(TimeType(6), [0, 2**62]))
    assert caught.value.row == 1


def test_seconds_that_overflow_as_milliseconds_are_refused():
    column = Column(type=TimestampType(0), length=1, values=np.array([2**62]))
    with pytest.raises(InvalidValueError, match="64 bits in milliseconds"):
        store(column)


def test_an_instant_beyond_64_bits_of_its_unit_is_refused_by_columns_only():
    """A Python int holds what an Arrow column cannot: a lookup may still answer."""
    millis, nanos = np.array([0, YEAR_9999_MILLIS]), np.array([0, 999_999], np.int32)
    with pytest.raises(RefusedError, match="64 bits in ns") as caught:
        restore_timestamps(TimestampType(9), millis, nanos, refuse)
    assert caught.value.args[0] == [1]
    assert join_timestamp("ns")(YEAR_9999_MILLIS, 999_999) == 253_402_300_799_999_999_999


def test_the_ends_of_64_bits_are_no_overflow():
    for value in (-(2**63), 2**63 - 1):
        for data_type in (TimestampType(6), TimestampType(9)):
            column = column_of(data_type, [value])
            assert values_in(restored(data_type, column)) == [value]


@pytest.mark.parametrize("nanos", [-1, 1_000_000])
def test_more_nanoseconds_than_a_millisecond_has_are_refused(nanos):
    with pytest.raises(RefusedError):
        restore_timestamps(TimestampType(6), np.array([0]), np.array([nanos], np.int32), refuse)
    with pytest.raises(ValueError, match="nanoseconds"):
        join_timestamp("us")(0, nanos)


def test_any_byte_but_zero_is_true():
    stored = np.array([0, 1, 2, 255], np.uint8)
    assert values_in(restore_fixed(BooleanType(), stored, refuse)) == [False, True, True, True]


def test_a_binary_shorter_than_its_type_is_filled_up_and_a_longer_one_refused():
    data = np.frombuffer(b"abcde", np.uint8)
    column = restore_runs(BinaryType(4), data, np.array([0]), np.array([2]), refuse)
    assert values_in(column) == [b"ab\0\0"]
    assert run_reader(BinaryType(4))(b"abcde", 0, 2) == b"ab\0\0"
    with pytest.raises(RefusedError, match="too many"):
        restore_runs(BinaryType(4), data, np.array([0]), np.array([5]), refuse)
    with pytest.raises(ValueError, match="too many"):
        run_reader(BinaryType(4))(b"abcde", 0, 5)


@pytest.mark.parametrize("data_type", [DecimalType(3, 1), DecimalType(19, 1)], ids=str)
def test_digits_beyond_the_type_are_refused_in_both_directions(data_type):
    too_many = 10**data_type.precision
    with pytest.raises(InvalidValueError, match="digits"):
        store(column_of(data_type, [too_many]))
    with pytest.raises(ValueError, match="digits"):
        stored_one_by_one(data_type, [too_many])


def test_what_stands_under_a_null_is_neither_judged_nor_stored():
    rubbish = Column(
        type=DecimalType(3, 0),
        length=2,
        valid=np.array([False, True]),
        values=np.array([[10**9, 7], [5, 0]]),
    )
    assert stored_as_column(rubbish) == [bytes(8), struct.pack("<q", 5)]


def test_only_truth_values_are_booleans():
    pack = number_of(BooleanType()).packer()
    assert (pack(True), pack(False)) == (b"\1", b"\0")
    with pytest.raises(KeyError):
        pack("yes")


@pytest.mark.parametrize("value", [5, "text", None, [1]])
def test_only_bytes_are_binaries(value):
    with pytest.raises(TypeError, match="bytes are needed"):
        run_writer(BinaryType(8))(value)


def test_integers_have_the_width_of_their_type():
    with pytest.raises(struct.error):
        number_of(IntType()).packer()(2**31)
