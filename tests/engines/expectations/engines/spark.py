"""Spark: `format("fluss")`, with columns, filters and limits as users of Spark write them.

Spark knows options as texts, and errors as texts: an error of ours is found by its name in the
message that Spark's users get, with all that it says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, reduce
from operator import and_, or_
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, functions as f
from pyspark.sql.types import BinaryType

from fluss import errors
from fluss.model.predicates.predicate import (
    Compound,
    CompoundFunction,
    Leaf,
    LeafFunction,
    Not,
    Predicate,
)
from tests.engines.expectations.engine import Mark, never, notyet
from tests.support.servers.local_spark import local_spark

TEXTS = never("Spark's options are texts")
MICROSECONDS = notyet("Spark's times end at microseconds; nanoseconds=long gives them as numbers")
_RAISED = re.compile(r"(?:^|: )fluss\.errors\.(\w+): ", re.MULTILINE)


class Spark:
    marks: Mapping[str, Mark] = {
        "type at_ns of*": MICROSECONDS,
        "type zoned_ns of*": MICROSECONDS,
        "whole, named by a Table": TEXTS,
    }
    nan_is_greatest = True

    def read(self, table, *, config, columns, filter, limit, options) -> pa.Table:  # noqa: A002 - the scan's name
        given = tuple((name, _text(each)) for name, each in {**(config or {}), **options}.items())
        if columns is not None and filter is None and "type" in str(table):
            # Spark reads all columns whichever are requested: a query for each would show no more.
            return _whole(table, given).select(columns)
        try:
            frame = _frame(table, given)
            if filter is not None:
                frame = frame.where(expression(filter))
            if columns is not None:
                frame = frame.select([_column(each) for each in columns])
            if limit is not None:
                frame = frame.limit(limit)
            return frame.toArrow()
        except PySparkException as error:
            raise _told(error) from error


def _frame(table: str, given: tuple[tuple[str, str], ...]) -> DataFrame:
    reader = local_spark().read.format("fluss")
    for name, value in given:
        reader = reader.option(name, value)
    return reader.load(table)


@cache
def _whole(table: str, given: tuple[tuple[str, str], ...]) -> pa.Table:
    return _frame(table, given).toArrow()


def expression(predicate: Predicate) -> Column:
    """A predicate as a user of Spark writes it."""
    match predicate:
        case Not(child=child):
            return ~expression(child)
        case Compound(function=function, children=children):
            join: Any = and_ if function is CompoundFunction.AND else or_
            return reduce(join, map(expression, children))
        case Leaf(column=name, function=function, literals=values):
            column = _column(name)
            if function in {LeafFunction.IN, LeafFunction.NOT_IN}:
                found = column.isin(list(values))
                return found if function is LeafFunction.IN else ~found
            return _ASKED[function](column, *map(_literal, values))
        case _:
            raise AssertionError(f"no case needs {predicate!r}")


def _column(name: str) -> Column:
    return f.col("`" + name.replace("`", "``") + "`")


def _literal(value: Any) -> Any:
    return f.lit(value).cast(BinaryType()) if isinstance(value, bytes) else value


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ",".join(f"{key}={each}" for key, each in value.items())
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, list | tuple) else str(value)


def _told(error: PySparkException) -> Exception:
    said = str(error)
    found = list(_RAISED.finditer(said))
    if not found:
        return error
    raised: type[Exception] = getattr(errors, found[-1].group(1))
    return raised(said[found[-1].end() :])


_ASKED: dict[LeafFunction, Any] = {
    LeafFunction.EQUAL: lambda column, value: column == value,
    LeafFunction.NOT_EQUAL: lambda column, value: column != value,
    LeafFunction.LESS_THAN: lambda column, value: column < value,
    LeafFunction.LESS_OR_EQUAL: lambda column, value: column <= value,
    LeafFunction.GREATER_THAN: lambda column, value: column > value,
    LeafFunction.GREATER_OR_EQUAL: lambda column, value: column >= value,
    LeafFunction.IS_NULL: lambda column: column.isNull(),
    LeafFunction.IS_NOT_NULL: lambda column: column.isNotNull(),
    LeafFunction.STARTS_WITH: lambda column, text: column.startswith(text),
    LeafFunction.ENDS_WITH: lambda column, text: column.endswith(text),
    LeafFunction.CONTAINS: lambda column, text: column.contains(text),
}
