"""Scans the logs of many tables with one fetcher: one request per server, one limit for memory.

It is the counterpart of `log.log_scan` for readers of several tables. Its reading coroutine runs on
the engine's loop and returns fetched bytes; the caller decodes them, each with the decoder of its
table.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping
from functools import partial

import anyio

from fluss.connection.connection import ClientConnection, TableHandle
from fluss.errors import ClosedError
from fluss.log.fetch_messages import Fetched, FetchTarget
from fluss.log.fetcher import Fetcher
from fluss.log.log_services import fetch_limits
from fluss.log.plan_fetch import Position
from fluss.model.paths import PhysicalTablePath, TableBucket
from fluss.net.engine_thread import Engine


class ManyLogScan:
    """The subscriptions of one reader, and their rows. Any thread may call it.

    Args:
        connection: The connection of all its tables.
    """

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._fetchers: list[Fetcher] = []  # none, or one; does not refer to this
        self._closed = False
        finalizer = weakref.finalize(self, _close_all, connection.engine, self._fetchers)
        finalizer.atexit = False

    def subscribe(
        self, table: TableHandle, target: FetchTarget, offsets: Mapping[TableBucket, int]
    ) -> None:
        """Read buckets of a table from these offsets on; earlier positions in them are dropped."""
        self._post(partial(self._follow, table, target, dict(offsets)))

    def unsubscribe(self, bucket: TableBucket) -> None:
        """Stop reading a bucket; no error if it is not subscribed."""

        def unsubscribe() -> None:
            for fetcher in self._fetchers:
                fetcher.unsubscribe(bucket)

        self._post(unsubscribe)

    def remove_table(self, table_id: int) -> None:
        """Stop reading a table."""

        def remove() -> None:
            for fetcher in self._fetchers:
                fetcher.remove_table(table_id)

        self._post(remove)

    def _post(self, job: Callable[[], None]) -> None:
        with self._lock:
            self.check_open()
            self._connection.engine.post(job)

    def _follow(
        self, table: TableHandle, target: FetchTarget, offsets: Mapping[TableBucket, int]
    ) -> None:
        if self._closed:
            return
        if not self._fetchers:
            limits = fetch_limits(self._connection)
            self._fetchers.append(Fetcher(table, target, limits=limits, is_bounded=False))
        (fetcher,) = self._fetchers
        fetcher.add_table(table, target)
        path = PhysicalTablePath(table.info.table_path)
        for bucket, offset in offsets.items():
            fetcher.subscribe(Position(bucket=bucket, path=path, offset=offset))

    async def take(self, timeout_s: float) -> list[Fetched]:
        """Take what has come in since the last call; wait for it, at most `timeout_s`.

        Raises:
            ClosedError: It has been closed.
            FlussError: A bucket cannot be read; the others can. Its table is a fact of the error.
        """
        self.check_open()
        if not self._fetchers:
            await anyio.sleep(timeout_s)
            return []
        return await self._fetchers[0].take(timeout_s)

    def check_open(self) -> None:
        """Raise if it has been closed."""
        if self._closed:
            raise ClosedError("The reader has been closed.", hint="Create a new one.")

    async def close(self) -> None:
        """Stop reading; a reader that waits gets an error. Idempotent."""
        with self._lock:
            self._closed = True
        for fetcher in self._fetchers:
            fetcher.close()


def _close_all(engine: Engine, fetchers: list[Fetcher]) -> None:
    def close() -> None:
        for fetcher in fetchers:
            fetcher.close()

    engine.post_cleanup(close)
