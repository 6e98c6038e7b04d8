"""Keys of tables tiered to Iceberg: the one bucket column, as Iceberg's bucket transform sees it.

==============================  ===========================================================
type                            bytes
==============================  ===========================================================
INT, DATE, BIGINT               8, little endian
TIME, TIMESTAMP                 8, little endian: microseconds, digits below are dropped
FLOAT, DOUBLE                   4 or 8, little endian
DECIMAL                         the unscaled value, the shortest big-endian bytes
CHAR, STRING, BINARY, BYTES     the bytes
==============================  ===========================================================

Java: `IcebergKeyEncoder`, `IcebergBinaryRowWriter`, which have nothing for other types, nor for
NULL.
"""

from __future__ import annotations

import numpy as np

from fluss.model.types import data_type as t
from fluss.model.types.data_type import DataType, DecimalType, FloatFamily, TimestampType, TimeType
from fluss.rows.buffers.byte_runs import Runs, gather_runs
from fluss.rows.buffers.columns import Column, RowBytes, Values
from fluss.rows.buffers.take import values_of
from fluss.rows.formats.decimals import shortest_bytes
from fluss.rows.formats.stored import FixedWidth, SplitTimestamp, store
from fluss.rows.formats.stored_value import (
    ValueWriter,
    decimal_writer,
    number_of,
    run_writer,
    split_timestamp,
)

ICEBERG_KEY_TYPES: tuple[type[DataType], ...] = (
    *(t.IntType, t.BigIntType, t.FloatType, t.DoubleType, t.CharType, t.StringType),
    *(t.DecimalType, t.DateType, t.TimeType, t.TimestampType, t.BinaryType, t.BytesType),
)

_MICROS_PER_MILLI = 1000
_NANOS_PER_MICRO = 1000


def write_iceberg_keys(column: Column) -> RowBytes:
    """Return the key of every row of a column of one of `ICEBERG_KEY_TYPES` that has no NULL."""
    match store(column):
        case FixedWidth() if isinstance(column.type, DecimalType):
            words = values_of(column)
            return _joined(shortest_bytes(*map(np.ascontiguousarray, (words[:, 0], words[:, 1]))))
        case FixedWidth(values=values):
            return _fixed_keys(_widened(values, column.type))
        case SplitTimestamp(millis=millis, nanos=nanos):
            return _fixed_keys(millis * _MICROS_PER_MILLI + nanos // _NANOS_PER_MICRO)
        case runs:
            return _joined(runs)


def _widened(values: Values, data_type: DataType) -> Values:
    if isinstance(data_type, FloatFamily):
        return values
    wide = values.astype(np.int64)
    # A product beyond 64 bits wraps, as it does in Java.
    return wide * _MICROS_PER_MILLI if isinstance(data_type, TimeType | TimestampType) else wide


def _fixed_keys(values: Values) -> RowBytes:
    data = np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<"), copy=False)
    offsets = np.arange(len(values) + 1, dtype=np.int64) * values.itemsize
    return RowBytes(data=data.view(np.uint8), offsets=offsets)


def _joined(runs: Runs) -> RowBytes:
    data, offsets = gather_runs(runs.data, runs.starts, runs.lengths)
    return RowBytes(data=data, offsets=offsets)


def iceberg_key_writer(data_type: DataType) -> ValueWriter:
    """Encodes single physical values of one of `ICEBERG_KEY_TYPES`."""
    if isinstance(data_type, DecimalType):
        return decimal_writer(data_type)
    number = number_of(data_type)
    if number is None and isinstance(data_type, TimestampType):
        return _split_writer(data_type.unit)
    if number is None:
        return run_writer(data_type)
    if isinstance(data_type, FloatFamily):
        return number.packer()
    to_stored = number.to_stored or _as_is
    factor = _MICROS_PER_MILLI if isinstance(data_type, TimeType | TimestampType) else 1
    return lambda value: _wrapped(to_stored(value) * factor)


def _split_writer(unit: str) -> ValueWriter:
    split = split_timestamp(unit)

    def write(value: int) -> bytes:
        millis, nanos = split(value)
        return _wrapped(millis * _MICROS_PER_MILLI + nanos // _NANOS_PER_MICRO)

    return write


def _as_is(value: int) -> int:
    return value


def _wrapped(value: int) -> bytes:
    return (value & (1 << 64) - 1).to_bytes(8, "little")
