"""Reads a log as it grows: micro-batches between offsets that Spark keeps in its checkpoint.

The reader lives in one Python process for as long as its query runs. A micro-batch is planned from
two offsets alone, so that a repeated one has the same rows in the same tasks, in the same order. A
stream that starts `full` gives the state of the table at an offset first, as inserts, and then the
changes from that offset on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from fluss.errors import InvalidValueError
from fluss.scan import CHANGE_TYPE, LATEST
from fluss_spark.column_names import match_names
from fluss_spark.error_context import START_AGAIN, ErrorContext, with_error_context
from fluss_spark.spark_options import FILTER, FlussOptions
from fluss_spark.spark_types import arrow_schema, to_spark
from fluss_spark.stream_offsets import BEGIN, TABLE, Ends, StreamOffset, limited_ends
from fluss_spark.stream_plans import StreamPlans
from fluss_spark.task_splits import (
    SplitsPartition,
    pack_splits,
    read_partition,
    rows_max_of,
    task_count,
)

INSERT = "insert"
# Rows of a task come bucket by bucket, so a repeated task writes them in the same order.
_ORDER = "bucket"


@dataclass(frozen=True)
class StatePartition(SplitsPartition):
    """States that one task reads, as inserts.

    Args:
        change_type: The name of the column with the type of change.
    """

    change_type: str = CHANGE_TYPE

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield their rows in Spark's schema; columns that only changes have are NULL."""
        for batch in self.rows():
            names = match_names(schema.names, [*batch.schema.names, self.change_type])
            columns = [
                self._column(batch, field.with_name(name))
                for field, name in zip(schema, names, strict=True)
            ]
            yield to_spark(pa.RecordBatch.from_arrays(columns, names=schema.names), schema)

    def _column(self, batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
        if field.name in batch.schema.names:
            return batch.column(field.name)
        if field.name == self.change_type:
            return pa.repeat(pa.scalar(INSERT, field.type), batch.num_rows)
        return pa.nulls(batch.num_rows, field.type)


class FlussStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A log as Spark's micro-batch engine sees it.

    Args:
        options: The options of the format.
        schema: The columns that Spark requests.
        parallelism: How many tasks Spark runs concurrently, where that is known.
    """

    def __init__(
        self, options: FlussOptions, schema: StructType, parallelism: int | None = None
    ) -> None:
        self._options = options
        self._parallelism = parallelism
        self._declared = schema
        self._schema = arrow_schema(schema)
        self._target: Ends | None = None
        self.error_context = ErrorContext(options.name, START_AGAIN)

    @cached_property
    def _plans(self) -> StreamPlans:
        # Not earlier: Spark hides an error of a reader's constructor behind one of its own.
        _check(self._options)
        return StreamPlans(self._options, self._declared)

    # --- where micro-batches start and end ------------------------------------------------------

    @with_error_context
    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return where a query without a checkpoint starts. Spark asks again in each repetition.

        So the offsets are determined once, for the end of the first micro-batch.
        """
        _ = self._plans  # checks the options
        return dict(BEGIN)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return the size of a micro-batch whose trigger does not limit it."""
        if "maxOffsetsPerTrigger" not in self._options.spark:
            return ReadAllAvailable()
        return ReadMaxRows(self._options.number("maxOffsetsPerTrigger", 1))

    @with_error_context
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return where the next micro-batch ends; it has new buckets from their beginning."""
        rows_max = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        if start == BEGIN:
            at = self._start()
            return self._named(replace(self._next(at, rows_max) or at, first=at))
        end = self._next(StreamOffset.of(start), rows_max)
        return start if end is None else self._named(end)  # unchanged, or it is new to Spark

    def _named(self, offset: StreamOffset) -> dict[str, Any]:
        """Return an offset with the name of its table, which progress reports show nowhere else."""
        return {TABLE: self._plans.name, **offset.to_json()}

    def _start(self) -> StreamOffset:
        if self._options.is_full and self._plans.has_state():
            plan = self._plans.log(LATEST)
            pins = plan.ends if self._target is None else self._target
            done = {bucket: 0 for bucket, pin in pins.items() if not pin}
            pending = {bucket: pin for bucket, pin in pins.items() if pin}
            return StreamOffset(table_id=plan.table_id, offsets=done, pending=pending)
        start = "earliest" if self._options.is_full else "latest"
        plan = self._plans.log(self._plans.options.start or start)
        return StreamOffset(table_id=plan.table_id, offsets=plan.starts)

    def _next(self, at: StreamOffset, rows_max: int | None) -> StreamOffset | None:
        """Return where a micro-batch ends that starts at a position; None if it would be empty."""
        if at.pending:
            end = at.with_states(rows_max)
            pins = {bucket: pin for bucket, pin in at.pending.items() if bucket not in end.pending}
            return replace(end, tasks=self._tasks(sum(pins.values())))
        plan = self._plans.log(at)
        self._plans.check_kept(at, plan)
        starts, ends = plan.starts, plan.ends
        if self._target is not None:
            ends = {
                bucket: min(end, self._target.get(bucket, starts[bucket]))
                for bucket, end in ends.items()
            }
        taken = limited_ends(starts, ends, rows_max)
        # Dropped buckets change the offset, too, so that a restarted query does not miss them.
        is_whole = at.offsets.keys() <= taken.keys()
        if is_whole and all(taken[bucket] == at.offsets.get(bucket, 0) for bucket in taken):
            return None
        tasks = self._tasks(sum(taken[bucket] - starts[bucket] for bucket in taken))
        return StreamOffset(table_id=plan.table_id, offsets=taken, tasks=tasks)

    @with_error_context
    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return where the log ends now, for progress reports."""
        plan = self._plans.log(LATEST)
        return self._named(StreamOffset(table_id=plan.table_id, offsets=plan.ends))

    @with_error_context
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Make this run end where the log ends now."""
        self._target = self._plans.log(LATEST).ends

    # --- micro-batches --------------------------------------------------------------------------

    @with_error_context
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the tasks of one micro-batch: the same from the same two offsets.

        Raises:
            FlussError: Rows between them are gone.
        """
        last = StreamOffset.of(end)
        first = last.first if start == BEGIN and last.first is not None else StreamOffset.of(start)
        settings, parallel = self._plans.settings, self._plans.options.max_parallel
        pins = {bucket: pin for bucket, pin in first.pending.items() if bucket not in last.pending}
        if pins:
            states = self._plans.state_splits(pins)
            tasks = last.tasks or self._tasks(sum(pins.values()))
            change_type = self._plans.options.metadata_prefix + CHANGE_TYPE[1:]
            return [
                StatePartition(tuple(pack), settings, _ORDER, parallel, change_type)
                for pack in pack_splits(states, tasks)
            ]
        splits = self._plans.log_splits(first, last)
        tasks = last.tasks or self._tasks(rows_max_of(splits))
        return [
            SplitsPartition(tuple(pack), settings, _ORDER, parallel)
            for pack in pack_splits(splits, tasks)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one partition, on a worker."""
        with self.error_context:
            yield from read_partition(partition, self._schema)

    def _tasks(self, rows: int) -> int:
        return task_count(rows, self._options, self._parallelism)

    def commit(self, end: dict[str, Any]) -> None:
        """Do nothing: the servers decide how long a log is kept."""

    def stop(self) -> None:
        """Do nothing: only the shared connection of the process is open between calls."""


def _check(options: FlussOptions) -> None:
    if FILTER in options.spark:
        raise InvalidValueError(
            "A stream has no filter: its position counts every row by offset.",
            hint=".where(...) on the frame",
            option=FILTER,
        )
    for name in ("end", "tail", "limit", "as_of", "order"):
        if name in options.scan:
            raise InvalidValueError(
                f"A stream has no {name}: it does not end.",
                hint="spark.read, or trigger(availableNow=True) for what is there now",
                option=name,
            )
