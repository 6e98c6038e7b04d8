"""Daft, by `examples/adapters/daft_fluss.py`, with queries as users of Daft write them."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from functools import reduce
from operator import and_, or_
from pathlib import Path
from typing import Any

import daft
import pyarrow as pa

from fluss.model.predicates.predicate import (
    Compound,
    CompoundFunction,
    Leaf,
    LeafFunction,
    Not,
    Predicate,
)
from tests.engines.expectations.engine import Mark, never

ADAPTER = Path(__file__).resolve().parents[4] / "examples/adapters/daft_fluss.py"


def adapter() -> Any:
    """Import the example, which is in no package."""
    name = ADAPTER.stem
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, ADAPTER)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


ZEROS = never("Daft compares floats by total order, in which minus zero is less than zero")


class Daft:
    marks: Mapping[str, Mark] = {"nan, zero is*": ZEROS, "nan, minus zero is*": ZEROS}
    nan_is_greatest = True

    def read(self, table, *, config, columns, filter, limit, options) -> pa.Table:  # noqa: A002 - the scan's name
        frame = adapter().scan_fluss(table, config=config, **options)
        if filter is not None:
            frame = frame.where(expression(filter))
        if columns is not None:
            frame = frame.select(*columns)
        if limit is not None:
            frame = frame.limit(limit)
        return frame.to_arrow()


def expression(predicate: Predicate) -> daft.Expression:
    """A predicate as a user of Daft writes it."""
    match predicate:
        case Not(child=child):
            return ~expression(child)
        case Compound(function=function, children=children):
            join: Any = and_ if function is CompoundFunction.AND else or_
            return reduce(join, map(expression, children))
        case Leaf(column=name, function=function, literals=values):
            return _ASKED[function](daft.col(name), *_values(function, values))
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
    LeafFunction.IS_NOT_NULL: lambda column: column.not_null(),
    LeafFunction.STARTS_WITH: lambda column, text: column.startswith(text),
    LeafFunction.ENDS_WITH: lambda column, text: column.endswith(text),
    LeafFunction.CONTAINS: lambda column, text: column.contains(text),
    LeafFunction.IN: lambda column, values: column.is_in(values),
    LeafFunction.NOT_IN: lambda column, values: ~column.is_in(values),
}
