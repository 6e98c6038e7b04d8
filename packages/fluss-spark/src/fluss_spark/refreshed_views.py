"""Refreshes temporary views: after INSERT, after REFRESH TABLE, and by `refresh`.

Spark keeps the plan of a temporary view, and with it where each bucket ended when the view was
first used; it has no way to make a Python source look again. So the view is created again, with the
same columns and options. Frames that were made of it before keep their rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from fluss.errors import InvalidNameError, InvalidValueError, UnsupportedOperationError
from fluss_spark.data_source import FlussDataSource
from fluss_spark.relations import children_of, is_fluss_table, options_of, schema_of
from fluss_spark.session_patches import patch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_GLOBAL: Final = "global_temp"
_CHANGES: Final = re.compile(r"\b(insert|refresh)\b", re.IGNORECASE)
# Returns the session and the views that a call of a method of PySpark has changed.
_Changed = Callable[..., "tuple[SparkSession, list[str]]"]


def refresh(spark: SparkSession, view: str) -> None:
    """Refresh a view: its next use has the rows that its table has then.

    `INSERT INTO view` and `REFRESH TABLE view` do it by themselves in a session that `enable` has
    prepared. Frames that were made of the view before keep their rows.

    Args:
        spark: The session.
        view: A temporary view of a table: `CREATE TEMPORARY VIEW ... USING fluss`,
            `register_views`, or `fluss_spark.table(...).createOrReplaceTempView(...)`; or one
            defined in SQL over such views.

    Raises:
        InvalidNameError: There is no such view.
        InvalidValueError: The view is of no Fluss table, or of a frame that selects or joins.
        UnsupportedOperationError: The session is one of Spark Connect.
    """
    if not hasattr(spark, "_jsparkSession"):
        raise UnsupportedOperationError(
            "A session of Spark Connect does not show how its views are defined.",
            hint="create the view again: register_views(spark, 'db'), or CREATE OR REPLACE",
        )
    if not spark.catalog.tableExists(view):
        raise InvalidNameError(f"Spark has no view {view!r}.", name=view)
    if not _refreshed(spark, view):
        raise InvalidValueError(
            f"{view} is no view of a Fluss table: it is defined by a frame that selects or joins, or "
            "by something else.",
            hint="create it again; or create it in SQL from a view of the table, CREATE TEMPORARY "
            "VIEW v AS SELECT ... FROM t, which Spark looks up at each use",
            option="view",
        )


def refresh_by_itself() -> None:
    """Make INSERT and REFRESH TABLE refresh their view. Idempotent."""
    from pyspark.sql import SparkSession
    from pyspark.sql.catalog import Catalog
    from pyspark.sql.readwriter import DataFrameWriter

    def sql(spark: Any, *given: Any, **named: Any) -> tuple[SparkSession, list[str]]:
        return _changed_by(spark, given, named)

    def refresh_table(catalog: Any, tableName: str) -> tuple[SparkSession, list[str]]:  # noqa: N803 - Spark's name
        return catalog._sparkSession, [tableName]  # noqa: SLF001 - its only way

    def insert_into(
        writer: Any,
        tableName: str,  # noqa: N803 - Spark's name
        *_: Any,
        **__: Any,
    ) -> tuple[SparkSession, list[str]]:
        return writer._spark, [tableName]  # noqa: SLF001 - its only way

    patch(SparkSession, "sql", partial(_refreshing, sql))
    patch(Catalog, "refreshTable", partial(_refreshing, refresh_table))
    patch(DataFrameWriter, "insertInto", partial(_refreshing, insert_into))


def _refreshing(changed: _Changed, method: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, /, *given: Any, **named: Any) -> Any:
        result = method(self, *given, **named)
        with suppress(Exception):  # another Spark: the method itself has done its work all the same
            spark, views = changed(self, *given, **named)
            for view in views:
                _refreshed(spark, view)
        return result

    return call


def _changed_by(
    spark: SparkSession, given: tuple[Any, ...], named: dict[str, Any]
) -> tuple[SparkSession, list[str]]:
    """Return the views that a statement has written to, or refreshes."""
    text = given[0] if given else named.get("sqlQuery", "")
    if not _CHANGES.search(text):
        return spark, []
    plan = spark._jsparkSession.sessionState().sqlParser().parsePlan(text)  # noqa: SLF001 - its only way
    if plan.getClass().getSimpleName() == "UnresolvedWith":
        plan = plan.child()
    match plan.getClass().getSimpleName():
        case "InsertIntoStatement":
            parts = plan.table().multipartIdentifier()
        case "RefreshTable":
            parts = plan.child().multipartIdentifier()
        case _:
            return spark, []
    return spark, [".".join(_quoted(parts.apply(place)) for place in range(parts.size()))]


def _refreshed(spark: SparkSession, view: str) -> bool:
    """Create again the views of Fluss tables that a view is, or that its query names."""
    plan = spark.table(view)._jdf.queryExecution().analyzed()  # noqa: SLF001 - its only way
    found = dict(_views_in(plan))
    for name, relation in found.items():
        _create_again(spark, name, relation)
    return bool(found)


def _views_in(plan: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the temporary views of a plan that are a Fluss table: the name, and its node."""
    is_view = plan.getClass().getSimpleName() == "View" and plan.isTempView()
    if is_view and is_fluss_table(plan.child()):
        names = plan.desc().identifier().nameParts()
        yield tuple(names.apply(place) for place in range(names.size())), plan.child()
        return
    for child in children_of(plan):
        yield from _views_in(child)


def _create_again(spark: SparkSession, name: tuple[str, ...], relation: Any) -> None:
    written = ".".join(map(_quoted, name))
    is_cached = spark.catalog.isCached(written)
    reader = spark.read.format(FlussDataSource.name()).schema(schema_of(relation))
    frame = reader.options(**options_of(relation)).load()
    if len(name) > 1 and name[0] == _GLOBAL:
        frame.createOrReplaceGlobalTempView(_quoted(name[-1]))
    else:
        frame.createOrReplaceTempView(_quoted(name[-1]))
    if is_cached:
        spark.catalog.cacheTable(written)


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
