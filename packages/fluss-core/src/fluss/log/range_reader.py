"""Reads ranges of a log once: the one loop of scans, states, counts and times.

A `RangeReader` fetches ahead of its caller, who iterates it on a blocking thread or on the engine's
loop. The batches are not decoded. Records on servers and records in the remote store come the same
way.

What is not here: reading on without an end (`log.log_scan`), the requests themselves
(`log.fetcher`), decoding (`log.decode`).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import replace

from fluss.connection.connection import TableHandle
from fluss.errors import ClosedError, PartitionNotFoundError
from fluss.log.fetch_messages import Fetched, FetchTarget
from fluss.log.fetcher import Fetcher
from fluss.log.log_services import fetch_limits
from fluss.log.plan_fetch import Position
from fluss.model.paths import TableBucket
from fluss.net.cancellation import Cancellation


class RangeReader:
    """Undecoded batches of some ranges, bucket by bucket in the order of their offsets.

    Args:
        table: The table.
        positions: Where the ranges begin and end, at most one for each bucket.
        target: Which columns are fetched, and which rows servers may leave out.
        unread_bytes_max: How many fetched bytes may be unread; None for the connection's limit.
        rows_max: How many rows the caller takes, where that is known: so little is fetched first.
        may_stop_soon: Whether the caller may stop after the first rows. Where it comes back for
            more, it reads on as one that takes all.
        takes_all: Whether the caller reads to the end in any case, and keeps the rows: then much is
            fetched ahead from the beginning, in answers that grow.
        skips_missing: Whether dropped partitions are left out instead of being an error.
        cancellation: Ends the reading of a blocking thread from another one.
    """

    def __init__(
        self,
        table: TableHandle,
        positions: Sequence[Position],
        target: FetchTarget,
        *,
        unread_bytes_max: int | None = None,
        rows_max: int | None = None,
        may_stop_soon: bool = False,
        takes_all: bool = False,
        skips_missing: bool = False,
        cancellation: Cancellation | None = None,
    ) -> None:
        self._table = table
        self._positions = positions
        self._target = target
        self._skips_missing = skips_missing
        self._cancellation = cancellation
        self._engine = table.connection.engine
        limits = fetch_limits(table.connection)
        if unread_bytes_max is not None:
            limits = replace(limits, unread_bytes_max=unread_bytes_max)
        is_unknown = may_stop_soon and rows_max is None
        if takes_all and rows_max is None and not may_stop_soon:
            self._limits_max = limits.keeping
            # The first answer is small, so that decoding begins soon.
            for_bucket = limits.bytes_max_for_bucket
            self._limits = replace(self._limits_max, bytes_max_for_bucket=for_bucket)
        else:
            self._limits_max = limits
            self._limits = limits.first(1 if is_unknown else rows_max)
        self._limits_next = limits.first(None) if is_unknown else None
        self._begins_small = self._limits.bytes_max_for_bucket < limits.bytes_max_for_bucket
        self._fetcher: Fetcher | None = None
        self._closed = False

    def __iter__(self) -> Iterator[Fetched]:
        """Read on a blocking thread; the reader is closed when the iteration ends."""
        try:
            while taken := self._engine.run(self.take(), cancellation=self._cancellation):
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
                # The first rows may be all the caller needs: the next request then waits until it
                # comes back. Ten rows of batches of half a megabyte cost one batch, not two.
                taken = await self._fetcher.take(None, fetches_on=not self._begins_small)
            except PartitionNotFoundError:
                if not (self._skips_missing and self._leave_missing(self._fetcher)):
                    raise
                continue
            self._begins_small = False
            self._limits = self._limits_next or self._limits.grown(self._limits_max)
            self._limits_next = None
            self._fetcher.plan.limits = self._limits
            return taken

    def leave(self, bucket: TableBucket) -> None:
        """Stop reading a bucket before its end."""
        if self._fetcher is not None:
            self._fetcher.unsubscribe(bucket)

    def _open(self) -> Fetcher:
        fetcher = Fetcher(self._table, self._target, limits=self._limits, is_bounded=True)
        for position in self._positions:
            if not position.is_finished:
                fetcher.subscribe(position)
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
