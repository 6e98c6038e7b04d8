"""The generators that other tests use: deterministic, complete, and valid column layouts."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given

from fluss.model.types.data_type import DataType
from tests.support.generators.random_columns import column_of, columns_of, rows_in, values_in
from tests.support.generators.random_values import (
    ALL_TYPES,
    exact,
    integer_range,
    random_rows,
    random_types,
    random_value,
    tables,
)


def test_the_same_seed_gives_the_same_rows():
    first, second = (random_rows(rng, random_types(rng, 12), 20) for rng in (Random(5), Random(5)))
    assert exact(first) == exact(second)


def test_every_data_type_is_among_the_types():
    def roots(parent: type[DataType]) -> set[str]:
        below = {root for each in parent.__subclasses__() for root in roots(each)}
        root = getattr(parent, "root", None)  # a family of types has none
        return below | ({root} if root else set())

    assert {each.root for each in ALL_TYPES} == roots(DataType)


@pytest.mark.parametrize("data_type", ALL_TYPES, ids=str)
@pytest.mark.parametrize("rubbish", [False, True], ids=["tidy", "rubbish"])
def test_a_column_holds_the_values_it_was_made_of(data_type, rubbish):
    rng = Random(11)
    found = [random_value(rng, data_type) for _ in range(50)]
    assert None in found
    assert exact(values_in(column_of(data_type, found, rubbish=rubbish))) == exact(found)


@given(tables())
def test_columns_and_rows_have_equal_values(table):
    types, rows = table
    assert exact(rows_in(columns_of(types, rows), length=len(rows))) == exact(rows)


def test_a_not_null_type_has_no_nulls():
    rng = Random(3)
    for data_type in ALL_TYPES:
        found = [random_value(rng, data_type.not_null(), null_rate=0.9) for _ in range(20)]
        assert None not in found


def test_exact_distinguishes_zeros_and_equates_nans():
    assert exact(0.0) != exact(-0.0)
    assert exact(1) != exact(True)
    assert exact([1]) != exact((1,))
    assert exact([float("nan")]) == exact([float("nan")])


def test_a_time_has_no_digits_below_the_millisecond():
    rng = Random(9)
    times = [each for each in ALL_TYPES if each.root.startswith("TIME_WITHOUT")]
    for data_type in times:
        step = integer_range(data_type)[2]
        values = [random_value(rng, data_type.not_null()) for _ in range(50)]
        assert all(value % step == 0 for value in values)
