"""Literals of filters in SQL: what they are as values of the column that they are compared with.

A text does not know the types of columns, so a literal keeps its own text until the columns are
known. Then it becomes the Python value that `col()` takes for that type, and no digit is lost: 0.1
is a `Decimal` beside a DECIMAL and a float beside a DOUBLE. A quoted date or time is taken as one
where its column has that type, as in most databases.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal, DecimalException
from enum import StrEnum
from typing import Any, Final

from fluss.errors import InvalidValueError
from fluss.model.predicates.binding import TypeOf
from fluss.model.predicates.predicate import Compound, Leaf, Not, Predicate
from fluss.model.types.data_type import (
    BinaryFamily,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    FloatFamily,
    IntegerFamily,
    TextFamily,
    TimestampFamily,
    TimestampLtzType,
    TimeType,
)


class LiteralKind(StrEnum):
    """What a literal is before its column is known; ALONE is TRUE for a column by itself."""

    NUMBER = "a number"
    TEXT = "a text"
    DATE = "a date"
    TIME = "a time of day"
    TIMESTAMP = "a timestamp"
    BYTES = "bytes"
    BOOLEAN = "TRUE or FALSE"
    ALONE = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlLiteral:
    """A literal of a filter in SQL, as it is written.

    Attributes:
        kind: What it is.
        text: Its text, without quotes.
        position: Where it stands in the filter.
    """

    kind: LiteralKind
    text: str
    position: int


# Larger numbers fit no type.
_DIGITS_MAX: Final = 400
_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME: Final = re.compile(r"([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?")
_ZONE: Final = re.compile(r" ?(Z|z|UTC|([+-])([0-9]{2})(?::?([0-9]{2}))?)")
_TIMESTAMP: Final = re.compile(
    r"(?P<day>[0-9-]{10})"
    r"(?:[Tt ](?P<time>[0-9:]{5,8})(?:\.(?P<fraction>[0-9]{1,9}))?(?P<zone> ?[A-Za-z+-].*)?)?"
)
_MICROSECOND_DIGITS: Final = 6
_NANOSECOND_DIGITS: Final = 9
# The years of which 64 bits hold every nanosecond.
_YEARS_OF_NANOSECONDS: Final = range(1678, 2262)
_NUMBER_SHAPES: Final = (IntegerFamily, FloatFamily, DecimalType)


def with_values(predicate: Predicate, type_of: TypeOf) -> Predicate:
    """Return a condition with values in place of its literals.

    Args:
        predicate: The condition as it was parsed.
        type_of: Returns the type of a column, or raises for an unknown one.

    Raises:
        InvalidSchemaError: There is no such column; the hint names the nearest.
        InvalidValueError: A literal is not a value of its column's type.
    """
    match predicate:
        case Leaf(column=column, literals=literals):
            data_type = type_of(column)
            values = tuple(_value(each, data_type, column) for each in literals)
            return replace(predicate, literals=values)
        case Compound(children=children):
            return replace(predicate, children=tuple(with_values(c, type_of) for c in children))
        case Not(child=child):
            return Not(child=with_values(child, type_of))
        case _:
            return predicate


def check_literal(literal: SqlLiteral) -> SqlLiteral:
    """Return a literal that has a value of its kind.

    Raises:
        InvalidValueError: It has none, as the 30th of February.
    """
    check = _CHECKS.get(literal.kind)
    if check is not None and check(literal.text) is None:
        raise InvalidValueError(
            f"The filter is wrong at position {literal.position}: {literal.text!r} is not "
            f"{literal.kind}.",
            hint=_EXAMPLES[literal.kind],
            option="filter",
            position=literal.position,
        )
    return literal


# --- values by the type of the column -------------------------------------------------------------


def _value(literal: Any, data_type: DataType, column: str) -> Any:
    if not isinstance(literal, SqlLiteral):
        return literal  # NULL, or the pattern of a LIKE
    value = _value_or_none(literal, data_type)
    if value is None:
        raise _misfit(literal, data_type, column)
    return value


def _value_or_none(literal: SqlLiteral, data_type: DataType) -> Any:
    kind, text = literal.kind, literal.text
    match data_type:
        case IntegerFamily() if kind is LiteralKind.NUMBER:
            return _whole_number(text)
        case DecimalType() if kind is LiteralKind.NUMBER:
            return _number(text)
        case FloatFamily() if kind is LiteralKind.NUMBER:
            return float(text) if math.isfinite(float(text)) else None
        case TextFamily() if kind is LiteralKind.TEXT:
            return text
        case BinaryFamily() if kind is LiteralKind.BYTES:
            return bytes.fromhex(text)
        case BooleanType() if kind in {LiteralKind.BOOLEAN, LiteralKind.ALONE}:
            return text.upper() == "TRUE"
        case DateType() if kind in {LiteralKind.DATE, LiteralKind.TEXT}:
            return _date(text)
        case TimeType() if kind in {LiteralKind.TIME, LiteralKind.TEXT}:
            return _time(text)
        case TimestampFamily() if kind in _DAYS_AND_TIMES:
            return _timestamp(text, keeps_zone=isinstance(data_type, TimestampLtzType))
        case _:
            return None


_DAYS_AND_TIMES: Final = frozenset({LiteralKind.TIMESTAMP, LiteralKind.DATE, LiteralKind.TEXT})


def _misfit(literal: SqlLiteral, data_type: DataType, column: str) -> InvalidValueError:
    if literal.kind is LiteralKind.ALONE:
        return InvalidValueError(
            f"The filter compares the column {column!r} at position {literal.position} with "
            f"nothing, and it is {data_type}, not BOOLEAN.",
            hint=f"compare it: {column} IS NOT NULL",
            column=column,
            option="filter",
            position=literal.position,
        )
    shown = literal.text if len(literal.text) <= _SHOWN_MAX else literal.text[:_SHOWN_MAX] + "…"
    return InvalidValueError(
        f"The filter compares the column {column!r}, which is {data_type}, with {literal.kind} at "
        f"position {literal.position}: {shown!r}.",
        hint=_hint_for(data_type),
        column=column,
        option="filter",
        position=literal.position,
    )


_SHOWN_MAX: Final = 60


def _hint_for(data_type: DataType) -> str:
    match data_type:
        case DateType():
            return _EXAMPLES[LiteralKind.DATE]
        case TimeType():
            return _EXAMPLES[LiteralKind.TIME]
        case TimestampFamily():
            return _EXAMPLES[LiteralKind.TIMESTAMP]
        case BinaryFamily():
            return _EXAMPLES[LiteralKind.BYTES]
        case BooleanType():
            return "write TRUE or FALSE"
        case TextFamily():
            return "write a text in single quotes: 'x'"
        case _ if isinstance(data_type, _NUMBER_SHAPES):
            return "write a number without quotes: 5"
        case _:
            return "of a column of this type only IS NULL and IS NOT NULL are known"


# --- numbers, dates and times ---------------------------------------------------------------------


def _number(text: str) -> Decimal | None:
    try:
        return Decimal(text)
    except DecimalException:  # an exponent beyond those of Decimal
        return None


def _whole_number(text: str) -> int | Decimal | None:
    """Return a number as an int where it is whole; a fraction is compared exactly by `bind`."""
    number = _number(text)
    if number is None or number.adjusted() >= _DIGITS_MAX:
        return None
    return int(number) if number == number.to_integral_value() else number


def _date(text: str) -> date | None:
    found = _DATE.fullmatch(text)
    if found is None:
        return None
    try:
        return date(*map(int, found.groups()))
    except ValueError:
        return None


def _time(text: str) -> time | None:
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    hour, minute, second, fraction = found.groups()
    digits = (fraction or "").rstrip("0")
    if len(digits) > _MICROSECOND_DIGITS:
        return None  # Python's times end at microseconds
    try:
        return time(
            int(hour), int(minute), int(second or 0), int(digits.ljust(_MICROSECOND_DIGITS, "0"))
        )
    except ValueError:
        return None


def _timestamp(text: str, *, keeps_zone: bool = True) -> Any:
    """Return a datetime, or numpy's datetime64 where it has nanoseconds; None if it is neither."""
    found = _TIMESTAMP.fullmatch(text)
    if found is None:
        return None
    day, at = _date(found["day"]), _time(found["time"] or "00:00")
    zone = _zone(found["zone"]) if found["zone"] else None
    if day is None or at is None or (found["zone"] and zone is None):
        return None
    digits = (found["fraction"] or "").ljust(_NANOSECOND_DIGITS, "0")
    micros, nanos = int(digits[:_MICROSECOND_DIGITS]), int(digits[_MICROSECOND_DIGITS:])
    moment = datetime.combine(day, at.replace(microsecond=micros), zone)
    if nanos and (zone is None or keeps_zone):
        return _with_nanoseconds(moment, nanos)
    return moment


def _with_nanoseconds(moment: datetime, nanoseconds: int) -> Any:
    import numpy as np

    if moment.year not in _YEARS_OF_NANOSECONDS:
        return None
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    return np.datetime64(moment, "ns") + np.timedelta64(nanoseconds, "ns")


def _zone(text: str) -> timezone | None:
    found = _ZONE.fullmatch(text)
    if found is None:
        return None
    _, sign, hours, minutes = found.groups()
    if sign is None:
        return UTC
    offset = timedelta(hours=int(hours), minutes=int(minutes or 0))
    if offset >= timedelta(days=1):
        return None
    return timezone(-offset if sign == "-" else offset)


def _bytes(text: str) -> bytes | None:
    try:
        return bytes.fromhex(text) if text.isalnum() or not text else None
    except ValueError:
        return None


_CHECKS: Final[dict[LiteralKind, Callable[[str], Any]]] = {
    LiteralKind.NUMBER: _number,
    LiteralKind.DATE: _date,
    LiteralKind.TIME: _time,
    LiteralKind.TIMESTAMP: _timestamp,
    LiteralKind.BYTES: _bytes,
}
_EXAMPLES: Final = {
    LiteralKind.NUMBER: "write a number with fewer digits",
    LiteralKind.DATE: "write a date as DATE '2026-01-31'",
    LiteralKind.TIME: "write a time of day as TIME '12:00:00.5', with at most six digits after "
    "the point",
    LiteralKind.TIMESTAMP: "write a timestamp as TIMESTAMP '2026-01-31 12:00:00', with a zone as "
    "'2026-01-31 12:00:00+01:00'",
    LiteralKind.BYTES: "write bytes as hexadecimal digits: X'00FF'",
}
