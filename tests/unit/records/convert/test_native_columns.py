"""The functions in C that make values of columns: those of Python, and no wrong reads."""

from __future__ import annotations

import gc
import sys
from datetime import UTC, datetime, timedelta
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from fluss import native
from fluss.errors import InvalidValueError
from fluss.model.types.factory import DataTypes
from fluss.model.types.type_to_arrow import to_wire_arrow_type
from fluss.records.convert.from_values import array_from_values
from fluss.records.convert.to_python import python_values
from tests.support.fix_native import needs_native
from tests.support.generators.random_values import ALL_TYPES, random_rows

pytestmark = needs_native

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST, LAST = -62_135_596_800_000_000, 253_402_300_799_999_999


def in_both(monkeypatch, array, data_type):
    """What Python and C make of a column; times that Python cannot hold are refused by both."""
    made = []
    for mode in ("off", "on"):
        monkeypatch.setenv(native.VARIABLE, mode)
        try:
            made.append(repr(python_values(array, data_type)))
        except InvalidValueError as error:
            made.append(str(error))
    return made


@pytest.mark.parametrize("data_type", ALL_TYPES, ids=str)
def test_columns_of_every_type_are_those_of_python(monkeypatch, data_type):
    random = Random(7)
    arrow_type = to_wire_arrow_type(data_type)
    for seed in range(5):
        values = [value for (value,) in random_rows(Random(seed), [data_type], 60)]
        array = array_from_values(values, data_type, arrow_type)
        for part in (array, array[:0], array[random.randrange(30) :][: random.randrange(1, 30)]):
            in_python, in_c = in_both(monkeypatch, part, data_type)
            assert in_python == in_c


def test_lists_whose_parent_is_null_or_sliced_are_cut_at_their_own_offsets(monkeypatch):
    data_type = DataTypes.array(DataTypes.map(DataTypes.string(), DataTypes.timestamp_ltz()))
    rows = [None, [], [None, [("a", EPOCH)]], [[("b", None), ("c", EPOCH)]], None, [[]]]
    array = pa.array(rows, to_wire_arrow_type(data_type))
    monkeypatch.setenv(native.VARIABLE, "on")
    for start in range(len(rows) + 1):
        for stop in range(start, len(rows) + 1):
            found = python_values(array[start:stop], data_type)
            assert found == rows[start:stop]


# --- times --------------------------------------------------------------------------------------


@given(st.lists(st.integers(FIRST, LAST)))
def test_times_are_those_of_datetime(counts):
    found = native.find_columns().utc_column(np.array(counts, dtype=np.int64))
    assert found == [EPOCH + timedelta(microseconds=each) for each in counts]
    assert all(type(each) is datetime and each.tzinfo is UTC for each in found)


def test_days_of_all_years_and_the_ends_of_the_calendar():
    day = 86_400_000_000
    # 29 days meet every day of a month, and the last one is that of the calendar.
    days = np.arange(2_932_896, -719_163, -29, dtype=np.int64)[::-1]
    for offset in (0, day - 1):
        found = native.find_columns().utc_column(days * day + offset)
        naive = (days * day + offset).view("datetime64[us]").tolist()
        assert [each.replace(tzinfo=None) for each in found] == naive
    assert found[-1].year == 9999
    for count in (FIRST - 1, LAST + 1, -(2**63), 2**63 - 1):
        with pytest.raises(OverflowError):
            native.find_columns().utc_column(np.array([0, count]))


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_times_beyond_datetime_are_refused_as_in_python(monkeypatch, unit):
    data_type = DataTypes.timestamp_ltz({"s": 0, "ms": 3, "us": 6}[unit])
    per_second = {"s": 1, "ms": 1_000, "us": 1_000_000}[unit]
    for count in (-62_135_596_800 * per_second - 1, 253_402_300_800 * per_second):
        array = pa.array([0, count, None], pa.timestamp(unit, "UTC"))
        in_python, in_c = in_both(monkeypatch, array, data_type)
        assert in_python == in_c
        assert "not a time" in in_c


# --- wrong and odd arguments --------------------------------------------------------------------


@pytest.mark.parametrize(
    "offsets",
    [
        np.array([0, 2, 1], np.int32), np.array([0, 4], np.int32), np.array([-3, 1], np.int32),
        np.array([2**31 - 1, -(2**31)], np.int32), np.array([], np.int32), np.array([0, 1], np.int64),
        np.array([0, 1, 2, 3], np.int32)[::2], b"\0\0\0", [0, 1], None,
    ],
    ids=repr,
)  # fmt: skip
def test_offsets_that_do_not_fit_are_refused(offsets):
    columns = native.find_columns()
    for call in (
        lambda: columns.list_column((1, 2, 3), offsets),
        lambda: columns.map_column((1, 2, 3), (4, 5, 6), offsets),
    ):
        with pytest.raises((ValueError, TypeError, BufferError)):
            call()


def test_other_wrong_arguments_are_refused():
    columns, offsets = native.find_columns(), np.array([0, 1], np.int32)
    for call in (
        lambda: columns.list_column([1], offsets),
        lambda: columns.map_column((1,), (1, 2), offsets),
        lambda: columns.map_column((1,), [1], offsets),
        lambda: columns.utc_column(np.array([1], np.int32)),
        lambda: columns.utc_column([1]),
        lambda: columns.utc_column(np.arange(4)[::2]),
    ):
        with pytest.raises((ValueError, TypeError, BufferError)):
            call()
    # What is left over is not looked at: the column is a slice of a longer one.
    assert columns.list_column((1, 2, 3), np.array([7, 8, 9], np.int32)) == [[1], [2]]


def test_references_are_those_of_the_lists():
    columns, offsets = native.find_columns(), np.array([0, 2, 2, 3], np.int32)
    elements = ("a" * 9, 10**20, [])
    before = [sys.getrefcount(each) for each in elements]
    for _ in range(100):
        assert columns.list_column(elements, offsets) == [list(elements[:2]), [], [elements[2]]]
        columns.map_column(elements, elements, offsets)
    with pytest.raises(ValueError, match="offsets"):
        columns.map_column(elements, elements, np.array([0, 9], np.int32))
    gc.collect()
    assert [sys.getrefcount(each) for each in elements] == before


def test_the_collector_looks_at_pairs_that_may_be_in_cycles():
    held = []
    (plain, other) = native.find_columns().map_column(
        (1, 2), ("a", held), np.array([0, 1, 2], "i4")
    )
    assert not gc.is_tracked(plain[0])
    assert gc.is_tracked(other[0])
    assert gc.is_tracked(plain)
