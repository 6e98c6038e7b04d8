"""Bucket keys of tables tiered to Hudi: a hash of the columns' texts, 4 bytes, big endian.

Hudi buckets by Java's `List.hashCode` of the record key's parts, as text; Fluss's key is that hash
(Java, main branch: `HudiKeyEncoder`). It cannot be turned back, so a primary key is never encoded
like this. The texts:

=========================  ================================================================
type                       text
=========================  ================================================================
CHAR, STRING               itself
BOOLEAN                    `true`, `false`
TINYINT … BIGINT           decimal
FLOAT, DOUBLE              Java's `toString`, see `rows.keys.java_text`
DECIMAL                    all digits, no exponent
DATE                       the days since the epoch, decimal
TIME                       the milliseconds of the day, decimal
TIMESTAMP, TIMESTAMP_LTZ   ISO 8601 as `LocalDateTime` and `Instant` print it
NULL                       `__null__` where it is the only column; otherwise it counts as 0
=========================  ================================================================

Hudi parses a key of several columns at its commas and gives two words a meaning of their own.
Values that would be misread there are refused, as Java refuses them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fluss.errors import InvalidValueError
from fluss.model.types.data_type import (
    UNITS_PER_SECOND,
    BigIntType,
    BooleanType,
    CharType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntType,
    SmallIntType,
    StringType,
    TimestampLtzType,
    TimestampType,
    TimeType,
    TinyIntType,
)
from fluss.rows.buffers.columns import ByteArray, Column, Int64Array, RowBytes, Values
from fluss.rows.buffers.distinct import distinct_values
from fluss.rows.buffers.take import list_lengths, list_starts, values_of
from fluss.rows.formats.stored import FixedWidth, store
from fluss.rows.formats.stored_value import ValueWriter
from fluss.rows.keys.java_hash import BASE, decimal_hashes, string_hash, string_hashes
from fluss.rows.keys.java_text import (
    MILLIS_PER_DAY,
    decimal_text,
    double_text,
    float_text,
    instant_text,
    local_date_time_text,
)
from fluss.rows.keys.murmur import UInt32Array

HUDI_KEY_TYPES = (
    CharType,
    StringType,
    BooleanType,
    DecimalType,
    TinyIntType,
    SmallIntType,
    IntType,
    BigIntType,
    FloatType,
    DoubleType,
    DateType,
    TimeType,
    TimestampType,
    TimestampLtzType,
)

KEY_BYTES = 4

_NULL_TEXT = "__null__"
_RESERVED_TEXTS = (_NULL_TEXT, "__empty__")
_PART_SEPARATOR = ","
_MISREAD = (
    f"Hudi splits a key of several columns at commas, and {' and '.join(_RESERVED_TEXTS)} "
    "mean something else in it"
)
_MASK = (1 << 32) - 1
# Printed as decimal numbers, in the form in which rows store them.
_NUMBER_TYPES = (TinyIntType, SmallIntType, IntType, BigIntType, DateType, TimeType)


def write_hudi_keys(columns: Sequence[Column]) -> RowBytes:
    """The key of every row of columns of `HUDI_KEY_TYPES`.

    Raises:
        InvalidValueError: A value is none of its type, or one that Hudi would misread; `column`
            and `row` say which.
    """
    codes = np.ones(columns[0].length, np.uint32)
    for index, column in enumerate(columns):
        codes *= np.uint32(BASE)
        codes += _column_hashes(column, index, is_only=len(columns) == 1)
    offsets = np.arange(len(codes) + 1, dtype=np.int64) * KEY_BYTES
    return RowBytes(data=codes.astype(">u4").view(np.uint8), offsets=offsets)


def _column_hashes(column: Column, index: int, *, is_only: bool) -> UInt32Array:
    if isinstance(column.type, CharType | StringType):
        codes = _text_hashes(column, index, is_only=is_only)
    elif isinstance(column.type, _NUMBER_TYPES):
        codes = decimal_hashes(_stored_numbers(column))
    else:
        distinct, values = distinct_values(column)
        print_value = _printer(column.type)
        texts = ("" if value is None else print_value(value) for value in values)
        codes = np.array([string_hash(text) for text in texts], np.uint32)[distinct.codes]
    if column.valid is not None:
        codes[~column.valid] = string_hash(_NULL_TEXT) if is_only else 0
    return codes


def _stored_numbers(column: Column) -> Values:
    stored = store(column)
    if not isinstance(stored, FixedWidth):
        raise TypeError(f"{column.type} is not stored as a number")
    return stored.values


def _text_hashes(column: Column, index: int, *, is_only: bool) -> UInt32Array:
    data, starts, lengths = values_of(column), list_starts(column), list_lengths(column)
    try:
        codes = string_hashes(data, starts, lengths)
    except UnicodeDecodeError as error:
        raise InvalidValueError(
            f"A text of key column {index} is not UTF-8: {error}.", column=index
        ) from error
    if is_only:
        return codes
    rows = np.concatenate(
        [_rows_with(data, starts, lengths, ord(_PART_SEPARATOR))]
        + [np.flatnonzero(codes == np.uint32(string_hash(each))) for each in _RESERVED_TEXTS]
    )
    for row in np.unique(rows).tolist():  # the first one mostly is one; hashes may collide
        text = data[starts[row] : starts[row] + lengths[row]].tobytes().decode()
        if _is_misread(text):
            raise InvalidValueError(
                f"Column {index} of the key cannot be {text!r:.80}: {_MISREAD}.",
                hint="Bucket by a column without such values, or by this column alone.",
                column=index,
            ).add_context(row=row)
    return codes


def _rows_with(
    data: ByteArray, starts: Int64Array, lengths: Int64Array, character: int
) -> Int64Array:
    """The first rows that contain a character."""
    places = np.concatenate(([0], np.cumsum(data == character)))
    return np.flatnonzero(places[starts + lengths] > places[starts])


def hudi_key_writer(types: Sequence[DataType]) -> Callable[[Sequence[Any]], bytes]:
    """Encodes single rows of physical values of `HUDI_KEY_TYPES`.

    Values that cannot be make it raise what `rows.row_errors` calls unfit.
    """
    printers = _part_printers(types)
    null_hash = string_hash(_NULL_TEXT) if len(types) == 1 else 0

    def write(values: Sequence[Any]) -> bytes:
        code = 1
        for print_part, value in zip(printers, values, strict=True):
            part_hash = null_hash if value is None else string_hash(print_part(value))
            code = code * BASE + part_hash & _MASK
        return code.to_bytes(KEY_BYTES, "big")

    return write


def hudi_part_writers(types: Sequence[DataType]) -> tuple[ValueWriter, ...]:
    """What writes each part of a key, for whoever looks for the value that cannot be written."""
    return tuple(_encoding(each) for each in _part_printers(types))


def _encoding(print_part: Callable[[Any], str]) -> ValueWriter:
    return lambda value: print_part(value).encode()


def _part_printers(types: Sequence[DataType]) -> tuple[Callable[[Any], str], ...]:
    printers = tuple(_printer(each) for each in types)
    return printers if len(types) == 1 else tuple(map(_checking, printers))


def _checking(print_value: Callable[[Any], str]) -> Callable[[Any], str]:
    def print_part(value: Any) -> str:
        text = print_value(value)
        if _is_misread(text):
            raise ValueError(_MISREAD)
        return text

    return print_part


def _is_misread(text: str) -> bool:
    return _PART_SEPARATOR in text or text in _RESERVED_TEXTS


def _text(value: str) -> str:
    return value


def _printer(data_type: DataType) -> Callable[[Any], str]:
    """What Java prints for a physical value of one of `HUDI_KEY_TYPES`."""
    match data_type:
        case CharType() | StringType():
            return _text
        case BooleanType():
            return lambda value: "true" if value else "false"
        case FloatType():
            return float_text
        case DoubleType():
            return double_text
        case DecimalType(scale=scale):
            return lambda value: decimal_text(value, scale)
        case TimeType(unit=unit):
            per_second = UNITS_PER_SECOND[unit]
            return lambda value: str(value * 1000 // per_second)
        case TimestampType() | TimestampLtzType():
            return _timestamp_text(data_type)
        case _:
            return str


def _timestamp_text(data_type: TimestampType | TimestampLtzType) -> Callable[[int], str]:
    nanos_each = 1_000_000_000 // UNITS_PER_SECOND[data_type.unit]

    def instant(value: int) -> str:
        return instant_text(*divmod(value * nanos_each, 1_000_000))

    def local(value: int) -> str:
        millis, nanos = divmod(value * nanos_each, 1_000_000)
        days, millis = divmod(millis, MILLIS_PER_DAY)
        # Java counts the days of a `TimestampNtz` in 32 bits, and wraps some six million years off.
        days = (days + (1 << 31)) % (1 << 32) - (1 << 31)
        return local_date_time_text(days * MILLIS_PER_DAY + millis, nanos)

    return instant if isinstance(data_type, TimestampLtzType) else local
