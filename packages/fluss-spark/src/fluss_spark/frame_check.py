"""Whether a frame fits a table, asked on the driver before a task begins.

The client's own rules decide, by being given a batch without rows. What they refuse is said in the
words of Spark; what Spark would do by the time zone of its session is left to Spark.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from fluss.errors import (
    InvalidValueError,
    SchemaMismatchError,
    UnsupportedOperationError,
    UnsupportedTypeError,
)
from fluss.model.did_you_mean import did_you_mean
from fluss.model.options.scan_options import CHANGE_TYPE
from fluss.model.tables.table_options import DeleteBehavior
from fluss.model.values.time_zones import lacks_zone, loses_zone
from fluss.session.table import Table
from fluss_spark.column_names import Layout
from fluss_spark.error_context import is_news
from fluss_spark.spark_options import Operation
from fluss_spark.spark_types import spark_type

_NAMES_MAX: Final = 20
_LOG = logging.getLogger("fluss.spark")


def check_fit(
    table: Table, operation: Operation, schema: pa.Schema, write: Callable[[pa.RecordBatch], Any]
) -> None:
    """Refuse a frame that the table does not take.

    Args:
        table: The table.
        operation: What is to be done with the rows.
        schema: The columns of the frame.
        write: Does it with a batch.

    Raises:
        SchemaMismatchError: A column is missing, unknown or of another type; both are named.
        FlussError: The table does not take such rows.
    """
    kept = {each.name: each.type for each in table.schema}  # which is made anew when asked for
    if operation == "delete":
        _check_keys(table, schema)
    if operation == "delete" or CHANGE_TYPE in schema.names:
        _check_deletes(table, operation)
    if operation == "append" and CHANGE_TYPE in schema.names and CHANGE_TYPE not in kept:
        raise _changes_into_log(table)
    for each in schema:
        if each.name in kept:
            _check_zone(table, each, kept[each.name])
    arrays = [pa.nulls(0, each.type) for each in schema]
    nullable = pa.schema([each.with_nullable(True) for each in schema])
    try:
        write(pa.RecordBatch.from_arrays(arrays, schema=nullable))
    except SchemaMismatchError as error:
        error.add_context(hint=_in_spark(error, table, operation))
        raise


def log_missing(table: Table, operation: Operation, layout: Layout) -> None:
    """Report which columns a write leaves NULL: once, and not with each micro-batch."""
    names = ", ".join(each.name for each in layout.missing)
    if not names or not is_news(table.name, "missing", names):
        return
    kept = "; operation=update leaves what is there" if operation == "upsert" else ""
    _LOG.warning("%s: the frame lacks %s, which is NULL in its rows%s", table.name, names, kept)


def _changes_into_log(table: Table) -> UnsupportedOperationError:
    return UnsupportedOperationError(
        f"The frame says in {CHANGE_TYPE!r} what happens to each row, and {table.name} is a log, in "
        "which nothing changes.",
        hint=f"name a table with a primary key; .withColumnRenamed({CHANGE_TYPE!r}, 'change') keeps "
        f"the changes as rows; .drop({CHANGE_TYPE!r}) where each row is a new one",
        column=CHANGE_TYPE,
    )


def _check_keys(table: Table, schema: pa.Schema) -> None:
    """A delete looks at the key alone: there must be one, and nothing that speaks against it."""
    if CHANGE_TYPE in schema.names:
        raise InvalidValueError(
            f"The frame says in {CHANGE_TYPE!r} what happens to each row, and operation=delete "
            "would delete them all.",
            hint="leave operation out, and the changes are applied; or drop the column",
            column=CHANGE_TYPE,
        )
    for name in table.primary_key:
        if name not in schema.names:
            raise SchemaMismatchError(
                f"A delete in {table.name} is by its key, {', '.join(table.primary_key)}, and "
                f"the frame has no {name!r}; it has {', '.join(schema.names[:_NAMES_MAX])}.",
                hint=did_you_mean(name, schema.names) or "select the key",
                column=name,
            )


def _check_deletes(table: Table, operation: Operation) -> None:
    """Say where the servers ignore deletes, as they do by default beside a merge engine."""
    if table.info.options.effective_delete_behavior is not DeleteBehavior.IGNORE:
        return
    said = f"{table.name} ignores deletes (table.delete.behavior)"
    if operation == "delete":
        raise UnsupportedOperationError(
            f"{said}: nothing would be deleted, and nobody would be told.",
            hint="only a table that was made with 'allow' takes them, which versioned and "
            "first_row do not offer",
        )
    if is_news(said):
        _LOG.warning("%s: those of the frame change nothing", said)


def _check_zone(table: Table, given: pa.Field, wanted: pa.DataType) -> None:
    # Spark would ask the time zone of its session, which no task is told (decision 0008).
    if lacks_zone(given.type, wanted) or loses_zone(given.type, wanted):
        kind = spark_type(wanted).simpleString()
        raise SchemaMismatchError(
            f"The column {given.name!r} of {table.name} has {_times(wanted)}; the frame has "
            f"{_times(given.type)}.",
            hint=f"cast it, by the time zone of the session: {_cast(given.name, kind)}",
            column=given.name,
        )


def _times(kind: pa.DataType) -> str:
    said = spark_type(kind).simpleString()
    return f"moments ({said})" if _has_zone(kind) else f"wall clock times ({said}), without a zone"


def _has_zone(kind: pa.DataType) -> bool:
    if pa.types.is_timestamp(kind):
        return kind.tz is not None
    return any(_has_zone(kind.field(each).type) for each in range(kind.num_fields))


def _in_spark(error: SchemaMismatchError, table: Table, operation: Operation) -> str | None:
    """What to do about a column that does not fit."""
    name = error.facts.get("column")
    if not isinstance(name, str) or name not in table.schema.names:
        return None
    field = table.schema.field(name)
    try:
        kind = spark_type(field.type).simpleString()
    except UnsupportedTypeError:
        return None
    if "found" in error.facts:
        return f"cast it: {_cast(name, kind)}"
    if not field.nullable:
        return f"add it, as {kind}; it may not be NULL"
    only = "; or operation=update, which leaves what is there" if operation == "upsert" else ""
    return f"add it: .withColumn({name!r}, lit(None).cast({kind!r})){only}"


def _cast(name: str, kind: str) -> str:
    return f".withColumn({name!r}, col({name!r}).cast({kind!r}))"
