"""Aligned rows: rows in which every field has a slot of eight bytes at a place known beforehand.

==================  ==========================================================================
null bits           words of 8 bytes. Byte 0 is not theirs but the row kind, so field i is bit
                    i + 8, counted from the low end of the first byte; set where NULL
slots               one per field, zeros where NULL: see `rows.formats.slots`
variable part       in the order of the fields, nothing for a NULL
==================  ==========================================================================

Fluss keeps the least and greatest values of a log batch in them (Java: `AlignedRow`,
`AlignedRowWriter`). Paimon's `BinaryRow` has the same bytes for the same values, and makes up the
keys of tables that are tiered to Paimon (Java: `PaimonKeyEncoder`, `PaimonBinaryRowWriter`).
Neither use knows nested types, so they are refused here. This file has the columns; single rows
are in `rows.formats.aligned_row` and can be imported from either.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fluss.model.types.data_type import (
    DataType,
    TimestampFamily,
)
from fluss.model.types.type_facts import DecimalStorage
from fluss.rows.buffers.byte_runs import Part, Runs, UInt64Array, join_parts, words_of
from fluss.rows.buffers.columns import ByteArray, Column, Int64Array, RowBytes
from fluss.rows.buffers.take import with_gaps
from fluss.rows.formats.aligned_row import (
    HEADER_BITS,
    INSERT_KIND,
    SLOT_BYTES,
    AlignedRowReader,
    AlignedRowWriter,
    check_flat,
    null_words_bytes,
    read_aligned_row,
    write_aligned_row,
    write_paimon_row,
)
from fluss.rows.formats.nulls import check_not_null, naming_column, rows_in_columns
from fluss.rows.formats.row_cursor import RowCursor
from fluss.rows.formats.slots import (
    OpenSlots,
    Slots,
    decimal_slots,
    number_slots,
    text_slots,
    timestamp_slots,
)
from fluss.rows.formats.stored import (
    FixedWidth,
    SplitTimestamp,
    fixed_dtype,
    restore_fixed,
    restore_runs,
    restore_timestamps,
    store,
)

__all__ = [
    "INSERT_KIND",
    "AlignedRowReader",
    "AlignedRowWriter",
    "read_aligned_row",
    "read_aligned_rows",
    "write_aligned_row",
    "write_aligned_rows",
    "write_paimon_row",
    "write_paimon_rows",
]

_WORD_BITS = 64


def write_aligned_rows(columns: Sequence[Column], *, row_kind: int = INSERT_KIND) -> RowBytes:
    """Encodes columns as aligned rows.

    Raises:
        InvalidValueError: A value does not fit its column; `column` and `row` say which.
        UnsupportedTypeError: A column is nested.
    """
    count = rows_in_columns(columns, None)
    head_words = null_words_bytes(len(columns)) // SLOT_BYTES
    words = np.zeros((count, head_words + len(columns)), "<u8")
    words[:, 0] = row_kind
    ends = np.full(count, words.shape[1] * SLOT_BYTES, np.int64)
    variable: list[Part] = []
    for index, column in enumerate(columns):
        with naming_column(index):
            check_not_null(column)
            slots = _column_slots(column)
        if column.valid is not None:
            word, bit = divmod(index + HEADER_BITS, _WORD_BITS)
            words[:, word] |= (~column.valid).astype(np.uint64) << np.uint64(bit)
        words[:, head_words + index] = slots.with_offsets(ends)
        if slots.placed.any():
            variable.append(slots.variable)
            ends += slots.variable.spans
    return _joined(words, variable)


def write_paimon_rows(columns: Sequence[Column]) -> RowBytes:
    """Encodes columns as the `BinaryRow`s of Paimon: aligned rows of kind INSERT.

    Raises:
        InvalidValueError: A value does not fit its column; `column` and `row` say which.
        UnsupportedTypeError: A column is nested.
    """
    return write_aligned_rows(columns)


def read_aligned_rows(
    data: ByteArray, starts: Int64Array, ends: Int64Array, types: Sequence[DataType]
) -> list[Column]:
    """Decodes the aligned rows `data[starts[i]:ends[i]]`; their row kinds are ignored.

    The bytes may come from anywhere; text is handed on as it is, UTF-8 or not.

    Raises:
        CorruptDataError: The bytes cannot be rows of these types.
        UnsupportedTypeError: A type is nested.
    """
    cursor = RowCursor.over(data, starts, ends, what="aligned row")
    row_starts = cursor.position(None)
    heads = [cursor.fixed(None, "<u8") for _ in range(null_words_bytes(len(types)) // SLOT_BYTES)]
    columns = []
    for index, data_type in enumerate(types):
        word, bit = divmod(index + HEADER_BITS, _WORD_BITS)
        is_null = heads[word] >> np.uint64(bit) & np.uint64(1)
        rows = np.flatnonzero(is_null == 0) if is_null.any() else None
        column = _read_field(cursor, row_starts, data_type, rows)
        columns.append(with_gaps(column, rows, len(cursor)))
    return columns


def _column_slots(column: Column) -> Slots:
    check_flat(column.type)
    match store(column):
        case FixedWidth(values=values):
            return number_slots(values)
        case SplitTimestamp() as split:
            return timestamp_slots(split, column.valid)
        case runs if isinstance(column.type.storage, DecimalStorage):
            return decimal_slots(runs, column.valid)
        case runs:
            return text_slots(runs, column.valid)


def _joined(words: UInt64Array, variable: list[Part]) -> RowBytes:
    count, width = len(words), words.shape[1] * SLOT_BYTES
    data = words.reshape(-1).view(np.uint8)
    starts = np.arange(count + 1, dtype=np.int64) * width
    if not variable:
        return RowBytes(data=data, offsets=starts)
    widths = np.full(count, width, np.int64)
    fixed = Runs(data=data, starts=starts[:-1], lengths=widths, spans=widths)
    return join_parts([fixed, *variable], count)


def _read_field(
    cursor: RowCursor, row_starts: Int64Array, data_type: DataType, rows: Int64Array | None
) -> Column:
    """The next slot of all rows; what is not NULL of it, as a column."""
    check_flat(data_type)
    at, refuse = cursor.position(rows), cursor.refusal(rows)
    words = cursor.fixed(None, "<u8")
    words = words if rows is None else words[rows]
    dtype = fixed_dtype(data_type)
    if dtype is not None:
        width = np.dtype(dtype).itemsize
        return restore_fixed(data_type, words.astype(f"<u{width}").view(dtype), refuse)
    row_lengths = cursor.ends - row_starts
    slots = OpenSlots(
        words=words,
        at=at,
        section_starts=row_starts if rows is None else row_starts[rows],
        section_lengths=row_lengths if rows is None else row_lengths[rows],
        refuse=refuse,
    )
    data = cursor.source.data
    if isinstance(data_type, TimestampFamily):
        places, nanos = slots.timestamps()
        return restore_timestamps(data_type, words_of(data, "<i8")[places], nanos, refuse)
    is_number = isinstance(data_type.storage, DecimalStorage)
    places, lengths = slots.sections() if is_number else slots.texts()
    return restore_runs(data_type, data, places, lengths, refuse)
