"""Finds the Fluss tables in a query plan of Spark, with their options and columns.

Everything here asks the plan in the JVM, as PySpark itself does; Spark Connect has none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from pyspark.sql.types import StructType

from fluss_spark.data_source import FlussDataSource

_PYTHON_TABLE: Final = "org.apache.spark.sql.execution.datasources.v2.python.PythonTable"


def is_fluss_table(plan: Any) -> bool:
    """Return whether a node of a plan is a Fluss table."""
    if plan.getClass().getSimpleName() != "DataSourceV2Relation":
        return False
    table = plan.table()
    is_python = table.getClass().getName() == _PYTHON_TABLE
    return bool(is_python and table.name() == FlussDataSource.name())


def children_of(plan: Any) -> Iterator[Any]:
    """Yield the children of a node."""
    children = plan.children()
    for place in range(children.size()):
        yield children.apply(place)


def relations_in(plan: Any) -> Iterator[Any]:
    """Yield every Fluss table in a plan."""
    if is_fluss_table(plan):
        yield plan
    for child in children_of(plan):
        yield from relations_in(child)


def options_of(relation: Any) -> dict[str, str]:
    """Return the options that a table was loaded with, the path among them."""
    return dict(relation.options().asCaseSensitiveMap())


def schema_of(relation: Any) -> StructType:
    """Return the columns that a table was loaded with."""
    return StructType.fromJson(json.loads(relation.schema().json()))
