"""A file is left out only if no row of it can fulfil the condition."""

import pytest

from fluss import col
from fluss.model.predicates.binding import bind, column_types
from fluss_lake.iceberg_parts import Bounds
from fluss_lake.pruning import may_match
from tests.unit.lake.tables import schema_of

SCHEMA = schema_of(id="BIGINT", name="STRING", x="DOUBLE", n="TINYINT")
ROWS = 10
BOUNDS = {
    "id": Bounds(lowest=10, highest=20, nulls=0),
    "name": Bounds(lowest="bar", highest="foo", nulls=2),
    "x": Bounds(lowest=1.0, highest=2.0, nulls=0),
    "n": Bounds(nulls=ROWS),
}

LEFT_OUT = [
    col("id") == 9,
    col("id") < 10,
    col("id") <= 9,
    col("id") > 20,
    col("id") >= 21,
    col("id").is_in([1, 2, 30]),
    col("id").is_null(),
    col("name") > "foo",
    col("name").starts_with("zo"),
    col("n") == 1,
    col("n").is_not_null(),
    (col("id") == 15) & (col("id") > 20),
    (col("id") < 10) | (col("name") == "a"),
]
KEPT = [
    col("id") == 10,
    col("id") == 20,
    col("id") <= 10,
    col("id") >= 20,
    col("id") != 15,
    col("id").is_in([1, 15]),
    col("id").not_in([15]),
    ~(col("id") == 15),
    col("name").is_null(),
    col("name").starts_with("ba"),
    col("name").starts_with("f"),
    col("name").contains("zzz"),
    col("x") > 5.0,  # a file does not say whether it has a NaN
    col("n").is_null(),
    (col("id") < 10) | (col("name") == "d"),
]


def may(condition):
    return may_match(bind(condition, column_types(SCHEMA)), BOUNDS, ROWS)


@pytest.mark.parametrize("condition", LEFT_OUT, ids=str)
def test_a_file_without_such_a_row_is_left_out(condition):
    assert not may(condition)


@pytest.mark.parametrize("condition", KEPT, ids=str)
def test_a_file_that_may_have_such_a_row_is_kept(condition):
    assert may(condition)


def test_a_file_that_says_nothing_is_kept():
    condition = bind(col("id") == 1, column_types(SCHEMA))
    assert may_match(condition, {}, ROWS)
    assert may_match(condition, {"id": Bounds()}, ROWS)
