"""Counters of one scan, kept while it is read."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, fields
from typing import Any

from fluss.progress import Amount


@dataclass(slots=True, kw_only=True)
class ScanStats:
    """The counters of one scan. Any thread may read them, also while the scan goes on.

    Attributes:
        splits: How many splits it was planned into.
        partitions_pruned: Partitions that are left out.
        buckets_pruned: Buckets that are left out.
        files_pruned: Files of a lake that are left out.
        row_groups_pruned: Row groups of files of a lake that were left out while they were read.
        rows_max: No fewer than there are rows: the offsets between starts and ends.
        bytes_read: Bytes of record batches that came from servers and files.
        batches_read: Record batches in them.
        rows_read: Rows in them.
        rows_returned: Rows given to the caller.
        batches_returned: Arrow batches given to the caller.
    """

    splits: int = 0
    partitions_pruned: int = 0
    buckets_pruned: int = 0
    files_pruned: int = 0
    row_groups_pruned: int = 0
    rows_max: int = 0
    bytes_read: int = 0
    batches_read: int = 0
    rows_read: int = 0
    rows_returned: int = 0
    batches_returned: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def amount(self) -> Amount:
        """How far the scan is, for `progress`."""
        rows_max = self.rows_max or None
        return Amount(
            rows=self.rows_returned, done=max(self.rows_read, self.rows_returned), rows_max=rows_max
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # A scan that is read in another process is counted there.
        return ScanStats, (), {**self.to_dict()}

    def __setstate__(self, counts: dict[str, int]) -> None:
        self.add(**counts)

    def add(self, **numbers: int) -> None:
        """Add to counters, by name."""
        with self._lock:
            for name, number in numbers.items():
                setattr(self, name, getattr(self, name) + number)

    def to_dict(self) -> dict[str, int]:
        """The counters by name."""
        return {
            each.name: getattr(self, each.name)
            for each in fields(self)
            if not each.name.startswith("_")
        }
