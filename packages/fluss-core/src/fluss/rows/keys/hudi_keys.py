"""Bucket keys of tables tiered to Hudi: a hash of the columns' texts, 4 bytes, big endian.

Hudi buckets by Java's `List.hashCode` of the record key's parts, as text; Fluss's key is that hash
(Java 1.0: `HudiKeyEncoder`; decision 0013). A hash cannot be decoded, so a primary key is never
encoded like this. The texts:

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

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from fluss.errors import InvalidValueError
from fluss.model.types import data_type as t
from fluss.model.types.data_type import UNITS_PER_SECOND, DataType
from fluss.model.types.per_type import PerType
from fluss.rows.buffers.columns import Column, RowBytes
from fluss.rows.buffers.distinct import distinct_values
from fluss.rows.buffers.take import list_lengths, list_starts, values_of
from fluss.rows.formats.stored_value import ValueWriter
from fluss.rows.keys.java_text import (
    MILLIS_PER_DAY,
    decimal_text,
    double_text,
    float_text,
    instant_text,
    local_date_time_text,
)
from fluss.rows.keys.murmur import UInt32Array

KEY_BYTES = 4

_BASE = 31
_MASK = (1 << 32) - 1
_INT64_CHARS = 20  # -9223372036854775808
_SHORT_BYTES_MAX = 256
_ASCII_MAX = 127
_NULL_TEXT = "__null__"
_RESERVED_TEXTS = (_NULL_TEXT, "__empty__")
_PART_SEPARATOR = ","
_MISREAD = (
    f"Hudi splits a key of several columns at commas, and {' and '.join(_RESERVED_TEXTS)} "
    "mean something else in it"
)

_Printer = Callable[[Any], str]


def write_hudi_keys(columns: Sequence[Column]) -> RowBytes:
    """Return the key of every row of columns of `HUDI_KEY_TYPES`.

    Raises:
        InvalidValueError: A value is none of its type, or one that Hudi would misread; `column`
            and `row` name it.
    """
    codes = np.ones(columns[0].length, np.uint32)
    for index, column in enumerate(columns):
        codes *= np.uint32(_BASE)
        hashes = _ascii_hashes(column, is_only=len(columns) == 1)
        if hashes is None:
            hashes = _distinct_hashes(column, index, is_only=len(columns) == 1)
        codes += hashes
    offsets = np.arange(len(codes) + 1, dtype=np.int64) * KEY_BYTES
    return RowBytes(data=codes.astype(">u4").view(np.uint8), offsets=offsets)


def _ascii_hashes(column: Column, *, is_only: bool) -> UInt32Array | None:
    """Return the hashes of integers and short single texts; None for other values."""
    if isinstance(column.type, t.IntegerFamily):
        texts = values_of(column).astype(f"S{_INT64_CHARS}")
        data = texts.view(np.uint8)
        starts = np.arange(column.length, dtype=np.int64) * _INT64_CHARS
        lengths = np.strings.str_len(texts).astype(np.int64)
    elif is_only and isinstance(column.type, t.TextFamily):
        data, starts, lengths = values_of(column), list_starts(column), list_lengths(column)
        if int(lengths.max(initial=0)) > _SHORT_BYTES_MAX or (data > _ASCII_MAX).any():
            return None
    else:
        return None
    hashes = np.zeros(column.length, np.uint32)
    for step in range(int(lengths.max(initial=0))):
        rows = np.flatnonzero(lengths > step)
        hashes[rows] = hashes[rows] * np.uint32(_BASE) + data[starts[rows] + step]
    if column.valid is not None:
        hashes[~column.valid] = string_hash(_NULL_TEXT) if is_only else 0
    return hashes


def _distinct_hashes(column: Column, index: int, *, is_only: bool) -> UInt32Array:
    """Return the hashes of any values, of which each distinct one is printed once."""
    try:
        distinct, values = distinct_values(column)
    except InvalidValueError as error:  # a text is not UTF-8
        error.facts["column"] = index
        raise
    hash_part = _part_hash(column.type, is_only=is_only)
    hashes = np.empty(len(values), np.uint32)
    for code, value in enumerate(values):
        try:
            hashes[code] = hash_part(value)
        except ValueError as error:
            raise InvalidValueError(
                f"Column {index} of the key cannot be {value!r:.80}: {error}.",
                hint="Bucket by a column without such values, or by this column alone.",
                column=index,
            ).add_context(row=int(distinct.rows[code])) from error
    return hashes[distinct.codes]


def hudi_key_writer(types: Sequence[DataType]) -> Callable[[Sequence[Any]], bytes]:
    """Encodes single rows of physical values of `HUDI_KEY_TYPES`.

    An impossible value raises one of `rows.row_errors.UNFIT`.
    """
    hash_parts = [_part_hash(each, is_only=len(types) == 1) for each in types]

    def write(values: Sequence[Any]) -> bytes:
        code = 1
        for hash_part, value in zip(hash_parts, values, strict=True):
            code = code * _BASE + hash_part(value) & _MASK
        return code.to_bytes(KEY_BYTES, "big")

    return write


def hudi_part_writers(types: Sequence[DataType]) -> tuple[ValueWriter, ...]:
    """Writers of each part of a key, to find the value that cannot be written."""
    hash_parts = [_part_hash(each, is_only=len(types) == 1) for each in types]
    return tuple(lambda value, h=h: h(value).to_bytes(KEY_BYTES, "big") for h in hash_parts)


def string_hash(text: str) -> int:
    """Java's `String.hashCode`, unsigned; UnicodeEncodeError for half a surrogate pair."""
    units: Iterable[int] = text.encode()
    if not text.isascii():
        data = text.encode("utf-16-le")
        units = struct.unpack(f"<{len(data) // 2}H", data)
    code = 0
    for unit in units:
        code = code * _BASE + unit & _MASK
    return code


def _part_hash(data_type: DataType, *, is_only: bool) -> Callable[[Any], int]:
    make_printer = _PRINTERS[data_type]
    if make_printer is None:
        raise AssertionError(f"{data_type} is none of HUDI_KEY_TYPES")
    print_value = make_printer(data_type)
    null_hash = string_hash(_NULL_TEXT) if is_only else 0

    def hash_part(value: Any) -> int:
        if value is None:
            return null_hash
        text = print_value(value)
        if not is_only and (_PART_SEPARATOR in text or text in _RESERVED_TEXTS):
            raise ValueError(_MISREAD)
        return string_hash(text)

    return hash_part


def _time_printer(data_type: t.TimeType) -> _Printer:
    per_second = UNITS_PER_SECOND[data_type.unit]
    return lambda value: str(value * 1000 // per_second)


def _instant_printer(data_type: t.TimestampLtzType) -> _Printer:
    nanos_each = 1_000_000_000 // UNITS_PER_SECOND[data_type.unit]
    return lambda value: instant_text(*divmod(value * nanos_each, 1_000_000))


def _local_printer(data_type: t.TimestampType) -> _Printer:
    nanos_each = 1_000_000_000 // UNITS_PER_SECOND[data_type.unit]

    def print_local(value: int) -> str:
        millis, nanos = divmod(value * nanos_each, 1_000_000)
        days, millis = divmod(millis, MILLIS_PER_DAY)
        # Java counts the days of a `TimestampNtz` in 32 bits, and wraps some six million years off.
        days = (days + (1 << 31)) % (1 << 32) - (1 << 31)
        return local_date_time_text(days * MILLIS_PER_DAY + millis, nanos)

    return print_local


# What Java prints for a physical value; None where Hudi has no text.
_PRINTERS = PerType[Callable[[Any], _Printer] | None](
    {
        (t.BinaryFamily, t.NestedType): None,  # no bucket key
        t.TextFamily: lambda _: lambda value: value,
        t.BooleanType: lambda _: lambda value: "true" if value else "false",
        (t.IntegerFamily, t.DateType): lambda _: str,
        t.FloatType: lambda _: float_text,
        t.DoubleType: lambda _: double_text,
        t.DecimalType: lambda data_type: lambda value: decimal_text(value, data_type.scale),
        t.TimeType: _time_printer,
        t.TimestampType: _local_printer,
        t.TimestampLtzType: _instant_printer,
    }
)
HUDI_KEY_TYPES = tuple(each for each in t.DATA_TYPES if _PRINTERS.of_class(each) is not None)
