"""Random filters over rows of any type, and a model of their SQL semantics in plain Python.

A literal has two forms: the one that people write, which the code under test gets, and a `point`,
an exact number, text or bytes, which the model compares. So the model does not depend on the code
under test.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Context, Decimal
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np

from fluss.model.predicates.predicate import (
    Compound,
    CompoundFunction,
    Constant,
    Leaf,
    LeafFunction as Is,
    Not,
    Predicate,
)
from fluss.model.types.data_type import (
    UNITS_PER_SECOND,
    ArrayType,
    CharType,
    DataType,
    DateType,
    DecimalType,
    MapType,
    RowType,
    StringType,
    TimestampLtzType,
    TimestampType,
    TimeType,
)
from tests.support.generators.seeded_values import random_value

_EXACTLY = Context(prec=60)
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - TIMESTAMP has no zone
_PER_DAY = 86_400
ZONES = (UTC, timezone(timedelta(hours=5, minutes=30)), timezone(timedelta(hours=-11)))

Point = Any


@dataclass(frozen=True, kw_only=True)
class Literal:
    """A value to compare with."""

    value: Any
    point: Point


def point_of(physical: Any, data_type: DataType) -> Point:
    """Return the exact meaning of a physical value."""
    match data_type:
        case _ if physical is None:
            return None
        case DecimalType():
            return Fraction(physical, 10**data_type.scale)
        case TimeType() | TimestampType() | TimestampLtzType():
            return Fraction(physical, UNITS_PER_SECOND[data_type.unit])
        case CharType() | StringType():
            return physical.encode()
        case _:
            return physical


def random_literal(rng: Random, data_type: DataType, pool: Sequence[Any]) -> Literal:
    """Return a literal for a column, usually equal or close to one of its values."""
    here = [each for each in pool if each is not None]
    if rng.random() < 0.05:
        return Literal(value=None, point=None)
    physical = (
        rng.choice(here)
        if here and rng.random() < 0.8
        else random_value(rng, data_type, null_rate=0)
    )
    value, point = _written(rng, physical, data_type)
    return Literal(value=value, point=point)


def _written(rng: Random, physical: Any, data_type: DataType) -> tuple[Any, Point]:
    match data_type:
        case DecimalType():
            return _decimal(rng, physical, data_type)
        case DateType():
            return _date(physical), physical
        case TimeType():
            return _time(physical, data_type)
        case TimestampType() | TimestampLtzType():
            return _moment(rng, physical, data_type)
        case _:
            return physical, point_of(physical, data_type)


def _decimal(rng: Random, physical: int, data_type: DecimalType) -> tuple[Any, Point]:
    value = Decimal(physical).scaleb(-data_type.scale, _EXACTLY)
    if data_type.precision < 30 and rng.random() < 0.3:  # a digit finer than the column
        value = _EXACTLY.add(value, Decimal(5).scaleb(-data_type.scale - 1, _EXACTLY))
        if abs(value) >= 10 ** (data_type.precision - data_type.scale):
            value = Decimal(physical).scaleb(-data_type.scale, _EXACTLY)
    return value, Fraction(value)


def _date(days: int) -> Any:
    try:
        return date.fromordinal(days + date(1970, 1, 1).toordinal())
    except (ValueError, OverflowError):
        return np.datetime64(days, "D")


def _time(physical: int, data_type: TimeType) -> tuple[Any, Point]:
    per_second = UNITS_PER_SECOND[data_type.unit]
    seconds, rest = divmod(physical, per_second)
    micros = rest * 1_000_000 // per_second
    value = (_EPOCH + timedelta(seconds=seconds, microseconds=micros)).time()
    assert isinstance(value, time)
    return value, Fraction(seconds) + Fraction(micros, 1_000_000)


def _moment(
    rng: Random, physical: int, data_type: TimestampType | TimestampLtzType
) -> tuple[Any, Point]:
    per_second = UNITS_PER_SECOND[data_type.unit]
    point = Fraction(physical, per_second)
    try:
        moment = _EPOCH + timedelta(microseconds=physical * 1_000_000 // per_second)
    except OverflowError:
        moment = None
    ends = per_second > 1_000_000 and physical < 1_000 - 2**63  # cut to microseconds it is beyond
    if moment is None or ends or rng.random() < 0.4:
        physical = max(physical, 1 - 2**63)  # the last is numpy's NaT
        return np.datetime64(physical, data_type.unit), Fraction(physical, per_second)
    if per_second > 1_000_000:  # nanoseconds that a datetime does not hold are cut off
        point = Fraction(physical * 1_000_000 // per_second, 1_000_000)
    elif rng.random() < 0.3 and moment.year < 9999:
        further = rng.choice((1, 499, 500_000, 999_999))
        moment += timedelta(microseconds=further)
        point += Fraction(further, 1_000_000)
    if isinstance(data_type, TimestampLtzType) and rng.random() < 0.7 and 2 < moment.year < 9998:
        return moment.replace(tzinfo=UTC).astimezone(rng.choice(ZONES)), point
    return moment, point


# --- filters --------------------------------------------------------------------------------------


class Filters:
    """Makes filters over the columns of one table, and evaluates them on its rows.

    Args:
        rng: The source of randomness.
        types: The types of the columns.
        pools: Physical values of each column, to compare with.
    """

    def __init__(
        self, rng: Random, types: Mapping[str, DataType], pools: Mapping[str, Sequence[Any]]
    ) -> None:
        self._rng = rng
        self._types = types
        self._pools = pools
        self._points: dict[int, tuple[Point, ...]] = {}
        self._kept: list[Leaf] = []  # so that no two leaves share an id

    def make(self, depth: int = 3, names: Sequence[str] | None = None) -> Predicate:
        """A filter."""
        rng = self._rng
        chance = rng.random()
        if depth and chance < 0.45:
            count = rng.randint(1, 3)
            children = tuple(self.make(depth - 1, names) for _ in range(count))
            return Compound(function=rng.choice(list(CompoundFunction)), children=children)
        if depth and chance < 0.6:
            return Not(child=self.make(depth - 1, names))
        if chance < 0.62:
            return Constant(value=rng.choice((True, False, None)))
        return self._leaf(rng.choice(list(names or self._types)))

    def _leaf(self, name: str) -> Leaf:
        rng, data_type = self._rng, self._types[name]
        functions = [Is.IS_NULL, Is.IS_NOT_NULL]
        if not isinstance(data_type, ArrayType | MapType | RowType):
            functions = [*functions, *list(Is)[:6], Is.EQUAL, Is.IN, Is.IN, Is.NOT_IN]
        if isinstance(data_type, CharType | StringType):
            functions += [Is.STARTS_WITH, Is.CONTAINS, Is.ENDS_WITH]
        function = rng.choice(functions)
        literals = self._literals(function, data_type, self._pools[name])
        made = Leaf(column=name, function=function, literals=tuple(each.value for each in literals))
        self._kept.append(made)
        self._points[id(made)] = tuple(each.point for each in literals)
        return made

    def _literals(self, function: Is, data_type: DataType, pool: Sequence[Any]) -> list[Literal]:
        rng = self._rng
        if function in {Is.IS_NULL, Is.IS_NOT_NULL}:
            return []
        if function in {Is.IN, Is.NOT_IN}:
            return [random_literal(rng, data_type, pool) for _ in range(rng.randint(0, 4))]
        if function in {Is.STARTS_WITH, Is.CONTAINS, Is.ENDS_WITH}:
            text = rng.choice([each for each in pool if each is not None] or ["a"])
            start = rng.randint(0, len(text))
            part = text[start : start + rng.randint(0, 3)]
            return [Literal(value=part, point=part.encode())]
        return [random_literal(rng, data_type, pool)]

    def truth(self, predicate: Predicate, row: Mapping[str, Any]) -> bool | None:
        """Evaluate a filter on a row of physical values: True, False, or None for unknown."""
        match predicate:
            case Constant(value=value):
                return value
            case Not(child=child):
                inner = self.truth(child, row)
                return None if inner is None else not inner
            case Compound(function=function, children=children):
                found = [self.truth(each, row) for each in children]
                decisive = function is CompoundFunction.OR
                if decisive in found:
                    return decisive
                return None if None in found else not decisive
            case Leaf():
                value = point_of(row[predicate.column], self._types[predicate.column])
                return _asked(predicate.function, value, self._points[id(predicate)])
            case _:
                raise AssertionError(predicate)


def _asked(function: Is, value: Point, points: Sequence[Point]) -> bool | None:
    if function in {Is.IS_NULL, Is.IS_NOT_NULL}:
        return (value is None) is (function is Is.IS_NULL)
    if function in {Is.IN, Is.NOT_IN}:
        equal = [_compared(Is.EQUAL, value, each) for each in points]
        among = True if True in equal else None if None in equal else False
        return among if function is Is.IN or among is None else not among
    return _compared(function, value, points[0])


def _compared(function: Is, value: Point, point: Point) -> bool | None:
    if value is None or point is None:
        return None
    match function:
        case Is.EQUAL:
            return bool(value == point)
        case Is.NOT_EQUAL:
            return bool(value != point)
        case Is.LESS_THAN:
            return bool(value < point)
        case Is.LESS_OR_EQUAL:
            return bool(value <= point)
        case Is.GREATER_THAN:
            return bool(value > point)
        case Is.GREATER_OR_EQUAL:
            return bool(value >= point)
        case Is.STARTS_WITH:
            return bool(value.startswith(point))
        case Is.CONTAINS:
            return point in value
        case Is.ENDS_WITH:
            return bool(value.endswith(point))
        case _:
            raise AssertionError(function)
