"""Plans the micro-batches of a stream, and detects rows that are lost.

Spark asks where a log ends many times a second while nothing arrives; a recent plan answers some of
that. Every plan is compared with what the stream has seen before: a log that ends earlier than it
did, rows that were trimmed before they were read, partitions that were dropped.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.types import StructType

from fluss import TableBucket, TableInfo
from fluss.errors import (
    FlussError,
    OffsetOutOfRangeError,
    PartitionNotFoundError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from fluss.scan import (
    BUCKET,
    CHANGE_TYPE,
    LATEST,
    PARTITION,
    Bound,
    BoundKind,
    Mode,
    ScanOptions,
    ScanSplit,
    TableSource,
)
from fluss_spark.column_names import match_names
from fluss_spark.first_connection import open_table
from fluss_spark.spark_options import FlussOptions
from fluss_spark.spark_types import check_declared
from fluss_spark.stream_offsets import Ends, StreamOffset
from fluss_spark.table_access import scan_of_table, source_for, with_columns

# How long a plan answers the same question again: a moment, or some multiple of the time that it
# took, so that an idle query over a thousand buckets does not keep a core busy.
KEPT_S: Final = 0.05
KEPT_TIMES: Final = 4
KEPT_S_MAX: Final = 0.5
KEPT_MAX: Final = 2
_OF_STATES: Final = (BUCKET, PARTITION)
_NEW_CHECKPOINT: Final = "start again with a new checkpoint location"
_LOG = logging.getLogger("fluss.spark")


@dataclass(frozen=True, kw_only=True)
class LogPlan:
    """The log of a table, from a position to its end, bucket by bucket."""

    table_id: int
    splits: dict[TableBucket, ScanSplit]
    took_s: float
    at_s: float = field(default_factory=time.monotonic)

    @property
    def is_fresh(self) -> bool:
        """Whether it may answer another question."""
        kept_s = max(KEPT_S, min(KEPT_TIMES * self.took_s, KEPT_S_MAX))
        return time.monotonic() - self.at_s < kept_s

    def covers(self, ends: Ends) -> bool:
        """Return whether the log reaches these offsets in this plan."""
        seen = self.ends
        return all(offset <= seen.get(bucket, -1) for bucket, offset in ends.items())

    @property
    def starts(self) -> Ends:
        """Where each split starts."""
        return {bucket: each.start for bucket, each in self.splits.items()}

    @property
    def ends(self) -> Ends:
        """Where the log of each bucket ends."""
        return {bucket: each.stop for bucket, each in self.splits.items()}


class StreamPlans:
    """The plans of one stream.

    Args:
        options: The options of the format.
        declared: The columns that Spark requests.
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
        """The options of the scan, as the user gave them."""
        return self._source.options

    def has_state(self) -> bool:
        """Return whether the table has a state, besides its log."""
        return bool(open_table(self._source).primary_key)

    def log(self, start: Any) -> LogPlan:
        """Plan the log from a start to where it ends now.

        Args:
            start: A position in the stream, or any start of a scan.

        Raises:
            FlussError: The stream cannot continue from there; the hint is the remedy.
        """
        if isinstance(start, StreamOffset):
            start = start.cursor()
        known = self._known.get(start)
        if known is not None and known.is_fresh:
            return known
        plan = self._planned(start)
        # One from the position of the query, one of the end of the log.
        while len(self._known) >= KEPT_MAX:
            del self._known[next(iter(self._known))]
        self._known[start] = plan
        self._seen |= plan.ends
        return plan

    def log_splits(self, begin: StreamOffset, end: StreamOffset) -> list[ScanSplit]:
        """Return the splits between two positions. The same positions always give the same rows.

        Raises:
            OffsetOutOfRangeError: The log ends before the second position: rows were lost.
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
                    self._report_dropped(bucket, stop)
                continue
            if stop > split.stop:
                raise self._log_shrank(bucket, split.stop, stop)
            if stop > split.start:
                cut.append(replace(split, stop=stop))
        return cut

    def state_splits(self, pins: Mapping[TableBucket, int]) -> list[ScanSplit]:
        """Return the splits for the states of buckets at these offsets.

        Raises:
            OffsetOutOfRangeError: Their states at these offsets cannot be read any more.
            PartitionNotFoundError: A partition was dropped before its state was read.
        """
        existing = self.log(LATEST).splits
        for bucket in pins:
            if bucket not in existing:
                self._report_dropped(bucket, 0)
        offsets = tuple(
            ((bucket.partition_id, bucket.bucket_id), pin)
            for bucket, pin in sorted(pins.items())
            if bucket in existing
        )
        if not offsets:
            return []
        # Columns that only changes have are added where the rows are read.
        added = [n for n, of in self.options.metadata_names.items() if of in _OF_STATES]

        def state(info: TableInfo) -> dict[str, Any]:
            known = [*info.schema.column_names, *added]
            names = [each for each in match_names(self._columns, known) if each in known]
            as_of = Bound(kind=BoundKind.OFFSETS, offsets=offsets)
            columns = tuple(names) or info.primary_keys
            return {"mode": Mode.STATE, "as_of": as_of, "columns": columns, "with_metadata": None}

        scan = scan_of_table(self._source, state)
        try:
            splits = scan.splits()
        except OffsetOutOfRangeError as error:
            raise error.with_context(table=self.name, hint=_NEW_CHECKPOINT) from error
        return [each for each in splits if each.bucket in pins]

    def check_kept(self, at: StreamOffset, plan: LogPlan) -> None:
        """Detect rows and partitions after a position that were deleted before they were read.

        Raises:
            PartitionNotFoundError: A partition was dropped that may have had unread rows.
        """
        for bucket, start in plan.starts.items():
            if start > at.offsets.get(bucket, start):
                _LOG.warning(
                    "%s: offsets %d to %d of %s are lost: they were trimmed before they were read",
                    self.name,
                    at.offsets[bucket],
                    start - 1,
                    bucket,
                )
        for bucket, offset in {**at.offsets, **at.pending}.items():
            is_read = bucket not in at.pending and self._seen.get(bucket) == offset
            if bucket not in plan.splits and not is_read:
                self._report_dropped(bucket, offset)

    def _planned(self, start: Any) -> LogPlan:
        scan = scan_of_table(self._source, self._log_options)
        scan = with_columns(scan, self._columns).with_options(start=start, lake="off")
        is_of_checkpoint = scan.options.start is not None and scan.options.start.cursor is not None
        start_s = time.monotonic()
        self._check_declared(scan.schema)
        try:
            splits = scan.splits()
        except OffsetOutOfRangeError as error:
            if not is_of_checkpoint:
                raise  # it is about an option, and names it
            raise self._explained(error) from error
        except TableNotFoundError as error:
            if not is_of_checkpoint:
                raise
            raise TableNotFoundError(
                f"The checkpoint belongs to the table with the id {start.table_id}, and {self.name} "
                f"has the id {scan.table_info.table_id}: it was dropped and created again, or the "
                "checkpoint belongs to another query.",
                hint=_NEW_CHECKPOINT,
                table=self.name,
            ) from error
        return LogPlan(
            table_id=scan.table_info.table_id,
            splits={each.bucket: each for each in splits},
            took_s=time.monotonic() - start_s,
        )

    def _check_declared(self, schema: pa.Schema) -> None:
        if self._is_full:  # a state has no offsets and times
            schema = pa.schema([each.with_nullable(True) for each in schema])
        check_declared(self._declared, schema, self.name)

    def _log_options(self, info: TableInfo) -> dict[str, Any]:
        given = self.options
        changes: dict[str, Any] = {}
        if self._loses:
            changes |= {"on_trimmed": "earliest", "missing_partitions": "skip"}
        if given.mode is None and info.primary_keys:
            change_type = given.metadata_prefix + CHANGE_TYPE[1:]
            if change_type not in match_names(self._columns, [change_type]):
                raise UnsupportedOperationError(
                    f"A stream of {self.name}, which has a primary key, gives its changes, and the "
                    "columns lack the type of each change.",
                    hint=f"load('{self.name}$changelog'), which has _change_type; with mode "
                    "'changelog', columns may leave it out",
                    table=self.name,
                )
            changes["mode"] = Mode.CHANGELOG
        if given.mode not in {None, Mode.LOG, Mode.CHANGELOG}:
            raise UnsupportedOperationError(
                f"A stream reads a log; mode={given.mode.value!r} is none.",
                hint="mode='changelog', or load('db.table$changelog')",
            )
        return changes

    def _explained(self, error: OffsetOutOfRangeError) -> FlussError:
        if "earliest" in error.facts:
            hint = (
                "failOnDataLoss=false continues where the log starts now, and earlier rows are "
                f"missing from the output; or {_NEW_CHECKPOINT}"
            )
        else:
            hint = (
                "offsets go backwards only when rows are lost: a server without replicas loses some "
                f"when it crashes, and a restored cluster is another one; {_NEW_CHECKPOINT}"
            )
        return error.with_context(table=self.name, hint=hint)

    def _log_shrank(self, bucket: TableBucket, found: int, seen: int) -> OffsetOutOfRangeError:
        return OffsetOutOfRangeError(
            f"{self.name}: the log of {bucket} ends at {found}, and this query has seen it end at "
            f"{seen}. Rows that it has planned to read are gone.",
            hint=f"a server without replicas loses rows when it crashes; {_NEW_CHECKPOINT}",
            bucket=bucket.bucket_id,
            offset=seen,
        )

    def _report_dropped(self, bucket: TableBucket, offset: int) -> None:
        name = f"bucket {bucket.bucket_id} of the partition with the id {bucket.partition_id}"
        if self._loses or self._source.options.missing_partitions == "skip":
            _LOG.warning("%s: %s is gone; it was read to offset %d", self.name, name, offset)
            return
        is_chosen = self._source.options.partitions is not None
        left_out = ", or is not selected by 'partitions' any more" if is_chosen else ""
        raise PartitionNotFoundError(
            f"{self.name}: {name} was dropped{left_out}, and as far as this query knows it was not "
            f"read to its end: the query is at offset {offset}.",
            hint="failOnDataLoss=false continues without it",
            table=self.name,
            partition=bucket.partition_id,
        )
