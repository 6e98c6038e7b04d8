"""Some rows of a column, and a column with gaps."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from fluss.model.types.data_type import (
    ArrayType,
    BigIntType,
    BinaryType,
    DataField,
    IntType,
    RowType,
)
from fluss.rows.buffers.columns import Column
from fluss.rows.buffers.take import list_elements, list_starts, take_rows, values_of, with_gaps
from tests.support.generators.random_columns import column_of, values_in
from tests.support.generators.random_values import ALL_TYPES, exact, random_value

TYPES = pytest.mark.parametrize("data_type", ALL_TYPES, ids=str)


def some_values(data_type, count=9):
    rng = Random(str(data_type))
    return [random_value(rng, data_type) for _ in range(count)]


@TYPES
def test_taken_rows_are_the_rows_asked_for(data_type):
    values = some_values(data_type)
    taken = take_rows(column_of(data_type, values), np.array([3, 3, 0, 8]))
    assert exact(values_in(taken)) == exact([values[3], values[3], values[0], values[8]])


@TYPES
def test_gaps_are_null_and_the_rest_stays(data_type):
    values = some_values(data_type, 3)
    wide = with_gaps(column_of(data_type, values), np.array([1, 2, 5]), 7)
    expected = [None, values[0], values[1], None, None, values[2], None]
    assert exact(values_in(wide)) == exact(expected)


def test_a_column_without_gaps_is_left_alone():
    column = column_of(BigIntType(), [1, 2])
    assert with_gaps(column, None, 2) is column


def test_beneath_a_gap_a_not_null_field_is_not_null():
    fields = (DataField("a", IntType().not_null()), DataField("b", IntType()))
    column = column_of(RowType(fields), [(1, 2)], rubbish=False)
    required, optional = with_gaps(column, np.array([1]), 2).children
    assert required.valid is None
    assert optional.valid is not None
    assert optional.valid.tolist() == [False, True]


def test_the_elements_of_null_lists_are_left_out():
    column = column_of(ArrayType(IntType()), [[1, 2], None, [3]], rubbish=True)
    lengths, (elements,) = list_elements(column)
    assert lengths.tolist() == [2, 0, 1]
    assert values_in(elements) == [1, 2, 3]


def test_elements_that_are_back_to_back_are_not_copied():
    column = column_of(ArrayType(IntType()), [[1, 2], [], [3]], rubbish=False)
    assert list_elements(column)[1][0] is column.children[0]


def test_a_wide_gap_is_refused_before_memory_is_asked_for():
    column = column_of(BinaryType(2**20), [b"\x01" * 2**20])
    with pytest.raises(Exception, match="these would have"):
        with_gaps(column, np.array([0]), 2**12)


def test_a_column_that_lacks_its_buffers_is_a_mistake():
    bare = Column(type=IntType(), length=1)
    with pytest.raises(ValueError, match="no values"):
        values_of(bare)
    with pytest.raises(ValueError, match="no offsets"):
        list_starts(bare)
