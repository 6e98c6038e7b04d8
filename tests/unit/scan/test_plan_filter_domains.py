"""What a filter leaves of single columns is never too narrow, and as narrow as the cases show."""

import operator
from decimal import Decimal
from itertools import product
from random import Random

import pytest

from fluss.model.predicates.binding import ALL, bind
from fluss.model.predicates.predicate import Constant, col
from fluss.model.types.factory import DataTypes
from fluss.scan.plan_filter_domains import Interval, interval_of, keys_of, matching_rows, values_of

INT = DataTypes.int()
DOUBLE = DataTypes.double()
COLUMNS = (("a", INT), ("b", INT))
NUMBERS = range(-2, 4)
ROWS = list(product(NUMBERS, NUMBERS))
A, B = col("a"), col("b")
COMPARISONS = (
    operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge,
)  # fmt: skip


def bound(predicate):
    return bind(predicate, dict(COLUMNS, f=DOUBLE).__getitem__)


def random_filter(rng, depth=3):
    kind = rng.randrange(7 if depth else 4)
    column = rng.choice([A, B])
    if kind < 2:
        return rng.choice(COMPARISONS)(column, rng.choice([*NUMBERS, Decimal("1.5")]))
    if kind == 2:
        return column.is_in(rng.sample(NUMBERS, rng.randrange(4)))
    if kind == 3:
        return rng.choice([column.is_null(), column.is_not_null(), Constant(value=depth > 1)])
    if kind == 4:
        return ~random_filter(rng, depth - 1)
    join = operator.and_ if kind == 5 else operator.or_
    return join(random_filter(rng, depth - 1), random_filter(rng, depth - 1))


@pytest.mark.parametrize("seed", range(200))
def test_no_row_that_fulfils_a_filter_is_left_out(seed):
    predicate = bound(random_filter(Random(seed)))
    found = matching_rows(predicate, COLUMNS, ROWS)  # all columns are known, so this is exact
    for place, (name, _) in enumerate(COLUMNS):
        there = {row[place] for row in found}
        values = values_of(predicate, name)
        assert values is None or there <= set(values)
        low, high = interval_of(predicate, name)
        assert all(
            (low is None or low <= value) and (high is None or value <= high) for value in there
        )
    keys = keys_of(predicate, COLUMNS, count_max=1_000)
    assert keys is None or set(found) <= set(keys)


@pytest.mark.parametrize(
    ("predicate", "values", "interval"),
    [
        (A == 1, {1}, Interval(1, 1)),
        (A.is_in([3, 1]), {1, 3}, Interval(1, 3)),
        (A.is_in([]), set(), Interval(0, -1)),
        ((A > 1) & (A <= 3), None, Interval(2, 3)),
        ((A > 1) & (A < 2), None, Interval(2, 1)),
        (A.is_in([1, 2]) & A.is_in([2, 3]), {2}, Interval(2, 2)),
        ((A == 1) | (A == 3), {1, 3}, Interval(1, 3)),
        ((A < 1) | (A > 2), None, Interval()),
        ((A == 1) | (B == 1), None, Interval()),
        ((A == 1) & (B == 1), {1}, Interval(1, 1)),
        (A != 1, None, Interval()),
        (~A.is_in([1]), None, Interval()),
        (A.is_null(), None, Interval()),
        (Constant(value=False), set(), Interval(0, -1)),
    ],
)
def test_what_one_column_can_hold(predicate, values, interval):
    found = values_of(bound(predicate), "a")
    assert (None if found is None else set(found)) == values
    assert interval_of(bound(predicate), "a") == interval
    assert interval.is_empty == (interval.low is not None and interval.low > interval.high)


def test_keys_are_listed_up_to_a_number_and_without_those_that_the_filter_excludes():
    four = bound(A.is_in([1, 2]) & B.is_in([1, 2]))
    assert keys_of(four, COLUMNS, count_max=4) == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert keys_of(four, COLUMNS, count_max=3) is None
    assert keys_of(bound(A == 1), COLUMNS, count_max=9) is None, "b may be anything"
    either = bound(((A == 1) & (B == 2)) | ((A == 2) & (B == 1)))
    assert keys_of(either, COLUMNS, count_max=4) == [(1, 2), (2, 1)]


def test_keys_begin_with_the_heads():
    keys = keys_of(
        bound((A < 2) & (B == 3)),
        COLUMNS[1:],
        count_max=9,
        heads=[(1,), (2,)],
        head_columns=COLUMNS[:1],
    )
    assert keys == [(1, 3)]


def test_a_key_of_floats_is_looked_for_with_both_zeros():
    keys = keys_of(bound(col("f") == 0.0), [("f", DOUBLE)], count_max=9)
    assert sorted(str(zero) for (zero,) in keys) == ["-0.0", "0.0"]


def test_conditions_on_other_columns_exclude_no_row():
    assert matching_rows(bound(B == 1), COLUMNS[:1], [(1,), (2,)]) == [(1,), (2,)]
    assert matching_rows(ALL, COLUMNS, ROWS) == ROWS
    assert matching_rows(bound(Constant(value=False)), COLUMNS, ROWS) == []
