"""The node that handlers work on: the catalog, the open buckets, the clock, the storage threads.

One node is one running server, without its sockets. This file alone decides how an append becomes
an acknowledgement: it is written, synced and published, in that order.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from fluss_server.access.access_control import AccessControl
from fluss_server.access.user_passwords import UserPasswords
from fluss_server.auto_partitions import update_partitions
from fluss_server.catalog.catalog_entries import PartitionEntry, TableEntry
from fluss_server.catalog.lake_notes import directories_of
from fluss_server.data_directory import OpenDirectory
from fluss_server.data_layout import MANIFEST
from fluss_server.lake.server_lake import ServerLake
from fluss_server.lake.tiered_tables import TieredTables
from fluss_server.maintenance import remove_tree
from fluss_server.open_scans import OpenScans
from fluss_server.retention import expire_log
from fluss_server.server_config import Durability, ServerConfig
from fluss_server.snapshots.kv_snapshots import KvSnapshots
from fluss_server.tablets import Tablet, Tablets

if TYPE_CHECKING:
    from fluss_server.kv.kv_tablet import KvTablet
    from fluss_server.log.bucket_log import BucketLog
    from fluss_server.log.log_checkpoint import Mark

_LOG = logging.getLogger(__name__)
STORAGE_THREADS: Final = 2
# For new files, where threads wait for the disk: file systems make the syncs of many threads in one
# step. The first append to 1 000 buckets took 36 s, during which no other request was served.
CREATING_THREADS: Final = 16
# Up to this size a hop to a thread and back costs more than the work.
INLINE_BYTES_MAX: Final = 64 << 10
NODE_ID: Final = 0

P = ParamSpec("P")
T = TypeVar("T")


def _import_codecs() -> None:
    for name in ("log.log_recovery", "log.batch_checks", "log.stored_projection"):
        importlib.import_module(f"fluss_server.{name}")


def clock_ms() -> int:
    """Return the time in milliseconds since 1970. No other code of the server reads the clock."""
    return int(time.time() * 1000)  # noqa: TID251 - all other code takes it from here


async def _on_thread(pool: ThreadPoolExecutor, work: Callable[[], T]) -> T:
    return await asyncio.shield(asyncio.get_running_loop().run_in_executor(pool, work))


class Node:
    """A running server, without its sockets; used on its event loop.

    Args:
        config: Its configuration.
        opened: Its data directory.
        clock: Returns the time in milliseconds.
    """

    def __init__(
        self,
        config: ServerConfig,
        opened: OpenDirectory,
        *,
        clock: Callable[[], int] = clock_ms,
    ) -> None:
        self.config = config
        self.catalog = opened.catalog
        self.ledger = opened.ledger
        self._store = opened.store
        self.tablets = Tablets(config, opened)
        self.scans = OpenScans()
        # The server sets it when the directory is open.
        self.lake: ServerLake | None = None
        self.tiered = TieredTables(config, opened.catalog)
        self.access = AccessControl(opened.catalog, config.super_users)
        self.passwords = UserPasswords(opened.catalog, config.users)
        self.snapshots = KvSnapshots(self, opened.store)
        self.now_ms = clock
        self._pool = ThreadPoolExecutor(STORAGE_THREADS, thread_name_prefix="fluss-storage")
        self._creating = ThreadPoolExecutor(CREATING_THREADS, thread_name_prefix="fluss-creating")
        self._background: set[asyncio.Task[None]] = set()
        # No bucket of what was dropped before this start is open.
        self._to_delete = [
            path for path in self.catalog.pending_deletions() if path.name != MANIFEST
        ]
        self._syncing: dict[BucketLog, asyncio.Future[None]] = {}

    async def in_storage(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run work on a storage thread, to its end even where the caller is cancelled."""
        return await _on_thread(self._pool, lambda: work(*args, **kwargs))

    async def create_files(self, tablet: Tablet) -> None:
        """Create the files of a log that has none. The caller holds the bucket's lock.

        Raises:
            OSError: The disk refused.
        """
        if not tablet.log.is_on_disk:
            await _on_thread(self._creating, tablet.log.create_files)

    @property
    def publishes_immediately(self) -> bool:
        """Whether rows are acknowledged without waiting for the disk."""
        return self.config.durability is not Durability.DISK

    async def open_state(self, tablet: Tablet) -> KvTablet:
        """Return the rows by key of a bucket, opened if need be.

        The caller holds the bucket's lock.

        Raises:
            FlussError: The rows or their log are damaged.
        """
        if tablet.state is not None:
            return tablet.state
        self._store.note_plain_rows()
        pool = self._pool if tablet.kv_directory.exists() else self._creating
        return await _on_thread(pool, lambda: tablet.open_state(self.catalog.take_numbers))

    async def change_rows(self, tablet: Tablet, change: Callable[[KvTablet, int], T]) -> T:
        """Change rows by key and publish the change. The caller holds the bucket's lock.

        Raises:
            FlussError: The change is refused; nothing of it is kept.
            OSError: The disk refused.
        """
        state = await self.open_state(tablet)
        await self.create_files(tablet)
        try:
            outcome = await self.in_storage(change, state, self.now_ms())
        except BaseException:
            # A change that failed after its write must not be read, nor found after a restart.
            if tablet.log.end_offset > tablet.log.high_watermark:
                await self.in_storage(tablet.log.cut_back, tablet.log.high_watermark)
            raise
        await self.publish(tablet)
        return outcome

    def publish_now(self, tablet: Tablet) -> bool:
        """Publish the appended rows, unless an acknowledgement waits for the disk."""
        if not self.publishes_immediately:
            return False
        tablet.log.publish()
        tablet.wake()
        return True

    async def publish(self, tablet: Tablet) -> None:
        """Sync where the durability mode requires it, then let readers see the rows.

        Raises:
            OSError: The disk refused; nothing is acknowledged.
        """
        if not self.publish_now(tablet):
            await self._sync_together(tablet)

    async def _sync_together(self, tablet: Tablet) -> None:
        """Share one sync among requests; a request during a sync waits for the next one."""
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

    def update_partitions(self, table: TableEntry) -> None:
        """Create and drop the automatic partitions of a table."""
        for dropped in update_partitions(self.catalog, table, now_ms=self.now_ms()):
            self._in_background(self.delete_dropped(table, dropped))

    async def delete_dropped(
        self, table: TableEntry, partition: PartitionEntry | None = None
    ) -> None:
        """Close a dropped table or partition; its files are deleted in the background."""
        partition_id = None if partition is None else partition.partition_id
        self.scans.close_table(table.table_id, partition_id, now_ms=self.now_ms())
        self.snapshots.forget(table.table_id, partition_id)
        await self.tablets.drop(table.table_id, partition_id)
        self.ledger.forget(table.table_id, partition_id)
        if partition is None:
            self.tiered.forget(table.table_id)
            self._to_delete += directories_of(table)
        else:
            self._to_delete.append(self.catalog.directory_of(table, partition))
        self.delete_files_soon()

    def expire_soon(self, table: TableEntry) -> None:
        """Start to delete the expired segments of a table's open buckets."""
        for tablet in self.tablets.of_table(table.table_id):
            self._in_background(expire_log(self, tablet))

    def delete_files_soon(self) -> None:
        """Start to delete the files of dropped tables and partitions."""
        self._in_background(self.delete_files())

    async def delete_files(self) -> None:
        """Delete the files of dropped and closed tables and partitions."""
        for path in list(self._to_delete):
            # Off the list first, so that a concurrent call does not delete it, too.
            if path in self._to_delete:
                self._to_delete.remove(path)
                if await self.in_storage(remove_tree, self.config.directory / path):
                    self.catalog.deletion_done(path)
                else:
                    self._to_delete.append(path)

    def preload(self) -> None:
        """Start to import the modules that the first rows need; the server is ready before."""
        self._in_background(self.in_storage(_import_codecs))

    async def finish_background(self) -> None:
        """Wait for the background work."""
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
        """Stop the storage threads, and close everything so that the next start is quick."""
        self.snapshots.close()
        self._pool.shutdown(wait=True)
        self._creating.shutdown(wait=True)
        if self.lake is not None:
            self.lake.close()
        self.scans.close_all()
        self.tablets.close()
