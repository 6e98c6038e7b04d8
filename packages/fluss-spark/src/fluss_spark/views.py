"""Views that are read anew: after INSERT, after REFRESH TABLE, and when that is asked for.

Spark keeps the plan of a temporary view, and with it where each bucket ended when the view was
first used; it has no way to tell a Python source to look again. So a view is made again, with the
same columns and options. Frames that were made of it before keep their rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar

from fluss.errors import InvalidNameError, InvalidValueError, UnsupportedOperationError
from fluss_spark.data_source import FlussDataSource
from fluss_spark.relations import children_of, is_ours, options_of, schema_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

P = ParamSpec("P")
R = TypeVar("R")
_GLOBAL: Final = "global_temp"
_CHANGES: Final = re.compile(r"\b(insert|refresh)\b", re.IGNORECASE)
_MARK: Final = "_reads_views_anew"


def refresh(spark: SparkSession, view: str) -> None:
    """Read a view anew: its next use has the rows that its table has then.

    `INSERT INTO view` and `REFRESH TABLE view` do it by themselves in a session that `enable` has
    made ready. Frames that were made of the view before keep the rows that they have.

    Args:
        spark: The session.
        view: A temporary view of a table: `CREATE TEMPORARY VIEW ... USING fluss`,
            `register_views`, or `fluss_spark.table(...).createOrReplaceTempView(...)`; or one that
            is made by SQL of such views.

    Raises:
        InvalidNameError: There is no such view.
        InvalidValueError: The view is of no Fluss table, or of a frame that selects or joins.
        UnsupportedOperationError: The session is one of Spark Connect.
    """
    if not hasattr(spark, "_jsparkSession"):
        raise UnsupportedOperationError(
            "A session of Spark Connect does not say what its views are made of.",
            hint="create the view again: register_views(spark, 'db'), or CREATE OR REPLACE",
        )
    if not spark.catalog.tableExists(view):
        raise InvalidNameError(f"Spark has no view {view!r}.", name=view)
    if not _refreshed(spark, view):
        raise InvalidValueError(
            f"{view} is no view of a Fluss table: it is made of a frame that selects or joins, or of "
            "something else.",
            hint="create it again; or create it by SQL from a view of the table, CREATE TEMPORARY "
            "VIEW v AS SELECT ... FROM t, which is looked up whenever it is used",
            option="view",
        )


def refresh_by_itself() -> None:
    """Make INSERT and REFRESH TABLE read their view anew. Twice is once."""
    from pyspark.sql import SparkSession
    from pyspark.sql.catalog import Catalog
    from pyspark.sql.readwriter import DataFrameWriter

    _wrap(SparkSession, "sql", lambda spark, *given, **named: _changed_by(spark, given, named))
    _wrap(
        Catalog,
        "refreshTable",
        lambda catalog, tableName: (catalog._sparkSession, [tableName]),  # noqa: N803, SLF001 - Spark's
    )
    _wrap(
        DataFrameWriter,
        "insertInto",
        lambda writer, tableName, *_, **__: (writer._spark, [tableName]),  # noqa: N803, SLF001 - Spark's
    )


# What `changed` finds is the session, and the views to read anew.
def _wrap(owner: type, name: str, changed: Callable[..., tuple[SparkSession, list[str]]]) -> None:
    method = getattr(owner, name)
    if not hasattr(method, _MARK):
        setattr(owner, name, _refreshing(method, changed))


def _refreshing(
    method: Callable[Concatenate[Any, P], R],
    changed: Callable[..., tuple[SparkSession, list[str]]],
) -> Callable[Concatenate[Any, P], R]:
    @wraps(method)
    def call(self: Any, /, *given: P.args, **named: P.kwargs) -> R:
        result = method(self, *given, **named)
        with suppress(Exception):  # another Spark: what was asked for has been done all the same
            spark, views = changed(self, *given, **named)
            for view in views:
                _refreshed(spark, view)
        return result

    setattr(call, _MARK, True)
    return call


def _changed_by(
    spark: SparkSession, given: tuple[Any, ...], named: dict[str, Any]
) -> tuple[SparkSession, list[str]]:
    """What a statement has written to, or asks to read anew."""
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
    """Make the views of our tables again that a view is, or that its query names."""
    plan = spark.table(view)._jdf.queryExecution().analyzed()  # noqa: SLF001 - its only way
    found = dict(_views_in(plan))
    for name, relation in found.items():
        _make_again(spark, name, relation)
    return bool(found)


def _views_in(plan: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The temporary views of a plan that are a table of ours, by name, with the plan of each."""
    is_view = plan.getClass().getSimpleName() == "View" and plan.isTempView()
    if is_view and is_ours(plan.child()):
        names = plan.desc().identifier().nameParts()
        yield tuple(names.apply(place) for place in range(names.size())), plan.child()
        return
    for each in children_of(plan):
        yield from _views_in(each)


def _make_again(spark: SparkSession, name: tuple[str, ...], relation: Any) -> None:
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
