"""Indexed rows: the other format of primary-key values, and of logs that are not Arrow.

===================  ======================================================================
null bits            see `rows.formats.nulls`
lengths              int32 for every field of a type without a width, NULL or not; those of
                     the fields that are not NULL come first, the rest stays 0
fields               those that are not NULL, in order, without padding
===================  ======================================================================

=====================  ====================================================================
type                   bytes, little endian
=====================  ====================================================================
BOOLEAN, TINYINT       1
SMALLINT               2
INT, FLOAT, DATE       4
TIME                   4, milliseconds
BIGINT, DOUBLE         8
DECIMAL(1-18)          8, the unscaled value
TIMESTAMP(0-3)         8, milliseconds
TIMESTAMP(4-9)         8 milliseconds, 4 nanoseconds above them
CHAR(n), BINARY(n)     n, filled up with zeros
STRING, BYTES          without a width: the bytes
DECIMAL(19-38)         without a width: the shortest big-endian bytes
ARRAY, MAP             without a width: see `rows.formats.binary_array`
ROW                    without a width: an indexed row
=====================  ====================================================================

The n of CHAR(n) counts bytes here, so text of n characters may be too long (Java throws as well),
and zeros at its end are taken for padding. Java: `IndexedRowWriter`, `IndexedRow`. This file has
the columns; single rows are made in `rows.formats.indexed_row` and offered here as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fluss.model.types.data_type import BinaryType, CharType, DataType, TimestampFamily
from fluss.rows.buffers.byte_runs import (
    Part,
    Runs,
    Words,
    fixed_words,
    gather_runs,
    join_parts,
    zeros,
)
from fluss.rows.buffers.columns import BoolArray, ByteArray, Column, Int64Array, RowBytes, Values
from fluss.rows.buffers.take import with_gaps
from fluss.rows.formats.binary_array import RowFormat, read_nested, write_nested
from fluss.rows.formats.indexed_row import width_of
from fluss.rows.formats.nulls import naming_column, null_bits, read_null_bits, rows_in_columns
from fluss.rows.formats.row_cursor import RowCursor
from fluss.rows.formats.stored import (
    FixedWidth,
    SplitTimestamp,
    fixed_dtype,
    refuse_value,
    restore_fixed,
    restore_runs,
    restore_timestamps,
    store,
)

_LENGTH_BYTES = 4


def write_indexed_rows(columns: Sequence[Column]) -> RowBytes:
    """Encodes columns as indexed rows.

    Args:
        columns: Columns of one length; at least one.

    Raises:
        InvalidValueError: A value does not fit its column; `column` and `row` name it.
        LimitExceededError: All rows together would be longer than 2 GiB.
    """
    return _write_rows(columns, rows_in_columns(columns))


def read_indexed_rows(
    data: ByteArray, starts: Int64Array, ends: Int64Array, types: Sequence[DataType]
) -> list[Column]:
    """Decodes the indexed rows `data[starts[i]:ends[i]]`.

    The bytes may come from anywhere; text is handed on as it is, UTF-8 or not.

    Raises:
        CorruptDataError: The bytes cannot be rows of these types.
        LimitExceededError: A column would be longer than columns can be.
    """
    return _read_rows(RowCursor.over(data, starts, ends, what="indexed row"), types)


def _write_rows(columns: Sequence[Column], rows: int) -> RowBytes:
    lengths: list[Part] = []
    unused = np.zeros(rows, np.int64)
    fields: list[Part] = []
    for index, column in enumerate(columns):
        with naming_column(index):
            parts = _field_parts(column)
        fields += parts
        if width_of(column.type) is None:
            used = _number(parts[0].spans.astype("<i4"), column.valid)
            unused += _LENGTH_BYTES - used.lengths
            lengths.append(used)
    return join_parts([*null_bits(columns, rows), *lengths, zeros(unused), *fields], rows)


def _field_parts(column: Column) -> list[Part]:
    if column.type.is_nested:
        return [write_nested(column, _INDEXED)]
    match store(column):
        case FixedWidth(values=values):
            return [_number(values, column.valid)]
        case SplitTimestamp(millis=millis, nanos=nanos):
            return [_number(millis, column.valid), _number(nanos, column.valid)]
        case runs if isinstance(column.type, CharType):
            return [_padded(runs, column.type, column.valid)]
        case runs:
            return [runs]


def _number(values: Values, valid: BoolArray | None) -> Words:
    width = values.dtype.itemsize
    unsigned = np.ascontiguousarray(values).view(f"<u{width}").astype("<u8")
    return fixed_words(unsigned, width, valid)


def _padded(runs: Runs, data_type: CharType, valid: BoolArray | None) -> Runs:
    size = data_type.length
    wrong = runs.lengths > size
    if wrong.any():
        refuse_value(data_type)(wrong, f"its UTF-8 takes more than {size} bytes")
    spans = np.full(len(runs.lengths), size, np.int64)
    return replace(runs, spans=spans if valid is None else spans * valid)


def _read_rows(cursor: RowCursor, types: Sequence[DataType]) -> list[Column]:
    present = read_null_bits(cursor, len(types))
    lengths = cursor.fork()
    cursor.skip(None, _LENGTH_BYTES * sum(width_of(each) is None for each in types))
    columns = [
        with_gaps(_read_field(cursor, lengths, each, rows), rows, len(cursor))
        for each, rows in zip(types, present, strict=True)
    ]
    cursor.finish()
    return columns


_INDEXED = RowFormat(what="indexed row", write_rows=_write_rows, read_rows=_read_rows)


def _read_field(
    cursor: RowCursor, lengths: RowCursor, data_type: DataType, rows: Int64Array | None
) -> Column:
    """Return the next field of the rows in which it is not NULL; `lengths` stands at its length."""
    refuse = cursor.refusal(rows)
    dtype = fixed_dtype(data_type)
    if dtype is not None:
        return restore_fixed(data_type, cursor.fixed(rows, dtype), refuse)
    if isinstance(data_type, TimestampFamily):
        millis, nanos = cursor.fixed(rows, "<i8"), cursor.fixed(rows, "<i4")
        return restore_timestamps(data_type, millis, nanos, refuse)
    starts = cursor.position(rows)
    if isinstance(data_type, CharType | BinaryType):
        sizes = np.full(len(starts), data_type.length, np.int64)
    else:
        sizes = lengths.fixed(rows, "<i4").astype(np.int64)
    cursor.skip(rows, sizes, "a length leads out of it")
    if data_type.is_nested:
        return read_nested(data_type, cursor.source, starts, sizes, _INDEXED)
    if isinstance(data_type, CharType):
        sizes = _without_padding(cursor.source.data, starts, data_type.length)
    return restore_runs(data_type, cursor.source.data, starts, sizes, refuse)


def _without_padding(data: ByteArray, starts: Int64Array, size: int) -> Int64Array:
    """Return how many bytes of each CHAR stand before the zeros at its end."""
    found, _ = gather_runs(data, starts, np.full(len(starts), size, np.int64))
    is_text = found.reshape(len(starts), size)[:, ::-1] != 0
    return np.where(is_text.any(axis=1), size - is_text.argmax(axis=1), 0)
