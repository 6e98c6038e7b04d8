"""Makes the KV snapshots of a server, keeps them as long as they are needed, and finds them.

A snapshot is made in two steps. Under the lock of its bucket the rows are flushed, which happens
every few seconds anyway, and the files of that moment are linked. Everything else is done without
the lock on a thread of its own. Buckets take turns: one snapshot is made at a time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from fluss.error_codes import ErrorCode
from fluss.errors import FlussError, LeaderChangedError
from fluss.model.options.units import parse_duration_ms
from fluss.model.paths import TableBucket
from fluss.model.tables.table_options import ChangelogImage
from fluss_server.cluster_settings import (
    KV_SNAPSHOT_INTERVAL,
    changed_settings,
    remove_settings,
    settings_with,
)
from fluss_server.server_errors import request_error
from fluss_server.snapshots.plan_leases import Leases
from fluss_server.snapshots.plan_schedule import Schedule
from fluss_server.snapshots.snapshot_files import KvSnapshot

if TYPE_CHECKING:
    from fluss_server.catalog.catalog_store import CatalogStore
    from fluss_server.kv.kv_store import StoreState
    from fluss_server.server_node import Node
    from fluss_server.tablets import Tablet

_LOG = logging.getLogger(__name__)
_LEASE: Final = "kv lease "

T = TypeVar("T")


class KvSnapshots:
    """The KV snapshots of one server; used on its event loop.

    Args:
        node: The server.
        store: The file of its catalog, which keeps the leases.
    """

    def __init__(self, node: Node, store: CatalogStore) -> None:
        self._node = node
        self._schedule = Schedule()
        self._turn = asyncio.Lock()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="fluss-snapshots")
        self._task: asyncio.Task[None] | None = None
        self._is_stopping = False
        self._leases = Leases(settings_with(store, _LEASE))

    @property
    def interval_ms(self) -> int:
        """The interval of snapshots; 0 where none are made."""
        text = changed_settings(self._node.catalog).get(KV_SNAPSHOT_INTERVAL)
        return self._node.config.snapshot_interval_ms if text is None else parse_duration_ms(text)

    # --- making ---------------------------------------------------------------------------------

    def start_due(self) -> None:
        """Start to make what is due, and to remove what is no longer needed."""
        if self._is_stopping or (self._task is not None and not self._task.done()):
            return
        interval_ms, now_ms = self.interval_ms, self._node.now_ms()
        due = [
            tablet
            for tablet in self._node.tablets
            if tablet.table.descriptor.has_primary_key
            and interval_ms
            and tablet.log.end_offset
            and self._schedule.is_due(tablet.bucket, now_ms=now_ms, interval_ms=interval_ms)
        ]
        self._expire_leases(now_ms)
        crowded = [tablet for tablet in self._node.tablets if self._retired(tablet, changes=False)]
        if due or crowded:
            self._task = asyncio.get_running_loop().create_task(self._run(due, crowded))

    async def stop(self) -> None:
        """Finish the snapshot that is being made, and make no more."""
        self._is_stopping = True
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    def close(self) -> None:
        """End the thread."""
        self._pool.shutdown(wait=True)

    async def make(self, tablet: Tablet) -> None:
        """Make a snapshot of a bucket, unless it has not changed since the last one.

        Raises:
            FlussError: The rows or their log are damaged, or the disk is full.
            OSError: The disk refused.
        """
        async with self._turn:
            copied = await self._copy(tablet)
            if copied is not None:
                await self._on_thread(lambda: _finish(tablet, *copied))
                self._schedule.note(tablet.bucket, now_ms=self._node.now_ms())
                await self._remove_retired(tablet)

    async def _run(self, due: Iterable[Tablet], crowded: Iterable[Tablet]) -> None:
        for work, tablets in ((self.make, due), (self._sweep, crowded)):
            for tablet in tablets:
                if self._is_stopping:
                    return
                try:
                    await work(tablet)
                except Exception:  # noqa: BLE001 - one bucket's trouble is not the others'
                    if not tablet.is_dropped:
                        _LOG.exception("the KV snapshot of %s failed", tablet.bucket)

    async def _copy(self, tablet: Tablet) -> tuple[Path, StoreState] | None:
        node = self._node
        async with tablet.lock.reserve():
            if tablet.is_dropped or tablet.log.end_offset <= _end_of(tablet):
                return None
            state = await node.open_state(tablet)
            # The log first: a snapshot must never be ahead of it.
            await node.in_storage(tablet.log.sync)
            staging = await node.in_storage(tablet.snapshots.staging)
            return staging, await node.in_storage(state.copy_to, staging)

    async def _on_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._pool, work))

    # --- keeping --------------------------------------------------------------------------------

    def _retired(self, tablet: Tablet, *, changes: bool) -> list[KvSnapshot]:
        return tablet.snapshots.retire(
            self._node.config.kv_snapshots_retained,
            is_kept=lambda snapshot_id: self._leases.holds(tablet.bucket, snapshot_id),
            changes=changes,
        )

    async def _sweep(self, tablet: Tablet) -> None:
        async with self._turn:
            await self._remove_retired(tablet)

    async def _remove_retired(self, tablet: Tablet) -> None:
        # They are forgotten on the event loop, where leases of them are taken.
        gone = self._retired(tablet, changes=True)
        if gone:
            await self._on_thread(lambda: tablet.snapshots.remove(gone))

    async def hold_log(self, tablet: Tablet, expired_end: int) -> int:
        """Return the offset from which a log is kept: snapshot and log together have all rows.

        Args:
            tablet: The bucket.
            expired_end: The log has expired up to this offset; a snapshot is made if the last one
                was earlier.
        """
        if _end_of(tablet) < expired_end:
            try:
                await self.make(tablet)
            except (FlussError, OSError) as error:
                # Where the disk is full, old rows have to go. `latest` makes the snapshot later.
                _LOG.warning("there is no KV snapshot of %s: %s", tablet.bucket, error)
                return expired_end
        return _end_of(tablet)

    def forget(self, table_id: int, partition_id: int | None = None) -> None:
        """Forget a dropped table or partition."""
        for tablet in self._node.tablets.of_table(table_id, partition_id):
            self._schedule.forget(tablet.bucket)
        self._store(self._leases.forget(table_id, partition_id))

    # --- finding --------------------------------------------------------------------------------

    async def latest(self, tablet: Tablet) -> KvSnapshot | None:
        """Return the newest snapshot, from which the log leads on; None where there is none yet.

        Raises:
            FlussError: KV_SNAPSHOT_NOT_EXIST: this server makes none, and the log does not have all
                changes any more.
        """
        start_offset = tablet.log.start_offset
        if not self.interval_ms:
            if start_offset > 0:
                raise _none_made(tablet)
            return None
        if start_offset > _end_of(tablet):
            await self.make(tablet)
        return tablet.snapshots.latest

    def find(self, bucket: TableBucket, snapshot_id: int) -> KvSnapshot | None:
        """Return a snapshot; None where it does not exist."""
        try:
            tablet = self._node.tablets.find(bucket.table_id, bucket.partition_id, bucket.bucket_id)
        except LeaderChangedError:
            return None
        return tablet.snapshots.find(snapshot_id)

    # --- leases ---------------------------------------------------------------------------------

    def tables_of_lease(self, lease_id: str) -> set[int]:
        """Return the ids of the tables that a lease has snapshots of."""
        return self._leases.tables_of(lease_id)

    def acquire(
        self, lease_id: str, duration_ms: int, requested: Mapping[TableBucket, int]
    ) -> list[TableBucket]:
        """Lease snapshots; return the buckets that do not have the requested one."""
        # Nothing waits here, so that no snapshot is retired in between.
        held = {
            bucket: snapshot_id
            for bucket, snapshot_id in requested.items()
            if self.find(bucket, snapshot_id) is not None
        }
        self._leases.acquire(lease_id, held, expires_ms=self._node.now_ms() + duration_ms)
        self._store([lease_id])
        return [bucket for bucket in requested if bucket not in held]

    def release(self, lease_id: str, buckets: Iterable[TableBucket]) -> None:
        """Take buckets out of a lease."""
        if self._leases.release(lease_id, buckets):
            self._store([lease_id])

    def drop_lease(self, lease_id: str) -> None:
        """End a lease."""
        if self._leases.drop(lease_id):
            self._store([lease_id])

    def _expire_leases(self, now_ms: int) -> None:
        self._store(self._leases.expire(now_ms=now_ms))

    def _store(self, lease_ids: Iterable[str]) -> None:
        catalog, gone = self._node.catalog, []
        for lease_id in lease_ids:
            text = self._leases.text_of(lease_id)
            if text is None:
                gone.append(_LEASE + lease_id)
            else:
                catalog.put_setting(_LEASE + lease_id, text)
        remove_settings(catalog, gone)


def _finish(tablet: Tablet, staging: Path, state: StoreState) -> None:
    from fluss_server.kv.plain_files import make_plain

    names = make_plain(staging)
    is_counted = tablet.table.info.options.changelog_image is ChangelogImage.FULL
    tablet.snapshots.add(
        staging,
        names,
        log_offset=state.applied_offset,
        row_count=state.row_count if is_counted else None,
    )


def _end_of(tablet: Tablet) -> int:
    """Return up to which offset of the log the newest snapshot has all changes."""
    latest = tablet.snapshots.latest
    return 0 if latest is None else latest.log_offset


def _none_made(tablet: Tablet) -> Exception:
    return request_error(
        ErrorCode.KV_SNAPSHOT_NOT_EXIST,
        f"The changelog of {tablet.bucket} begins at offset {tablet.log.start_offset}, and this "
        "server makes no KV snapshots: the rows cannot be read from the log any more.",
        hint="read the rows by SCAN_KV (this package's clients do) or LIMIT_SCAN (pyfluss does), or "
        "start the server with --kv-snapshot-interval",
    )
