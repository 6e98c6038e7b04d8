"""The text of one partition column value, in both directions, exactly as Java writes it.

A partition is identified by these texts, so every character counts (Java:
`PartitionUtils.convertValueOfType`, `PartitionNameConverters`). Whole columns are in
`rows.keys.partition_codes`, the printing of floating point numbers is in `rows.keys.java_text`, and
the characters of a name are checked by `model.names`.

========================  =================================================================
type                      text
========================  =================================================================
CHAR, STRING              the text itself
BOOLEAN                   `true`, `false`
TINYINT … BIGINT          decimal
FLOAT, DOUBLE             Java's `toString` with `_` for the point: `100_0`, `-2_25E10`;
                          `NaN`, `Inf`, `-Inf`
BINARY, BYTES             lower-case hexadecimal
DATE                      `yyyy-MM-dd`
TIME                      `HH-mm-ss_SSS`
TIMESTAMP, TIMESTAMP_LTZ  `yyyy-MM-dd-HH-mm-ss_`, then the fraction of the second without
                          trailing zeros; in UTC
========================  =================================================================

DATE counts years astronomically (`0000` is 1 BC) and prints `10000` and `-001` bare. TIMESTAMP
prints the year of the era (1 BC and AD 1 are both `0001`) and a plus before years past 9999, which
no name may contain. Java does so.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple, NoReturn

import numpy as np

from fluss.errors import InvalidValueError, UnsupportedTypeError
from fluss.hints import Hint, HintKey
from fluss.model.types import data_type as t
from fluss.model.types.per_type import PerType
from fluss.rows.formats.civil import civil_from_days, days_from_civil, is_civil
from fluss.rows.keys.java_text import MILLIS_PER_DAY, double_text, float_text

_NANOS_PER_SECOND = 1_000_000_000
_NANOS_PER_MILLI = 1_000_000
_SECONDS_PER_DAY = MILLIS_PER_DAY // 1000
_LONG_MAX = 2**63 - 1

_SPECIAL_FLOATS = {"NaN": math.nan, "Inf": math.inf, "-Inf": -math.inf}

_INTEGER = re.compile(r"[+-]?[0-9]+")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})*")
_NUMBER = re.compile(r"[+-]?[0-9]+(?:_[0-9]*)?(?:E[+-]?[0-9]{1,4})?")
_DATE = re.compile(r"(-?[0-9]{3,9})-([0-9]{2})-([0-9]{2})")
_TIME = re.compile(r"([0-9]{2,3})-([0-9]{2})-([0-9]{2})_([0-9]{3})")
_TIMESTAMP = re.compile(
    r"\+?([0-9]{4,9})-([0-9]{2})-([0-9]{2})"
    r"(?:-([0-9]{2})-([0-9]{2})-([0-9]{2})(?:_([0-9]{0,9}))?)?"
)


def check_partition_type(data_type: t.DataType) -> None:
    """Refuse a type that no partition column can have.

    Raises:
        UnsupportedTypeError: The type is DECIMAL or nested.
    """
    _text_functions(data_type)


def _text_functions(data_type: t.DataType) -> _TextFunctions:
    functions = _TEXTS[data_type]
    if functions is None:
        raise UnsupportedTypeError(
            f"A {data_type} column cannot be a partition column: its values have no partition name.",
            hint="Partition by text, a number that is no DECIMAL, a date, a time or bytes.",
            type=str(data_type),
        )
    return functions


def partition_text(value: Any, data_type: t.DataType) -> str:
    """Return the text of a physical value.

    Raises:
        InvalidValueError: The value is NULL, or lies beyond what Java's type can hold.
        UnsupportedTypeError: The type is DECIMAL or nested.
    """
    write = _text_functions(data_type).write
    if value is None:
        raise InvalidValueError(
            f"A partition column is NULL ({data_type}), and NULL names no partition.",
            hint="Fill the column before writing, or drop the rows that have no partition.",
        )
    return write(value, data_type)


def partition_value(text: str, data_type: t.DataType) -> Any:
    """Return the physical value that a text stands for.

    Digits below the precision of a TIME or TIMESTAMP type are dropped, as Fluss drops them where
    it writes such a column to Arrow.

    Raises:
        InvalidValueError: The text is none of this type, or its value does not fit the type.
        UnsupportedTypeError: The type is DECIMAL or nested.
    """
    return _text_functions(data_type).read(text, data_type)


class _TextFunctions(NamedTuple):
    """How a physical value of a type becomes a text, and back."""

    write: Callable[[Any, Any], str]
    read: Callable[[str, Any], Any]


# --- writing ----------------------------------------------------------------------------------


def _float_text(value: float, java: str) -> str:
    if math.isinf(value):
        return "Inf" if value > 0 else "-Inf"
    return java.replace(".", "_")


def _date_text(days: int, _: t.DataType) -> str:
    year, month, day = civil_from_days(days)
    return f"{year:04d}-{month:02d}-{day:02d}"


def _time_text(value: int, data_type: t.TimeType) -> str:
    millis = value * 1000 // t.UNITS_PER_SECOND[data_type.unit]
    seconds, milli_of_second = divmod(millis, 1000)
    minutes, second = divmod(seconds, 60)
    return f"{minutes // 60:02d}-{minutes % 60:02d}-{second:02d}_{milli_of_second:03d}"


def _timestamp_text(value: int, data_type: t.TimestampFamily) -> str:
    per_second = t.UNITS_PER_SECOND[data_type.unit]
    if per_second == 1 and abs(value) > _LONG_MAX // 1000:
        raise InvalidValueError(
            f"The {data_type} value {value} does not fit the 64-bit milliseconds of Fluss's rows.",
            hint="Check the unit of the value: it is counted in seconds here.",
            value=value,
        )
    seconds, units = divmod(value, per_second)
    days, second_of_day = divmod(seconds, _SECONDS_PER_DAY)
    year, month, day = civil_from_days(days)
    year_of_era = year if year > 0 else 1 - year
    plus = "+" if year_of_era > 9999 else ""
    minute_of_day, second = divmod(second_of_day, 60)
    fraction = f"{units * (_NANOS_PER_SECOND // per_second):09d}".rstrip("0")
    return (
        f"{plus}{year_of_era:04d}-{month:02d}-{day:02d}"
        f"-{minute_of_day // 60:02d}-{minute_of_day % 60:02d}-{second:02d}_{fraction}"
    )


# --- reading ----------------------------------------------------------------------------------


def _read_boolean(text: str, data_type: t.DataType) -> bool:
    lowered = text.lower()
    if lowered not in {"true", "false"}:
        _refuse(text, data_type, "it is true or false")
    return lowered == "true"


def _read_integer(text: str, data_type: t.IntegerFamily) -> int:
    bits = data_type.bits
    # 20 characters hold every integer; Python refuses longer ones, but only after some thousand.
    if len(text) > 20 or not _INTEGER.fullmatch(text):
        _refuse(text, data_type, "it is a decimal number")
    value = int(text)
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        _refuse(text, data_type, f"it does not fit {bits} bits")
    return value


def _read_bytes(text: str, data_type: t.BinaryFamily) -> bytes:
    if not _HEX.fullmatch(text):
        _refuse(text, data_type, "it is pairs of hexadecimal digits")
    value = bytes.fromhex(text)
    if isinstance(data_type, t.BinaryType) and len(value) != data_type.length:
        _refuse(text, data_type, f"it has {data_type.length} bytes, not {len(value)}")
    return value


def _read_float(text: str, data_type: t.FloatFamily) -> float:
    if text in _SPECIAL_FLOATS:
        return _SPECIAL_FLOATS[text]
    if not _NUMBER.fullmatch(text):
        _refuse(text, data_type, "it is a number with '_' for the point")
    number = text.replace("_", ".")
    return float(number) if isinstance(data_type, t.DoubleType) else _nearest_float32(number)


def _nearest_float32(number: str) -> float:
    # Rounding by way of a double goes wrong where the double lies exactly between two 32-bit
    # numbers, although the number itself did not.
    double = float(number)
    below, above = math.nextafter(double, -math.inf), math.nextafter(double, math.inf)
    with np.errstate(over="ignore"):
        nearest, low, high = (float(np.float32(each)) for each in (double, below, above))
    if low == high or math.isinf(double):
        return nearest
    exact = Fraction(number)
    return nearest if exact == Fraction(double) else (low if exact < Fraction(double) else high)


def _read_date(text: str, data_type: t.DataType) -> int:
    found = _DATE.fullmatch(text)
    if found is None:
        _refuse(text, data_type, "it is yyyy-MM-dd")
    days = _days(text, data_type, *map(int, found.groups()))
    if not -(1 << 31) <= days < 1 << 31:
        _refuse(text, data_type, "it does not fit 32 bits of days")
    return days


def _read_time(text: str, data_type: t.TimeType) -> int:
    found = _TIME.fullmatch(text)
    if found is None:
        _refuse(text, data_type, "it is HH-mm-ss_SSS")
    hours, minutes, seconds, millis = map(int, found.groups())
    if minutes > 59 or seconds > 59:
        _refuse(text, data_type, "an hour has 60 minutes of 60 seconds")
    total = ((hours * 60 + minutes) * 60 + seconds) * 1000 + millis
    if total >= 1 << 31:
        _refuse(text, data_type, "it does not fit 32 bits of milliseconds")
    return total * t.UNITS_PER_SECOND[data_type.unit] // 1000


def _read_timestamp(text: str, data_type: t.TimestampFamily) -> int:
    found = _TIMESTAMP.fullmatch(text)
    if found is None:
        _refuse(text, data_type, "it is yyyy-MM-dd-HH-mm-ss_ and a fraction")
    *parts, fraction = found.groups()
    year, month, day, hours, minutes, seconds = (int(part or 0) for part in parts)
    if hours > 23 or minutes > 59 or seconds > 59:
        _refuse(text, data_type, "a day has 24 hours of 60 minutes of 60 seconds")
    days = _days(text, data_type, year, month, day)
    second = days * _SECONDS_PER_DAY + (hours * 60 + minutes) * 60 + seconds
    nanos = second * _NANOS_PER_SECOND + int((fraction or "").ljust(9, "0"))
    value = _in_unit(nanos, data_type.unit)
    if not -_LONG_MAX - 1 <= value <= _LONG_MAX:
        _refuse(text, data_type, "it does not fit 64 bits")
    return value


def _in_unit(nanos: int, unit: str) -> int:
    if unit != "s":
        return nanos // (_NANOS_PER_SECOND // t.UNITS_PER_SECOND[unit])
    # From milliseconds to seconds Fluss divides as Java does, toward zero.
    millis = nanos // _NANOS_PER_MILLI
    return millis // 1000 if millis >= 0 else -(-millis // 1000)


def _days(text: str, data_type: t.DataType, year: int, month: int, day: int) -> int:
    if not is_civil(year, month, day):
        _refuse(text, data_type, "the calendar has no such day")
    return days_from_civil(year, month, day)


def _refuse(text: str, data_type: t.DataType, why: str) -> NoReturn:
    shown = text if len(text) <= 40 else f"{text[:40]}…"
    raise InvalidValueError(
        f"{shown!r} is no partition value of a {data_type} column: {why}.",
        hint=Hint(HintKey.NAME_PARTITION),
        value=text,
    )


# --- by type ----------------------------------------------------------------------------------

_TEXTS = PerType[_TextFunctions | None](
    {
        (t.DecimalType, t.NestedType): None,  # no partition key
        t.TextFamily: _TextFunctions(lambda value, _: value, lambda text, _: text),
        t.BooleanType: _TextFunctions(lambda value, _: "true" if value else "false", _read_boolean),
        t.BinaryFamily: _TextFunctions(lambda value, _: value.hex(), _read_bytes),
        t.IntegerFamily: _TextFunctions(lambda value, _: str(value), _read_integer),
        t.FloatType: _TextFunctions(
            lambda value, _: _float_text(value, float_text(value)), _read_float
        ),
        t.DoubleType: _TextFunctions(
            lambda value, _: _float_text(value, double_text(value)), _read_float
        ),
        t.DateType: _TextFunctions(_date_text, _read_date),
        t.TimeType: _TextFunctions(_time_text, _read_time),
        t.TimestampFamily: _TextFunctions(_timestamp_text, _read_timestamp),
    }
)
