"""Converts a pyarrow expression to an equivalent predicate, or refuses it with the reason.

The meaning is pyarrow's to the last NULL: an `is_in` is false of NULL, not unknown. Predicates have
no arithmetic, casts, nested fields, comparisons of two columns or regular expressions; these are
refused, and so is a literal that does not have the column's kind or that the column cannot hold
exactly. Callers that must accept every expression convert a part and apply the rest
(`split_arrow`).

Substrait, the public form of an expression, does not work: pyarrow writes an `is_in` with NULL as
a comparison with NULL, and cannot write nanoseconds at all. See `records.filter.expression_tree`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from functools import reduce
from operator import and_
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fluss.errors import InvalidValueError, UnsupportedOperationError
from fluss.model.predicates.binding import TypeOf, bind, column_types
from fluss.model.predicates.predicate import (
    COMPARISONS,
    SEARCHES,
    Constant,
    Leaf,
    LeafFunction,
    Not,
    Predicate,
    conjoined,
)
from fluss.model.schema.schema import Schema
from fluss.model.types import data_type as t
from fluss.model.types.data_type import UNITS_PER_SECOND, BooleanType, DataType
from fluss.model.types.per_type import PerType
from fluss.records.filter.expression_tree import (
    NULLS_MATCH,
    NULLS_SKIPPED,
    Call,
    Field,
    Literal,
    Node,
    read_tree,
    unfit_expression,
)


def from_arrow(
    expression: pc.Expression, schema: Schema, metadata: Mapping[str, DataType] | None = None
) -> Predicate:
    """Return the predicate that is true, false and unknown where a pyarrow expression is.

    Args:
        expression: The expression.
        schema: The columns.
        metadata: The types of the columns that describe rows, by their names.

    Raises:
        InvalidSchemaError: There is no such column; the hint names the nearest.
        InvalidValueError: A value is not one of its column's type.
        UnsupportedOperationError: No predicate is equivalent.
    """
    return _Conversion(column_types(schema, metadata)).checked(read_tree(expression))


def split_arrow(
    expression: pc.Expression, schema: Schema, metadata: Mapping[str, DataType] | None = None
) -> tuple[Predicate | None, pc.Expression | None]:
    """Split an expression into a predicate and the rest.

    A row matches where both are true. Either is None where it would be empty.

    Raises:
        InvalidSchemaError: There is no such column; the hint names the nearest.
    """
    conversion = _Conversion(column_types(schema, metadata))
    try:
        parts = _conjuncts(read_tree(expression))
    except UnsupportedOperationError:
        return None, expression
    converted: list[Predicate] = []
    rest: list[pc.Expression] = []
    for part in parts:
        try:
            converted.append(conversion.checked(part))
        except (UnsupportedOperationError, InvalidValueError):
            rest.append(part.expression)
    return conjoined(converted), reduce(and_, rest) if rest else None


def _conjuncts(tree: Node) -> list[Node]:
    found: list[Node] = []
    left = [tree]
    while left:
        node = left.pop()
        if isinstance(node, Call) and node.function == "and_kleene":
            left.extend(reversed(node.arguments))
        else:
            found.append(node)
    return found


_COMPARISONS: Final = {each.arrow: each for each in COMPARISONS}
_SEARCHES: Final = {each.arrow: each for each in SEARCHES}
# The comparison with its sides exchanged; equality has no sides.
_MIRRORED: Final = {
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
}


class _Conversion:
    """Turns trees into predicates over one table's columns."""

    def __init__(self, type_of: TypeOf) -> None:
        self._type_of = type_of

    def checked(self, node: Node) -> Predicate:
        predicate = self._predicate(node)
        bind(predicate, self._type_of)
        return predicate

    def _predicate(self, node: Node) -> Predicate:
        match node:
            case Field(name=name):
                if not isinstance(self._type_of(name), BooleanType):
                    raise unfit_expression(node.expression, "it is a column, and not one of truths")
                return _leaf(name, LeafFunction.EQUAL, [True])
            case Literal(value=value):
                if not (pa.types.is_boolean(value.type) or pa.types.is_null(value.type)):
                    raise unfit_expression(node.expression, "it is a value, and not a truth")
                return Constant(value=value.as_py())
            case Call(function="and_kleene", arguments=(first, second)):
                return self._predicate(first) & self._predicate(second)
            case Call(function="or_kleene", arguments=(first, second)):
                return self._predicate(first) | self._predicate(second)
            case Call(function="invert", arguments=(child,)):
                return Not(child=self._predicate(child))
            case Call(function=function, arguments=(Field(name=name), Literal(value=value))) if (
                function in _COMPARISONS
            ):
                return self._comparison(node, name, function, value)
            case Call(function=function, arguments=(Literal(value=value), Field(name=name))) if (
                function in _COMPARISONS
            ):
                return self._comparison(node, name, _MIRRORED.get(function, function), value)
            case Call(arguments=(Field(name=name),)):
                return self._question(node, name)
            case Call():
                raise unfit_expression(node.expression, "it does not compare a column with a value")

    def _comparison(self, node: Call, name: str, function: str, value: pa.Scalar) -> Predicate:
        literal = _literal(node, value, self._type_of(name))
        return _leaf(name, _COMPARISONS[function], [literal])

    def _question(self, node: Call, name: str) -> Predicate:
        data_type, options = self._type_of(name), node.options
        is_float = isinstance(data_type, t.FloatFamily)
        match node.function:
            case "is_valid":
                return _leaf(name, LeafFunction.IS_NOT_NULL)
            case "is_null":
                is_null = _leaf(name, LeafFunction.IS_NULL)
                return is_null | _is_nan(name) if options["nan_is_null"] and is_float else is_null
            case "is_nan" if is_float:
                return _is_nan(name)
            case "is_in":
                return self._membership(node, name, data_type)
            case function if function in _SEARCHES and not options["ignore_case"]:
                return _leaf(name, _SEARCHES[function], [options["pattern"]])
            case "match_like" if not options["ignore_case"]:
                return _like(node, name)
            case function:
                raise unfit_expression(node.expression, f"it asks a column for {function}")

    def _membership(self, node: Call, name: str, data_type: DataType) -> Predicate:
        nulls = node.options["null_matching_behavior"]
        if nulls not in {NULLS_MATCH, NULLS_SKIPPED}:
            raise unfit_expression(node.expression, "it is unknown whether NULL is in a list")
        given = [_literal(node, each, data_type) for each in node.options["value_set"]]
        values = [each for each in given if each is not None]
        if isinstance(data_type, t.FloatFamily) and not all(map(_is_plain, values)):
            raise unfit_expression(
                node.expression, "Arrow's lists tell 0.0 from -0.0, and find a NaN"
            )
        found = _leaf(name, LeafFunction.IN, values)
        if None in given and nulls == NULLS_MATCH:
            return found | _leaf(name, LeafFunction.IS_NULL)
        # For NULL, `is_in` is false in Arrow and unknown in SQL.
        is_there = _leaf(name, LeafFunction.IS_NOT_NULL)
        return found & is_there if data_type.nullable else found


def _leaf(name: str, function: LeafFunction, literals: Sequence[Any] = ()) -> Predicate:
    return Leaf(column=name, function=function, literals=tuple(literals))


def _is_nan(name: str) -> Predicate:
    return Not(child=_leaf(name, LeafFunction.LESS_OR_EQUAL, [math.inf]))


def _is_plain(value: float) -> bool:
    return value != 0 and not math.isnan(value)


_LIKE: Final = re.compile(r"(%?)((?:[^%_\\]|\\[%_\\])*)(%?)", re.DOTALL)


def _like(node: Call, name: str) -> Predicate:
    pattern = _LIKE.fullmatch(node.options["pattern"])
    if pattern is None:
        raise unfit_expression(node.expression, "of patterns only 'x%', '%x' and '%x%' are known")
    starts_open, text, ends_open = pattern.groups()
    text = re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)
    function = {
        (False, False): LeafFunction.EQUAL,
        (False, True): LeafFunction.STARTS_WITH,
        (True, False): LeafFunction.ENDS_WITH,
        (True, True): LeafFunction.CONTAINS,
    }[bool(starts_open), bool(ends_open)]
    return _leaf(name, function, [text])


# --- literals -------------------------------------------------------------------------------------
#
# Arrow compares values of different types by casting one of them, or both. Where the literal is of
# the column's kind, and has a value that the column's type knows how to compare with, that is the
# same as comparing the values.

_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - TIMESTAMP has no zone
_NOT_A_TIME: Final = -(2**63)  # to numpy


def _literal(node: Call, scalar: pa.Scalar, data_type: DataType) -> Any:
    """Return the value of a literal as a Python value."""
    if not scalar.is_valid:
        return None
    for is_comparable, value_of in _LITERALS[data_type]:
        if is_comparable(scalar.type):
            return value_of(node, scalar)
    why = f"it compares a {data_type} column with a value of Arrow's type {scalar.type}"
    raise unfit_expression(node.expression, why)


def _is_text(arrow_type: pa.DataType) -> bool:
    kind = pa.types
    return any(
        test(arrow_type) for test in (kind.is_string, kind.is_large_string, kind.is_string_view)
    )


def _is_bytes(arrow_type: pa.DataType) -> bool:
    kind = pa.types
    tests = (kind.is_binary, kind.is_large_binary, kind.is_fixed_size_binary, kind.is_binary_view)
    return any(test(arrow_type) for test in tests)


def _as_py(_: Call, scalar: pa.Scalar) -> Any:
    return scalar.as_py()


def _float(node: Call, scalar: pa.Scalar) -> float:
    value: float = scalar.as_py()
    with np.errstate(over="ignore"):
        is_held = float(np.float32(value)) == value
    if not is_held and not math.isnan(value):
        raise unfit_expression(node.expression, f"{value!r} is not a number of 32 bits")
    return value


def _date(_: Call, scalar: pa.Scalar) -> Any:
    days = scalar.value
    try:
        return date.fromordinal(days + _EPOCH.toordinal())
    except (ValueError, OverflowError):
        return np.datetime64(days, "D")


def _time(node: Call, scalar: pa.Scalar) -> time:
    micros, rest = divmod(scalar.value * 1_000_000, UNITS_PER_SECOND[scalar.type.unit])
    if rest or not 0 <= micros < 86_400_000_000:
        raise unfit_expression(node.expression, "Python has no such time of day")
    return (_EPOCH + timedelta(microseconds=micros)).time()


def _moment(node: Call, scalar: pa.Scalar) -> Any:
    count, unit = scalar.value, scalar.type.unit
    micros, rest = divmod(count * 1_000_000, UNITS_PER_SECOND[unit])
    if not rest:
        try:
            return _EPOCH + timedelta(microseconds=micros)
        except OverflowError:
            pass
    if count == _NOT_A_TIME:
        raise unfit_expression(node.expression, "the time is the one that stands for none")
    return np.datetime64(count, unit)


def _instant(node: Call, scalar: pa.Scalar) -> Any:
    moment = _moment(node, scalar)
    return moment.replace(tzinfo=UTC) if isinstance(moment, datetime) else moment


# The Arrow types that a literal may have, and how its value is read.
_Readable = tuple[Callable[[pa.DataType], bool], Callable[[Call, pa.Scalar], Any]]
_LITERALS: Final = PerType[tuple[_Readable, ...]](
    {
        t.NestedType: (),  # Arrow compares
        t.BooleanType: ((pa.types.is_boolean, _as_py),),
        t.IntegerFamily: ((pa.types.is_integer, _as_py),),
        t.FloatType: ((pa.types.is_floating, _float), (pa.types.is_integer, _as_py)),
        t.DoubleType: ((pa.types.is_floating, _as_py), (pa.types.is_integer, _as_py)),
        t.DecimalType: ((pa.types.is_integer, _as_py), (pa.types.is_decimal, _as_py)),
        t.TextFamily: ((_is_text, _as_py),),
        t.BinaryFamily: ((_is_bytes, _as_py),),
        t.DateType: ((pa.types.is_date32, _date),),
        t.TimeType: ((pa.types.is_time, _time),),
        t.TimestampType: ((lambda each: pa.types.is_timestamp(each) and each.tz is None, _moment),),
        t.TimestampLtzType: (
            (lambda each: pa.types.is_timestamp(each) and each.tz is not None, _instant),
        ),
    }
)
