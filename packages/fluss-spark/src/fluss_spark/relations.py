"""The tables of ours in a plan of Spark's, with what they were made of.

Everything here asks the plan in the JVM, as PySpark itself does; Spark Connect has none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from pyspark.sql.types import StructType

from fluss_spark.data_source import FlussDataSource

_PYTHON_TABLE: Final = "org.apache.spark.sql.execution.datasources.v2.python.PythonTable"


def is_ours(plan: Any) -> bool:
    """Whether a node of a plan is a table of ours."""
    if plan.getClass().getSimpleName() != "DataSourceV2Relation":
        return False
    table = plan.table()
    is_python = table.getClass().getName() == _PYTHON_TABLE
    return bool(is_python and table.name() == FlussDataSource.name())


def children_of(plan: Any) -> Iterator[Any]:
    """The nodes right below one."""
    children = plan.children()
    for place in range(children.size()):
        yield children.apply(place)


def relations_in(plan: Any) -> Iterator[Any]:
    """Every table of ours in a plan."""
    if is_ours(plan):
        yield plan
    for each in children_of(plan):
        yield from relations_in(each)


def options_of(relation: Any) -> dict[str, str]:
    """The options that a table was loaded with, the path among them."""
    return dict(relation.options().asCaseSensitiveMap())


def schema_of(relation: Any) -> StructType:
    """The columns that a table was loaded with."""
    return StructType.fromJson(json.loads(relation.schema().json()))
