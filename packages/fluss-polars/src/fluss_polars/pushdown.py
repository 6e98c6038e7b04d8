"""Translates a Polars filter to a predicate of Fluss that every row of the filter satisfies.

Polars applies every filter itself, including its rules for NaN; a pushed predicate only reduces
what is read. So a predicate need not be exact, but it must be *necessary*: it is true of every row
for which the filter is true. Where the two differ, the predicate is the wider one:

- In Polars a NaN equals itself and is greater than every number; in Fluss, as in IEEE 754, it is
  neither. A comparison that is true of NaN in Polars also lets NaN through.
- A negation is moved inwards, because negating a wider predicate would make it narrower.
- A part that is not understood (arithmetic, casts, Python functions) is left out of an AND, and
  makes a whole OR not understood.

Where neither happened, the predicate is equivalent to the filter (`Pushed.is_exact`).

The only public form of a Polars expression is its JSON, whose names may change with any version: an
unknown name is not understood.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import time
from decimal import Context, Decimal
from functools import reduce
from operator import and_, or_
from typing import Any, Final

import numpy as np
import polars as pl
import pyarrow as pa

from fluss.errors import FlussError
from fluss.scan import ColumnRef, Constant, Predicate, col

# A longer list costs more to ship and to compare than it saves.
VALUES_MAX: Final = 10_000
DEPTH_MAX: Final = 50

Node = Any  # JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Pushed:
    """The part of a filter that Fluss can evaluate.

    Attributes:
        predicate: True of every row for which the filter is true.
        is_exact: Whether it is true of no other row, as far as no NULL and no float is compared.
    """

    predicate: Predicate
    is_exact: bool


def pushed(
    filter_: pl.Expr, schema: pa.Schema, check: Callable[[Predicate], object]
) -> Pushed | None:
    """Return the part of a filter that Fluss can evaluate; None for none.

    Args:
        filter_: The filter.
        schema: The columns that a predicate may name.
        check: Raises a `FlussError` for a predicate whose values do not fit their columns.
    """
    try:
        node = json.loads(filter_.meta.serialize(format="json"))
    except (ValueError, RecursionError, pl.exceptions.PolarsError):
        return None  # Python functions have no such form
    return _Translator(schema, check).pushed(node)


class _Unknown(Exception):  # noqa: N818 - no error: Polars applies such a part alone
    """Raised for a part of a filter that is not understood."""


class _Translator:
    def __init__(self, schema: pa.Schema, check: Callable[[Predicate], object]) -> None:
        self._schema = schema
        self._check = check
        self._is_exact = True

    def pushed(self, node: Node) -> Pushed | None:
        try:
            predicate = self._implied(node, is_true=True, depth=0)
        except (_Unknown, RecursionError):
            return None
        return Pushed(predicate=predicate, is_exact=self._is_exact)

    def _implied(self, node: Node, *, is_true: bool, depth: int) -> Predicate:
        """Return what is true of every row for which this node is true, or is false.

        Raises:
            _Unknown: Nothing is known about such rows.
        """
        if depth > DEPTH_MAX:
            raise _Unknown
        match node:
            case {"Column": str(name)} if pa.types.is_boolean(self._type(name)):
                return self._checked(col(name).equal(is_true))
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
                found.append(self._implied(node, is_true=is_true, depth=depth))
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
        kind, column = self._type(name), col(name)
        literal = _literal(value, kind)
        if op == "EqValidity":
            return self._checked(column.equal(literal))
        if op == "NotEqValidity":
            return self._checked(column.not_equal(literal) | column.is_null())
        compare = _COMPARISONS.get(op)
        if compare is None:
            raise _Unknown
        test = compare(column, literal)
        if pa.types.is_floating(kind) and op in {"Gt", "GtEq"}:
            test |= _is_nan(column)
        return self._checked(test)

    def _boolean(
        self, inputs: list[Node], function: Node, *, is_true: bool, depth: int
    ) -> Predicate:
        match inputs, function:
            case [child], "Not":
                return self._implied(child, is_true=not is_true, depth=depth + 1)
            case [{"Column": str(name)}], "IsNull" | "IsNotNull":
                is_null = (function == "IsNull") is is_true
                return self._checked(col(name).is_null() if is_null else col(name).is_not_null())
            case [{"Column": str(name)}], "IsNan" if is_true:
                return self._checked(_is_nan(col(name)))
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
        column = col(name)
        test = column.is_in(values) if is_true else column.not_in(values)
        if is_true and has_nan:
            test |= _is_nan(column)
        if nulls_equal:
            test |= column.is_null()
        return self._checked(test)

    def _search(self, name: str, sought: Node, function: Node, *, is_true: bool) -> Predicate:
        column = col(name)
        match function, sought:
            case {"StringExpr": "StartsWith"}, {"Literal": {"Scalar": {"String": str(text)}}}:
                test = column.starts_with(text)
            case {"StringExpr": "EndsWith"}, {"Literal": {"Scalar": {"String": str(text)}}}:
                test = column.ends_with(text)
            case (
                {"StringExpr": {"Contains": {"literal": bool(is_literal)}}},
                {"Literal": {"Scalar": {"String": str(text)}}},
            ) if is_literal or re.escape(text) == text:
                test = column.contains(text)
            case _:
                raise _Unknown
        if not is_true:
            raise _Unknown
        return self._checked(test)

    # --- the table's columns ------------------------------------------------------------------

    def _type(self, name: str) -> pa.DataType:
        if name not in self._schema.names:
            raise _Unknown
        return self._schema.field(name).type

    def _checked(self, predicate: Predicate) -> Predicate:
        try:
            self._check(predicate)
        except FlussError:
            raise _Unknown from None  # a value that does not fit the column's type
        return predicate


# Whether all sides must be true, rather than one of them.
_JOINS: Final = {"And": True, "LogicalAnd": True, "Or": False, "LogicalOr": False}
_COMPARISONS: Final = {
    "Eq": ColumnRef.equal,
    "NotEq": ColumnRef.not_equal,
    "Lt": ColumnRef.less_than,
    "LtEq": ColumnRef.less_or_equal,
    "Gt": ColumnRef.greater_than,
    "GtEq": ColumnRef.greater_or_equal,
}
_MIRRORED: Final = {"Lt": "Gt", "LtEq": "GtEq", "Gt": "Lt", "GtEq": "LtEq"}
# The comparison that is true where another is false. Numbers and NaN are totally ordered in Polars.
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


def _is_nan(column: ColumnRef) -> Predicate:
    return ~column.less_or_equal(math.inf)


# --- literals -------------------------------------------------------------------------------------

_UNITS: Final[Mapping[str, Any]] = {"Milliseconds": "ms", "Microseconds": "us", "Nanoseconds": "ns"}
_EXACT: Final = Context(prec=76)  # twice the most digits of a DECIMAL
_NS_OF_A_DAY: Final = 86_400 * 10**9


def _literal(scalar: Mapping[str, Any], kind: pa.DataType) -> Any:
    """Convert a value, which Polars has cast to the column's type, for a predicate."""
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
        case "Date" if pa.types.is_date(kind):
            return np.datetime64(value, "D")
        case "Time":
            return _time(value)
        case "Datetime" if pa.types.is_timestamp(kind):
            count, unit, _ = value
            return np.datetime64(count, _UNITS[unit])
        case _:
            raise _Unknown  # NaN and the infinities, which are null in JSON, among others


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
