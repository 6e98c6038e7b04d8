"""Converts dates, times of day and timestamps to physical values, and back.

A time is refused where its unit cannot hold it, instead of being cut off. Python's `datetime` ends
at microseconds, so the last three digits of a precision of 7 to 9 are cut off on the way back;
Arrow keeps them.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from fractions import Fraction
from typing import Any

from fluss.errors import InvalidValueError
from fluss.hints import FrameKind, Hint, HintKey
from fluss.model.types import data_type as t
from fluss.model.values.target import Converter, Target, is_nothing, is_numpy
from fluss.model.values.time_zones import ZONE_WOULD_BE_LOST, keep_zone

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - where timestamps without a zone are counted from
_EPOCH_UTC = _EPOCH.replace(tzinfo=UTC)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_SECONDS_PER_DAY = 86_400
_MICROSECONDS = t.UNITS_PER_SECOND["us"]
_INT32 = 2**31
_INT64 = 2**63

# Why a TIME that the type could hold is refused.
ONLY_MILLIS = "the table keeps milliseconds of a time"
ONLY_MILLIS_HINT = (
    "round it, or keep it as a TIMESTAMP or a BIGINT; only logs in ARROW format keep finer times"
)


def date_to_physical(target: Target, _: object) -> Converter:
    """Takes datetime.date and numpy's datetime64 of whole days; a datetime is not a day."""

    def convert(value: Any) -> Any:
        if type(value) is date:
            return value.toordinal() - _EPOCH_DAY
        return otherwise(value)

    def otherwise(value: Any) -> Any:
        if is_nothing(value):
            return target.nothing()
        if isinstance(value, datetime):
            raise target.refuse(value, hint=Hint(HintKey.WRITE_DAY, column=target.column))
        if isinstance(value, date):
            return value.toordinal() - _EPOCH_DAY
        moment = _of_numpy(value)
        if moment is _NO_TIME:
            raise target.refuse(value, hint="write a datetime.date")
        if moment is None:
            return target.nothing()
        days = moment / _SECONDS_PER_DAY
        if days.denominator != 1:
            raise target.refuse(value, "it is not a whole day", "use TIMESTAMP")
        if not -_INT32 <= days < _INT32:
            raise target.refuse(value, "it is out of range")
        return int(days)

    return convert


def time_to_physical(target: Target, data_type: t.TimeType) -> Converter:
    """Takes datetime.time without a zone."""
    scaled = _scaling(target, data_type.unit, cuts=False)
    keeps_millis = target.limits.keeps_millis

    def convert(value: Any) -> Any:
        if not isinstance(value, time):
            if is_nothing(value):
                return target.nothing()
            hint = "write value.time()" if isinstance(value, datetime) else "write a datetime.time"
            raise target.refuse(value, hint=hint)
        if value.tzinfo is not None:
            raise target.refuse(value, "it has a zone", "write value.replace(tzinfo=None)")
        if keeps_millis and value.microsecond % 1_000:
            raise target.refuse(value, ONLY_MILLIS, ONLY_MILLIS_HINT)
        seconds = value.hour * 3600 + value.minute * 60 + value.second
        count = seconds * _MICROSECONDS + value.microsecond
        return count if scaled is None else scaled(count, value)

    return convert


def timestamp_to_physical(target: Target, data_type: t.TimestampType) -> Converter:
    """Takes datetime without a zone, pandas's Timestamp and numpy's datetime64."""
    scaled = _scaling(target, data_type.unit, cuts=True)

    def convert(value: Any) -> Any:
        if type(value) is datetime and value.tzinfo is None:
            count = _microseconds(value - _EPOCH)
            return count if scaled is None else scaled(count, value)
        if isinstance(value, datetime) and value.tzinfo is not None and not is_nothing(value):
            refused = target.refuse(value, ZONE_WOULD_BE_LOST, keep_zone(target.column))
            raise refused.add_context(frame=FrameKind.ROWS)
        return _foreign_timestamp(target, value, data_type.unit)

    return convert


def timestamp_ltz_to_physical(target: Target, data_type: t.TimestampLtzType) -> Converter:
    """Takes datetime with a zone, and as UTC without one (decision 0008); also numpy's."""
    scaled = _scaling(target, data_type.unit, cuts=True)

    def convert(value: Any) -> Any:
        if type(value) is datetime:
            try:
                delta = value - (_EPOCH if value.tzinfo is None else _EPOCH_UTC)
            except TypeError:
                why = "its zone does not say how far it is from UTC"
                raise target.refuse(value, why) from None
            count = _microseconds(delta)
            return count if scaled is None else scaled(count, value)
        return _foreign_timestamp(target, value, data_type.unit)

    return convert


def _microseconds(delta: timedelta) -> int:
    return (delta.days * _SECONDS_PER_DAY + delta.seconds) * _MICROSECONDS + delta.microseconds


def _scaling(target: Target, unit: str, *, cuts: bool) -> Callable[[int, object], int] | None:
    """From microseconds to the unit; None where the unit is theirs.

    `datetime` always has microseconds, which users may not intend to store: with `cuts` a time is
    rounded down to the unit, as in pyfluss.
    """
    per_second = t.UNITS_PER_SECOND[unit]
    if per_second == _MICROSECONDS:
        return None
    if per_second > _MICROSECONDS:
        factor = per_second // _MICROSECONDS

        def multiplied(microseconds: int, value: object) -> int:
            count = microseconds * factor
            if not -_INT64 <= count < _INT64:
                raise target.refuse(value, f"its count of {unit} does not fit 64 bits")
            return count

        return multiplied
    divisor = _MICROSECONDS // per_second

    def divided(microseconds: int, value: object) -> int:
        count, rest = divmod(microseconds, divisor)
        if rest and not cuts:
            raise _too_fine(target, value, unit)
        return count

    return divided


def _too_fine(target: Target, value: object, unit: str) -> InvalidValueError:
    return target.refuse(
        value,
        f"the column counts whole {_UNIT_NAMES[unit]}",
        "round the value to them, or give the column more digits after the second",
    )


_UNIT_NAMES = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}


# --- numpy and pandas ---------------------------------------------------------------------------

_NO_TIME = object()
# Units that numpy counts by, in seconds; years and months have no fixed length.
_NUMPY_UNITS = {
    "W": Fraction(604_800),
    "D": Fraction(86_400),
    "h": Fraction(3_600),
    "m": Fraction(60),
    "s": Fraction(1),
    "ms": Fraction(1, 10**3),
    "us": Fraction(1, 10**6),
    "ns": Fraction(1, 10**9),
    "ps": Fraction(1, 10**12),
    "fs": Fraction(1, 10**15),
    "as": Fraction(1, 10**18),
}


def _foreign_timestamp(target: Target, value: Any, unit: str) -> Any:
    if is_nothing(value):
        return target.nothing()
    moment = _of_numpy(value)
    if moment is _NO_TIME:
        hint = "write a datetime, datetime.combine(value, time()) for one at midnight"
        raise target.refuse(value, hint=hint if isinstance(value, date) else "write a datetime")
    if moment is None:
        return target.nothing()
    count = moment * t.UNITS_PER_SECOND[unit]
    if count.denominator != 1:
        raise _too_fine(target, value, unit)
    if not -_INT64 <= count < _INT64:
        raise target.refuse(value, f"its count of {unit} does not fit 64 bits")
    return int(count)


def _of_numpy(value: Any) -> Any:
    """Seconds since 1970 of a datetime64 or a pandas Timestamp; None for NaT; else `_NO_TIME`."""
    if isinstance(value, datetime) and hasattr(value, "to_datetime64"):
        value = value.to_datetime64()
    elif isinstance(value, datetime):  # a subclass
        epoch = _EPOCH if value.utcoffset() is None else _EPOCH_UTC
        return Fraction(_microseconds(value - epoch), _MICROSECONDS)
    if not is_numpy(value) or type(value).__name__ != "datetime64":
        return _NO_TIME
    import numpy as np

    if np.isnat(value):
        return None
    unit, step = np.datetime_data(value.dtype)
    if unit in {"Y", "M"}:
        value, unit, step = value.astype("datetime64[D]"), "D", 1
    return int(value.astype(np.int64)) * step * _NUMPY_UNITS[unit]


# --- back to Python -----------------------------------------------------------------------------


def date_from_physical(value: Any) -> Any:
    """Gives datetime.date.

    Raises:
        InvalidValueError: For days outside of the years 1 to 9999.
    """
    if value is None:
        return None
    try:
        return date.fromordinal(value + _EPOCH_DAY)
    except (ValueError, OverflowError):
        raise _beyond_python(value, "days since 1970") from None


def time_from_physical(data_type: t.TimeType) -> Converter:
    """Gives datetime.time; nanoseconds are cut off to microseconds."""
    unit = data_type.unit
    per_second = t.UNITS_PER_SECOND[unit]
    per_day = per_second * _SECONDS_PER_DAY

    def convert(value: Any) -> Any:
        if value is None:
            return None
        if not 0 <= value < per_day:
            raise _beyond_python(value, f"{_UNIT_NAMES[unit]} since midnight")
        seconds, rest = divmod(value, per_second)
        minutes, second = divmod(seconds, 60)
        hour, minute = divmod(minutes, 60)
        return time(hour, minute, second, rest * _MICROSECONDS // per_second)

    return convert


def timestamp_from_physical(data_type: t.TimestampFamily) -> Converter:
    """Gives datetime, with the zone UTC or none; nanoseconds are cut off to microseconds."""
    unit = data_type.unit
    epoch = _EPOCH if data_type.arrow_zone is None else _EPOCH_UTC
    per_second = t.UNITS_PER_SECOND[unit]
    in_us = per_second == _MICROSECONDS

    def convert(value: Any) -> Any:
        if value is None:
            return None
        try:
            # Positions, because keywords cost as much as the sum itself.
            return epoch + timedelta(0, 0, value if in_us else value * _MICROSECONDS // per_second)
        except OverflowError:
            raise _beyond_python(value, f"{_UNIT_NAMES[unit]} since 1970") from None

    return convert


def _beyond_python(value: int, what: str) -> InvalidValueError:
    return InvalidValueError(
        f"{value} {what} is not a time that Python's datetime can hold.",
        hint="read the column as Arrow, which holds it as a number",
        value=value,
    )
