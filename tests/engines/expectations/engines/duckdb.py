"""DuckDB: `fluss(...)` in SQL, with columns, filters and limits in SQL."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

import fluss_duckdb
from fluss.model.predicates.predicate import (
    Compound,
    CompoundFunction,
    Leaf,
    LeafFunction,
    Not,
    Predicate,
)
from tests.engines.expectations.engine import Mark


class DuckDB:
    marks: Mapping[str, Mark] = {}
    nan_is_greatest = True

    def read(self, table, *, config, columns, filter, limit, options) -> pa.Table:  # noqa: A002 - the scan's name
        said = config
        if said is None:
            servers = table.to_source().config if hasattr(table, "to_source") else None
            said = servers or {"bootstrap.servers": table.split("/")[2]}
        with fluss_duckdb.connect(config=said) as con:
            expected = "*" if columns is None else ", ".join(map(name, columns))
            where = "" if filter is None else f" WHERE {condition(filter)}"
            first = "" if limit is None else f" LIMIT {limit}"
            if isinstance(table, str) and "filter" not in options:
                given = "".join(f", {key} := {literal(each)}" for key, each in options.items())
                source = f"fluss({literal(table)}{given})"
            else:
                rows = con.fluss(table, **options)
                source = "rows" if rows is not None else ""
            query = f"SELECT {expected} FROM {source}{where}{first}"  # noqa: S608 - a test writes it
            return con.sql(query).to_arrow_table()


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


def condition(predicate: Predicate) -> str:
    """A predicate as a user of SQL writes it."""
    match predicate:
        case Not(child=child):
            return f"NOT ({condition(child)})"
        case Compound(function=function, children=children):
            word = " AND " if function is CompoundFunction.AND else " OR "
            return "(" + word.join(map(condition, children)) + ")"
        case Leaf(column=column, function=function, literals=values):
            return _ASKED[function](name(column), *_values(function, values))
        case _:
            raise AssertionError(f"no case needs {predicate!r}")


def _values(function: LeafFunction, values: tuple[Any, ...]) -> tuple[str, ...]:
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
