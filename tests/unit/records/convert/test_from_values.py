"""Rows of physical values become the arrays that hold just these values."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest
from hypothesis import given

from fluss.model.types.data_type import ArrayType, BigIntType, DecimalType, DoubleType, IntType
from fluss.model.types.type_to_arrow import to_wire_arrow_type
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.convert.from_values import array_from_values
from fluss.records.convert.numpy_columns import to_columns
from tests.support.generators.random_columns import rows_in
from tests.support.generators.random_values import ALL_TYPES, exact, random_rows, tables


def layout_of(types):
    return BatchLayout.of([f"c{index}" for index in range(len(types))], types)


def there_and_back(types, rows):
    layout = layout_of(types)
    columns = zip(zip(*rows, strict=True), types, layout.wire_schema, strict=True)
    arrays = [array_from_values(list(each), kind, field.type) for each, kind, field in columns]
    batch = pa.RecordBatch.from_arrays(arrays, schema=layout.wire_schema)
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


@pytest.mark.parametrize(
    ("data_type", "values"),
    [
        (BigIntType(), [None, 2**53 - 1, -(2**53) + 1]),
        (BigIntType(), [None, 2**53 + 1, 0]),
        (BigIntType(), [None, -(2**63), 2**63 - 1]),
        (DoubleType(), [None, 0.5, -0.0]),
        (DoubleType(), [None, float("nan"), 0.5]),
    ],
    ids=str,
)
def test_numbers_beside_null_keep_every_bit(data_type, values):
    made = array_from_values(values, data_type, to_wire_arrow_type(data_type))
    plain = pa.array(values, made.type, from_pandas=False)
    assert made.null_count == 1
    assert [str(each) for each in made.to_pylist()] == [str(each) for each in plain.to_pylist()]
