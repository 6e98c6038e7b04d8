"""Conditions on times with nanoseconds, as Spark answers them.

Spark's times end at microseconds, and what it is given is cut to them: of three times within one
microsecond, all equal the one that Spark shows. To Fluss they are three. So a time of Spark stands
for the thousand of Fluss that are cut to it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from functools import reduce
from operator import or_
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow as pa

from fluss.errors import InvalidValueError
from fluss.model.predicates.predicate import ColumnRef, Predicate

_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])([0-9]{1,2})(?::([0-9]{2}))?")
_MICROSECOND = timedelta(microseconds=1)
# Nanoseconds since 1970 that 64 bits hold lie between these.
_FIRST = datetime(1677, 9, 21, 0, 12, 43, 145_225, UTC)
_LAST = datetime(2262, 4, 11, 23, 47, 16, 854_775, UTC)


def zone_of(name: str) -> tzinfo:
    """A time zone as Spark names it: `Europe/Berlin`, `UTC`, `+02:00`.

    Raises:
        InvalidValueError: There is none of this name here.
    """
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        hours, minutes = int(offset[2]), int(offset[3] or 0)
        return timezone((-1 if offset[1] == "-" else 1) * timedelta(hours=hours, minutes=minutes))
    try:
        return UTC if name in {"Z", "UTC"} else ZoneInfo(name)
    except (ValueError, OSError, ZoneInfoNotFoundError):
        raise InvalidValueError(
            f"The time zone {name[:40]!r} is not known here, and filter has a time without a zone.",
            hint="write the time with its zone, '2026-01-31T12:00:00Z'; or install tzdata",
            option="timeZone",
        ) from None


def has_nanoseconds(kind: pa.DataType) -> bool:
    """Whether a column has times that Spark is given cut."""
    is_time = pa.types.is_timestamp(kind) or pa.types.is_time(kind)
    return bool(is_time and kind.unit == "ns")


def time_condition(column: ColumnRef, sign: str, value: datetime | time) -> Predicate:
    """A column compared with a constant.

    Args:
        column: The column.
        sign: How, by one of `= <> < <= > >=`.
        value: With what.
    """
    match sign:
        case "<":
            return _before(column, value)
        case ">=":
            return ~_before(column, value)
        case "<=":
            return _until(column, value)
        case ">":
            return ~_until(column, value)
        case "=":
            return ~_before(column, value) & _until(column, value)
        case _:
            return _before(column, value) | ~_until(column, value)


def time_in(column: ColumnRef, values: Sequence[datetime | time]) -> Predicate:
    """A column that is one of several constants."""
    return reduce(or_, [time_condition(column, "=", each) for each in values])


def _until(column: ColumnRef, value: datetime | time) -> Predicate:
    """Times that are this one, or come before it, when they are cut."""
    if isinstance(value, datetime):
        if _at(value) >= _LAST:
            return _every(column, value)
        return _before(column, value + _MICROSECOND)
    if value == time.max:  # of a day
        return _every(column, value)
    return column.less_than((datetime.combine(date.min, value) + _MICROSECOND).time())


def _before(column: ColumnRef, value: datetime | time) -> Predicate:
    if isinstance(value, datetime):
        if _at(value) > _LAST:
            return _every(column, value)
        if _at(value) < _FIRST:
            return ~_every(column, value)
    return column.less_than(value)


def _at(value: datetime) -> datetime:
    return value if value.tzinfo is not None else value.replace(tzinfo=UTC)


def _every(column: ColumnRef, like: datetime | time) -> Predicate:
    """Every time; where there is none, it is unknown."""
    # A leap year, which has every day.
    some = like.replace(year=1972) if isinstance(like, datetime) else like
    return column.less_than(some) | column.greater_or_equal(some)
