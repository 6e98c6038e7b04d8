"""Rows that are flattened and put together again are the batch of their columns."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest
from hypothesis import given

from fluss.model.types.factory import DataTypes
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.convert.flat_values import DEPTH_MAX, FlatRows
from fluss.records.convert.from_values import array_from_values
from tests.support.generators.random_values import ALL_TYPES, random_rows, tables


def layout_of(types):
    return BatchLayout.of([f"c{index}" for index in range(len(types))], types)


def from_columns(layout, rows):
    columns = zip(zip(*rows, strict=True), layout.types, layout.wire_schema, strict=True)
    arrays = [array_from_values(list(each), kind, field.type) for each, kind, field in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=layout.wire_schema)


def flattened(layout, rows):
    flat = FlatRows(layout)
    cells, runs = [], [[] for _ in range(flat.run_count)]
    for row in rows:
        more_cells, more_runs = flat.flatten(row)
        assert len(more_cells) == flat.width
        cells += more_cells
        for run, more in zip(runs, more_runs, strict=True):
            run.extend(more)
    return flat.batch(cells, runs)


def check(types, rows):
    layout = layout_of(types)
    expected, found = from_columns(layout, rows), flattened(layout, rows)
    found.validate(full=True)
    assert found.serialize().equals(expected.serialize())  # the same bytes, at NULL too


@given(tables())
def test_any_rows(table):
    types, rows = table
    if rows:
        check(types, rows)


@pytest.mark.parametrize("data_type", ALL_TYPES, ids=str)
def test_every_type(data_type):
    check([data_type], random_rows(Random(7), [data_type], 200))


def row_of(*types):
    return DataTypes.row([DataTypes.field(f"f{index}", each) for index, each in enumerate(types)])


TEXTS, COUNTS = (
    DataTypes.array(DataTypes.string()),
    DataTypes.map(DataTypes.string(), DataTypes.int()),
)


@pytest.mark.parametrize(
    ("data_type", "shape"),
    [
        (DataTypes.int(), (1, 0)),
        (TEXTS, (1, 1)),
        (COUNTS, (1, 2)),
        (row_of(DataTypes.int(), TEXTS, COUNTS), (4, 3)),
        (row_of(row_of(TEXTS)), (3, 1)),
        # These stay one cell.
        (DataTypes.array(TEXTS), (1, 0)),
        (DataTypes.map(DataTypes.int(), row_of(DataTypes.int())), (1, 0)),
    ],
    ids=str,
)
def test_what_becomes_cells_and_runs(data_type, shape):
    flat = FlatRows(layout_of([data_type]))
    assert (flat.width, flat.run_count) == shape
    check([data_type], random_rows(Random(5), [data_type], 100))


def test_rows_within_rows_are_flattened_to_a_depth():
    kind = DataTypes.int()
    for _ in range(DEPTH_MAX + 3):
        kind = row_of(kind)
    flat = FlatRows(layout_of([kind]))
    assert flat.width == DEPTH_MAX + 1
    check([kind], random_rows(Random(5), [kind], 100))
