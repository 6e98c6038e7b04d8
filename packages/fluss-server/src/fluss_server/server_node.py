"""What every handler may use: the catalog, the open buckets, the clock, the storage threads.

One node is one running server, whoever is connected to it. Nothing here knows of sockets. How an
append becomes an acknowledgement (written, synced, published, in that order) is decided here
once.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from fluss_server.auto_partitions import keep_partitions
from fluss_server.catalog.entries import PartitionEntry, TableEntry
from fluss_server.data_directory import OpenDirectory
from fluss_server.data_layout import MANIFEST
from fluss_server.maintenance import remove_tree
from fluss_server.scans import Scans
from fluss_server.server_config import Durability, ServerConfig
from fluss_server.tablets import Tablet, Tablets

if TYPE_CHECKING:
    from fluss_server.kv.kv_tablet import KvTablet
    from fluss_server.log.bucket_log import BucketLog
    from fluss_server.log.log_checkpoint import Mark

_LOG = logging.getLogger(__name__)
STORAGE_THREADS: Final = 2
# Below this a hop to a thread and back costs more than the work.
INLINE_BYTES_MAX: Final = 64 << 10
NODE_ID: Final = 0

P = ParamSpec("P")
T = TypeVar("T")


def _load() -> None:
    for name in ("log.log_recovery", "log.batch_checks", "log.stored_projection"):
        importlib.import_module(f"fluss_server.{name}")


def clock_ms() -> int:
    """The time in milliseconds since 1970; the only place of the server that looks at it."""
    return int(time.time() * 1000)  # noqa: TID251 - everything else gets it from here


class Node:
    """A running server, without its sockets; used on its event loop.

    Args:
        config: What it was told.
        opened: Its data directory.
        clock: The time in milliseconds.
    """

    def __init__(
        self, config: ServerConfig, opened: OpenDirectory, *, clock: Callable[[], int] = clock_ms
    ) -> None:
        self.config = config
        self.catalog = opened.catalog
        self.ledger = opened.ledger
        self.tablets = Tablets(config, opened)
        self.scans = Scans()
        self.now_ms = clock
        self._pool = ThreadPoolExecutor(STORAGE_THREADS, thread_name_prefix="fluss-storage")
        self._background: set[asyncio.Task[None]] = set()
        # What was dropped before this start is open nowhere.
        self._buried = [path for path in self.catalog.doomed() if path.name != MANIFEST]
        self._syncing: dict[BucketLog, asyncio.Future[None]] = {}

    async def in_storage(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do something on a storage thread, to its end even where nobody waits any more."""
        loop = asyncio.get_running_loop()
        return await asyncio.shield(loop.run_in_executor(self._pool, lambda: work(*args, **kwargs)))

    @property
    def publishes_at_once(self) -> bool:
        """Whether an acknowledgement does not wait for the disk."""
        return self.config.durability is not Durability.DISK

    async def open_state(self, tablet: Tablet) -> KvTablet:
        """The rows of a bucket by key, opened if need be; by the holder of the turn.

        Raises:
            FlussError: The rows, or the log they are made from, are damaged.
        """
        if tablet.state is not None:
            return tablet.state
        return await self.in_storage(tablet.open_state, self.catalog.take_numbers)

    async def change_rows(self, tablet: Tablet, change: Callable[[KvTablet, int], T]) -> T:
        """Change rows by key and keep the promise of an acknowledgement; by the holder of the turn.

        Raises:
            FlussError: The change is refused; nothing of it is kept.
            OSError: The disk refused.
        """
        state = await self.open_state(tablet)
        try:
            outcome = await self.in_storage(change, state, self.now_ms())
        except BaseException:
            # What failed behind its own write must not be seen, nor found after a restart.
            if tablet.log.end_offset > tablet.log.high_watermark:
                await self.in_storage(tablet.log.cut_back, tablet.log.high_watermark)
            raise
        await self.publish(tablet)
        return outcome

    def publish_now(self, tablet: Tablet) -> bool:
        """Publish what was appended, where an acknowledgement does not wait for the disk."""
        if not self.publishes_at_once:
            return False
        tablet.log.publish()
        tablet.wake()
        return True

    async def publish(self, tablet: Tablet) -> None:
        """Keep the promise of an acknowledgement, then let readers see the rows.

        Raises:
            OSError: The disk refused; nothing is acknowledged.
        """
        if not self.publish_now(tablet):
            await self._sync_together(tablet)

    async def _sync_together(self, tablet: Tablet) -> None:
        """One sync for all who wait for the same log: who comes during one waits for the next."""
        end_offset = tablet.log.end_offset
        while tablet.log.high_watermark < end_offset:
            running = self._syncing.get(tablet.log)
            if running is not None:
                await asyncio.wait([running])
                continue
            future = asyncio.get_running_loop().create_future()
            self._syncing[tablet.log] = future
            try:
                mark: Mark = await self.in_storage(tablet.log.sync)
                tablet.log.publish(mark)
                tablet.wake()
            finally:
                del self._syncing[tablet.log]
                future.set_result(None)

    def make_partitions(self, table: TableEntry) -> None:
        """Make and drop the partitions that the clock wants of a table."""
        for dropped in keep_partitions(self.catalog, table, now_ms=self.now_ms()):
            self._in_background(self.bury(table, dropped))

    async def bury(self, table: TableEntry, partition: PartitionEntry | None = None) -> None:
        """Close what was dropped; its files are removed when there is time."""
        partition_id = None if partition is None else partition.partition_id
        self.scans.close_table(table.table_id, partition_id, now_ms=self.now_ms())
        await self.tablets.drop(table.table_id, partition_id)
        self.ledger.forget(table.table_id, partition_id)
        self._buried.append(self.catalog.directory_of(table, partition))
        self.sweep_soon()

    def sweep_soon(self) -> None:
        """Begin to remove the files of what was dropped."""
        self._in_background(self.sweep())

    async def sweep(self) -> None:
        """Remove the files of what was dropped and closed."""
        for path in list(self._buried):
            # Out of the list first, so that nobody else removes it at the same time.
            if path in self._buried:
                self._buried.remove(path)
                if await self.in_storage(remove_tree, self.config.directory / path):
                    self.catalog.absolve(path)
                else:
                    self._buried.append(path)

    def warm_up(self) -> None:
        """Begin to load what the first rows need; a server is ready long before."""
        self._in_background(self.in_storage(_load))

    async def settle(self) -> None:
        """Wait for what goes on in the background."""
        while self._background:
            await asyncio.wait(self._background)

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background_done)

    def _background_done(self, task: asyncio.Task[None]) -> None:
        self._background.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _LOG.error("background work failed", exc_info=task.exception())

    def close(self) -> None:
        """End the storage threads, and close everything so that the next start is quick."""
        self._pool.shutdown(wait=True)
        self.scans.close_all()
        self.tablets.close()
