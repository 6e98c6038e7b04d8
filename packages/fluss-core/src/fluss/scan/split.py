"""One piece of a planned scan: a bucket, from one offset to another, and what is read of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from fluss.lake.lake_format import LakePart
from fluss.model.options.scan_options import METADATA_PREFIX, Mode
from fluss.model.paths import TableBucket, TablePath
from fluss.model.predicates.predicate import Predicate
from fluss.model.tables.table_info import TableInfo
from fluss.scan.plan_scan import Output, Window
from fluss.state.changelog import ChangeColumns
from fluss.state.state_planner import StatePlan


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanSplit:
    """A piece of a scan for one reader, which has settings of its own to connect with.

    Attributes:
        table_path: The table.
        bucket: The bucket, with the table's id: a table created again has another.
        partition_name: The partition the bucket is of; None where there are none.
        schema_id: The schema the scan was planned with.
        start: The first offset.
        stop: One past the last offset.
        output: The columns that are read, in order.
        chosen: Which columns of a binlog are given; None for all.
        mode: The kind of its rows.
        filter: The condition on the table's own columns; None for all rows.
        metadata_filter: The condition that looks at metadata columns as well; None for all rows.
        metadata_prefix: The prefix of the names of metadata columns.
        window: Which commit timestamps are read; None for all.
        limit: How many rows the whole scan gives at most.
        state: How the state of the bucket is found; None where a log is read.
        lake: The files of the bucket in a lake, where its rows are read there and not in the log.
        keys: The keys to look up, in place of reading a bucket; None where one is read.
        prefix_columns: The columns of those keys, where they are beginnings of keys.
        skips_missing: Whether a partition that was dropped has no rows; otherwise it is an error.
        skips_trimmed: Whether rows that were trimmed are left out; otherwise they are an error.
        begins_at_earliest: Whether it begins where the log does when it is read, if rows were
            trimmed by then; for plans that their maker reads once.
    """

    table_path: TablePath
    bucket: TableBucket
    partition_name: str | None = None
    schema_id: int
    start: int
    stop: int
    output: Output
    chosen: tuple[str, ...] | None = None
    mode: Mode = Mode.LOG
    filter: Predicate | None = None
    window: Window | None = None
    limit: int | None = None
    metadata_filter: Predicate | None = None
    metadata_prefix: str = METADATA_PREFIX
    state: StatePlan | None = None
    lake: LakePart | None = None
    keys: tuple[tuple[Any, ...], ...] | None = None
    prefix_columns: tuple[str, ...] = ()
    skips_missing: bool = False
    skips_trimmed: bool = False
    begins_at_earliest: bool = False

    @classmethod
    def of_log(
        cls,
        table: TableInfo,
        bucket: TableBucket,
        partition_name: str | None,
        *,
        start: int,
        stop: int,
        columns: Sequence[str] = (),
    ) -> Self:
        """A stretch of the log of one bucket, with some of the table's columns."""
        return cls(
            table_path=table.table_path,
            bucket=bucket,
            partition_name=partition_name,
            schema_id=table.schema_id,
            start=start,
            stop=stop,
            output=Output(names=tuple(columns), metadata=(None,) * len(columns)),
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that are read."""
        return self.output.names

    @property
    def change_columns(self) -> ChangeColumns:
        """The names of the columns that describe a change."""
        return change_columns(self.metadata_prefix)

    @property
    def is_filtered(self) -> bool:
        """Whether conditions may leave out some of its rows."""
        conditions = (self.filter, self.metadata_filter, self.window)
        return any(condition is not None for condition in conditions)

    @property
    def rows_max(self) -> int:
        """An upper bound of its rows: offsets without rows count as well."""
        offsets = max(0, self.stop - self.start)
        return offsets if self.lake is None else min(offsets, self.lake.rows_max)


def files_of(split: ScanSplit) -> LakePart | None:
    """The files of a lake that a split reads, alone or beneath the changes of a state."""
    if split.lake is not None or split.state is None:
        return split.lake
    return split.state.lake


def change_columns(prefix: str) -> ChangeColumns:
    """The names of the columns that describe a change, with this prefix."""
    return ChangeColumns(
        change_type=f"{prefix}change_type",
        log_offset=f"{prefix}log_offset",
        commit_timestamp=f"{prefix}commit_timestamp",
    )
