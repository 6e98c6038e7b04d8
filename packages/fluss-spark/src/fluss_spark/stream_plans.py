"""What a stream asks the cluster: where its log ends now, and what a micro-batch is made of.

Spark asks where a log ends many times a second while nothing comes; what was just learned is good
for some of that. Every answer is held against what the stream has seen before: a log that ends
earlier than it did, rows that were trimmed before they were read, partitions that were dropped.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.types import StructType

from fluss.errors import (
    FlussError,
    OffsetOutOfRangeError,
    PartitionNotFoundError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from fluss.model.options.bounds import LATEST, Bound, BoundKind, bound_of
from fluss.model.options.scan_options import BUCKET, CHANGE_TYPE, PARTITION, Mode, ScanOptions
from fluss.model.paths import TableBucket
from fluss.scan import ScanSplit
from fluss.session import Scan
from fluss.session.source import TableSource
from fluss_spark.column_names import matched
from fluss_spark.first_connection import opened
from fluss_spark.spark_options import FlussOptions
from fluss_spark.spark_types import check_declared
from fluss_spark.stream_offsets import Ends, StreamOffset
from fluss_spark.table_access import known_names, source_for, with_columns, with_names_of

# How long an answer is good for, where the same is asked again: a moment, or some times as long as
# it took to get, so that a query of a thousand buckets that waits does not keep a core busy.
KEPT_S: Final = 0.05
KEPT_TIMES: Final = 4
KEPT_S_MAX: Final = 0.5
KEPT_MAX: Final = 2
_OF_STATES: Final = (BUCKET, PARTITION)
_NEW_CHECKPOINT: Final = "begin again with a new checkpoint location"
_LOG = logging.getLogger("fluss.spark")


@dataclass(frozen=True, kw_only=True)
class LogPlan:
    """The log of a table, from somewhere to its end, bucket by bucket."""

    table_id: int
    splits: dict[TableBucket, ScanSplit]
    took_s: float
    at_s: float = field(default_factory=time.monotonic)

    @property
    def is_new(self) -> bool:
        """Whether it is good for another question."""
        kept_s = max(KEPT_S, min(KEPT_TIMES * self.took_s, KEPT_S_MAX))
        return time.monotonic() - self.at_s < kept_s

    def covers(self, ends: Ends) -> bool:
        """Whether the log was seen to reach these offsets."""
        seen = self.ends
        return all(offset <= seen.get(bucket, -1) for bucket, offset in ends.items())

    @property
    def begins(self) -> Ends:
        """Where each stretch begins."""
        return {bucket: each.start for bucket, each in self.splits.items()}

    @property
    def ends(self) -> Ends:
        """Where the log of each bucket ends."""
        return {bucket: each.stop for bucket, each in self.splits.items()}


class StreamPlans:
    """Plans of one stream.

    Args:
        options: What was written beside the format.
        declared: The columns that Spark wants.
    """

    def __init__(self, options: FlussOptions, declared: StructType) -> None:
        self._source: TableSource = source_for(options)
        self._declared = declared
        self._columns: list[str] = declared.names
        self._is_full = options.is_full
        self._loses = not options.flag("failOnDataLoss", default=True)
        self._known: dict[Hashable, LogPlan] = {}
        self._seen: Ends = {}
        self.name = str(self._source.path)

    @property
    def settings(self) -> dict[str, Any]:
        """How a worker connects; markers of secrets stay markers."""
        return self._source.config.written()

    @property
    def options(self) -> ScanOptions:
        """The options of the scan, as they were written."""
        return self._source.options

    def has_state(self) -> bool:
        """Whether the table has a state, beside its log."""
        return bool(opened(self._source).primary_key)

    def log(self, start: Any) -> LogPlan:
        """The log from here to where it ends now.

        Args:
            start: A place in the stream, or where else a scan may begin.

        Raises:
            FlussError: The stream cannot go on from here; the hint says what to do.
        """
        if isinstance(start, StreamOffset):
            start = start.cursor()
        known = self._known.get(start)
        if known is not None and known.is_new:
            return known
        plan = self._planned(start)
        # One of where the query stands, one of where the log ends.
        while len(self._known) >= KEPT_MAX:
            del self._known[next(iter(self._known))]
        self._known[start] = plan
        self._seen |= plan.ends
        return plan

    def stretches(self, begin: StreamOffset, end: StreamOffset) -> list[ScanSplit]:
        """The log between two places: the same rows whenever it is asked.

        Raises:
            OffsetOutOfRangeError: The log ends before the second place: rows were lost.
            PartitionNotFoundError: A partition between them was dropped.
        """
        plan = self._known.get(begin.cursor())
        if plan is None or not plan.covers(end.offsets):
            plan = self.log(begin)
        cut = []
        for bucket, stop in sorted(end.offsets.items()):
            split = plan.splits.get(bucket)
            if split is None:
                if stop > begin.offsets.get(bucket, 0):
                    self._say_dropped(bucket, stop)
                continue
            if stop > split.stop:
                raise self._went_back(bucket, split.stop, stop)
            if stop > split.start:
                cut.append(replace(split, stop=stop))
        return cut

    def states(self, pins: Mapping[TableBucket, int]) -> list[ScanSplit]:
        """The states of buckets as they were at these offsets.

        Raises:
            OffsetOutOfRangeError: Nobody can tell any more what they were.
            PartitionNotFoundError: A partition was dropped before its state was given.
        """
        there = self.log(LATEST).splits
        for bucket in pins:
            if bucket not in there:
                self._say_dropped(bucket, 0)
        places = tuple(
            ((each.partition_id, each.bucket_id), pin)
            for each, pin in sorted(pins.items())
            if each in there
        )
        if not places:
            return []
        table = opened(self._source)
        # What only a change has is added where the rows are read.
        metadata = self._source.options.metadata_names
        known = [*table.schema.names, *(n for n, of in metadata.items() if of in _OF_STATES)]
        names = [each for each in matched(self._columns, known) if each in known]
        asked = replace(
            self._source.options,
            mode=Mode.STATE,
            as_of=Bound(kind=BoundKind.OFFSETS, offsets=places),
            columns=tuple(names) or table.primary_key,
            with_metadata=(),
        )
        try:
            splits = Scan(table.core, asked).splits()
        except OffsetOutOfRangeError as error:
            raise error.with_context(table=self.name, hint=_NEW_CHECKPOINT) from error
        return [each for each in splits if each.bucket in pins]

    def check_kept(self, at: StreamOffset, plan: LogPlan) -> None:
        """Notice what is gone since the query stood here, and whether rows went with it.

        Raises:
            PartitionNotFoundError: A partition was dropped that may have had unread rows.
        """
        for bucket, begin in plan.begins.items():
            if begin > at.offsets.get(bucket, begin):
                _LOG.warning(
                    "%s: offsets %d to %d of %s are lost: they were trimmed before they were read",
                    self.name,
                    at.offsets[bucket],
                    begin - 1,
                    bucket,
                )
        for bucket, offset in {**at.offsets, **at.pending}.items():
            is_read = bucket not in at.pending and self._seen.get(bucket) == offset
            if bucket not in plan.splits and not is_read:
                self._say_dropped(bucket, offset)

    def _planned(self, start: Any) -> LogPlan:
        table = opened(self._source)
        asked = with_names_of(table, self._log_options(table.primary_key))
        asked = with_columns(asked, matched(self._columns, known_names(table, asked)))
        asked = replace(asked, start=bound_of(start, "start"))
        began_s = time.monotonic()
        scan = Scan(table.core, asked)
        self._check_declared(scan.schema)
        try:
            splits = scan.splits()
        except OffsetOutOfRangeError as error:
            if asked.start is None or asked.start.cursor is None:
                raise  # it is of what was written beside the format, and says so
            raise self._explained(error) from error
        except TableNotFoundError as error:
            if asked.start is None or asked.start.cursor is None:
                raise
            raise TableNotFoundError(
                f"The checkpoint is of the table with the id {asked.start.cursor.table_id}, and "
                f"{self.name} has the id {table.info.table_id}: it was dropped and created again, "
                "or the checkpoint is of another query.",
                hint=_NEW_CHECKPOINT,
                table=self.name,
            ) from error
        return LogPlan(
            table_id=table.info.table_id,
            splits={each.bucket: each for each in splits},
            took_s=time.monotonic() - began_s,
        )

    def _check_declared(self, schema: pa.Schema) -> None:
        if self._is_full:  # a state has no offsets and times
            schema = pa.schema([each.with_nullable(True) for each in schema])
        check_declared(self._declared, schema, self.name)

    def _log_options(self, primary_key: tuple[str, ...]) -> ScanOptions:
        asked = self._source.options
        if self._loses:
            asked = replace(asked, on_trimmed="earliest", missing_partitions="skip")
        if asked.mode is None and primary_key:
            change_type = asked.metadata_prefix + CHANGE_TYPE[1:]
            if change_type not in matched(self._columns, [change_type]):
                raise UnsupportedOperationError(
                    f"A stream of {self.name}, which has a primary key, is of its changes, and the "
                    "columns do not say what each change is.",
                    hint=f"load('{self.name}$changelog'), which has _change_type; where mode is "
                    "'changelog', columns may leave it out",
                    table=self.name,
                )
            asked = replace(asked, mode=Mode.CHANGELOG)
        if asked.mode not in {None, Mode.LOG, Mode.CHANGELOG}:
            raise UnsupportedOperationError(
                f"What is streamed is a log; mode={asked.mode.value!r} is none.",
                hint="say mode='changelog', or load('db.table$changelog')",
            )
        return asked

    def _explained(self, error: OffsetOutOfRangeError) -> FlussError:
        if "earliest" in error.facts:
            hint = (
                "failOnDataLoss=false goes on where the log begins now, and what lay before is "
                f"missing from the output; or {_NEW_CHECKPOINT}"
            )
        else:
            hint = (
                "offsets do not go backwards by themselves: a server without replicas loses rows "
                f"when it crashes, and a restored cluster is another one; {_NEW_CHECKPOINT}"
            )
        return error.with_context(table=self.name, hint=hint)

    def _went_back(self, bucket: TableBucket, found: int, seen: int) -> OffsetOutOfRangeError:
        return OffsetOutOfRangeError(
            f"{self.name}: the log of {bucket} ends at {found}, and this query has seen it end at "
            f"{seen}. Rows it counted on are gone.",
            hint=f"a server without replicas loses rows when it crashes; {_NEW_CHECKPOINT}",
            bucket=bucket.bucket_id,
            offset=seen,
        )

    def _say_dropped(self, bucket: TableBucket, offset: int) -> None:
        place = f"bucket {bucket.bucket_id} of the partition with the id {bucket.partition_id}"
        if self._loses or self._source.options.missing_partitions == "skip":
            _LOG.warning("%s: %s is gone; it was read to offset %d", self.name, place, offset)
            return
        chosen = self._source.options.partitions is not None
        left_out = ", or is none of 'partitions' any more" if chosen else ""
        raise PartitionNotFoundError(
            f"{self.name}: {place} was dropped{left_out}, and this query had not read it to its "
            f"end, as far as it knows: it stood at offset {offset}.",
            hint="failOnDataLoss=false goes on without it",
            table=self.name,
            partition=bucket.partition_id,
        )
