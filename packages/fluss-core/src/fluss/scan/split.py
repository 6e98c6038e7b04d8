"""One piece of a planned scan: a bucket, from one offset to another, and what is wanted of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from fluss.model.options.scan_options import METADATA_PREFIX, Mode
from fluss.model.paths import TableBucket, TablePath
from fluss.model.predicates.predicate import Predicate
from fluss.model.tables.table_info import TableInfo
from fluss.scan.plan_scan import Output, Window
from fluss.state.changelog import ChangeColumns
from fluss.state.state_planner import StatePlan


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanSplit:
    """What one reader reads. Whoever opens it brings the settings to connect with.

    Attributes:
        table_path: The table.
        bucket: The bucket, with the table's id: a table created again has another.
        partition_name: The partition the bucket is of; None where there are none.
        schema_id: The schema the scan was planned with.
        start: The first offset.
        stop: The offset behind the last.
        output: The columns wanted, in the order wanted.
        chosen: Which columns of a binlog are given; None for all.
        mode: What the rows are.
        filter: Which rows are wanted, by the table's own columns; None for all.
        metadata_filter: Which of those, by metadata columns as well; None for all.
        metadata_prefix: What the metadata columns' names begin with.
        window: Which commit timestamps are wanted; None for all.
        limit: How many rows the whole scan is to give at most.
        state: How the state of the bucket is found; None where a log is read.
        keys: The keys to look up, in place of reading a bucket; None where one is read.
        prefix_columns: The columns of those keys, where they are beginnings of keys.
        skips_missing: Whether a partition that is gone has no rows instead of being an error.
        skips_trimmed: Whether rows of a log that are gone by now are left out, instead of being an
            error.
        begins_at_earliest: Whether it begins where the log does when it is read, if rows are gone
            by then; for plans that are read once and by those who made them.
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
        """The names of the columns wanted."""
        return self.output.names

    @property
    def change_columns(self) -> ChangeColumns:
        """The names of the columns that say what a change is."""
        return change_columns(self.metadata_prefix)

    @property
    def is_filtered(self) -> bool:
        """Whether some of its rows may not be wanted."""
        wanted = (self.filter, self.metadata_filter, self.window)
        return any(each is not None for each in wanted)

    @property
    def rows_max(self) -> int:
        """No fewer than there are rows: offsets without rows count as well."""
        return max(0, self.stop - self.start)


def change_columns(prefix: str) -> ChangeColumns:
    """The names of the columns that say what a change is, with this beginning."""
    return ChangeColumns(
        change_type=f"{prefix}change_type",
        log_offset=f"{prefix}log_offset",
        commit_timestamp=f"{prefix}commit_timestamp",
    )
