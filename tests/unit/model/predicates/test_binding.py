from datetime import UTC, datetime, time
from decimal import Decimal
from functools import reduce

import numpy as np
import pytest

from fluss.errors import InvalidSchemaError, InvalidValueError
from fluss.model.predicates.binding import (
    ALL,
    NONE,
    ColumnTest,
    bind,
    column_types,
    columns_of,
    simplified,
    weakened,
)
from fluss.model.predicates.predicate import Constant, LeafFunction as Is, col
from fluss.model.schema.schema import Schema
from fluss.model.types.factory import DataTypes as T

SCHEMA = (
    Schema.builder()
    .column("i", T.int())
    .column("s", T.string())
    .column("f", T.double())
    .column("price", T.decimal(6, 2))
    .column("second", T.timestamp(0))
    .column("milli", T.timestamp_ltz(3))
    .column("micro", T.timestamp(6))
    .column("at", T.time(0))
    .build()
)
NAN = float("nan")
HALF = datetime(1970, 1, 1, 0, 0, 1, 500_000)  # noqa: DTZ001 - TIMESTAMP has no zone


def bound(predicate, metadata=None):
    return bind(predicate, column_types(SCHEMA, metadata))


def leaf(column, function, *values, is_negated=False):
    data_type = SCHEMA.column(column).data_type
    return ColumnTest(
        column=column, data_type=data_type, function=function, values=values, is_negated=is_negated
    )


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (~(col("i") == 1), leaf("i", Is.NOT_EQUAL, 1)),
        (~(col("i") != 1), leaf("i", Is.EQUAL, 1)),
        (~(col("i") < 1), leaf("i", Is.GREATER_OR_EQUAL, 1)),
        (~(col("i") >= 1), leaf("i", Is.LESS_THAN, 1)),
        (~col("i").is_in([1]), leaf("i", Is.NOT_IN, 1)),
        (~col("i").is_null(), leaf("i", Is.IS_NOT_NULL)),
        (~(col("f") == 1), leaf("f", Is.NOT_EQUAL, 1.0)),
        (~(col("f") < 1), leaf("f", Is.LESS_THAN, 1.0, is_negated=True)),
        (~col("s").contains("x"), leaf("s", Is.CONTAINS, "x", is_negated=True)),
        (~~(col("i") == 1), leaf("i", Is.EQUAL, 1)),
        (~Constant(value=True), NONE),
        (~Constant(value=None), NONE),
    ],
)
def test_a_negation_goes_into_the_test_where_another_says_the_same(predicate, expected):
    assert bound(predicate) == expected


def test_a_negated_whole_becomes_a_whole_of_negations():
    assert bound(~((col("i") == 1) & ~(col("i") > 2))) == bound((col("i") != 1) | (col("i") > 2))


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (col("i").equal(None), NONE),
        (~col("i").equal(None), NONE),
        (col("i").not_in([1, None]), NONE),
        (~col("i").is_in([1, None]), NONE),
        (col("i").is_in([1, None]), leaf("i", Is.IN, 1)),
        (col("i").is_in([]), NONE),
        (~col("i").is_in([]), ALL),
        (col("f") == NAN, NONE),
        (~(col("f") > NAN), leaf("f", Is.IS_NOT_NULL)),
        (col("f") != NAN, leaf("f", Is.IS_NOT_NULL)),
        (col("f").not_in([NAN]), leaf("f", Is.IS_NOT_NULL)),
        (col("f").is_in([NAN, 1.0]), leaf("f", Is.IN, 1.0)),
    ],
)
def test_null_and_nan_are_no_values_to_compare_with(predicate, expected):
    assert bound(predicate) == expected


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (col("second") < HALF, leaf("second", Is.LESS_OR_EQUAL, 1)),
        (col("second") <= HALF, leaf("second", Is.LESS_OR_EQUAL, 1)),
        (col("second") > HALF, leaf("second", Is.GREATER_THAN, 1)),
        (col("second") >= HALF, leaf("second", Is.GREATER_THAN, 1)),
        (col("second") == HALF, NONE),
        (col("second") != HALF, leaf("second", Is.IS_NOT_NULL)),
        (~(col("second") == HALF), leaf("second", Is.IS_NOT_NULL)),
        (~(col("second") < HALF), leaf("second", Is.GREATER_THAN, 1)),
        (col("second").is_in([HALF, HALF.replace(microsecond=0)]), leaf("second", Is.IN, 1)),
        (col("micro") == HALF, leaf("micro", Is.EQUAL, 1_500_000)),
        (col("milli") >= HALF.replace(microsecond=7, tzinfo=UTC),
         leaf("milli", Is.GREATER_THAN, 1000)),
        (col("micro") < np.datetime64(-1, "ns"), leaf("micro", Is.LESS_OR_EQUAL, -1)),
        (col("at") > time(0, 0, 1, 1), leaf("at", Is.GREATER_THAN, 1)),
        (col("at") != time(0, 0, 1, 1), leaf("at", Is.IS_NOT_NULL)),
        (col("price") < Decimal("1.005"), leaf("price", Is.LESS_OR_EQUAL, 100)),
        (col("price") >= Decimal("-1.005"), leaf("price", Is.GREATER_THAN, -101)),
        (col("price") == Decimal("1.005"), NONE),
        (col("price") == Decimal("1.500"), leaf("price", Is.EQUAL, 150)),
    ],
)  # fmt: skip
def test_a_value_finer_than_its_column_is_compared_exactly(predicate, expected):
    assert bound(predicate) == expected


@pytest.mark.parametrize("value", [Decimal("10000.001"), Decimal("1e-60"), 1.5])
def test_a_decimal_that_has_no_place_is_refused(value):
    with pytest.raises(InvalidValueError, match="'price' is DECIMAL"):
        bound(col("price") < value)


def test_what_is_decided_anyway_is_left_out():
    asked = col("i") > 1
    true, false = Constant(value=True), Constant(value=False)
    assert simplified(bound(asked & true)) == bound(asked)
    assert simplified(bound(asked | false)) == bound(asked)
    assert simplified(bound(asked & false)) == NONE
    assert simplified(bound(asked | true)) == ALL
    assert simplified(bound((asked & false) | (asked & true))) == bound(asked)


def test_what_follows_for_some_columns_holds_whatever_the_others_are():
    both = (col("i") == 1) & (col("s") == "x")
    assert weakened(bound(both), {"i"}) == bound(col("i") == 1)
    assert weakened(bound((col("i") == 1) | (col("s") == "x")), {"i"}) == ALL
    either = both | ((col("i") == 2) & (col("s") == "y"))
    assert weakened(bound(either), {"i"}) == bound((col("i") == 1) | (col("i") == 2))
    assert weakened(bound(~either), {"i"}) == ALL
    assert weakened(bound(both), ()) == ALL
    assert weakened(bound(both & Constant(value=False)), {"i"}) == NONE


def test_columns_that_describe_rows_are_asked_like_others_unless_the_table_has_one():
    types = {"_bucket": T.int(), "i": T.string()}
    assert bound((col("_bucket") == 1) & (col("i") == 1), types).children[1] == bound(col("i") == 1)
    assert columns_of(bound((col("_bucket") == 1) | (col("i") == 1), types)) == {"_bucket", "i"}
    with pytest.raises(InvalidSchemaError):
        bound(col("_bucket") == 1)


def test_a_long_chain_is_no_deep_nest_and_a_deep_nest_is_refused():
    many = reduce(lambda a, b: a | b, [col("i") == each for each in range(5_000)])
    assert len(bound(many).children) == 5_000
    deep = col("i") == 0
    for each in range(200):
        deep = (col("i") == each) & (deep | (col("i") != each))
    with pytest.raises(InvalidValueError, match="more than 100 deep"):
        bound(deep)


def test_a_decimal_is_not_compared_with_floating_point_numbers():
    """A column takes the nearest number; a filter by that would answer another question."""
    with pytest.raises(InvalidValueError, match=r"does not take Decimal\('0.1'\)"):
        bound(col("f") == Decimal("0.1"))
