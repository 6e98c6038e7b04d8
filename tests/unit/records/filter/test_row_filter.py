# ruff: noqa: DTZ001 - TIMESTAMP has no zone

import math
from datetime import UTC, date, datetime, time
from decimal import Decimal
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from fluss.errors import InvalidSchemaError, InvalidValueError, UnsupportedOperationError
from fluss.model.metadata_columns import METADATA_TYPES
from fluss.model.predicates.predicate import Compound, CompoundFunction, Leaf, LeafFunction, col
from fluss.model.schema.column import Column
from fluss.model.schema.schema import Schema
from fluss.records.filter.row_filter import RowFilter
from tests.support.generators.arrow_rows import batch_of
from tests.support.generators.random_filters import Filters
from tests.support.generators.random_values import ALL_TYPES, random_value

NAN = math.nan
COLUMNS = {
    "bool": (pa.bool_(), [True, False, None]),
    "tiny": (pa.int8(), [-128, 127, None]),
    "big": (pa.int64(), [-(2**63), 2**63 - 1, None]),
    "float": (pa.float32(), [0.5, NAN, None]),
    "double": (pa.float64(), [-0.0, NAN, None]),
    "money": (pa.decimal128(20, 2), [Decimal("1.50"), Decimal("-999999999999999999.99"), None]),
    "text": (pa.string(), ["a", "é", None]),
    "bytes": (pa.binary(), [b"a", b"\xff", None]),
    "code": (pa.binary(2), [b"aa", b"\xff\x00", None]),
    "day": (pa.date32(), [date(2024, 1, 1), date(1969, 12, 31), None]),
    "at": (pa.time32("ms"), [time(1, 2, 3), time(0), None]),
    "ntz": (pa.timestamp("us"), [datetime(2024, 1, 1, 0, 0, 0, 1), datetime(1900, 1, 1), None]),
    "ltz": (
        pa.timestamp("ms", "UTC"),
        [datetime(2024, 1, 1, tzinfo=UTC), datetime(1900, 1, 1, tzinfo=UTC), None],
    ),
    "list": (pa.list_(pa.int32()), [[1], [], None]),
}


def filtered(predicate, types, columns):
    fields = [pa.field(name, each) for name, each in types.items()]
    batch = pa.RecordBatch.from_pydict(columns, schema=pa.schema(fields))
    return RowFilter(predicate, Schema(pa.schema(fields))).matching(batch).tolist()


@pytest.mark.parametrize("name", [each for each in COLUMNS if each != "list"])
def test_every_type_is_compared_exactly(name):
    arrow_type, values = COLUMNS[name]
    for function, compare in (
        ("equal", lambda a, b: a == b),
        ("not_equal", lambda a, b: a != b),
        ("less_than", lambda a, b: a < b),
        ("less_or_equal", lambda a, b: a <= b),
        ("greater_than", lambda a, b: a > b),
        ("greater_or_equal", lambda a, b: a >= b),
    ):
        for literal in values[:2]:
            found = filtered(
                getattr(col(name), function)(literal), {name: arrow_type}, {name: values}
            )
            expected = [
                place
                for place, value in enumerate(values)
                if value is not None and compare(value, literal)
            ]
            assert found == expected, (function, literal)


@pytest.mark.parametrize("name", COLUMNS)
def test_every_type_can_be_asked_whether_it_is_null(name):
    arrow_type, values = COLUMNS[name]
    assert filtered(col(name).is_null(), {name: arrow_type}, {name: values}) == [2]
    assert filtered(col(name).is_not_null(), {name: arrow_type}, {name: values}) == [0, 1]


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (col("f") == NAN, []),
        (col("f") != NAN, [0, 1, 2, 3]),
        (col("f") > 0, [2]),
        (col("f") == 0.0, [0, 1]),
        (col("f") >= 0.0, [0, 1, 2]),
        (col("f").is_in([NAN, -0.0]), [0, 1]),
        (col("f").not_in([0.0]), [2, 3]),
        (col("f").not_in([NAN]), [0, 1, 2, 3]),
    ],
)
def test_floats_compare_as_ieee_754_says(predicate, expected):
    values = [0.0, -0.0, 1.0, NAN, None]
    assert filtered(predicate, {"f": pa.float64()}, {"f": values}) == expected


def test_a_float_is_compared_with_what_would_be_stored_of_the_value():
    assert filtered(col("f") == 0.1, {"f": pa.float32()}, {"f": [0.1, 0.2]}) == [0]


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (col("i") == None, []),  # noqa: E711 - that is the point
        (col("i") != None, []),  # noqa: E711
        (col("i").is_in([1, None]), [0]),
        (col("i").not_in([1, None]), []),
        (col("i").is_in([]), []),
        (col("i").not_in([]), [0, 1, 2]),
        (col("i").not_in([1]), [1]),
        ((col("i") == None) | (col("i") == 2), [1]),  # noqa: E711
        ((col("i") == None) & (col("i") == 2), []),  # noqa: E711
    ],
)
def test_a_comparison_with_null_is_neither_true_nor_false(predicate, expected):
    assert filtered(predicate, {"i": pa.int32()}, {"i": [1, 2, None]}) == expected


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (col("s").starts_with("é"), [0]),
        (col("s").contains("%"), [1]),
        (col("s").ends_with("."), [1]),
        (col("s").contains(""), [0, 1, 2]),
    ],
)
def test_texts_are_searched_literally(predicate, expected):
    assert filtered(predicate, {"s": pa.string()}, {"s": ["é1", "50%.", "", None]}) == expected


SMALL = st.integers(-2, 2) | st.none()
WORDS = st.sampled_from(["", "a", "ab", "b", None])


def leaf(name, values):
    comparisons = st.sampled_from([each for each in LeafFunction if each <= 5])
    compared = st.builds(
        lambda function, value: Leaf(column=name, function=function, literals=(value,)),
        comparisons, values,
    )  # fmt: skip
    listed = st.builds(
        lambda function, several: Leaf(column=name, function=function, literals=tuple(several)),
        st.sampled_from([LeafFunction.IN, LeafFunction.NOT_IN]), st.lists(values, max_size=3),
    )  # fmt: skip
    return compared | listed | st.sampled_from([col(name).is_null(), col(name).is_not_null()])


PREDICATES = st.recursive(
    leaf("i", SMALL) | leaf("s", WORDS),
    lambda inner: st.builds(
        lambda function, children: Compound(function=function, children=tuple(children)),
        st.sampled_from(CompoundFunction), st.lists(inner, min_size=1, max_size=3),
    ),
    max_leaves=6,
)  # fmt: skip


def truth(predicate, row):
    """SQL, spelled out: True, False, or None for unknown."""
    if isinstance(predicate, Compound):
        children = [truth(each, row) for each in predicate.children]
        decisive = predicate.function is CompoundFunction.OR
        if decisive in children:
            return decisive
        return None if None in children else not decisive
    value = row[predicate.column]
    match predicate.function:
        case LeafFunction.IS_NULL:
            return value is None
        case LeafFunction.IS_NOT_NULL:
            return value is not None
        case LeafFunction.IN | LeafFunction.NOT_IN as function:
            equal = [_compare(LeafFunction.EQUAL, value, each) for each in predicate.literals]
            among = True if True in equal else None if None in equal else False
            if function is LeafFunction.IN or among is None:
                return among
            return not among
        case function:
            return _compare(function, value, predicate.literals[0])


def _compare(function, value, literal):
    if value is None or literal is None:
        return None
    return {
        LeafFunction.EQUAL: value == literal,
        LeafFunction.NOT_EQUAL: value != literal,
        LeafFunction.LESS_THAN: value < literal,
        LeafFunction.LESS_OR_EQUAL: value <= literal,
        LeafFunction.GREATER_THAN: value > literal,
        LeafFunction.GREATER_OR_EQUAL: value >= literal,
    }[function]


@given(predicate=PREDICATES, rows=st.lists(st.tuples(SMALL, WORDS), max_size=8))
def test_whatever_is_asked_is_answered_as_sql_answers(predicate, rows):
    columns = {"i": [each for each, _ in rows], "s": [each for _, each in rows]}
    found = filtered(predicate, {"i": pa.int32(), "s": pa.string()}, columns)
    expected = [
        place for place, (i, s) in enumerate(rows) if truth(predicate, {"i": i, "s": s}) is True
    ]
    assert found == expected


def test_only_the_columns_that_are_looked_at_are_asked_for():
    schema = Schema(pa.schema([(each, pa.int32()) for each in "abcd"]))
    assert RowFilter((col("d") > 1) & ((col("b") > 1) | (col("d") < 5)), schema).columns == (1, 3)


@pytest.mark.parametrize(
    ("predicate", "message"),
    [
        (col("id") > "5", "'id' is INT and does not take '5' \\(str\\)"),
        (col("id") > 1.5, "'id' is INT and does not take 1.5"),
        (col("id") == 2**40, "'id' is INT and does not take"),
        (col("id") == True, "'id' is INT and does not take True"),  # noqa: E712 - that is the point
        (col("id").is_in([1, "x"]), "'id' is INT and does not take 'x'"),
        (col("name") == 5, "'name' is STRING and does not take 5"),
    ],
)
def test_a_value_of_another_type_is_refused_with_its_column(predicate, message):
    schema = Schema(pa.schema([("id", pa.int32()), ("name", pa.string())]))
    with pytest.raises(InvalidValueError, match=message) as caught:
        RowFilter(predicate, schema)
    assert caught.value.column in {"id", "name"}


def test_an_unknown_column_is_refused_with_the_nearest():
    with pytest.raises(InvalidSchemaError) as caught:
        RowFilter(col("nmae") == "x", Schema(pa.schema([("name", pa.string())])))
    assert caught.value.hint == "did you mean 'name'?"


@pytest.mark.parametrize(
    "predicate", [col("l") == [1], col("l").is_in([[1]]), col("i").contains("1")]
)
def test_what_a_type_cannot_be_asked_is_refused(predicate):
    schema = Schema(pa.schema([("l", pa.list_(pa.int32())), ("i", pa.int32())]))
    with pytest.raises(UnsupportedOperationError):
        RowFilter(predicate, schema)


def test_a_filter_is_a_predicate():
    with pytest.raises(InvalidValueError, match=r"col\("):
        RowFilter("id > 5", Schema(pa.schema([("id", pa.int32())])))


def random_table(rng, row_count):
    types = {f"c{place}": rng.choice(ALL_TYPES) for place in range(rng.randint(1, 5))}
    few = {
        name: [random_value(rng, each) for _ in range(rng.randint(2, 6))]
        for name, each in types.items()
    }
    rows = [{name: rng.choice(few[name]) for name in types} for _ in range(row_count)]
    return types, few, rows


@pytest.mark.parametrize("seed", range(10))
def test_random_filters_over_random_tables_of_all_types_answer_as_sql_does(seed):
    rng = Random(seed)
    found_some = 0
    for _ in range(20):
        types, pools, rows = random_table(rng, row_count=rng.choice((0, 1, 20, 20, 20)))
        schema = Schema([Column(name, each) for name, each in types.items()])
        values = [tuple(row.values()) for row in rows]
        batch = batch_of(schema.to_arrow(), list(types.values()), values)
        filters = Filters(rng, types, pools)
        for _ in range(10):
            predicate = filters.make()
            expected = [
                place for place, row in enumerate(rows) if filters.truth(predicate, row) is True
            ]
            assert RowFilter(predicate, schema).matching(batch).tolist() == expected, predicate
            found_some += 0 < len(expected) < len(rows)
    assert found_some > 20, "filters that find all or nothing prove little"


def test_columns_that_describe_rows_are_looked_at_where_batches_have_them():
    schema = Schema(pa.schema([("a", pa.int32())]))
    predicate = (col("_log_offset") >= 5) & (col("a") == 1)
    row_filter = RowFilter(predicate, schema, METADATA_TYPES)
    assert (row_filter.columns, row_filter.metadata) == ((0,), ("_log_offset",))
    batch = pa.RecordBatch.from_pydict({"a": [1, 1, 2], "_log_offset": [4, 5, 6]})
    assert row_filter.matching(batch).tolist() == [1]
    with pytest.raises(InvalidSchemaError):
        RowFilter(predicate, schema)
