"""Predicates on columns with nanoseconds, with the meaning that Spark gives them.

Spark's times have microseconds, and finer values are cut: three times within one microsecond all
equal the one that Spark shows. In Fluss they differ. So a time of Spark stands for the thousand
nanoseconds that are cut to it.
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
from fluss.scan import ColumnRef, Predicate

_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])([0-9]{1,2})(?::([0-9]{2}))?")
_MICROSECOND = timedelta(microseconds=1)
# The range of 64-bit nanoseconds since 1970.
_FIRST = datetime(1677, 9, 21, 0, 12, 43, 145_225, UTC)
_LAST = datetime(2262, 4, 11, 23, 47, 16, 854_775, UTC)


def zone_of(name: str) -> tzinfo:
    """Return a time zone by Spark's name: `Europe/Berlin`, `UTC`, `+02:00`.

    Raises:
        InvalidValueError: This machine does not know it.
    """
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        hours, minutes = int(offset[2]), int(offset[3] or 0)
        return timezone((-1 if offset[1] == "-" else 1) * timedelta(hours=hours, minutes=minutes))
    try:
        return UTC if name in {"Z", "UTC"} else ZoneInfo(name)
    except (ValueError, OSError, ZoneInfoNotFoundError):
        raise InvalidValueError(
            f"The time zone {name[:40]!r} is unknown here, and filter has a time without a zone.",
            hint="write the time with its zone, '2026-01-31T12:00:00Z'; or install tzdata",
            option="timeZone",
        ) from None


def has_nanoseconds(kind: pa.DataType) -> bool:
    """Return whether a column has times that Spark gets cut."""
    is_time = pa.types.is_timestamp(kind) or pa.types.is_time(kind)
    return bool(is_time and kind.unit == "ns")


def time_condition(column: ColumnRef, sign: str, value: datetime | time) -> Predicate:
    """Compare a column with a constant.

    Args:
        column: The column.
        sign: One of `= <> < <= > >=`.
        value: The constant.
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
    """Compare a column with a list of constants."""
    return reduce(or_, [time_condition(column, "=", value) for value in values])


def _until(column: ColumnRef, value: datetime | time) -> Predicate:
    """Match times that are this one or earlier, after they are cut."""
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
    """Match every time; unknown where the column is NULL."""
    # 1972 is a leap year, which has every day.
    some = like.replace(year=1972) if isinstance(like, datetime) else like
    return column.less_than(some) | column.greater_or_equal(some)
