"""What follows from a Polars filter that Fluss can be asked for: never less than its rows.

Polars applies every filter itself, to the last NaN; what is pushed only spares reading. So nothing
here need be exact, and everything must be *necessary*: a row for which the filter is true is one
for which the predicate is. Where the two differ, the predicate is the wider one:

- To Polars a NaN equals itself and is greater than every number; to Fluss, as in IEEE 754, it is
  neither. Comparisons that a NaN fulfils in Polars let it through.
- In a negation each step is turned round by itself, because what is wider is narrower negated.
- What is not understood (arithmetic, casts, functions of Python) is left out of an AND, and with
  it a whole OR.

Where neither happened, the predicate says the same as the filter (`Pushed.is_exact`).

Polars has no public form of an expression but its JSON, whose names may change with any version:
an unknown name is one more thing that is not understood.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import time
from decimal import Context, Decimal
from functools import reduce
from operator import and_, or_
from typing import Any, Final

import numpy as np
import polars as pl

from fluss.errors import FlussError
from fluss.model.predicates.binding import TypeOf, bind
from fluss.model.predicates.predicate import Constant, Leaf, LeafFunction, Predicate
from fluss.model.types.data_type import (
    PRECISION_MAX_DECIMAL,
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    TimestampLtzType,
    TimestampType,
)

# A list of more values costs more to carry and to compare than it spares.
VALUES_MAX: Final = 10_000
DEPTH_MAX: Final = 50

Node = Any  # JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Pushed:
    """What of a filter Fluss can be asked for.

    Attributes:
        predicate: True of every row of which the filter is.
        is_exact: Whether it is true of no other, in columns that are neither NULL nor floats.
    """

    predicate: Predicate
    is_exact: bool


def pushed(filter_: pl.Expr, type_of: TypeOf) -> Pushed | None:
    """What Fluss may be asked for, where this filter is to be true; None for nothing.

    Args:
        filter_: The filter.
        type_of: Gives the type of a column, or raises a `FlussError` where there is none.
    """
    try:
        node = json.loads(filter_.meta.serialize(format="json"))
    except (ValueError, RecursionError, pl.exceptions.PolarsError):
        return None  # functions of Python have no such form
    return _Reading(type_of).wanted(node)


class _Unknown(Exception):  # noqa: N818 - nothing is wrong; there is only nothing to push
    """This part is not understood."""


class _Reading:
    def __init__(self, type_of: TypeOf) -> None:
        self._type_of = type_of
        self._is_exact = True

    def wanted(self, node: Node) -> Pushed | None:
        try:
            predicate = self._follows(node, is_true=True, depth=0)
        except (_Unknown, RecursionError):
            return None
        return Pushed(predicate=predicate, is_exact=self._is_exact)

    def _follows(self, node: Node, *, is_true: bool, depth: int) -> Predicate:
        """What must be true of a row for which this node is true, or is false.

        Raises:
            _Unknown: Nothing is known to follow.
        """
        if depth > DEPTH_MAX:
            raise _Unknown
        match node:
            case {"Column": str(name)} if isinstance(self._type(name), BooleanType):
                return self._checked(_leaf(name, LeafFunction.EQUAL, is_true))
            case {"Literal": {"Scalar": {"Boolean": bool(value)}}}:
                return Constant(value=value is is_true)
            case {"BinaryExpr": {"left": left, "op": str(op), "right": right}}:
                if op in _JOINS:
                    sides = [(each, depth + 1) for each in (left, right)]
                    return self._joined(sides, is_and=_JOINS[op] is is_true, is_true=is_true)
                return self._comparison(left, op, right, is_true=is_true)
            case {"Function": {"input": list(inputs), "function": {"Boolean": function}}}:
                return self._boolean(inputs, function, is_true=is_true, depth=depth)
            case {"Function": {"input": [{"Column": str(name)}, sought], "function": function}}:
                return self._search(name, sought, function, is_true=is_true)
            case _:
                raise _Unknown

    def _joined(
        self, sides: Sequence[tuple[Node, int]], *, is_and: bool, is_true: bool
    ) -> Predicate:
        found = []
        for node, depth in sides:
            try:
                found.append(self._follows(node, is_true=is_true, depth=depth))
            except _Unknown:
                if not is_and:
                    raise
                self._is_exact = False
        if not found:
            raise _Unknown
        return reduce(and_ if is_and else or_, found)

    # --- one column and values ----------------------------------------------------------------

    def _comparison(self, left: Node, op: str, right: Node, *, is_true: bool) -> Predicate:
        match left, right:
            case {"Column": str(name)}, {"Literal": {"Scalar": value}}:
                pass
            case {"Literal": {"Scalar": value}}, {"Column": str(name)}:
                op = _MIRRORED.get(op, op)
            case _:
                raise _Unknown
        if not is_true:
            op = _OPPOSITE.get(op, "")
        kind = self._type(name)
        literal = _literal(value, kind)
        if op == "EqValidity":
            return self._checked(_leaf(name, LeafFunction.EQUAL, literal))
        if op == "NotEqValidity":
            other = _leaf(name, LeafFunction.NOT_EQUAL, literal)
            return self._checked(other | _leaf(name, LeafFunction.IS_NULL))
        function = _COMPARISONS.get(op)
        if function is None:
            raise _Unknown
        test: Predicate = _leaf(name, function, literal)
        if isinstance(kind, FloatType | DoubleType) and op in {"Gt", "GtEq"}:
            test |= _is_nan(name)
        return self._checked(test)

    def _boolean(
        self, inputs: list[Node], function: Node, *, is_true: bool, depth: int
    ) -> Predicate:
        match inputs, function:
            case [child], "Not":
                return self._follows(child, is_true=not is_true, depth=depth + 1)
            case [{"Column": str(name)}], "IsNull" | "IsNotNull":
                asked = _leaf(name, _PRESENCE[(function == "IsNull") is is_true])
                return self._checked(asked)
            case [{"Column": str(name)}], "IsNan" if is_true:
                return self._checked(_is_nan(name))
            case [column, low, high], {"IsBetween": {"closed": str(closed)}}:
                ends = (
                    (low, "GtEq" if closed in {"Both", "Left"} else "Gt"),
                    (high, "LtEq" if closed in {"Both", "Right"} else "Lt"),
                )
                sides = [({"BinaryExpr": {"left": column, "op": op, "right": end}}, depth + 1)
                         for end, op in ends]  # fmt: skip
                return self._joined(sides, is_and=is_true, is_true=is_true)
            case [{"Column": str(name)}, listed], {"IsIn": {"nulls_equal": bool(nulls_equal)}}:
                return self._membership(name, listed, nulls_equal=nulls_equal, is_true=is_true)
            case _:
                raise _Unknown

    def _membership(
        self, name: str, listed: Node, *, nulls_equal: bool, is_true: bool
    ) -> Predicate:
        values = [each for each in _values(listed) if each is not None]
        has_nan = any(isinstance(each, float) and math.isnan(each) for each in values)
        function = LeafFunction.IN if is_true else LeafFunction.NOT_IN
        test: Predicate = Leaf(column=name, function=function, literals=tuple(values))
        if is_true and has_nan:
            test |= _is_nan(name)
        if nulls_equal:
            test |= _leaf(name, LeafFunction.IS_NULL)
        return self._checked(test)

    def _search(self, name: str, sought: Node, function: Node, *, is_true: bool) -> Predicate:
        match function, sought:
            case {"StringExpr": "StartsWith"}, {"Literal": {"Scalar": {"String": str(text)}}}:
                asked = LeafFunction.STARTS_WITH
            case {"StringExpr": "EndsWith"}, {"Literal": {"Scalar": {"String": str(text)}}}:
                asked = LeafFunction.ENDS_WITH
            case (
                {"StringExpr": {"Contains": {"literal": bool(is_literal)}}},
                {"Literal": {"Scalar": {"String": str(text)}}},
            ) if is_literal or re.escape(text) == text:
                asked = LeafFunction.CONTAINS
            case _:
                raise _Unknown
        if not is_true:
            raise _Unknown
        return self._checked(_leaf(name, asked, text))

    # --- what the table says ------------------------------------------------------------------

    def _type(self, name: str) -> DataType:
        try:
            return self._type_of(name)
        except FlussError:
            raise _Unknown from None

    def _checked(self, predicate: Predicate) -> Predicate:
        try:
            bind(predicate, self._type_of)
        except FlussError:
            raise _Unknown from None  # a value that the column's type does not know
        return predicate


# Whether the whole is true where all are, rather than where one is.
_JOINS: Final = {"And": True, "LogicalAnd": True, "Or": False, "LogicalOr": False}
_COMPARISONS: Final = {
    "Eq": LeafFunction.EQUAL,
    "NotEq": LeafFunction.NOT_EQUAL,
    "Lt": LeafFunction.LESS_THAN,
    "LtEq": LeafFunction.LESS_OR_EQUAL,
    "Gt": LeafFunction.GREATER_THAN,
    "GtEq": LeafFunction.GREATER_OR_EQUAL,
}
_MIRRORED: Final = {"Lt": "Gt", "LtEq": "GtEq", "Gt": "Lt", "GtEq": "LtEq"}
# What is true where the other is false; Polars's order of numbers is total, so no NaN is forgotten.
_OPPOSITE: Final = {
    "Eq": "NotEq",
    "NotEq": "Eq",
    "Lt": "GtEq",
    "GtEq": "Lt",
    "Gt": "LtEq",
    "LtEq": "Gt",
    "EqValidity": "NotEqValidity",
    "NotEqValidity": "EqValidity",
}
_PRESENCE: Final = {True: LeafFunction.IS_NULL, False: LeafFunction.IS_NOT_NULL}


def _leaf(name: str, function: LeafFunction, *literals: Any) -> Leaf:
    return Leaf(column=name, function=function, literals=literals)


def _is_nan(name: str) -> Predicate:
    return ~_leaf(name, LeafFunction.LESS_OR_EQUAL, math.inf)


# --- literals -------------------------------------------------------------------------------------

_UNITS: Final[Mapping[str, Any]] = {"Milliseconds": "ms", "Microseconds": "us", "Nanoseconds": "ns"}
_EXACT: Final = Context(prec=2 * PRECISION_MAX_DECIMAL)
_NS_OF_A_DAY: Final = 86_400 * 10**9


def _literal(scalar: Mapping[str, Any], kind: DataType) -> Any:
    """A value in the words of a predicate; Polars has brought it to the column's type."""
    ((name, value),) = scalar.items()
    match name:
        case "Boolean" | "String":
            return value
        case "Int8" | "Int16" | "Int32" | "Int64" if isinstance(value, int):
            return value
        case "Float64" if isinstance(value, int | float):
            return float(value)
        case "Float32" if isinstance(value, int | float):
            return float(np.float32(value))
        case "Binary":
            return bytes(value)
        case "Decimal":
            digits, _, scale = value
            return Decimal(digits).scaleb(-scale, _EXACT)
        case "Date" if isinstance(kind, DateType):
            return np.datetime64(value, "D")
        case "Time":
            return _time(value)
        case "Datetime" if isinstance(kind, TimestampType | TimestampLtzType):
            count, unit, _ = value
            return np.datetime64(count, _UNITS[unit])
        case _:
            raise _Unknown  # a NaN and the infinities are null in JSON, and read as that


def _time(nanoseconds: int) -> time:
    micros, rest = divmod(nanoseconds, 1_000)
    if rest or not 0 <= nanoseconds < _NS_OF_A_DAY:
        raise _Unknown
    seconds, micro = divmod(micros, 1_000_000)
    minutes, second = divmod(seconds, 60)
    return time(minutes // 60, minutes % 60, second, micro)


def _values(listed: Node) -> list[Any]:
    match listed:
        case {"Literal": {"Scalar": {"List": list(octets)}}}:
            pass
        case _:
            raise _Unknown
    frame = pl.read_ipc_stream(bytes(octets))
    series = frame.to_series(0)
    if series.len() > VALUES_MAX or series.dtype not in _LISTED:
        raise _Unknown
    return series.to_list()


_LISTED: Final = {
    pl.Int8,
    pl.Int16,
    pl.Int32,
    pl.Int64,
    pl.Float64,
    pl.String,
    pl.Date,
    pl.Binary,
}
