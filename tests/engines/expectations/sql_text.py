"""Predicates as a user of SQL writes them, for the engines that are asked in SQL."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from fluss.model.predicates.predicate import (
    Compound,
    CompoundFunction,
    Leaf,
    LeafFunction,
    Not,
    Predicate,
)

Literal = Callable[[Any], str]


def name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def literal(value: Any) -> str:
    """A value as a user of SQL writes it."""
    match value:
        case bool() | int() | Decimal():
            return str(value)
        case float():
            return f"'{value}'::DOUBLE"
        case bytes():
            return "'" + "".join(f"\\x{each:02x}" for each in value) + "'::BLOB"
        case datetime():
            kind = "TIMESTAMP" if value.tzinfo is None else "TIMESTAMPTZ"
            return f"{kind} '{value.isoformat(sep=' ')}'"
        case date():
            return f"DATE '{value}'"
        case list() | tuple():
            return f"[{', '.join(map(literal, value))}]"
        case dict():
            return "{" + ", ".join(f"{literal(k)}: {literal(v)}" for k, v in value.items()) + "}"
        case _:
            return "'" + str(value).replace("'", "''") + "'"


def condition(predicate: Predicate, literal: Literal = literal) -> str:
    """A predicate as a user of SQL writes it, with the literals of a dialect."""
    match predicate:
        case Not(child=child):
            return f"NOT ({condition(child, literal)})"
        case Compound(function=function, children=children):
            word = " AND " if function is CompoundFunction.AND else " OR "
            return "(" + word.join(condition(each, literal) for each in children) + ")"
        case Leaf(column=column, function=function, literals=values):
            return _ASKED[function](name(column), *_values(function, values, literal))
        case _:
            raise AssertionError(f"no case needs {predicate!r}")


def _values(function: LeafFunction, values: tuple[Any, ...], literal: Literal) -> tuple[str, ...]:
    if function in {LeafFunction.IN, LeafFunction.NOT_IN}:
        return (", ".join(map(literal, values)),)
    return tuple(map(literal, values))


_ASKED: dict[LeafFunction, Any] = {
    LeafFunction.EQUAL: lambda column, value: f"{column} = {value}",
    LeafFunction.NOT_EQUAL: lambda column, value: f"{column} <> {value}",
    LeafFunction.LESS_THAN: lambda column, value: f"{column} < {value}",
    LeafFunction.LESS_OR_EQUAL: lambda column, value: f"{column} <= {value}",
    LeafFunction.GREATER_THAN: lambda column, value: f"{column} > {value}",
    LeafFunction.GREATER_OR_EQUAL: lambda column, value: f"{column} >= {value}",
    LeafFunction.IS_NULL: lambda column: f"{column} IS NULL",
    LeafFunction.IS_NOT_NULL: lambda column: f"{column} IS NOT NULL",
    LeafFunction.STARTS_WITH: lambda column, text: f"starts_with({column}, {text})",
    LeafFunction.ENDS_WITH: lambda column, text: f"ends_with({column}, {text})",
    LeafFunction.CONTAINS: lambda column, text: f"contains({column}, {text})",
    LeafFunction.IN: lambda column, values: f"{column} IN ({values})",
    LeafFunction.NOT_IN: lambda column, values: f"{column} NOT IN ({values})",
}
