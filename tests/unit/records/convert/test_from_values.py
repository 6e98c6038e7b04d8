"""Rows of physical values become the arrays that hold just these values."""

from __future__ import annotations

from itertools import chain
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given

from fluss.model.types.data_type import ArrayType, DecimalType, IntType
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.convert.from_values import array_from_values, batch_from_values
from fluss.records.convert.numpy_columns import to_columns
from tests.support.generators.random_columns import rows_in
from tests.support.generators.random_values import ALL_TYPES, exact, random_rows, tables


def layout_of(types):
    return BatchLayout.of([f"c{index}" for index in range(len(types))], types)


def there_and_back(types, rows):
    batch = batch_from_values(list(chain.from_iterable(rows)), layout_of(types))
    batch.validate(full=True)
    return rows_in(to_columns(batch, types), length=len(rows))


@given(tables())
def test_a_batch_holds_the_rows_it_was_made_of(table):
    types, rows = table
    if rows:
        assert exact(there_and_back(types, rows)) == exact(rows)


@pytest.mark.parametrize("data_type", ALL_TYPES, ids=str)
def test_every_type_has_arrays(data_type):
    rows = random_rows(Random(7), [data_type], 200)
    assert exact(there_and_back([data_type], rows)) == exact(rows)


@pytest.mark.parametrize("value", [0, -1, 1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**38 - 1])
def test_decimals_of_two_words_keep_every_bit(value):
    found = array_from_values([value, None], DecimalType(38, 0), pa.decimal128(38, 0))
    assert [None if each is None else int(each) for each in found.to_pylist()] == [value, None]


def test_no_lists_at_all_are_an_array_too():
    made = array_from_values([None, []], ArrayType(IntType()), pa.list_(pa.int32()))
    assert made.to_pylist() == [None, []]
