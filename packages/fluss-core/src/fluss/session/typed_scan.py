"""What scans and followers of typed rows give: rows of a class, or changes of such rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Generic, NamedTuple, Self, TypeVar

import pyarrow as pa

from fluss.doors import at_door
from fluss.hints import Door
from fluss.model.change_type import ChangeType
from fluss.model.metadata_columns import METADATA_TYPES
from fluss.model.options.bounds import Cursor
from fluss.records.convert.to_python import python_values
from fluss.scan.follow import WAIT_S
from fluss.session.session_scan import Follow, Scan
from fluss.typed.field_types import RowClass
from fluss.typed.row_codec import naming_class

Item = TypeVar("Item")
Row = TypeVar("Row")

CHANGE_METADATA = ("change_type", "log_offset", "commit_timestamp", "bucket", "partition")


class Change(NamedTuple, Generic[Row]):
    """One change of a table, or one append of a log.

    Attributes:
        row: The row: as it was before for `UpdateBefore` and `Delete`, otherwise as it is then.
        change_type: What happened; an append is `Insert`, as in the changelog of Fluss.
        log_offset: Its offset in the log of its bucket.
        commit_timestamp: When the server took it.
        bucket: Its bucket.
        partition: The name of its partition; None where the table has none.
    """

    row: Row
    change_type: ChangeType
    log_offset: int
    commit_timestamp: datetime
    bucket: int
    partition: str | None

    @property
    def is_delete(self) -> bool:
        """Whether the row is gone."""
        return self.change_type is ChangeType.Delete

    @property
    def is_before(self) -> bool:
        """Whether this is a row before its update; the row after it follows."""
        return self.change_type is ChangeType.UpdateBefore


def change_reader(
    read: Callable[[pa.RecordBatch], list[Row]], prefix: str
) -> Callable[[pa.RecordBatch], list[Change[Row]]]:
    """Return a function that makes changes of batches with metadata columns.

    Args:
        read: Makes the rows.
        prefix: The prefix of the names of metadata columns.
    """

    def read_changes(batch: pa.RecordBatch) -> list[Change[Row]]:
        metadata = [
            python_values(batch.column(f"{prefix}{name}"), METADATA_TYPES[f"_{name}"])
            for name in CHANGE_METADATA
        ]
        metadata[0] = [ChangeType.parse(each) for each in metadata[0]]
        return list(map(Change, read(batch), *metadata))

    return read_changes


@at_door(Door.SESSION)
class TypedScan(Generic[Item]):
    """A scan with the rows of a class; `typed.scan(...)` makes it. Any thread may use it.

    As of any scan, its offsets are pinned when it is first read, and it gives the same rows twice.
    """

    def __init__(
        self, scan: Scan, read: Callable[[pa.RecordBatch], list[Item]], row: RowClass
    ) -> None:
        self._scan = scan
        self._read = read
        self._row = row

    @property
    def scan(self) -> Scan:
        """The scan, which has the same rows as Arrow, pandas and Polars, and its plan."""
        return self._scan

    def __iter__(self) -> Iterator[Item]:
        with self._scan.to_reader() as reader:
            first = 0
            for batch in reader:
                yield from _rows(self._read, batch, self._row, first)
                first += batch.num_rows

    def to_list(self) -> list[Item]:
        """All its rows."""
        return list(self)

    def count(self) -> int:
        """How many rows it has; see `Scan.count`."""
        return self._scan.count()

    def cursor(self) -> Cursor:
        """Where it ends; see `Scan.cursor`."""
        return self._scan.cursor()

    def __repr__(self) -> str:
        return f"TypedScan({self._scan!r}, {self._row.name})"


@at_door(Door.SESSION)
class TypedFollow(Generic[Item]):
    """A log that is followed, with the rows of a class; for one thread at a time."""

    def __init__(
        self, follow: Follow, read: Callable[[pa.RecordBatch], list[Item]], row: RowClass
    ) -> None:
        self._follow = follow
        self._read = read
        self._row = row
        # Rows that were converted and not given out, and where their batch begins.
        self._waiting: deque[Item] = deque()
        self._before: Cursor | None = None

    @property
    def follow(self) -> Follow:
        """The follower of the same log that gives Arrow; a row is given by one of the two."""
        return self._follow

    def poll(self, timeout_s: float = WAIT_S) -> list[Item]:
        """Take the rows that have arrived since the last call, or wait for some.

        Args:
            timeout_s: How long to wait at most.

        Raises:
            ClosedError: The follower has been closed.
        """
        if not self._waiting:
            before = self._follow.cursor()
            self._convert(self._follow.poll(timeout_s), before)
        rows = list(self._waiting)
        self._waiting.clear()
        self._before = None
        return rows

    def __iter__(self) -> Iterator[Item]:
        batches = iter(self._follow)
        while True:
            while self._waiting and not self.is_closed:
                row = self._waiting.popleft()
                if not self._waiting:
                    self._before = None
                yield row
            if self.is_closed:
                return
            before = self._follow.cursor()
            batch = next(batches, None)
            if batch is None:
                return
            self._convert([batch], before)

    def _convert(self, batches: Iterable[pa.RecordBatch], before: Cursor) -> None:
        self._before = before  # where a row that its class refuses is read again
        for batch in batches:
            self._waiting.extend(_rows(self._read, batch, self._row, 0))
        if not self._waiting:
            self._before = None

    def cursor(self) -> Cursor:
        """Where the rows given out so far end: `follow(start=cursor)` goes on from there.

        Rows come in batches. Before the last row of a batch is given out, the cursor stands before
        the batch, so that a program that goes on from there misses no row and may see some twice.
        """
        return self._follow.cursor() if self._before is None else self._before

    @property
    def is_closed(self) -> bool:
        """Whether it has been closed."""
        return self._follow.is_closed

    def close(self) -> None:
        """Read no more; a thread that iterates comes to the end. Idempotent."""
        self._follow.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"TypedFollow({self._follow!r}, {self._row.name})"


def _rows(
    read: Callable[[pa.RecordBatch], list[Item]], batch: pa.RecordBatch, row: RowClass, first: int
) -> list[Item]:
    with naming_class(row, first=first):
        return read(batch)
