"""Columns of arrays and maps, as they lie inside every row format; also what surrounds nested rows.

===========  ==========================  ====================================================
array        int32 count                 of elements
             null bits                   one per element, in words of 4 bytes, set where NULL
             slots                       1, 2, 4 or 8 bytes per element by type
             zeros                       up to a multiple of 8 from the start of the array
             variable part               see `rows.formats.slots`
map          int32 length                of the key array in bytes
             key array
             value array
===========  ==========================  ====================================================

Java: `BinaryArray`, `BinaryMap`, `BinaryArrayWriter`. NaN is written in its canonical form, as
Java does for arrays and for nothing else. A column is written and read as a whole, at any depth:
the elements of all its lists are one column, so no step loops over rows. Single values are in
`rows.formats.array_value`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from fluss.errors import InvalidValueError
from fluss.model.types import data_type as t
from fluss.model.types.type_facts import DecimalStorage
from fluss.rows.buffers.byte_runs import (
    Part,
    Runs,
    fixed_words,
    gather_runs,
    join_parts,
    narrow_offsets,
    offsets_of,
    runs_of,
    runs_of_rows,
    words_of,
)
from fluss.rows.buffers.columns import BoolArray, Column, Int64Array, RowBytes, Values
from fluss.rows.buffers.take import list_elements, take_rows, with_gaps
from fluss.rows.formats.nulls import check_not_null
from fluss.rows.formats.row_cursor import RowCursor, Source
from fluss.rows.formats.slots import OpenSlots, Slots, placed_slots, rounded_up, section_slots
from fluss.rows.formats.stored import (
    FixedWidth,
    fixed_dtype,
    restore_fixed,
    restore_runs,
    restore_timestamps,
    store,
)

_SLOT_BYTES = 8
_COUNT_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFormat:
    """How a ROW is laid out inside an array or map: like the row around it.

    Compacted inside compacted, indexed inside indexed (Java: `BinaryRowFormat`).
    """

    what: str
    write_rows: Callable[[Sequence[Column], int], RowBytes]
    # The caller has checked that the runs lie inside the source.
    read_rows: Callable[[RowCursor, Sequence[t.DataType]], list[Column]]


def write_nested(column: Column, rows: RowFormat) -> Runs:
    """Return the bytes of every ARRAY, MAP or ROW of a column; none where it is NULL."""
    match column.type:
        case t.ArrayType():
            counts, (elements,) = list_elements(column)
            with _naming_row(column, counts=counts):
                return runs_of_rows(_write_arrays(elements, counts, column.valid, rows))
        case t.MapType():
            return runs_of_rows(_write_maps(column, rows))
        case _:
            return _write_rows(column, rows)


def read_nested(
    data_type: t.DataType, source: Source, starts: Int64Array, lengths: Int64Array, rows: RowFormat
) -> Column:
    """Return the column of the ARRAYs, MAPs or ROWs at these places; the bounds have been checked.

    Raises:
        CorruptDataError: The bytes cannot be values of this type.
        LimitExceededError: There are more elements than a column can have.
    """
    match data_type:
        case t.ArrayType(element=element):
            counts, elements = _read_arrays(element, source, starts, lengths, rows)
            return _list_column(data_type, counts, (elements,))
        case t.MapType():
            return _read_maps(data_type, source, starts, lengths, rows)
        case t.RowType(field_types=types):
            cursor = RowCursor.inside(source, starts, lengths, what=f"nested {rows.what}")
            children = rows.read_rows(cursor, types)
            return Column(type=data_type, length=len(starts), children=tuple(children))
        case _:
            raise ValueError(f"{data_type} is not nested.")


@contextmanager
def _naming_row(column: Column, *, counts: Int64Array) -> Iterator[None]:
    """Add the row to a refused value inside; `counts` are the elements of each row."""
    try:
        yield
    except InvalidValueError as error:
        row = int(np.searchsorted(offsets_of(counts), error.row, side="right")) - 1
        raise error.with_context(row=row, inside=str(column.type)) from error


def _write_rows(column: Column, rows: RowFormat) -> Runs:
    is_there = np.ones(column.length, np.bool_) if column.valid is None else column.valid
    present, children = np.flatnonzero(is_there), column.children
    if column.valid is not None:
        # Values beneath a NULL row are unspecified and must not be read.
        children = tuple(take_rows(child, present) for child in children)
    with _naming_row(column, counts=is_there.astype(np.int64)):
        dense = rows.write_rows(children, len(present))
    starts, lengths = np.zeros((2, column.length), np.int64)
    starts[present], lengths[present] = dense.offsets[:-1], np.diff(dense.offsets)
    return runs_of(dense.data, starts, lengths)


def _write_maps(column: Column, rows: RowFormat) -> RowBytes:
    counts, (keys, values) = list_elements(column)
    with _naming_row(column, counts=counts):
        key_arrays = runs_of_rows(_write_arrays(keys, counts, column.valid, rows))
        value_arrays = runs_of_rows(_write_arrays(values, counts, column.valid, rows))
    length = fixed_words(key_arrays.lengths.view(np.uint64), _COUNT_BYTES, column.valid)
    return join_parts([length, key_arrays, value_arrays], column.length)


def _write_arrays(
    elements: Column, counts: Int64Array, valid: BoolArray | None, rows: RowFormat
) -> RowBytes:
    check_not_null(elements)
    present = np.ones(len(counts), np.bool_) if valid is None else valid
    slots = _element_slots(elements, rows)
    width = _SLOT_BYTES if isinstance(slots, Slots) else slots.dtype.itemsize
    firsts = offsets_of(counts)
    header = (_COUNT_BYTES + _null_bytes(counts)) * present
    fixed_sizes = rounded_up(header + counts * width)
    parts: list[Part] = [
        fixed_words(counts.view(np.uint64), _COUNT_BYTES, present),
        _null_bits(elements.valid, counts, firsts, present),
    ]
    if isinstance(slots, Slots):
        slots, variable = _placed_slots(slots, counts, firsts, fixed_sizes)
        parts += [_slot_part(slots, counts, firsts, fixed_sizes - header), variable]
    else:
        parts.append(_slot_part(slots, counts, firsts, fixed_sizes - header))
    return join_parts(parts, len(counts))


def _element_slots(elements: Column, rows: RowFormat) -> Slots | Values:
    """Slots, or the bare numbers where there is no variable part."""
    if elements.type.is_nested:
        return section_slots(write_nested(elements, rows), elements.valid)
    match store(elements):
        case FixedWidth(values=values):
            is_nan = np.isnan(values) if values.dtype.kind == "f" else None
            return values if is_nan is None else np.where(is_nan, values.dtype.type("nan"), values)
        case stored:
            return placed_slots(stored, elements.type, elements.valid)


def _null_bytes(counts: Int64Array) -> Int64Array:
    return (counts + 31) // 32 * 4


def _null_bits(
    valid: BoolArray | None, counts: Int64Array, firsts: Int64Array, present: BoolArray
) -> Runs:
    lengths = _null_bytes(counts) * present
    offsets = offsets_of(lengths)
    bits = np.zeros(int(offsets[-1]), np.uint8)
    if valid is not None:
        nulls = np.flatnonzero(~valid)
        array = np.searchsorted(firsts, nulls, side="right") - 1
        index = nulls - firsts[array]
        masks = np.left_shift(1, index & 7).astype(np.uint8)
        np.bitwise_or.at(bits, offsets[array] + (index >> 3), masks)
    return runs_of(bits, offsets[:-1], lengths)


def _placed_slots(
    slots: Slots, counts: Int64Array, firsts: Int64Array, fixed_sizes: Int64Array
) -> tuple[Values, Runs]:
    """Return the slots with their offsets, and the variable part of every array."""
    joined = join_parts([slots.variable], len(slots.words))
    ends = joined.offsets[firsts]
    shifts = np.repeat(fixed_sizes - ends[:-1], counts)
    words = slots.with_offsets(joined.offsets[:-1] + shifts)
    return words, runs_of(joined.data, ends[:-1], np.diff(ends))


def _slot_part(values: Values, counts: Int64Array, firsts: Int64Array, spans: Int64Array) -> Runs:
    width = values.dtype.itemsize
    data = np.ascontiguousarray(values).view(np.uint8)
    return Runs(data=data, starts=firsts[:-1] * width, lengths=counts * width, spans=spans)


def _list_column(data_type: t.DataType, counts: Int64Array, children: tuple[Column, ...]) -> Column:
    return Column(
        type=data_type,
        length=len(counts),
        offsets=narrow_offsets(offsets_of(counts)),
        children=children,
    )


def _read_maps(
    data_type: t.MapType, source: Source, starts: Int64Array, lengths: Int64Array, rows: RowFormat
) -> Column:
    cursor = RowCursor.inside(source, starts, lengths, what="MAP")
    key_lengths = cursor.fixed(None, "<i4").astype(np.int64)
    key_starts = cursor.position(None)
    cursor.skip(None, key_lengths, "its key array does not fit")
    counts, keys = _read_arrays(data_type.key, source, key_starts, key_lengths, rows)
    value_counts, values = _read_arrays(
        data_type.value, source, cursor.at, cursor.ends - cursor.at, rows
    )
    differ = counts != value_counts
    if differ.any():
        cursor.refuse(starts, differ, "it has another number of keys than of values")
    if keys.valid is not None:
        has_null_key = np.zeros(len(counts), np.bool_)
        has_null_key[np.repeat(np.arange(len(counts)), counts)[~keys.valid]] = True
        cursor.refuse(starts, has_null_key, "a key is NULL")
    return _list_column(data_type, counts, (keys, values))


def _read_arrays(
    element: t.DataType, source: Source, starts: Int64Array, lengths: Int64Array, rows: RowFormat
) -> tuple[Int64Array, Column]:
    """Return the number of elements of every array, and all elements as one column."""
    cursor = RowCursor.inside(source, starts, lengths, what="ARRAY")
    counts = cursor.fixed(None, "<i4").astype(np.int64)
    negative = counts < 0
    if negative.any():
        cursor.refuse(starts, negative, "its count is negative")
    null_starts = cursor.position(None)
    cursor.skip(None, _null_bytes(counts), "it has more elements than bytes")
    dtype = fixed_dtype(element) or "<u8"
    slot_starts = cursor.position(None)
    cursor.skip(None, counts * np.dtype(dtype).itemsize, "it has more elements than bytes")
    found = _Elements(
        source=source,
        arrays=cursor,
        starts=starts,
        lengths=lengths,
        slot_starts=slot_starts,
        counts=counts,
        slots=gather_runs(source.data, slot_starts, counts * np.dtype(dtype).itemsize)[0].view(
            dtype
        ),
        rows=_present_elements(source, null_starts, counts),
    )
    return counts, with_gaps(found.column(element, rows), found.rows, len(found.slots))


def _present_elements(
    source: Source, null_starts: Int64Array, counts: Int64Array
) -> Int64Array | None:
    """Return which of all elements are not NULL; None for all."""
    bits, offsets = gather_runs(source.data, null_starts, _null_bytes(counts))
    if not bits.any():
        return None
    firsts = offsets_of(counts)
    place = np.repeat(offsets[:-1] * 8 - firsts[:-1], counts) + np.arange(firsts[-1])
    is_null = np.unpackbits(bits, bitorder="little")[place] != 0
    return np.flatnonzero(~is_null) if is_null.any() else None  # bits after the last are unused


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Elements:
    """The slots of all elements of some arrays, and `rows`: which of them are not NULL."""

    source: Source
    arrays: RowCursor
    starts: Int64Array
    lengths: Int64Array
    slot_starts: Int64Array
    counts: Int64Array
    slots: Values
    rows: Int64Array | None

    def column(self, element: t.DataType, rows: RowFormat) -> Column:
        """Return the elements that are not NULL."""
        present = self.slots if self.rows is None else self.slots[self.rows]
        if fixed_dtype(element) is not None:
            return restore_fixed(element, present, self.refuse)
        slots = OpenSlots(
            words=present,
            at=self._at(),
            section_starts=self._of_array(self.starts),
            section_lengths=self._of_array(self.lengths),
            refuse=self.refuse,
        )
        if isinstance(element, t.TimestampFamily):
            starts, nanos = slots.timestamps()
            millis = words_of(self.source.data, "<i8")[starts]
            return restore_timestamps(element, millis, nanos, self.refuse)
        if element.is_nested:
            return read_nested(element, self.source, *slots.sections(), rows)
        is_number = isinstance(element.storage, DecimalStorage)
        starts, lengths = slots.sections() if is_number else slots.texts()
        return restore_runs(element, self.source.data, starts, lengths, self.refuse)

    def refuse(self, wrong: BoolArray, why: str) -> None:
        """Raises for the first wrong one of the elements that are not NULL."""
        self.arrays.refuse(self._at(), wrong, why)

    def _at(self) -> Int64Array:
        """Return where the slots of the elements that are not NULL are."""
        firsts, width = offsets_of(self.counts), self.slots.dtype.itemsize
        at = np.repeat(self.slot_starts - firsts[:-1] * width, self.counts)
        at += np.arange(len(self.slots)) * width
        return at if self.rows is None else at[self.rows]

    def _of_array(self, values: Int64Array) -> Int64Array:
        """Return the value of its array for every element that is not NULL."""
        repeated = np.repeat(values, self.counts)
        return repeated if self.rows is None else repeated[self.rows]
