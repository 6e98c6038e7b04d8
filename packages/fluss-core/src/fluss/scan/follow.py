"""Follows a log: the only scan without an end, whose rows therefore cannot be collected.

Rows come as the servers have them. Partitions that are created later join when they are found. A
follower that was interrupted can be read on: rows that were fetched and not given out wait in it,
and its cursor stands after the last batch that was given out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import NoReturn, Self

import pyarrow as pa

from fluss.connection.connection import TableHandle
from fluss.doors import at_door
from fluss.errors import ClosedError, PartitionNotFoundError, UnsupportedOperationError
from fluss.hints import Door, Hint, HintKey
from fluss.log.fetch_messages import Fetched
from fluss.log.log_scan import LogScanCore
from fluss.model.options.bounds import Cursor
from fluss.model.options.scan_options import ScanOptions
from fluss.model.paths import TableBucket
from fluss.scan.followed_table import FollowedTable, Ready, by_place
from fluss.scan.scan_stats import ScanStats
from fluss.scan.table_source import TableSource, endless

WAIT_S = 0.5


@at_door(Door.SESSION)
class Follow:
    """A log, read as it grows; `table.follow(...)` makes it. For one thread at a time."""

    def __init__(self, core: TableHandle, options: ScanOptions) -> None:
        self.stats = ScanStats()
        self._followed = FollowedTable(core, options, self.stats)
        self._table = core
        self._core: LogScanCore | None = None
        self._fetched: deque[Fetched] = deque()
        self._ready: deque[Ready] = deque()
        self._closed = False

    @property
    def name(self) -> str:
        """`database.table`."""
        return str(self._table.info.table_path)

    @property
    def schema(self) -> pa.Schema:
        """The columns of its rows."""
        return self._followed.schema

    def cursor(self) -> Cursor:
        """Where the rows given out so far end: `follow(start=cursor)` goes on from there."""
        self._open()
        return self._followed.cursor()

    def poll(self, timeout_s: float = WAIT_S) -> list[pa.RecordBatch]:
        """Take the batches that have arrived since the last call, or wait for some.

        Args:
            timeout_s: How long to wait at most.

        Raises:
            ClosedError: The follower has been closed.
        """
        self._fill(timeout_s)
        batches = [each.batch for each in self._ready if each.batch is not None]
        self._followed.offsets |= {each.bucket: each.next_offset for each in self._ready}
        self._ready.clear()
        return batches

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while not self._closed:
            try:
                self._fill(WAIT_S)
            except ClosedError:
                if self._has_ended():  # from another thread, while this one waited
                    return
                raise
            while self._ready and not self._has_ended():
                given = self._ready.popleft()
                self._followed.offsets[given.bucket] = given.next_offset
                if given.batch is not None:
                    yield given.batch

    @property
    def is_closed(self) -> bool:
        """Whether it has been closed."""
        return self._closed

    def close(self) -> None:
        """Read no more; a thread that iterates comes to the end. Idempotent."""
        self._closed = True
        if self._core is not None:
            self._table.connection.engine.run(self._core.close())

    def to_arrow(self) -> NoReturn:
        """Refuse: a scan without an end cannot be collected."""
        raise UnsupportedOperationError(
            "follow() never ends, so its rows cannot be collected.",
            hint="iterate it, or take table.scan(...), which ends where the log does now",
        )

    to_pandas = to_arrow

    def to_source(self) -> TableSource:
        """Refuse: engines collect the rows that they read."""
        raise endless("follow()")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        closed = ", closed" if self._closed else ""
        return (
            f"Follow({self._table.info.table_path}, buckets={len(self._followed.offsets)}{closed})"
        )

    def _has_ended(self) -> bool:
        return self._closed

    # --- rows ---------------------------------------------------------------------------------

    def _fill(self, timeout_s: float) -> None:
        """Fetch and decode rows to give out, if any arrive in time."""
        core = self._open()
        if self._ready:
            return
        self._subscribe(core, self._followed.new_partitions())
        if not self._fetched:
            try:
                self._table.connection.engine.run(self._take(core, timeout_s))
            except PartitionNotFoundError as error:
                if self._followed.options.missing_partitions != "skip":
                    error.add_context(hint=Hint(HintKey.FOLLOW_THE_OTHERS))
                    raise
                if not self._forget_partitions(core):
                    raise
        while self._fetched:
            # Removed last: a call that is interrupted here finds it again the next time.
            ready = self._followed.read(core.decoder, self._fetched[0])
            self._ready.extend(ready)
            self._fetched.popleft()

    async def _take(self, core: LogScanCore, timeout_s: float) -> None:
        # On the engine: an interrupted caller does not lose what has been taken for it.
        self._fetched.extend(await core.take(timeout_s))

    # --- buckets ------------------------------------------------------------------------------

    def _open(self) -> LogScanCore:
        if self._closed:
            raise ClosedError("The follower has been closed.", hint="Follow the table again.")
        if self._core is None:
            followed = self._followed
            core = LogScanCore(self._table, followed.columns(), followed.pushed)
            self._subscribe(core, followed.begin())
            self._core = core
        return self._core

    def _subscribe(self, core: LogScanCore, offsets: Mapping[TableBucket, int]) -> None:
        if not offsets:
            return
        if self._table.info.is_partitioned():
            core.subscribe_partitions(by_place(offsets))
        else:
            core.subscribe({bucket.bucket_id: offset for bucket, offset in offsets.items()})

    def _forget_partitions(self, core: LogScanCore) -> bool:
        """Stop reading partitions that were dropped; whether there were any."""
        gone = self._followed.forget_partitions()
        for bucket in gone:
            core.unsubscribe(bucket.bucket_id, partition_id=bucket.partition_id)
        return bool(gone)
