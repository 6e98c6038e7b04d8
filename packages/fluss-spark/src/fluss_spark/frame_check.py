"""Checks on the driver that a frame fits a table, before a task starts.

The client's own rules decide: they get a batch without rows. Hints name the methods of Spark. Casts
that depend on the time zone of Spark's session are left to Spark.
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
from fluss.model.tables.table_options import DeleteBehavior
from fluss.model.values.time_zones import lacks_zone, loses_zone
from fluss.scan import CHANGE_TYPE
from fluss.session import Table
from fluss_spark.column_names import Layout
from fluss_spark.error_context import should_log
from fluss_spark.spark_options import Operation
from fluss_spark.spark_types import spark_type

_NAMES_MAX: Final = 20
_LOG = logging.getLogger("fluss.spark")


def check_fit(
    table: Table, operation: Operation, schema: pa.Schema, write: Callable[[pa.RecordBatch], Any]
) -> None:
    """Refuse a frame that the table does not accept.

    Args:
        table: The table.
        operation: How the rows are written.
        schema: The columns of the frame.
        write: Writes a batch in that way.

    Raises:
        SchemaMismatchError: A column is missing, unknown or of another type; both are named.
        FlussError: The table does not accept such rows.
    """
    types = {field.name: field.type for field in table.schema}
    if operation == "delete":
        _check_keys(table, schema)
    if operation == "delete" or CHANGE_TYPE in schema.names:
        _check_deletes(table, operation)
    if operation == "append" and CHANGE_TYPE in schema.names and CHANGE_TYPE not in types:
        raise _changes_into_log(table)
    for field in schema:
        if field.name in types:
            _check_zone(table, field, types[field.name])
    arrays = [pa.nulls(0, field.type) for field in schema]
    nullable = pa.schema([field.with_nullable(True) for field in schema])
    try:
        write(pa.RecordBatch.from_arrays(arrays, schema=nullable))
    except SchemaMismatchError as error:
        error.add_context(hint=_hint_of_column(error, table, operation))
        raise


def log_missing(table: Table, operation: Operation, layout: Layout) -> None:
    """Log which columns a write leaves NULL, once and not with each micro-batch."""
    names = ", ".join(field.name for field in layout.missing)
    if not names or not should_log(table.name, "missing", names):
        return
    remedy = "; operation=update keeps the stored values" if operation == "upsert" else ""
    _LOG.warning("%s: the frame lacks %s, which is NULL in its rows%s", table.name, names, remedy)


def _changes_into_log(table: Table) -> UnsupportedOperationError:
    return UnsupportedOperationError(
        f"The frame has the changes of rows in {CHANGE_TYPE!r}, and {table.name} is a log, in which "
        "rows do not change.",
        hint=f"name a table with a primary key; .withColumnRenamed({CHANGE_TYPE!r}, 'change') keeps "
        f"the changes as rows; .drop({CHANGE_TYPE!r}) where each row is a new one",
        column=CHANGE_TYPE,
    )


def _check_keys(table: Table, schema: pa.Schema) -> None:
    """Refuse a delete without the key, or of a frame that has changes of its own."""
    if CHANGE_TYPE in schema.names:
        raise InvalidValueError(
            f"The frame has the changes of rows in {CHANGE_TYPE!r}, and operation=delete would "
            "delete all of them.",
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
    """Refuse or report deletes that the servers ignore, by default beside a merge engine."""
    if table.info.options.effective_delete_behavior is not DeleteBehavior.IGNORE:
        return
    reason = f"{table.name} ignores deletes (table.delete.behavior)"
    if operation == "delete":
        raise UnsupportedOperationError(
            f"{reason}: nothing would be deleted, without an error.",
            hint="only a table created with 'allow' deletes rows; versioned and first_row do not "
            "offer it",
        )
    if should_log(reason):
        _LOG.warning("%s: those of the frame change nothing", reason)


def _check_zone(table: Table, given: pa.Field, kind: pa.DataType) -> None:
    # Spark would use the time zone of its session, which no task knows (decision 0008).
    if lacks_zone(given.type, kind) or loses_zone(given.type, kind):
        name = spark_type(kind).simpleString()
        raise SchemaMismatchError(
            f"The column {given.name!r} of {table.name} has {_times(kind)}; the frame has "
            f"{_times(given.type)}.",
            hint=f"cast it, by the time zone of the session: {_cast(given.name, name)}",
            column=given.name,
        )


def _times(kind: pa.DataType) -> str:
    name = spark_type(kind).simpleString()
    return f"moments ({name})" if _has_zone(kind) else f"wall clock times ({name}), without a zone"


def _has_zone(kind: pa.DataType) -> bool:
    if pa.types.is_timestamp(kind):
        return kind.tz is not None
    return any(_has_zone(kind.field(each).type) for each in range(kind.num_fields))


def _hint_of_column(error: SchemaMismatchError, table: Table, operation: Operation) -> str | None:
    """Return what to do in Spark about a column that does not fit."""
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
    only = "; or operation=update, which keeps the stored value" if operation == "upsert" else ""
    return f"add it: .withColumn({name!r}, lit(None).cast({kind!r})){only}"


def _cast(name: str, kind: str) -> str:
    return f".withColumn({name!r}, col({name!r}).cast({kind!r}))"
