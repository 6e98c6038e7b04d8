"""Some rows of a column as a column of their own, and back into a longer one with gaps.

Codecs need the first where a NULL list or row hides children that must not be read (Arrow leaves
them unspecified), and the second because they read only values that are not NULL.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fluss.model.types.data_type import ArrayType, MapType
from fluss.rows.buffers.byte_runs import check_bytes_max, gather_runs, narrow_offsets, offsets_of
from fluss.rows.buffers.columns import Column, Int32Array, Int64Array, Values


def take_rows(column: Column, rows: Int64Array) -> Column:
    """Row `rows[i]` of `column` as row i."""
    valid = None if column.valid is None else column.valid[rows]
    taken = replace(column, length=len(rows), valid=valid)
    if column.offsets is not None:
        return _take_lists(column, taken, rows)
    if column.values is not None:
        return replace(taken, values=column.values[rows])
    return replace(taken, children=tuple(take_rows(child, rows) for child in column.children))


def values_of(column: Column) -> Values:
    """Return the values of a column of a flat type."""
    if column.values is None:
        raise ValueError(f"A column of {column.type} has no values.")
    return column.values


def list_starts(column: Column) -> Int64Array:
    """Return where each row of a column with offsets begins."""
    return _offsets(column)[:-1].astype(np.int64)


def list_lengths(column: Column) -> Int64Array:
    """Return the bytes or elements of each row of a column with offsets; 0 where it is NULL."""
    lengths = np.diff(_offsets(column)).astype(np.int64)
    if column.valid is not None:
        lengths[~column.valid] = 0
    return lengths


def list_elements(column: Column) -> tuple[Int64Array, tuple[Column, ...]]:
    """Return the lengths of a column's lists or maps, and the elements of those not NULL."""
    lengths, offsets = list_lengths(column), _offsets(column)
    used = int(lengths.sum())
    if offsets[0] == 0 and all(used == offsets[-1] == child.length for child in column.children):
        # No NULL list hides elements, hence they are already back to back.
        return lengths, column.children
    rows = _positions(list_starts(column), lengths)
    return lengths, tuple(take_rows(child, rows) for child in column.children)


def with_gaps(column: Column, rows: Int64Array | None, count: int) -> Column:
    """Return `count` rows with row i of `column` as row `rows[i]`, and NULL elsewhere.

    `rows` ascends; it is None where there are no gaps.
    """
    if rows is None:
        return column
    valid = np.zeros(count, np.bool_)
    valid[rows] = True if column.valid is None else column.valid
    return replace(_spread_out(column, rows, count), valid=valid)


def _spread_out(column: Column, rows: Int64Array, count: int) -> Column:
    spread_out = replace(column, length=count)
    if column.offsets is not None:
        # A gap is empty: it begins where the next present row begins.
        is_there = np.zeros(count, np.int64)
        is_there[rows] = 1
        return replace(spread_out, offsets=column.offsets[offsets_of(is_there)])
    if column.values is not None:
        values = column.values
        check_bytes_max(count * int(np.prod(values.shape[1:])))
        wide = np.zeros((count, *values.shape[1:]), values.dtype)
        wide[rows] = values
        return replace(spread_out, values=wide)
    children = (_child_spread_out(child, rows, count) for child in column.children)
    return replace(spread_out, children=tuple(children))


def _child_spread_out(column: Column, rows: Int64Array, count: int) -> Column:
    # Beneath a NULL row a NOT NULL field has no value, and is not marked as NULL.
    if column.valid is None and not column.type.nullable:
        return _spread_out(column, rows, count)
    return with_gaps(column, rows, count)


def _take_lists(column: Column, taken: Column, rows: Int64Array) -> Column:
    starts, lengths = list_starts(column)[rows], list_lengths(column)[rows]
    offsets = narrow_offsets(offsets_of(lengths))
    if isinstance(column.type, ArrayType | MapType):
        elements = _positions(starts, lengths)
        children = tuple(take_rows(child, elements) for child in column.children)
        return replace(taken, offsets=offsets, children=children)
    values, _ = gather_runs(values_of(column), starts, lengths)
    return replace(taken, offsets=offsets, values=values)


def _offsets(column: Column) -> Int32Array:
    if column.offsets is None:
        raise ValueError(f"A column of {column.type} has no offsets.")
    return column.offsets


def _positions(starts: Int64Array, lengths: Int64Array) -> Int64Array:
    """Every position inside these runs, in order."""
    offsets = offsets_of(lengths)
    return np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])
