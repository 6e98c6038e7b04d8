"""Arrow arrays and numpy columns are the same memory told twice."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest
from hypothesis import given

from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.convert.numpy_columns import to_array, to_batch, to_column, to_columns
from fluss.rows.buffers.columns import Column
from tests.support.generators.random_columns import columns_of, rows_in
from tests.support.generators.random_values import ALL_TYPES, exact, random_rows, tables


def layout_of(types):
    return BatchLayout.of([f"c{index}" for index in range(len(types))], types)


@given(tables())
def test_columns_survive_the_way_through_arrow(table):
    types, rows = table
    batch = to_batch(columns_of(types, rows), layout_of(types).wire_schema)
    batch.validate(full=True)
    assert exact(rows_in(to_columns(batch, types), length=len(rows))) == exact(rows)


@given(tables())
def test_a_slice_of_a_batch_gives_the_rows_of_the_slice(table):
    types, rows = table
    batch = to_batch(columns_of(types, rows), layout_of(types).wire_schema)
    for start in range(len(rows) + 1):
        part = batch.slice(start, 3)
        found = rows_in(to_columns(part, types), length=part.num_rows)
        assert exact(found) == exact(rows[start : start + 3])


@pytest.mark.parametrize("data_type", ALL_TYPES, ids=str)
def test_a_far_slice_of_every_type_is_read_from_the_right_bit(data_type):
    rows = random_rows(Random(4), (data_type,), 50)
    batch = to_batch(columns_of((data_type,), rows), layout_of((data_type,)).wire_schema)
    for start in (7, 8, 9, 16, 33):
        part = batch.slice(start, 11)
        assert exact(rows_in(to_columns(part, (data_type,)), length=11)) == exact(
            rows[start : start + 11]
        )


@pytest.mark.parametrize("data_type", ALL_TYPES, ids=str)
def test_an_empty_array_of_every_type_becomes_an_empty_column(data_type):
    layout = layout_of((data_type,))
    empty = layout.wire_schema.empty_table().to_batches()
    batch = empty[0] if empty else pa.RecordBatch.from_pylist([], schema=layout.wire_schema)
    (column,) = to_columns(batch, (data_type,))
    assert rows_in((column,), length=0) == []
    assert len(to_array(column, layout.wire_schema.field(0).type)) == 0


def test_numbers_are_shared_and_not_copied():
    (data_type,) = [each for each in ALL_TYPES if str(each) == "BIGINT"]
    batch = pa.record_batch([pa.array(range(1000), pa.int64())], ["c0"])
    (column,) = to_columns(batch, (data_type,))
    address = column.values.__array_interface__["data"][0]
    assert address == batch.column(0).buffers()[1].address
    assert to_array(column, pa.int64()).buffers()[1].address == address


def test_elements_outside_a_slice_stay_outside():
    (data_type,) = [each for each in ALL_TYPES if str(each) == "ARRAY<INT>"]
    batch = pa.record_batch([pa.array([[1, 2]] * 1000, pa.list_(pa.int32()))], ["c0"])
    (column,) = to_columns(batch.slice(500, 2), (data_type,))
    assert column.children[0].length == 4


def test_an_empty_array_without_offsets_is_an_empty_column():
    array = pa.Array.from_buffers(pa.string(), 0, [None, None, pa.py_buffer(b"")])
    (text,) = [each for each in ALL_TYPES if str(each) == "STRING"]
    assert rows_in((to_column(array, text),), length=0) == []


def test_a_column_without_what_its_type_needs_is_a_mistake_of_the_caller():
    (number,) = [each for each in ALL_TYPES if str(each) == "BIGINT"]
    with pytest.raises(ValueError, match="has values"):
        to_array(Column(type=number, length=1), pa.int64())
