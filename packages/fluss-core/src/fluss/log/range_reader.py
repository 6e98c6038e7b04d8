"""Reads ranges of a log once: the one loop of scans, states, counts and times.

A `RangeRequest` names what is read and the bounds; a `RangeReader` fetches it ahead of
its caller, who iterates it on a blocking thread or on the engine's loop. The batches are not
decoded. Records on servers and records in the remote store come the same way.

What is not here: reading on without an end (`log.log_scan`), the requests themselves
(`log.fetcher`), decoding (`log.decode`).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass, replace

from fluss.connection.connection import TableHandle
from fluss.errors import ClosedError, PartitionNotFoundError
from fluss.log.fetch_messages import Fetched, FetchTarget
from fluss.log.fetcher import Fetcher
from fluss.log.log_services import fetch_limits
from fluss.log.plan_fetch import Position
from fluss.log.table_reading import table_fetcher
from fluss.model.paths import PhysicalTablePath, TableBucket
from fluss.net.cancellation import Cancellation


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRange:
    """A part of the log of one bucket.

    Attributes:
        bucket: The bucket.
        path: Its table, and its partition where the name is known.
        start: The first offset, or `EARLIEST_OFFSET`, `LATEST_OFFSET`.
        stop: One past the last offset; None for where the log ends when it is first fetched.
        skips_trimmed: Whether rows that have been trimmed are left out instead of being an error.
        begins_at_earliest: The same as long as none of its rows have been read.
    """

    bucket: TableBucket
    path: PhysicalTablePath
    start: int
    stop: int | None = None
    skips_trimmed: bool = False
    begins_at_earliest: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to fetch."""
        return self.stop is not None and self.start >= self.stop


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeRequest:
    """What is read of the log of a table, and within which bounds.

    Attributes:
        ranges: The ranges, at most one for each bucket.
        target: Which columns are fetched, and which rows servers may leave out.
        unread_bytes_max: How many fetched bytes may be unread; None for the connection's limit.
        rows_max: How many rows the caller takes, where that is known: so little is fetched first.
        skips_missing: Whether dropped partitions are left out instead of being an error.
        cancellation: Ends the reading of a blocking thread from another one.
    """

    ranges: Sequence[LogRange]
    target: FetchTarget
    unread_bytes_max: int | None = None
    rows_max: int | None = None
    skips_missing: bool = False
    cancellation: Cancellation | None = None


class RangeReader:
    """Undecoded batches of some ranges, bucket by bucket in the order of their offsets.

    Args:
        table: The table.
        request: What is read of it.
    """

    def __init__(self, table: TableHandle, request: RangeRequest) -> None:
        self._table = table
        self._request = request
        self._engine = table.connection.engine
        limits = fetch_limits(table.connection)
        if request.unread_bytes_max is not None:
            limits = replace(limits, unread_bytes_max=request.unread_bytes_max)
        self._limits_max = limits
        self._limits = limits.first(request.rows_max)
        self._fetcher: Fetcher | None = None
        self._closed = False

    def __iter__(self) -> Iterator[Fetched]:
        """Read on a blocking thread; the reader is closed when the iteration ends."""
        cancellation = self._request.cancellation
        try:
            while taken := self._engine.run(self.take(), cancellation=cancellation):
                yield from taken
        finally:
            self.close()

    def close(self) -> None:
        """Stop fetching; a thread that waits gets an error. Idempotent; any thread may call it."""
        if not self._closed:
            self._closed = True
            self._engine.post_cleanup(self._close_fetcher)

    # --- on the engine's loop -----------------------------------------------------------------

    async def __aiter__(self) -> AsyncGenerator[Fetched, None]:
        """Read on the engine's loop; the reader is closed when the iteration ends."""
        try:
            while taken := await self.take():
                for fetched in taken:
                    yield fetched
        finally:
            self.close()

    async def take(self) -> list[Fetched]:
        """Take all that has been fetched since the last call; wait for it.

        Returns:
            An empty list at the end of all ranges.

        Raises:
            ClosedError: The reader has been closed.
            FlussError: A bucket cannot be read; raised after all before it has been taken.
        """
        if self._closed:
            raise ClosedError("The scan has been closed.", hint="Open it again to read it.")
        if self._fetcher is None:
            self._fetcher = self._open()
        while True:
            try:
                taken = await self._fetcher.take(None)
            except PartitionNotFoundError:
                if not (self._request.skips_missing and self._leave_missing(self._fetcher)):
                    raise
                continue
            self._limits = self._limits.grown(self._limits_max)
            self._fetcher.plan.limits = self._limits
            return taken

    def leave(self, bucket: TableBucket) -> None:
        """Stop reading a bucket before its end."""
        if self._fetcher is not None:
            self._fetcher.unsubscribe(bucket)

    def _open(self) -> Fetcher:
        fetcher = table_fetcher(
            self._table, self._request.target, limits=self._limits, is_bounded=True
        )
        for part in self._request.ranges:
            if not part.is_empty:
                fetcher.subscribe(
                    Position(
                        bucket=part.bucket,
                        path=part.path,
                        offset=part.start,
                        stop=part.stop,
                        skips_trimmed=part.skips_trimmed,
                        begins_at_earliest=part.begins_at_earliest,
                    )
                )
        return fetcher

    def _close_fetcher(self) -> None:
        if self._fetcher is not None:
            self._fetcher.close()

    def _leave_missing(self, fetcher: Fetcher) -> bool:
        gone = [
            bucket
            for bucket, position in fetcher.plan.positions.items()
            if isinstance(position.error, PartitionNotFoundError)
        ]
        for bucket in gone:
            fetcher.unsubscribe(bucket)
        return bool(gone)
