"""Compacted rows: Fluss's default for the values of a primary-key table, and its key bytes.

A row is its null bits (`rows.formats.nulls`) and then the fields that are not NULL, in order,
without padding. A key is the same without null bits, because no key column is NULL.

=====================  ====================================================================
type                   bytes
=====================  ====================================================================
BOOLEAN, TINYINT       1
SMALLINT               2, little endian
INT, DATE, TIME        varint of the 32-bit number (`rows.formats.varint`); TIME in milliseconds
BIGINT                 varint of the 64-bit number
FLOAT, DOUBLE          4 or 8, little endian, as they are, NaN too
CHAR, STRING           varint length, the bytes; CHAR and BINARY without padding
BINARY, BYTES
DECIMAL(1-18)          varint of the unscaled value, 64 bits
DECIMAL(19-38)         varint length, the shortest big-endian bytes
TIMESTAMP(0-3)         varint of the milliseconds, 64 bits
TIMESTAMP(4-9)         the same, then a varint of the nanoseconds above them
ARRAY, MAP             varint length, see `rows.formats.binary_array`
ROW                    varint length, a compacted row
=====================  ====================================================================

Java: `CompactedRowWriter`, `CompactedRowReader`, `CompactedKeyWriter`. This file has the columns;
single rows are made in `rows.formats.compacted_row` and offered here as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from fluss.errors import InvalidValueError
from fluss.model.types.data_type import DataType, TimestampFamily
from fluss.rows.buffers.byte_runs import Part, Runs, Words, fixed_words, join_parts
from fluss.rows.buffers.columns import BoolArray, ByteArray, Column, Int64Array, RowBytes, Values
from fluss.rows.buffers.take import with_gaps
from fluss.rows.formats.binary_array import RowFormat, read_nested, write_nested
from fluss.rows.formats.nulls import naming_column, null_bits, read_null_bits, rows_in_columns
from fluss.rows.formats.row_cursor import RowCursor
from fluss.rows.formats.stored import (
    FixedWidth,
    SplitTimestamp,
    fixed_dtype,
    restore_fixed,
    restore_runs,
    restore_timestamps,
    store,
)
from fluss.rows.formats.varint import varint_column

_VARINT_DTYPES = ("<i4", "<i8")


def write_compacted_rows(columns: Sequence[Column]) -> RowBytes:
    """Encodes columns as compacted rows.

    Args:
        columns: Columns of one length; at least one.

    Raises:
        InvalidValueError: A value does not fit its column; `column` and `row` name it.
        LimitExceededError: All rows together would be longer than 2 GiB.
    """
    return _write_rows(columns, rows_in_columns(columns))


def write_compacted_keys(columns: Sequence[Column]) -> RowBytes:
    """Encodes columns as keys: like rows, without null bits.

    Raises:
        InvalidValueError: A value is NULL or does not fit its column.
    """
    count = rows_in_columns(columns)
    for index, column in enumerate(columns):
        if column.valid is not None and not column.valid.all():
            row = int(np.flatnonzero(~column.valid)[0])
            raise InvalidValueError(
                f"Column {index} of the key is NULL.", column=index
            ).add_context(row=row)
    return join_parts(list(_fields(columns)), count)


def read_compacted_rows(
    data: ByteArray, starts: Int64Array, ends: Int64Array, types: Sequence[DataType]
) -> list[Column]:
    """Decodes the compacted rows `data[starts[i]:ends[i]]`.

    The bytes may come from anywhere; text is handed on as it is, UTF-8 or not.

    Raises:
        CorruptDataError: The bytes cannot be rows of these types.
        LimitExceededError: A column would be longer than columns can be.
    """
    cursor = RowCursor.over(data, starts, ends, what="compacted row")
    return _read_rows(cursor, types)


def _write_rows(columns: Sequence[Column], rows: int) -> RowBytes:
    return join_parts([*null_bits(columns, rows), *_fields(columns)], rows)


def _fields(columns: Sequence[Column]) -> Iterable[Part]:
    for index, column in enumerate(columns):
        with naming_column(index):
            yield from _field_parts(column)


def _field_parts(column: Column) -> list[Part]:
    if column.type.is_nested:
        return _with_length(write_nested(column, _COMPACTED), column.valid)
    match store(column):
        case FixedWidth(values=values):
            return [_number(values, column.valid)]
        case SplitTimestamp(millis=millis, nanos=nanos):
            return [_number(millis, column.valid), _number(nanos, column.valid)]
        case runs:
            return _with_length(runs, column.valid)


def _number(values: Values, valid: BoolArray | None) -> Words:
    width = values.dtype.itemsize
    if values.dtype.kind == "i" and width >= 4:
        words = varint_column(values)
        return words if valid is None else words.only(valid)
    unsigned = np.ascontiguousarray(values).view(f"<u{width}").astype("<u8")
    return fixed_words(unsigned, width, valid)


def _with_length(runs: Runs, valid: BoolArray | None) -> list[Part]:
    return [_number(runs.lengths, valid), runs]


def _read_rows(cursor: RowCursor, types: Sequence[DataType]) -> list[Column]:
    present = read_null_bits(cursor, len(types))
    columns = [
        with_gaps(_read_field(cursor, each, rows), rows, len(cursor))
        for each, rows in zip(types, present, strict=True)
    ]
    cursor.finish()
    return columns


_COMPACTED = RowFormat(what="compacted row", write_rows=_write_rows, read_rows=_read_rows)


def _read_field(cursor: RowCursor, data_type: DataType, rows: Int64Array | None) -> Column:
    """Return the next field of the rows in which it is not NULL."""
    refuse = cursor.refusal(rows)
    dtype = fixed_dtype(data_type)
    if dtype in _VARINT_DTYPES:
        values = cursor.varints(rows) if dtype == "<i4" else cursor.varlongs(rows)
        return restore_fixed(data_type, values, refuse)
    if dtype is not None:
        return restore_fixed(data_type, cursor.fixed(rows, dtype), refuse)
    if isinstance(data_type, TimestampFamily):
        millis, nanos = cursor.varlongs(rows), cursor.varints(rows)
        return restore_timestamps(data_type, millis, nanos, refuse)
    starts, lengths = cursor.runs(rows)
    if data_type.is_nested:
        return read_nested(data_type, cursor.source, starts, lengths, _COMPACTED)
    return restore_runs(data_type, cursor.source.data, starts, lengths, refuse)
