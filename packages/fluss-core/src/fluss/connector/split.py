"""One piece of a planned scan: a bucket, from one offset to another."""

from __future__ import annotations

from dataclasses import dataclass

from fluss.model.paths import TableBucket, TablePath


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanSplit:
    """What one reader reads. Whoever opens it brings the settings to connect with.

    Attributes:
        table_path: The table.
        bucket: The bucket, with the table's id: a table created again has another.
        start: The first offset.
        stop: The offset behind the last.
        columns: The columns wanted, in the order wanted; None for all.
    """

    table_path: TablePath
    bucket: TableBucket
    start: int
    stop: int
    columns: tuple[str, ...] | None = None
