"""Polars: `pl.scan_fluss`, with columns, filters and limits as users of Polars write them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import and_, or_
from typing import Any

import polars as pl
import pyarrow as pa

import fluss_polars  # noqa: F401 - gives Polars scan_fluss
from fluss.model.predicates.predicate import (
    Compound,
    CompoundFunction,
    Leaf,
    LeafFunction,
    Not,
    Predicate,
)
from tests.engines.expectations.engine import Mark


class Polars:
    marks: Mapping[str, Mark] = {}
    nan_is_greatest = True

    def read(self, table, *, config, columns, filter, limit, options) -> pa.Table:  # noqa: A002 - the scan's name
        frame = pl.scan_fluss(table, config=config, **options)
        if filter is not None:
            frame = frame.filter(expression(filter))
        if columns is not None:
            frame = frame.select(columns)
        if limit is not None:
            frame = frame.head(limit)
        return frame.collect().to_arrow()


def expression(predicate: Predicate) -> pl.Expr:
    """A predicate as a user of Polars writes it."""
    match predicate:
        case Not(child=child):
            return ~expression(child)
        case Compound(function=function, children=children):
            join: Any = and_ if function is CompoundFunction.AND else or_
            return reduce(join, map(expression, children))
        case Leaf(column=name, function=function, literals=values):
            return _ASKED[function](pl.col(name), *_values(function, values))
        case _:
            raise AssertionError(f"no case needs {predicate!r}")


def _values(function: LeafFunction, values: tuple[Any, ...]) -> tuple[Any, ...]:
    return (list(values),) if function in {LeafFunction.IN, LeafFunction.NOT_IN} else values


_ASKED: dict[LeafFunction, Any] = {
    LeafFunction.EQUAL: lambda column, value: column == value,
    LeafFunction.NOT_EQUAL: lambda column, value: column != value,
    LeafFunction.LESS_THAN: lambda column, value: column < value,
    LeafFunction.LESS_OR_EQUAL: lambda column, value: column <= value,
    LeafFunction.GREATER_THAN: lambda column, value: column > value,
    LeafFunction.GREATER_OR_EQUAL: lambda column, value: column >= value,
    LeafFunction.IS_NULL: lambda column: column.is_null(),
    LeafFunction.IS_NOT_NULL: lambda column: column.is_not_null(),
    LeafFunction.STARTS_WITH: lambda column, text: column.str.starts_with(text),
    LeafFunction.ENDS_WITH: lambda column, text: column.str.ends_with(text),
    LeafFunction.CONTAINS: lambda column, text: column.str.contains(text, literal=True),
    LeafFunction.IN: lambda column, values: column.is_in(values),
    LeafFunction.NOT_IN: lambda column, values: ~column.is_in(values),
}
