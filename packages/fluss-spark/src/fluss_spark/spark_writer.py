"""Writes frames and micro-batches from the workers: append, upsert, delete and update.

The driver checks everything that can be wrong about a frame as a whole before a task starts: the
table, its columns, their types. The rows of a task are acknowledged before it reports that it is
done. `fluss_spark.exactly_once` decides what happens when Spark runs a task again.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from fluss.errors import (
    FlussError,
    InvalidValueError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from fluss.exactly_once import Receipt, append_exactly_once, commit_once, end_run
from fluss.model.did_you_mean import did_you_mean
from fluss.scan import source_of
from fluss.session import Table
from fluss_spark.column_names import Layout, match_names
from fluss_spark.error_context import APPEND_AGAIN, START_AGAIN, UPSERT_AGAIN, ErrorContext
from fluss_spark.exactly_once import (
    DeliveryGuarantee,
    check_same_table,
    columns_that_may_differ,
    current_task,
    guarantee_of,
    log_guarantee,
)
from fluss_spark.first_connection import open_table, shared_session
from fluss_spark.frame_check import check_fit, log_missing
from fluss_spark.spark_options import OPERATIONS, FlussOptions, Operation
from fluss_spark.spark_types import arrow_schema
from fluss_spark.table_access import table_of
from fluss_spark.table_creation import NewTable, check_matches, creates_table
from fluss_spark.worker_memory import freeze_modules

CHUNK_BYTES: Final = 8 * 1024 * 1024
_LOG = logging.getLogger("fluss.spark")


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """What one task has written, and the servers have acknowledged.

    Args:
        rows: How many rows.
        run: The id of the write or of the stream, where the task claimed its rows.
        receipt: What it claimed.
    """

    rows: int
    run: str | None = None
    receipt: Receipt | None = None


class FlussBatchWriter(DataSourceArrowWriter):
    """Writes a frame."""

    def __init__(self, options: FlussOptions, schema: StructType) -> None:
        self._plan = plan_write(options, schema)
        self._run = uuid.uuid4().hex

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of one task, on a worker."""
        again = APPEND_AGAIN if self._plan.operation == "append" else UPSERT_AGAIN
        with ErrorContext(self._plan.options.table, again):
            written = self._plan.write(iterator, self._run)
        freeze_modules("write")
        return written

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Log how much was written, and end what was noted to write it once."""
        written = _written(messages)
        rows = sum(each.rows for each in written)
        _LOG.info("%s: %d rows written (%s)", self._plan.options.table, rows, self._plan.operation)
        receipts = [each.receipt for each in written if each.receipt is not None]
        if receipts:
            try:
                end_run(self._plan.table(), self._run, receipts)
            except FlussError as error:  # a failure now would repeat the write, with new claims
                _LOG.warning(
                    "%s: all rows are written; the claims of the write could not be removed: %s",
                    self._plan.options.table,
                    error,
                )

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Log what was written all the same: Fluss has no rollback."""
        rows = sum(each.rows for each in _written(messages))
        is_append = self._plan.operation == "append"  # the others are idempotent
        _LOG.log(
            logging.WARNING if is_append else logging.INFO,
            "%s: aborted; the tasks that succeeded have written %d rows, others may have written some",
            self._plan.options.table,
            rows,
        )


class FlussStreamWriter(DataSourceStreamArrowWriter):
    """Writes micro-batches.

    Args:
        options: The options of the format.
        schema: The columns of the frame.
        is_for_commit: Whether Spark made this sink to commit or to abort, after the rows were
            written. Then the frame is not checked, and no server is asked: if making a sink for an
            abort fails, Spark reports `Writing job failed.` instead of the cause.
    """

    def __init__(
        self, options: FlussOptions, schema: StructType, *, is_for_commit: bool = False
    ) -> None:
        self._options = options
        self._schema = schema
        if not is_for_commit:
            log_guarantee(options.name, self._plan.guarantee)

    @cached_property
    def _plan(self) -> WritePlan:
        return plan_write(self._options, self._schema)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of one task, on a worker."""
        with ErrorContext(self._options.name, START_AGAIN):
            written = self._plan.write(iterator, None)
        freeze_modules("write")
        return written

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Note that the micro-batch is written, so that the next one may start.

        Raises:
            FlussError: That cannot be noted; Spark runs the micro-batch again.
            UnsupportedOperationError: Spark commits rows that it has not written: with a continuous
                trigger it never calls `write`, and all rows would be lost.
        """
        written = _written(messages)
        if len(written) < len(messages):
            raise UnsupportedOperationError(
                f"{self._options.name}: Spark commits {len(messages)} tasks of which "
                f"{len(messages) - len(written)} have written nothing, as it does with "
                "trigger(continuous=...): there a Python sink gets no rows.",
                hint="trigger(processingTime='1 second'), or trigger(availableNow=True)",
            )
        run = next((each.run for each in written if each.run is not None), None)
        if run is not None:
            receipts = [each.receipt for each in written if each.receipt is not None]
            with ErrorContext(self._options.name, START_AGAIN):
                commit_once(table_of(self._options), run, batchId, receipts)
        _LOG.debug("%s: micro-batch %d is written", self._options.name, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803 - Spark's name
        """Log that a task failed or the query was stopped; Spark runs the micro-batch again."""
        _LOG.info(
            "%s: micro-batch %d is aborted and will be run again", self._options.name, batchId
        )


@dataclass(frozen=True)
class WritePlan:
    """What a worker needs to write its rows.

    Args:
        options: The options, with settings that a worker can connect with.
        operation: How the rows are written.
        columns: With `update`, the columns that are written; None for those of the frame.
        guarantee: What holds when Spark repeats a task.
        may_differ: Columns that are not compared when rows are written again.
        new_table: The table to create if it is missing.
    """

    options: FlussOptions
    operation: Operation
    columns: tuple[str, ...] | None
    guarantee: DeliveryGuarantee
    may_differ: tuple[str, ...] = ()
    new_table: NewTable | None = None

    def table(self, first: pa.RecordBatch | None = None) -> Table:
        """Look up the table, or create it; the process keeps its connection.

        Args:
            first: The first rows, which are checked before a table is created for them.
        """
        try:
            return table_of(self.options)
        except TableNotFoundError:
            if self.new_table is None:
                raise
        session = shared_session(self.options.settings)
        if first is not None:
            self.new_table.check_rows(session, self.operation, first)
        self.new_table.create(session)
        return table_of(self.options)

    def write(self, batches: Iterator[pa.RecordBatch], run: str | None) -> Written:
        """Write the rows of a task.

        Args:
            batches: The rows.
            run: The id of the write; None for a stream.
        """
        first = next(batches, None)
        table = self.table(first)
        task = current_task(self.guarantee, run)
        batches = self._laid_out(table, batches if first is None else chain([first], batches))
        if task is not None:
            receipt = append_exactly_once(table, task, batches, may_differ=self.may_differ)
            return Written(receipt.rows, run=task.run, receipt=receipt)
        check_same_table(self.guarantee, table, run)
        rows = 0
        for chunk in _chunks(batches):  # each acknowledged before the next
            apply(table, self.operation, chunk, self.columns)
            rows += chunk.num_rows
        return Written(rows)

    def _laid_out(
        self, table: Table, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        layout: Layout | None = None
        for batch in batches:
            layout = layout or Layout.of(table, self.operation, batch.schema.names)
            yield layout.batch(batch)


def plan_write(options: FlussOptions, columns_of: StructType) -> WritePlan:
    """Check a write on the driver. A new table is created by the first task that has rows.

    Args:
        options: The options of the format.
        columns_of: The columns of the frame.

    Raises:
        FlussError: The table is missing or does not accept such rows; nothing has been written.
    """
    source = source_of(options.table, config=options.settings)
    if source.options.mode is not None:
        raise UnsupportedOperationError(
            f"{source.path}${source.options.mode.value} is read-only.",
            hint=f"save('{source.path}'); a column _change_type makes a frame a changelog",
            option="path",
        )
    schema = arrow_schema(columns_of)
    is_created = creates_table(options)
    new_table = None
    try:
        table = open_table(source)
        if is_created:
            check_matches(options, table)
    except TableNotFoundError:
        if not is_created:
            raise
        new_table = NewTable.of(options, source.path, columns_of)
        table = new_table.planned(shared_session(source.config))
    operation = _operation(options, table)
    columns = options.names("targetColumns")
    named = None if columns is None else tuple(match_names(columns, table.schema.names))
    if named is not None and operation != "update":
        raise InvalidValueError(
            f"targetColumns is for updates, and this is an {operation}.",
            hint="add .option('operation', 'update')",
        )
    layout = Layout.of(table, operation, schema.names)
    schema = layout.schema(schema)
    check_fit(table, operation, schema, lambda empty: apply(table, operation, empty, named))
    log_missing(table, operation, layout)
    guarantee = guarantee_of(options, table)
    may_differ = columns_that_may_differ(options, table)
    shipped = replace(options, table=table.name, settings=source.config.written())
    return WritePlan(shipped, operation, named, guarantee, may_differ, new_table)


def apply(
    table: Table,
    operation: Operation,
    rows: pa.Table | pa.RecordBatch,
    columns: Sequence[str] | None,
) -> None:
    """Write rows by one operation."""
    match operation:
        case "append":
            table.append(rows, progress=False)
        case "upsert":
            table.upsert(rows, progress=False)
        case "delete":
            table.delete(rows.select(list(table.primary_key)))
        case "update":
            table.update(rows, columns=columns)


def _operation(options: FlussOptions, table: Table) -> Operation:
    usual: Operation = "upsert" if table.primary_key else "append"
    given = options.spark.get("operation", usual).lower()
    operation = OPERATIONS.get(given)
    if operation is None:
        raise InvalidValueError(
            f"operation is {given!r}; it is one of {', '.join(OPERATIONS)}.",
            hint=did_you_mean(given, OPERATIONS),
            option="operation",
        )
    if (given == "append") == bool(table.primary_key):
        kind = "a primary key" if table.primary_key else "no primary key"
        ways = "upsert, update and delete" if table.primary_key else "append"
        raise UnsupportedOperationError(
            f"{table.name} has {kind}; it does not support {given}.",
            hint=f"it supports {ways}; leave operation out for {usual}",
        )
    return operation


def _written(messages: Sequence[WriterCommitMessage | None]) -> list[Written]:
    return [each for each in messages if isinstance(each, Written)]


def _chunks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    gathered: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        gathered.append(batch)
        size += batch.nbytes
        if size >= CHUNK_BYTES:
            yield pa.Table.from_batches(gathered)
            gathered, size = [], 0
    if gathered:
        yield pa.Table.from_batches(gathered)
