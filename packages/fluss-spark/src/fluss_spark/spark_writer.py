"""Writing frames and micro-batches: append, upsert, delete and update, from the workers.

Everything that can be wrong about a frame as a whole is found on the driver, before a task
begins: the table, its columns, their types. A task's rows are acknowledged before it says that it
is done. Spark may run a task again; what that does is said in `fluss_spark.exactly_once`.
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
from fluss.session.source import source_of
from fluss.session.table import Table
from fluss_spark.column_names import Layout, matched
from fluss_spark.error_context import APPEND_AGAIN, START_AGAIN, UPSERT_AGAIN, ErrorContext
from fluss_spark.exactly_once import (
    DeliveryGuarantee,
    check_bound,
    columns_that_may_differ,
    promise_of,
    say,
    this_task,
)
from fluss_spark.first_connection import connected, opened
from fluss_spark.frame_check import check_fit, log_missing
from fluss_spark.missing_table import Making, check_as_said, check_made
from fluss_spark.spark_options import OPERATIONS, FlussOptions, Operation
from fluss_spark.spark_types import arrow_schema
from fluss_spark.table_access import table_of

CHUNK_BYTES: Final = 8 * 1024 * 1024
_LOG = logging.getLogger("fluss.spark")


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """What one task has written, and the servers have acknowledged.

    Args:
        rows: How many rows.
        run: What the task belongs to, where its rows are told apart.
        receipt: What it claimed for that.
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
        """Write one task's rows, on a worker."""
        again = APPEND_AGAIN if self._plan.operation == "append" else UPSERT_AGAIN
        with ErrorContext(self._plan.options.table, again):
            return self._plan.write(iterator, self._run)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Everything is there already; say how much it was."""
        written = _written(messages)
        rows = sum(each.rows for each in written)
        _LOG.info("%s: %d rows written (%s)", self._plan.options.table, rows, self._plan.operation)
        receipts = [each.receipt for each in written if each.receipt is not None]
        if receipts:
            try:
                end_run(self._plan.table(), self._run, receipts)
            except FlussError as error:  # a write that failed now would be run again, and double
                _LOG.warning(
                    "%s: all rows are written; what was noted to write them once stays noted: %s",
                    self._plan.options.table,
                    error,
                )

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Say what is there all the same: Fluss takes back nothing."""
        rows = sum(each.rows for each in _written(messages))
        is_append = self._plan.operation == "append"  # all else is written again without harm
        _LOG.log(
            logging.WARNING if is_append else logging.INFO,
            "%s: given up; tasks that ended well have written %d rows, others may have written some",
            self._plan.options.table,
            rows,
        )


class FlussStreamWriter(DataSourceStreamArrowWriter):
    """Writes micro-batches.

    Args:
        options: What was written beside the format.
        schema: The columns of the frame.
        is_for_commit: Whether the rows are there already. Whether others would fit the table, which
            may have other columns by now, is for the next micro-batch to say. Nothing is asked of
            servers then: Spark makes a sink to give a micro-batch up, too, and where that fails it
            reports `Writing job failed.` in place of what did fail.
    """

    def __init__(
        self, options: FlussOptions, schema: StructType, *, is_for_commit: bool = False
    ) -> None:
        self._options = options
        self._schema = schema
        if not is_for_commit:
            say(options.name, self._plan.promise)

    @cached_property
    def _plan(self) -> WritePlan:
        return plan_write(self._options, self._schema)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write one task's rows, on a worker."""
        with ErrorContext(self._options.name, START_AGAIN):
            return self._plan.write(iterator, None)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Note that the micro-batch is written; another one may begin then.

        Raises:
            FlussError: That cannot be noted; Spark runs the micro-batch again.
            UnsupportedOperationError: Spark commits what it has not written: with a continuous
                trigger it never calls `write`, and all rows would be lost.
        """
        written = _written(messages)
        if len(written) < len(messages):
            raise UnsupportedOperationError(
                f"{self._options.name}: Spark commits {len(messages)} tasks of which "
                f"{len(messages) - len(written)} have written nothing, as it does with "
                "trigger(continuous=...): a sink in Python is given no rows there.",
                hint="trigger(processingTime='1 second'), or trigger(availableNow=True)",
            )
        run = next((each.run for each in written if each.run is not None), None)
        if run is not None:
            receipts = [each.receipt for each in written if each.receipt is not None]
            with ErrorContext(self._options.name, START_AGAIN):
                commit_once(table_of(self._options), run, batchId, receipts)
        _LOG.debug("%s: micro-batch %d is written", self._options.name, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803 - Spark's name
        """A task has failed, which Spark tells, or the query was stopped; it comes again."""
        _LOG.info("%s: micro-batch %d is given up for now", self._options.name, batchId)


@dataclass(frozen=True)
class WritePlan:
    """What a worker has to know.

    Args:
        options: The options, with settings that a worker can connect with.
        operation: What is done with the rows.
        columns: With `update`, the columns that are written; None for those of the frame.
        promise: What can be relied on when Spark repeats something.
        may_differ: Columns that are not compared when rows are written again.
        making: The table that is made where it is not there.
    """

    options: FlussOptions
    operation: Operation
    columns: tuple[str, ...] | None
    promise: DeliveryGuarantee
    may_differ: tuple[str, ...] = ()
    making: Making | None = None

    def table(self, first: pa.RecordBatch | None = None) -> Table:
        """The table; its connection is kept for what this process does next.

        Args:
            first: The first rows, which are looked at before a table is made for them.
        """
        try:
            return table_of(self.options)
        except TableNotFoundError:
            if self.making is None:
                raise
        connection = connected(self.options.settings)
        if first is not None:
            self.making.check_rows(connection, self.operation, first)
        self.making.make(connection)
        return table_of(self.options)

    def write(self, batches: Iterator[pa.RecordBatch], run: str | None) -> Written:
        """Write a task's rows.

        Args:
            batches: The rows.
            run: The write that the task belongs to; None for a stream.
        """
        first = next(batches, None)
        table = self.table(first)
        task = this_task(self.promise, run)
        batches = self._laid_out(table, batches if first is None else chain([first], batches))
        if task is not None:
            receipt = append_exactly_once(table, task, batches, may_differ=self.may_differ)
            return Written(receipt.rows, run=task.run, receipt=receipt)
        check_bound(self.promise, table, run)
        rows = 0
        for chunk in _chunks(batches):  # each acknowledged before the next
            apply(table, self.operation, chunk, self.columns)
            rows += chunk.num_rows
        return Written(rows)

    def _laid_out(
        self, table: Table, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        layout: Layout | None = None
        for each in batches:
            layout = layout or Layout.of(table, self.operation, each.schema.names)
            yield layout.batch(each)


def plan_write(options: FlussOptions, columns_of: StructType) -> WritePlan:
    """Check a write on the driver; a table that is to be made is made by the first task with rows.

    Args:
        options: What was written beside the format.
        columns_of: The columns of the frame.

    Raises:
        FlussError: The table is not there, or does not take such rows; nothing has been written.
    """
    source = source_of(options.table, config=options.settings)
    if source.options.mode is not None:
        raise UnsupportedOperationError(
            f"{source.path}${source.options.mode.value} is read, and not written.",
            hint=f"save('{source.path}'); a column _change_type makes a frame a changelog",
            option="path",
        )
    schema = arrow_schema(columns_of)
    is_made = check_made(options)
    making = None
    try:
        table = opened(source)
        if is_made:
            check_as_said(options, table)
    except TableNotFoundError:
        if not is_made:
            raise
        making = Making.of(options, source.path, columns_of)
        table = making.planned(connected(source.config))
    operation = _operation(options, table)
    columns = options.names("targetColumns")
    named = None if columns is None else tuple(matched(columns, table.schema.names))
    if named is not None and operation != "update":
        raise InvalidValueError(
            f"targetColumns is for updates, and this is an {operation}.",
            hint="add .option('operation', 'update')",
        )
    layout = Layout.of(table, operation, schema.names)
    schema = layout.schema(schema)
    check_fit(table, operation, schema, lambda none: apply(table, operation, none, named))
    log_missing(table, operation, layout)
    promise = promise_of(options, table)
    may_differ = columns_that_may_differ(options, table)
    shipped = replace(options, table=table.name, settings=source.config.written())
    return WritePlan(shipped, operation, named, promise, may_differ, making)


def apply(
    table: Table,
    operation: Operation,
    rows: pa.Table | pa.RecordBatch,
    columns: Sequence[str] | None,
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


def _operation(options: FlussOptions, table: Table) -> Operation:
    usual: Operation = "upsert" if table.primary_key else "append"
    said = options.spark.get("operation", usual).lower()
    operation = OPERATIONS.get(said)
    if operation is None:
        raise InvalidValueError(
            f"operation is {said!r}; it is one of {', '.join(OPERATIONS)}.",
            hint=did_you_mean(said, OPERATIONS),
            option="operation",
        )
    if (said == "append") == bool(table.primary_key):
        kind = "a primary key" if table.primary_key else "no primary key"
        ways = "upsert, update and delete" if table.primary_key else "append"
        raise UnsupportedOperationError(
            f"{table.name} has {kind}; it takes no {said}.",
            hint=f"it takes {ways}; leave operation out for {usual}",
        )
    return operation


def _written(messages: Sequence[WriterCommitMessage | None]) -> list[Written]:
    return [each for each in messages if isinstance(each, Written)]


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
