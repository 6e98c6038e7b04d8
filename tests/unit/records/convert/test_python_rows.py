"""Rows of a batch that are made block by block are those of its columns as a whole."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from fluss.model.types.factory import DataTypes
from fluss.model.types.type_to_arrow import to_wire_arrow_type
from fluss.records.convert import python_rows
from fluss.records.convert.from_values import array_from_values
from fluss.records.convert.python_rows import BLOCK_ROWS_MAX, NESTED_BLOCK_ROWS_MAX, PythonRows
from fluss.records.convert.to_python import python_values

pytestmark = pytest.mark.usefixtures("row_functions")

TYPES = (DataTypes.bigint(), DataTypes.string(), DataTypes.array(DataTypes.int()))
COUNT = 100


def batch():
    columns = [
        list(range(COUNT)),
        [None if each % 7 == 0 else f"t{each}" for each in range(COUNT)],
        [list(range(each % 4)) for each in range(COUNT)],
    ]
    arrays = [
        array_from_values(values, kind, to_wire_arrow_type(kind))
        for values, kind in zip(columns, TYPES, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, names=["a", "b", "c"])


def whole():
    return [list(python_values(column, kind)) for column, kind in zip(batch(), TYPES, strict=True)]


def set_block_rows(monkeypatch, rows):
    monkeypatch.setattr(python_rows, "BLOCK_ROWS_MAX", rows)
    monkeypatch.setattr(python_rows, "NESTED_BLOCK_ROWS_MAX", rows)


@pytest.mark.parametrize("block_rows", [1, 7, 64, COUNT, 1_000])
@pytest.mark.parametrize("step", [1, 5, 33, COUNT])
def test_slices_one_after_the_other_are_the_whole(monkeypatch, block_rows, step):
    set_block_rows(monkeypatch, block_rows)
    rows, expected = PythonRows.of(batch(), TYPES), whole()
    for start in range(0, COUNT, step):
        count = min(step, COUNT - start)
        found = rows.slice(start).columns(count)
        assert [list(each) for each in found] == [each[start : start + count] for each in expected]


def test_slices_in_any_order_and_slices_of_slices_are_the_whole(monkeypatch):
    set_block_rows(monkeypatch, 16)
    rows, expected, random = PythonRows.of(batch(), TYPES), whole(), Random(3)
    for _ in range(200):
        first, second = random.randrange(50), random.randrange(49)
        count = random.randrange(1, COUNT - first - second)
        found = rows.slice(first).slice(second).columns(count)
        start = first + second
        assert [list(each) for each in found] == [each[start : start + count] for each in expected]


def test_each_row_is_converted_once_by_readers_of_a_few(monkeypatch):
    made = []

    def counting(array, data_type):
        made.append(len(array))
        return python_values(array, data_type)

    monkeypatch.setattr(python_rows, "python_values", counting)
    set_block_rows(monkeypatch, 40)
    rows = PythonRows.of(batch(), TYPES)
    for start in range(COUNT):
        rows.slice(start).columns(1)
    assert made == [40] * 3 + [40] * 3 + [20] * 3


def test_a_block_of_large_rows_has_few_of_them(monkeypatch):
    monkeypatch.setattr(python_rows, "BLOCK_BYTES", 1)
    rows = PythonRows.of(batch(), TYPES)
    rows.columns(1)
    assert rows._blocks._block_rows == 1


def test_a_block_of_rows_with_lists_is_short():
    flat = pa.record_batch({"a": [1]})
    assert PythonRows.of(flat, [DataTypes.int()])._blocks._block_rows == BLOCK_ROWS_MAX
    lists = pa.record_batch({"a": [[1]]})
    of_lists = PythonRows.of(lists, [DataTypes.array(DataTypes.int())])._blocks
    assert of_lists._block_rows == NESTED_BLOCK_ROWS_MAX < BLOCK_ROWS_MAX
