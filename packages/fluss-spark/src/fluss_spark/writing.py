"""Writing frames and micro-batches: append, upsert, delete and update, from the workers.

Everything that can be wrong about a frame as a whole is found on the driver, before a task
begins: the table, its columns, their types. A task's rows are acknowledged before it says that it
is done. Spark may run a task again; for primary-key tables that changes nothing but the
changelog, for logs it may write rows twice, which the sink says where exactly once was asked for.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from fluss.errors import InvalidValueError, UnsupportedOperationError
from fluss.session.session import Session
from fluss.session.table import Table
from fluss_spark.options import OPERATIONS, FlussOptions, Operation
from fluss_spark.tables import session_of, settings_of, table_of
from fluss_spark.types import arrow_schema

CHUNK_BYTES: Final = 8 * 1024 * 1024
_LOG = logging.getLogger("fluss.spark")


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """What one task has written, and the servers have acknowledged.

    Args:
        rows: How many rows.
    """

    rows: int


class FlussBatchWriter(DataSourceArrowWriter):
    """Writes a frame."""

    def __init__(self, options: FlussOptions, schema: StructType) -> None:
        self._plan = plan_write(options, arrow_schema(schema))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write one task's rows, on a worker."""
        return self._plan.write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Everything is there already; say how much it was."""
        rows = sum(each.rows for each in messages if isinstance(each, Written))
        _LOG.info("%s: %d rows written (%s)", self._plan.options.table, rows, self._plan.operation)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Say what is there all the same: Fluss takes back nothing."""
        rows = sum(each.rows for each in messages if isinstance(each, Written))
        _LOG.warning("%s: given up; %d rows are written", self._plan.options.table, rows)


class FlussStreamWriter(DataSourceStreamArrowWriter):
    """Writes micro-batches."""

    def __init__(self, options: FlussOptions, schema: StructType) -> None:
        self._plan = plan_write(options, arrow_schema(schema))
        if self._plan.operation == "append":
            _say_at_least_once(options)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write one task's rows, on a worker."""
        return self._plan.write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803 - Spark's names
        """Everything is there already."""
        _LOG.debug("%s: micro-batch %d is written", self._plan.options.table, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803 - Spark's name
        """Spark runs the micro-batch again."""
        _LOG.warning("%s: micro-batch %d is run again", self._plan.options.table, batchId)


@dataclass(frozen=True)
class WritePlan:
    """What a worker has to know.

    Args:
        options: The options, with settings that a worker can connect with.
        operation: What is done with the rows.
        columns: With `update`, the columns that are written; None for those of the frame.
    """

    options: FlussOptions
    operation: Operation
    columns: tuple[str, ...] | None

    def write(self, batches: Iterator[pa.RecordBatch]) -> Written:
        """Write rows, chunk by chunk, each acknowledged before the next."""
        rows = 0
        with table_of(self.options) as (_, table):
            for chunk in _chunks(batches):
                apply(table, self.operation, chunk, self.columns)
                rows += chunk.num_rows
        return Written(rows)


def plan_write(options: FlussOptions, schema: pa.Schema) -> WritePlan:
    """Check a write on the driver, and make the table where that was asked for.

    Raises:
        FlussError: The table is not there, or does not take such rows; nothing has been written.
    """
    with session_of(options) as session:
        table = _created_or_there(session, options, schema)
        operation = _operation(options, table)
        columns = options.names("targetColumns")
        named = None if columns is None else tuple(columns)
        if named is not None and operation != "update":
            raise InvalidValueError(
                f"targetColumns is for updates, and this is an {operation}.",
                hint="add .option('operation', 'update')",
            )
        # No rows at all pass every check that whole frames do, and reach no server.
        apply(table, operation, schema.empty_table(), named)
        shipped = replace(options, table=table.name, settings=settings_of(session))
    return WritePlan(shipped, operation, named)


def apply(
    table: Table, operation: Operation, rows: pa.Table, columns: Sequence[str] | None
) -> None:
    """Do with rows what was asked for."""
    match operation:
        case "append":
            table.append(rows)
        case "upsert":
            table.upsert(rows)
        case "delete":
            table.delete(rows.select(list(table.primary_key)))
        case "update":
            table.update(rows, columns=columns)


def _created_or_there(session: Session, options: FlussOptions, schema: pa.Schema) -> Table:
    if options.flag("createIfNotExists", default=False):
        kept = [each for each in schema if each.name != "_change_type"]
        how: dict[str, Any] = {
            "primary_key": options.names("primaryKey"),
            "partition_by": options.names("partitionBy"),
            "buckets": options.number("bucketNum", 1) if "bucketNum" in options.spark else None,
        }
        return session.create_table(options.table, pa.schema(kept), ignore_if_exists=True, **how)
    for name in ("primaryKey", "partitionBy", "bucketNum"):
        if name in options.spark:
            raise InvalidValueError(
                f"{name} says how a table is made, and createIfNotExists is not true.", option=name
            )
    return session.table(None if "://" in options.table else options.table)


def _operation(options: FlussOptions, table: Table) -> Operation:
    usual: Operation = "upsert" if table.primary_key else "append"
    said = options.spark.get("operation", usual).lower()
    operation = OPERATIONS.get(said)
    if operation is None:
        raise InvalidValueError(
            f"operation is {said!r}; it is one of {', '.join(OPERATIONS)}.", option="operation"
        )
    if (said == "append") == bool(table.primary_key):
        kind = "a primary key" if table.primary_key else "no primary key"
        raise UnsupportedOperationError(f"{table.name} has {kind}; it takes no {said}.")
    return operation


def _say_at_least_once(options: FlussOptions) -> None:
    """A replayed micro-batch is appended again: this version has no writer ids that outlive it."""
    if options.spark.get("exactlyOnce", "").lower() == "required":
        raise UnsupportedOperationError(
            f"Appending a stream to the log {options.table} is at least once: a micro-batch that "
            "Spark runs again is appended again.",
            hint="write into a primary-key table, where a replay changes nothing",
        )
    _LOG.warning("%s: a stream is appended at least once", options.table)


def _chunks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    gathered: list[pa.RecordBatch] = []
    size = 0
    for each in batches:
        gathered.append(each)
        size += each.nbytes
        if size >= CHUNK_BYTES:
            yield pa.Table.from_batches(gathered)
            gathered, size = [], 0
    if gathered:
        yield pa.Table.from_batches(gathered)
