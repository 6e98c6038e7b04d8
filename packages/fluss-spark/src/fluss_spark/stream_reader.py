"""Reading a log as it grows: micro-batches between offsets that Spark keeps in its checkpoint.

The reader lives in one Python process for as long as its query runs. Micro-batches are planned from
two offsets alone, so that one that is run again has the same rows in the same tasks, and in the
same order. A stream that begins `full` gives the state of the table at an offset first, as
inserts, and from that offset on its changes.
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
from fluss.model.options.bounds import LATEST
from fluss.model.options.scan_options import CHANGE_TYPE
from fluss_spark.column_names import matched
from fluss_spark.error_context import START_AGAIN, ErrorContext, told
from fluss_spark.spark_options import FILTER, FlussOptions
from fluss_spark.spark_types import arrow_schema, to_spark
from fluss_spark.stream_offsets import BEGIN, TABLE, Ends, StreamOffset, shared_out
from fluss_spark.stream_plans import StreamPlans
from fluss_spark.task_splits import SplitsPartition, packed, read_partition, rows_of, tasks_for

INSERT = "insert"
# Rows of a task come bucket by bucket: a task that is run again writes them in the same order.
_ORDER = "bucket"


@dataclass(frozen=True)
class StatePartition(SplitsPartition):
    """States that one task reads, as inserts.

    Args:
        change_type: The name of the column that says so.
    """

    change_type: str = CHANGE_TYPE

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Their rows, in Spark's schema; what only a change has is NULL."""
        for batch in self.rows():
            names = matched(schema.names, [*batch.schema.names, self.change_type])
            columns = [
                self._column(batch, each.with_name(name))
                for each, name in zip(schema, names, strict=True)
            ]
            yield to_spark(pa.RecordBatch.from_arrays(columns, names=schema.names), schema)

    def _column(self, batch: pa.RecordBatch, wanted: pa.Field) -> pa.Array:
        if wanted.name in batch.schema.names:
            return batch.column(wanted.name)
        if wanted.name == self.change_type:
            return pa.repeat(pa.scalar(INSERT, wanted.type), batch.num_rows)
        return pa.nulls(batch.num_rows, wanted.type)


class FlussStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A log as Spark's micro-batch engine sees it.

    Args:
        options: What was written beside the format.
        schema: The columns that Spark wants.
        parallelism: How many tasks Spark runs at once, where that is known.
    """

    def __init__(
        self, options: FlussOptions, schema: StructType, parallelism: int | None = None
    ) -> None:
        self._options = options
        self._parallelism = parallelism
        self._declared = schema
        self._schema = arrow_schema(schema)
        self._target: Ends | None = None
        self.telling = ErrorContext(options.name, START_AGAIN)

    @cached_property
    def _plans(self) -> StreamPlans:
        # Not sooner: an error while a reader is made ends in one of Spark's own, which hides it.
        _check(self._options)
        return StreamPlans(self._options, self._declared)

    # --- where micro-batches begin and end ------------------------------------------------------

    @told
    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Where the query begins, when it has no checkpoint: Spark asks again in each repetition.

        So where that is, is found out once, for the end of the first micro-batch.
        """
        _ = self._plans  # says what is wrong with the options
        return dict(BEGIN)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """How much a micro-batch takes, where its trigger does not say."""
        if "maxOffsetsPerTrigger" not in self._options.spark:
            return ReadAllAvailable()
        return ReadMaxRows(self._options.number("maxOffsetsPerTrigger", 1))

    @told
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Where the next micro-batch ends; buckets that came since are in it from their begin."""
        rows_max = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        if start == BEGIN:
            at = self._begin()
            return self._named(replace(self._next(at, rows_max) or at, begun=at))
        end = self._next(StreamOffset.of(start), rows_max)
        return start if end is None else self._named(end)  # to the letter, or it is new to Spark

    def _named(self, offset: StreamOffset) -> dict[str, Any]:
        """An offset with the name of its table, which progress reports show nowhere else."""
        return {TABLE: self._plans.name, **offset.to_json()}

    def _begin(self) -> StreamOffset:
        if self._options.is_full and self._plans.has_state():
            plan = self._plans.log(LATEST)
            pins = plan.ends if self._target is None else self._target
            done = {bucket: 0 for bucket, pin in pins.items() if not pin}
            pending = {bucket: pin for bucket, pin in pins.items() if pin}
            return StreamOffset(table_id=plan.table_id, offsets=done, pending=pending)
        start = "earliest" if self._options.is_full else "latest"
        plan = self._plans.log(self._plans.options.start or start)
        return StreamOffset(table_id=plan.table_id, offsets=plan.begins)

    def _next(self, at: StreamOffset, rows_max: int | None) -> StreamOffset | None:
        """Where a micro-batch ends that begins there; None where there is nothing for one."""
        if at.pending:
            end = at.with_states(rows_max)
            pins = {each: pin for each, pin in at.pending.items() if each not in end.pending}
            return replace(end, tasks=self._tasks(sum(pins.values())))
        plan = self._plans.log(at)
        self._plans.check_kept(at, plan)
        begins, ends = plan.begins, plan.ends
        if self._target is not None:
            ends = {
                bucket: min(end, self._target.get(bucket, begins[bucket]))
                for bucket, end in ends.items()
            }
        taken = shared_out(begins, ends, rows_max)
        # What was dropped since is noted, too: whoever starts again does not miss it.
        is_whole = at.offsets.keys() <= taken.keys()
        if is_whole and all(taken[bucket] == at.offsets.get(bucket, 0) for bucket in taken):
            return None
        tasks = self._tasks(sum(taken[bucket] - begins[bucket] for bucket in taken))
        return StreamOffset(table_id=plan.table_id, offsets=taken, tasks=tasks)

    @told
    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Where the log ends now, for progress reports."""
        plan = self._plans.log(LATEST)
        return self._named(StreamOffset(table_id=plan.table_id, offsets=plan.ends))

    @told
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """What is there now is what this run reads."""
        self._target = self._plans.log(LATEST).ends

    # --- micro-batches --------------------------------------------------------------------------

    @told
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The tasks of one micro-batch: the same from the same two offsets.

        Raises:
            FlussError: Rows between them are gone.
        """
        last = StreamOffset.of(end)
        first = last.begun if start == BEGIN and last.begun is not None else StreamOffset.of(start)
        settings, parallel = self._plans.settings, self._plans.options.max_parallel
        pins = {each: pin for each, pin in first.pending.items() if each not in last.pending}
        if pins:
            states = self._plans.states(pins)
            tasks = last.tasks or self._tasks(sum(pins.values()))
            named = self._plans.options.metadata_prefix + CHANGE_TYPE[1:]
            return [
                StatePartition(tuple(each), settings, _ORDER, parallel, named)
                for each in packed(states, tasks)
            ]
        stretches = self._plans.stretches(first, last)
        tasks = last.tasks or self._tasks(rows_of(stretches))
        return [
            SplitsPartition(tuple(each), settings, _ORDER, parallel)
            for each in packed(stretches, tasks)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one partition, on a worker."""
        with self.telling:
            yield from read_partition(partition, self._schema)

    def _tasks(self, rows: int) -> int:
        return tasks_for(rows, self._options, self._parallelism)

    def commit(self, end: dict[str, Any]) -> None:
        """Spark has what lies before; the log is nobody's to clean up."""

    def stop(self) -> None:
        """Nothing is held between calls but the process's shared connection."""


def _check(options: FlussOptions) -> None:
    if FILTER in options.spark:
        raise InvalidValueError(
            "A stream has no filter: every row is counted by its offset.",
            hint=".where(...) on the frame",
            option=FILTER,
        )
    for name in ("end", "tail", "limit", "as_of", "order"):
        if name in options.scan:
            raise InvalidValueError(
                f"A stream has no {name}: it goes on.",
                hint="spark.read, or trigger(availableNow=True) for what is there now",
                option=name,
            )
