"""What a server does by itself: syncs, retention, flushes of state, partitions by the clock.

A round comes every second and does whatever is due; each bucket is visited in its turn, and one
bucket's trouble is written into the log and tried again with the next round.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fluss.errors import FlussError
from fluss_server import auto_partitions as autopart
from fluss_server.server_config import Durability

if TYPE_CHECKING:
    from fluss_server.directory_lock import DirectoryLock
    from fluss_server.server_node import Node
    from fluss_server.tablets import Tablet

_LOG = logging.getLogger(__name__)
ROUND_S: Final = 1.0
RETENTION_EVERY: Final = 60  # rounds
# A look at the files of a log takes some 20 microseconds of the event loop.
PLACES_IN_ROUND: Final = 200
HOURLY: Final = 3_600  # rounds


class Maintenance:
    """The rounds of one server.

    Args:
        node: The server.
        lock: The locks of its directory.
    """

    def __init__(self, node: Node, lock: DirectoryLock) -> None:
        self._node = node
        self._lock = lock
        self._round = 0
        self._told: set[str] = set()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin with the rounds."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """End with the round that goes on."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(ROUND_S)
            try:
                await self.do_round()
            except Exception:  # noqa: BLE001 - the next round may do better, so rounds go on
                _LOG.exception("a round of upkeep failed; the next one comes in a second")

    async def do_round(self) -> None:
        """Do what is due."""
        self._round += 1
        node = self._node
        self._lock.restore()
        self._check_places()
        for tablet in node.tablets:
            await self._guarded(tablet, self._keep_synced)
        node.scans.expire(now_ms=node.now_ms())
        if self._round % RETENTION_EVERY == 0:
            for tablet in node.tablets:
                await self._guarded(tablet, self._expire)
            node.tablets.rest()
            await node.sweep()
        if self._round % int(autopart.INTERVAL_S / ROUND_S) == 0:
            for table in node.catalog.tables:
                node.make_partitions(table)
        if self._round % HOURLY == 0:
            expired = node.catalog.expired_producers(now_ms=node.now_ms())
            node.catalog.drop_producers(expired)

    def _check_places(self) -> None:
        """Notice files that were removed or replaced; what may not be written is refused then."""
        node = self._node
        try:
            node.ledger.check()
        except FlussError as error:
            self._tell_once(str(error))
        tablets = list(node.tablets)
        first = (self._round * PLACES_IN_ROUND) % max(len(tablets), 1)
        for tablet in (tablets[first:] + tablets[:first])[:PLACES_IN_ROUND]:
            if not tablet.is_dropped:
                tablet.log.check_place()
                if tablet.log.failure is not None:
                    self._tell_once(str(tablet.log.failure))

    def _tell_once(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            _LOG.error("%s", text)

    async def _guarded(self, tablet: Tablet, work: TabletWork) -> None:
        try:
            await work(tablet)
        except Exception:  # noqa: BLE001 - one bucket's trouble is not the others'
            _LOG.exception("upkeep of %s failed", tablet.bucket)

    async def _keep_synced(self, tablet: Tablet) -> None:
        node = self._node
        now_ms = node.now_ms()
        state = tablet.state
        if tablet.is_dropped:
            return
        if state is not None and state.wants_flush(now_ms=now_ms):
            async with tablet.turn.enter():
                if tablet.state is not None:
                    # The log first: state must never be ahead of what it is made from.
                    await node.in_storage(tablet.log.sync)
                    await node.in_storage(tablet.state.flush)
        elif node.config.durability is Durability.PROCESS and tablet.log.unsynced_bytes:
            await node.in_storage(tablet.log.sync)
        await self._keep_progress(tablet)

    async def _keep_progress(self, tablet: Tablet) -> None:
        if not tablet.log.wants_progress:
            return
        async with tablet.turn.enter():
            progress = None if tablet.is_dropped else tablet.log.progress()
        if progress is not None:
            await self._node.in_storage(tablet.log.keep, progress)

    async def _expire(self, tablet: Tablet) -> None:
        node = self._node
        now_ms = node.now_ms()
        floor: int | None = None
        if tablet.table.descriptor.has_primary_key:
            # Without its state nobody knows how much of the log it still needs.
            floor = tablet.log.start_offset if tablet.state is None else tablet.state.applied_offset
        async with tablet.turn.enter():
            if tablet.is_dropped:
                return
            tablet.log.writers.expire(now_ms=now_ms)
            ttl_ms = tablet.table.info.options.log_ttl_ms
            await node.in_storage(
                tablet.log.expire,
                older_than_ms=now_ms - ttl_ms if ttl_ms > 0 else None,
                bytes_max=node.config.retention_bytes,
                floor=floor,
            )


if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    TabletWork = Callable[[Tablet], Awaitable[None]]


def remove_tree(path: Path) -> bool:
    """Remove a directory with everything in it; whether it is gone."""
    try:
        shutil.rmtree(path)
    except FileNotFoundError:
        # It was not there, or a part of it was removed by another thread: a partition that was
        # dropped just before its table.
        return not path.exists()
    except OSError as error:
        _LOG.warning("%s could not be removed, and will be tried again: %s", path, error)
        return False
    return True
