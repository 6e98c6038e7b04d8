"""Rows as users give them, and their tuples of physical values."""

from collections import OrderedDict, UserDict, namedtuple
from datetime import UTC, datetime, time, timedelta, timezone
from random import Random
from time import process_time

import pytest

from fluss.errors import InvalidValueError
from fluss.model.paths import TablePath
from fluss.model.schema.column import Column
from fluss.model.schema.schema import Schema
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.tables.table_info import TableInfo
from fluss.model.types.factory import DataTypes
from fluss.model.values.conversion import from_physical, to_physical
from fluss.model.values.limits import ValueLimits
from fluss.write.row_function import RowReader
from tests.support.generators.random_values import ALL_TYPES, as_lists, exact, random_rows

NAMES = ("id", "name", "ok")
TYPES = (DataTypes.int().not_null(), DataTypes.string(), DataTypes.boolean())


def reader(*, positions=(0, 1, 2), **facts):
    names, types = [NAMES[each] for each in positions], [TYPES[each] for each in positions]
    return RowReader(names, types, positions=positions, width=3, **facts)


def read(row, **facts):
    values, _ = reader(**facts).read(row)
    return values


@pytest.mark.parametrize(
    "row",
    [
        {"id": 1, "name": "a", "ok": True},
        OrderedDict(ok=True, name="a", id=1),
        UserDict(id=1, name="a", ok=True),
        [1, "a", True],
        (1, "a", True),
        namedtuple("Row", NAMES)(1, "a", True),  # noqa: PYI024 - it is what users have
    ],
)
def test_rows_come_as_mappings_and_as_sequences(row):
    assert read(row) == (1, "a", True)


def test_what_a_mapping_leaves_out_is_null():
    assert read({"id": 1}) == (1, None, None)


@pytest.mark.parametrize(
    ("row", "column"),
    [
        ({"name": "a"}, "id"),
        ({"id": 1, "nmae": "a"}, "nmae"),
        ({"id": 1, "name": "a", "ok": True, "more": 1}, "more"),
        ({"id": 1, "name": "a", "okay": True}, "okay"),
        ([1, 2, True], "name"),
        ([2**31, "a", True], "id"),
        ([True, "a", True], "id"),
        ([1, "a", 1], "ok"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_column(row, column):
    with pytest.raises(InvalidValueError) as caught:
        read(row)
    assert caught.value.column == column
    numbered = caught.value.with_context(row=4)
    assert (numbered.column, numbered.row, numbered.hint) == (column, 4, caught.value.hint)
    assert numbered.message.startswith("In row 4: ")


@pytest.mark.parametrize("row", [[1], [1, "a", True, 4], "abc", b"abcd", 7, None, object()])
def test_what_is_no_row_is_refused(row):
    with pytest.raises(InvalidValueError):
        read(row)


def test_a_typo_is_answered_with_what_was_meant():
    with pytest.raises(InvalidValueError) as caught:
        read({"id": 1, "nmae": "a"})
    assert "name" in caught.value.hint


def test_some_columns_are_spread_over_the_width_of_the_table():
    assert read([True, 1], positions=(2, 0)) == (1, None, True)
    assert read({"id": 1, "ok": None}, positions=(0, 2)) == (1, None, None)
    assert read([1, "ignored", True], positions=(0, 2)) == (1, None, True)


def test_further_columns_may_be_ignored():
    assert read({"id": 1, "name": "x"}, positions=(0,), ignored=frozenset(NAMES)) == (1, None, None)


def test_the_size_of_a_row_counts_its_texts():
    short, long = (reader().read([1, "x" * count, True])[1] for count in (1, 1_001))
    assert long - short == 1_000


@pytest.mark.parametrize("data_type", ALL_TYPES, ids=str)
def test_the_unrolled_function_does_what_the_converter_does(data_type):
    convert = to_physical(data_type, "c")
    function = RowReader(["c"], [data_type], positions=[0], width=1).read
    back = from_physical(data_type)
    tried = 0
    for (value,) in random_rows(Random(3), [data_type], 60):
        try:
            given = back(value)
            expected = convert(given)
        except InvalidValueError:
            continue
        values, size = function((given,))
        assert exact(as_lists([values])) == exact(as_lists([(expected,)]))
        assert size > 0
        tried += 1
    assert tried
    for odd in (object(), 2**70, "text", b"bytes", 1.5, True, float("nan"), 1j):
        assert outcome(lambda odd=odd: function((odd,))[0][0]) == outcome(
            lambda odd=odd: convert(odd)
        )


@pytest.mark.parametrize("data_type", [DataTypes.timestamp(), DataTypes.timestamp_ltz()], ids=str)
@pytest.mark.parametrize(
    "value",
    [
        datetime.min,  # noqa: DTZ901 - what has no zone is what this is about
        datetime.max,  # noqa: DTZ901 - and here
        datetime(1969, 12, 31, 23, 59, 59, 999_999),  # noqa: DTZ001 - and here
        datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=UTC),
        datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=timezone(timedelta(hours=-5))),
        None,
    ],
    ids=str,
)
def test_moments_are_what_the_converter_makes_of_them(data_type, value):
    read = RowReader(["c"], [data_type], positions=[0], width=1).read
    convert = to_physical(data_type, "c")
    assert outcome(lambda: read([value])[0][0]) == outcome(lambda: convert(value))


def outcome(call):
    try:
        return repr(call())
    except InvalidValueError as error:
        return error.message


@pytest.mark.parametrize("precision", [3, 6, 9])
def test_a_row_by_key_takes_no_time_that_it_would_cut(precision):
    names, types = ["id", "at"], [DataTypes.bigint(), DataTypes.time(precision)]

    def taken(value, *, keeps_millis):
        one = RowReader(
            names, types, positions=(0, 1), width=2, limits=ValueLimits(keeps_millis=keeps_millis)
        )
        (_, physical), _ = one.read((1, value))
        return physical

    whole, fine = time(1, 2, 3, 456_000), time(1, 2, 3, 456_789)
    assert taken(None, keeps_millis=True) is None
    assert taken(whole, keeps_millis=True) == taken(whole, keeps_millis=False)
    if precision > 3:
        assert taken(fine, keeps_millis=False)
    with pytest.raises(InvalidValueError, match="milliseconds") as refused:
        taken(fine, keeps_millis=True)
    assert refused.value.facts["column"] == "at"


def test_a_table_of_many_columns_is_not_searched_once_for_each_of_them():
    """Ten thousand columns took 22 seconds before the first row."""
    count = 10_000
    schema = Schema([Column(f"c{each}", TYPES[1]) for each in range(count)])
    descriptor = TableDescriptor(schema, bucket_count=1)
    info = TableInfo.of(descriptor, table_path=TablePath("d", "t"), table_id=1, schema_id=1)
    begin = process_time()
    made = RowReader.of(info, range(count))
    assert schema.column_indexes(schema.column_names) == tuple(range(count))
    assert process_time() - begin < 1
    assert made.names == schema.column_names
