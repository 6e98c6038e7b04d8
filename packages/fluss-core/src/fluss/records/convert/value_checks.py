"""Checks that Arrow's types do not express: NOT NULL, CHAR's length, TIME in rows.

Arrow does not check buffers it imports either: DuckDB exports a HUGEINT of 39 digits as
DECIMAL(38, 0), and a time of day of 24:00.

A check looks at one array in wire form, its nested values included, and raises `DoesNotFitError` at
a value that does not fit; `records.convert.cast` finds the row and makes the sentence. Types that
Arrow's own describe completely have no check, and cost nothing. The table of types is in
`records.convert.cast_rules`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from fluss.hints import HintKey
from fluss.model.types import data_type as t
from fluss.model.values.limits import ValueLimits
from fluss.model.values.texts import CHAR_BYTES, CHAR_BYTES_HINT
from fluss.model.values.times import ONLY_MILLIS, ONLY_MILLIS_HINT
from fluss.records.arrow.numpy_arrays import as_list, list_parts, to_numpy

ValueCheck: TypeAlias = Callable[[pa.Array], None]

_MILLIS = t.UNITS_PER_SECOND["ms"]
_SECONDS_PER_DAY = 86_400
_SECONDS_MAX = (2**63 - 1) // _MILLIS


class DoesNotFitError(Exception):
    """A value does not fit its column, and why; caught by `records.convert.cast` only."""

    def __init__(self, why: str, *, hint: str | HintKey | None = None) -> None:
        super().__init__(why)
        self.hint = hint


def not_null_check(inner: ValueCheck | None) -> ValueCheck:
    """Return a check that also refuses NULL."""

    def check(array: pa.Array) -> None:
        if array.null_count:
            raise DoesNotFitError("it may not be NULL", hint=HintKey.FILL_NULL)
        if inner is not None:
            inner(array)

    return check


def char_check(data_type: t.CharType, limits: ValueLimits) -> ValueCheck:
    """Return the check for texts of limited length."""
    return lambda array: _check_length(array, data_type.length, limits)


def digits_check(data_type: t.DecimalType, _: ValueLimits) -> ValueCheck:
    """Return the check for decimals, whose bits may be those of more digits."""

    def check(array: pa.Array) -> None:
        try:
            array.validate(full=True)
        except pa.ArrowInvalid as error:
            raise DoesNotFitError(
                f"{data_type} has at most {data_type.precision} digits",
                hint="round the numbers, or write them as DOUBLE or as texts",
            ) from error

    return check


def time_check(data_type: t.TimeType, limits: ValueLimits) -> ValueCheck:
    """Return the check for times of day."""
    return lambda array: _check_time(array, data_type.unit, keeps_millis=limits.keeps_millis)


def timestamp_check(data_type: t.TimestampFamily, limits: ValueLimits) -> ValueCheck | None:
    """Return the check for seconds that rows store as milliseconds."""
    return _check_seconds if data_type.unit == "s" and limits.keeps_millis else None


def list_check(element: ValueCheck | None) -> ValueCheck | None:
    """Return the check for lists, by that of their elements."""
    return None if element is None else lambda array: element(list_parts(array)[1])


def map_check(checks: list[ValueCheck | None]) -> ValueCheck:
    """Return the check for maps, by those of key and value; keys are never NULL."""
    return lambda array: _check_fields(list_parts(as_list(array))[1], checks)


def row_check(checks: list[ValueCheck | None]) -> ValueCheck | None:
    """Return the check for rows, by those of their fields."""
    return (lambda array: _check_fields(array, checks)) if any(checks) else None


def _check_length(array: pa.Array, length: int, limits: ValueLimits) -> None:
    # Bytes are cheaper to count than characters, and are never fewer.
    longest = pc.max(pc.binary_length(array)).as_py()
    if longest is None or longest <= length:
        return
    longest = pc.max(pc.utf8_length(array)).as_py()
    if longest > length:
        raise DoesNotFitError(f"CHAR({length}) has at most {length} characters")
    if limits.counts_char_bytes:
        raise DoesNotFitError(
            f"it has more than {length} bytes, {CHAR_BYTES}", hint=CHAR_BYTES_HINT
        )


def _check_time(array: pa.Array, unit: str, *, keeps_millis: bool) -> None:
    per_second = t.UNITS_PER_SECOND[unit]
    counts = to_numpy(array.drop_null() if array.null_count else array)
    if len(counts) and not 0 <= counts.min() <= counts.max() < per_second * _SECONDS_PER_DAY:
        raise DoesNotFitError("a time of day lies between 00:00 and 24:00, which is the next day")
    if keeps_millis and per_second > _MILLIS and (counts % (per_second // _MILLIS)).any():
        raise DoesNotFitError(ONLY_MILLIS, hint=ONLY_MILLIS_HINT)


def _check_seconds(array: pa.Array) -> None:
    counts = to_numpy(array.drop_null() if array.null_count else array)
    if len(counts) and not -_SECONDS_MAX <= counts.min() <= counts.max() <= _SECONDS_MAX:
        raise DoesNotFitError("the table keeps milliseconds, which do not fit 64 bits")


def _check_fields(array: pa.Array, checks: list[ValueCheck | None]) -> None:
    present = array.drop_null() if array.null_count else array
    for index, check in enumerate(checks):
        if check is not None:
            check(present.field(index))
