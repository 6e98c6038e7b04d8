"""One piece of a planned scan: a bucket, from one offset to another, and what is wanted of it."""

from __future__ import annotations

from dataclasses import dataclass

from fluss.model.paths import TableBucket, TablePath
from fluss.model.predicate import Predicate
from fluss.model.scan_options import Mode, Strategy
from fluss.plan.scan import Output, Window


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
        mode: What the rows are.
        filter: Which rows are wanted; None for all.
        window: Which commit timestamps are wanted; None for all.
        limit: How many rows the whole scan is to give at most.
        strategy: How the state of a primary-key table is found, where somebody has said so.
        skips_missing: Whether a partition that is gone has no rows instead of being an error.
    """

    table_path: TablePath
    bucket: TableBucket
    partition_name: str | None = None
    schema_id: int
    start: int
    stop: int
    output: Output
    mode: Mode = Mode.LOG
    filter: Predicate | None = None
    window: Window | None = None
    limit: int | None = None
    strategy: Strategy | None = None
    skips_missing: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns wanted."""
        return self.output.names

    @property
    def rows_max(self) -> int:
        """No fewer than there are rows: offsets without rows count as well."""
        return max(0, self.stop - self.start)
