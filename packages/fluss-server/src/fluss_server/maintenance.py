"""Periodic work of a server: syncs, retention, expired rows, KV snapshots, automatic partitions.

A round runs every second and does what is due. Each bucket is visited under its lock. An error of
one bucket is logged, and the next round tries again.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fluss.errors import FlussError
from fluss_server import auto_partitions as autopart
from fluss_server.retention import expire_log
from fluss_server.server_config import Durability

if TYPE_CHECKING:
    from fluss_server.directory_lock import DirectoryLock
    from fluss_server.server_node import Node
    from fluss_server.tablets import Tablet

_LOG = logging.getLogger(__name__)
ROUND_S: Final = 1.0
RETENTION_ROUNDS: Final = 60  # rounds
ROW_TTL_ROUNDS: Final = 5  # rounds
# Checking the files of one log takes about 20 microseconds on the event loop.
FILE_CHECKS_PER_ROUND: Final = 200
PRODUCER_EXPIRY_ROUNDS: Final = 3_600  # rounds


class Maintenance:
    """The periodic work of one server.

    Args:
        node: The server.
        lock: The locks of its directory.
    """

    def __init__(self, node: Node, lock: DirectoryLock) -> None:
        self._node = node
        self._lock = lock
        self._round = 0
        self._reported: set[str] = set()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the rounds."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Cancel the round in progress and stop."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._node.snapshots.stop()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(ROUND_S)
            try:
                await self.run_round()
            except Exception:  # noqa: BLE001 - the next round may succeed
                _LOG.exception("a round of maintenance failed; the next one follows in a second")

    async def run_round(self) -> None:
        """Do the work that is due."""
        self._round += 1
        node = self._node
        self._lock.restore()
        self._check_files()
        for tablet in node.tablets:
            await self._guarded(tablet, self._keep_synced)
        node.scans.expire(now_ms=node.now_ms())
        node.snapshots.start_due()
        if self._round % ROW_TTL_ROUNDS == 0:
            for tablet in node.tablets:
                if tablet.table.info.options.has_row_ttl:
                    await self._guarded(tablet, self._expire_rows)
        if self._round % RETENTION_ROUNDS == 0:
            for tablet in node.tablets:
                await self._guarded(tablet, self._expire)
            node.tablets.close_idle_files()
            await node.delete_files()
        if self._round % int(autopart.INTERVAL_S / ROUND_S) == 0:
            for table in node.catalog.tables:
                node.update_partitions(table)
        if self._round % PRODUCER_EXPIRY_ROUNDS == 0:
            expired = node.catalog.expired_producers(now_ms=node.now_ms())
            node.catalog.drop_producers(expired)

    def _check_files(self) -> None:
        """Detect files that were removed or replaced; later writes to them are refused."""
        node = self._node
        try:
            node.ledger.check()
        except FlussError as error:
            self._report_once(str(error))
        tablets = list(node.tablets)
        first = (self._round * FILE_CHECKS_PER_ROUND) % max(len(tablets), 1)
        for tablet in (tablets[first:] + tablets[:first])[:FILE_CHECKS_PER_ROUND]:
            if not tablet.is_dropped:
                tablet.log.check_in_place()
                if tablet.log.failure is not None:
                    self._report_once(str(tablet.log.failure))

    def _report_once(self, text: str) -> None:
        if text not in self._reported:
            self._reported.add(text)
            _LOG.error("%s", text)

    async def _guarded(self, tablet: Tablet, work: TabletWork) -> None:
        try:
            await work(tablet)
        except Exception:  # noqa: BLE001 - one bucket's trouble is not the others'
            _LOG.exception("maintenance of %s failed", tablet.bucket)

    async def _keep_synced(self, tablet: Tablet) -> None:
        node = self._node
        now_ms = node.now_ms()
        state = tablet.state
        if tablet.is_dropped:
            return
        if state is not None and state.needs_flush(now_ms=now_ms):
            async with tablet.lock.reserve():
                if tablet.state is not None:
                    # The log first: the state must never be ahead of its log.
                    await node.in_storage(tablet.log.sync)
                    await node.in_storage(tablet.state.flush)
        elif node.config.durability is Durability.PROCESS and tablet.log.unsynced_bytes:
            await node.in_storage(tablet.log.sync)
        await self._keep_progress(tablet)

    async def _keep_progress(self, tablet: Tablet) -> None:
        if not tablet.log.needs_recovery_point:
            return
        async with tablet.lock.reserve():
            recovery_point = None if tablet.is_dropped else tablet.log.recovery_point()
        if recovery_point is not None:
            await self._node.in_storage(tablet.log.keep, recovery_point)

    async def _expire_rows(self, tablet: Tablet) -> None:
        if tablet.state is None:
            return
        async with tablet.lock.reserve():
            if not tablet.is_dropped and tablet.state is not None:
                # The store must never be ahead of its log.
                await self._node.in_storage(tablet.log.sync)
                await self._node.in_storage(tablet.state.expire, now_ms=self._node.now_ms())

    async def _expire(self, tablet: Tablet) -> None:
        await expire_log(self._node, tablet)


if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    TabletWork = Callable[[Tablet], Awaitable[None]]


def remove_tree(path: Path) -> bool:
    """Remove a directory with everything in it; return whether it is gone."""
    try:
        shutil.rmtree(path)
    except FileNotFoundError:
        # It did not exist, or another thread removed a part of it: a partition that was dropped
        # just before its table.
        return not path.exists()
    except OSError as error:
        _LOG.warning("%s could not be removed; the server will try again: %s", path, error)
        return False
    return True
