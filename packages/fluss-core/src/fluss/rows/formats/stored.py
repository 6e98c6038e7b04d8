"""The form in which every row format stores the values of a column, before it lays them out.

Compacted rows, indexed rows, aligned rows and arrays differ in where bytes go and how numbers are
written. What they write is the same, and has one of three shapes:

==================  ==========================================================================
`FixedWidth`        BOOLEAN as 0 or 1, integers, floats, DATE; TIME as int32 milliseconds;
                    TIMESTAMP(0-3) as int64 milliseconds; DECIMAL(1-18) as int64
`SplitTimestamp`    TIMESTAMP(4-9): int64 milliseconds, rounded down, and the nanoseconds
                    above them (Java: `TimestampNtz`, `TimestampLtz`)
`Runs`              CHAR, STRING, BINARY, BYTES as they are; DECIMAL(19-38) as big-endian two's
                    complement of as few bytes as hold it (Java: `BigInteger.toByteArray`)
==================  ==========================================================================

`store` and `restore_…` translate between these and `Column`. A NULL row is stored as zeros and an
empty run; restoring is given the rows that are not NULL, and `rows.buffers.take` puts the gaps back
in. ARRAY, MAP and ROW are bytes made elsewhere (`rows.formats.binary_array`, the row codecs).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fluss.errors import InvalidValueError
from fluss.model.types.data_type import UNITS_PER_SECOND, DataType, TimestampFamily
from fluss.model.types.type_facts import (
    BytesStorage,
    DecimalStorage,
    NestedStorage,
    NumberForm,
    NumberStorage,
    TimestampStorage,
)
from fluss.rows.buffers.byte_runs import (
    Runs,
    check_bytes_max,
    copy_runs,
    gather_runs,
    narrow_offsets,
    runs_of,
)
from fluss.rows.buffers.columns import BoolArray, ByteArray, Column, Int64Array, Values
from fluss.rows.buffers.take import list_lengths, list_starts, values_of
from fluss.rows.formats.decimals import check_digits, shortest_bytes, words_of_runs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FixedWidth:
    """One little-endian number per row."""

    values: Values


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SplitTimestamp:
    """Milliseconds since the epoch, and 0 to 999,999 nanoseconds above them."""

    millis: Int64Array
    nanos: npt.NDArray[np.int32]


Stored = FixedWidth | SplitTimestamp | Runs


def fixed_dtype(data_type: DataType) -> str | None:
    """Return the numpy type of the stored values, or None if they are not `FixedWidth`."""
    storage = data_type.storage
    return storage.dtype if isinstance(storage, NumberStorage) else None


def store(column: Column) -> Stored:
    """Return the stored form of a column of any type that is not nested.

    Raises:
        InvalidValueError: A value is outside what the type can hold.
    """
    data_type = column.type
    match data_type.storage:
        case NumberStorage() as storage:
            numbers = _stored_numbers(_cleared(column), data_type, storage)
            return FixedWidth(values=numbers.astype(storage.dtype, copy=False))
        case TimestampStorage(unit=unit):
            return _split(_cleared(column), unit)
        case BytesStorage() if column.offsets is None:
            return _binary_runs(column)
        case BytesStorage():
            return runs_of(values_of(column), list_starts(column), list_lengths(column))
        case DecimalStorage():
            return _store_large_decimals(column)
        case NestedStorage():
            raise TypeError(f"{data_type} is stored as {type(data_type.storage).__name__}")


# Raises an error for the first wrong row, with the reason.
Refuse = Callable[[BoolArray, str], None]


def restore_fixed(data_type: Any, values: Values, refuse: Refuse) -> Column:
    """Return the column stored as one number per row; `refuse` is called for impossible ones."""
    form: NumberForm = data_type.storage.form
    match form:
        case NumberForm.SAME:
            pass
        case NumberForm.TRUTH:
            values = values != 0
        case NumberForm.UNSCALED:
            check_digits(values, values >> 63, data_type, refuse)
            values = np.stack((values, values >> 63), axis=1)
        case NumberForm.MILLIS:
            values = _from_millis(values, data_type.unit)
    return Column(type=data_type, length=len(values), values=values)


def restore_timestamps(
    data_type: TimestampFamily,
    millis: Int64Array,
    nanos: npt.NDArray[np.int32],
    refuse: Refuse,
) -> Column:
    """Return the column stored as milliseconds and nanoseconds.

    `refuse` is called for nanoseconds that reach a millisecond, and for instants that do not fit
    64 bits in the unit of the type.
    """
    wrong = (nanos < 0) | (nanos > 999_999)
    if wrong.any():
        refuse(wrong, "a millisecond has only 0 to 999,999 nanoseconds")
    per_milli = UNITS_PER_SECOND[data_type.unit] // 1000
    values = millis * per_milli + nanos // (1_000_000 // per_milli)
    # Integer arithmetic wraps silently; what has not wrapped can be divided again.
    wrong = values // per_milli != millis
    if wrong.any():
        refuse(wrong, f"a {data_type} does not fit 64 bits in {data_type.unit}")
    return Column(type=data_type, length=len(values), values=values)


def restore_runs(
    data_type: Any,
    source: ByteArray,
    starts: Int64Array,
    lengths: Int64Array,
    refuse: Refuse,
) -> Column:
    """Return the column stored as one run of bytes per row; the caller checked all bounds.

    `refuse` is called for runs that are too long, and for those that are no number of the type.

    Raises:
        LimitExceededError: The column would be longer than columns can be.
    """
    rows = len(starts)
    values: Values
    match data_type.storage:
        case BytesStorage(length=None):
            values, offsets = gather_runs(source, starts, lengths)
            narrow = narrow_offsets(offsets)
            return Column(type=data_type, length=rows, values=values, offsets=narrow)
        case BytesStorage(length=int(size)):
            values = _padded_binaries(data_type, size, source, starts, lengths, refuse)
        case _:
            values = words_of_runs(source, starts, lengths, data_type, refuse)
    return Column(type=data_type, length=rows, values=values)


def _cleared(column: Column) -> Values:
    """Return the values with zeros where the column is NULL."""
    values = values_of(column)
    if column.valid is None:
        return values
    valid = column.valid if values.ndim == 1 else column.valid[:, np.newaxis]
    return np.where(valid, values, np.zeros(1, values.dtype))


def _binary_runs(column: Column) -> Runs:
    values = values_of(column)
    starts = np.arange(column.length, dtype=np.int64) * values.shape[1]
    lengths = np.full(column.length, values.shape[1], np.int64)
    if column.valid is not None:
        lengths[~column.valid] = 0
    return runs_of(np.ascontiguousarray(values).reshape(-1), starts, lengths)


def _stored_numbers(values: Values, data_type: Any, storage: NumberStorage) -> Values:
    match storage.form:
        case NumberForm.SAME | NumberForm.TRUTH:
            return values
        case NumberForm.UNSCALED:
            return _checked_words(values, data_type)[0]
        case NumberForm.MILLIS:
            return _millis(values, data_type, storage)


def _millis(values: Values, data_type: Any, storage: NumberStorage) -> Values:
    """Milliseconds, rounded down."""
    unit = data_type.unit
    if unit == "ms":
        return values
    wide = values.astype(np.int64, copy=False)
    millis = wide * 1000 if unit == "s" else wide // (UNITS_PER_SECOND[unit] // 1000)
    narrow = millis.astype(storage.dtype, copy=False)
    wrong = (narrow != millis) | ((unit == "s") & (millis // 1000 != wide))
    if wrong.any():
        why = f"it does not fit {8 * storage.width} bits in milliseconds"
        refuse_value(data_type)(wrong, why)
    return narrow


def _split(values: Int64Array, unit: str) -> SplitTimestamp:
    per_milli = UNITS_PER_SECOND[unit] // 1000
    millis = values // per_milli
    nanos = (values - millis * per_milli) * (1_000_000 // per_milli)
    return SplitTimestamp(millis=millis, nanos=nanos.astype(np.int32))


def _from_millis(millis: Values, unit: str) -> Values:
    match unit:
        case "s":
            return _toward_zero(millis, 1000)
        case "ms":
            return millis
        case _:
            return millis.astype(np.int64) * (UNITS_PER_SECOND[unit] // 1000)


def _toward_zero(values: Values, divisor: int) -> Values:
    """Java's division, which is how Fluss's own Arrow writers drop milliseconds."""
    quotient = values // divisor
    quotient += (quotient < 0) & (quotient * divisor != values)
    return quotient


def _checked_words(words: Values, data_type: Any) -> tuple[Int64Array, Int64Array]:
    low, high = np.ascontiguousarray(words[:, 0]), np.ascontiguousarray(words[:, 1])
    check_digits(low, high, data_type, refuse_value(data_type))
    return low, high


def _store_large_decimals(column: Column) -> Stored:
    runs = shortest_bytes(*_checked_words(_cleared(column), column.type))
    if column.valid is None:
        return runs
    return runs_of(runs.data, runs.starts, np.where(column.valid, runs.lengths, 0))


def _padded_binaries(
    data_type: DataType,
    size: int,
    source: ByteArray,
    starts: Int64Array,
    lengths: Int64Array,
    refuse: Refuse,
) -> ByteArray:
    """Values of `size` bytes; Java writes shorter ones as they are, zeros fill them up."""
    rows = len(starts)
    wrong = lengths > size
    if wrong.any():
        refuse(wrong, f"{int(lengths.max())} bytes are too many for {data_type}")
    check_bytes_max(rows * size)
    values = np.zeros(rows * size, np.uint8)
    copy_runs(
        source=source,
        source_starts=starts,
        target=values,
        target_starts=np.arange(rows, dtype=np.int64) * size,
        lengths=lengths,
    )
    return values.reshape(rows, size)


def refuse_value(data_type: DataType) -> Refuse:
    """Return a function that raises InvalidValueError for values to be written."""

    def refuse(wrong: BoolArray, why: str) -> None:
        row = int(np.flatnonzero(wrong)[0])
        raise InvalidValueError(f"The value does not fit {data_type}: {why}.", why=why).add_context(
            row=row
        )

    return refuse
