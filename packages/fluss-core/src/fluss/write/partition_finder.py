"""Finds the leaders of buckets that writers wait for, and creates partitions that do not exist yet.

Each path (table or partition) has one request in flight at most. A bucket without a leader is
looked up again after a pause, until its batches expire; a table or partition that does not exist
fails them immediately.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence

import anyio

from fluss.errors import (
    FlussError,
    PartitionNotFoundError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from fluss.hints import Hint, HintKey
from fluss.model.paths import PhysicalTablePath, TablePath
from fluss.model.tables.auto_partition_names import HISTORICAL_PARTITION, historical_path
from fluss.model.tables.partitions import parse_partition_name
from fluss.net.cluster_client import Cluster
from fluss.net.wait_notices import notices
from fluss.wire import messages
from fluss.wire.table_paths import write_partition_spec, write_table_path
from fluss.write.write_batch import WriterSettings

PAUSE_S_MIN = 0.02
PAUSE_S_MAX = 1.0

Found = tuple[PhysicalTablePath | TablePath, FlussError]


class PathFinder:
    """Looks up the tables and partitions that batches wait for. Lives on the engine's loop."""

    def __init__(self, cluster: Cluster, settings: WriterSettings) -> None:
        self.partition_keys: dict[TablePath, tuple[str, ...]] = {}
        # Says of tables that keep their history whether a partition has expired.
        self.has_expired: dict[TablePath, Callable[[str], bool]] = {}
        self.writes_history = True
        self.in_history: set[PhysicalTablePath] = set()
        self._cluster = cluster
        self._settings = settings
        self._asked: set[PhysicalTablePath] = set()
        self._pauses_s: dict[PhysicalTablePath, float] = {}
        self._since: dict[
            PhysicalTablePath, float
        ] = {}  # when a path that pauses was first looked up

    def unasked(self, paths: Collection[PhysicalTablePath]) -> list[list[PhysicalTablePath]]:
        """The paths that are not being looked up already, in groups.

        Args:
            paths: All paths that batches wait for now.

        Returns:
            Groups of paths, which count as being looked up until `find` returns.
        """
        known = self._pauses_s.keys() - paths - self._asked
        for path in known:
            del self._pauses_s[path]
            self._since.pop(path, None)
        new = [each for each in paths if each not in self._asked]
        self._asked.update(new)
        # Paths that were not found a moment ago have to pause; new ones shall not wait for them.
        fresh = [each for each in new if each not in self._pauses_s]
        again = [each for each in new if each in self._pauses_s]
        return [each for each in (fresh, again) if each]

    async def find(self, paths: Sequence[PhysicalTablePath]) -> AsyncIterator[Found]:
        """Look up a group of paths; yields those that cannot be written to, with the error."""
        try:
            await self._pause(paths)
            if len(paths) > 1 and await self._all_found(paths):
                return
            for path in paths:
                found = await self._find(path)
                if found is not None:
                    yield found
        finally:
            self._asked.difference_update(paths)

    async def _pause(self, paths: Sequence[PhysicalTablePath]) -> None:
        # A new leader is elected within milliseconds or, after a crash, within a minute.
        pause_s = max(self._pauses_s.get(each, 0.0) for each in paths)
        if pause_s:
            await anyio.sleep(pause_s)
        for path in paths:
            self._pauses_s[path] = min(max(2 * pause_s, PAUSE_S_MIN), PAUSE_S_MAX)

    async def _all_found(self, paths: Sequence[PhysicalTablePath]) -> bool:
        """Whether one request finds all paths; otherwise each is looked up alone."""
        try:
            await self._cluster.refresh(paths)
        except FlussError:
            return False
        view = self._cluster.view
        return all(
            each.partition_name is None or view.partition_id(each) is not None for each in paths
        )

    async def _find(self, path: PhysicalTablePath) -> Found | None:
        view = self._cluster.view
        try:
            await self._cluster.refresh([path])
        except TableNotFoundError as error:
            return path.table_path, error
        except PartitionNotFoundError:
            return await self._missing_partition(path)
        except FlussError as error:
            missing = None if error.is_retriable else await self._missing_table(path)
            if missing is not None:
                return missing
            self._notice(path, error.message)
        else:
            if path.partition_name is not None and view.partition_id(path) is None:
                return await self._missing_partition(path)
            # It is here again because a leader of one of its buckets was still missing.
            self._notice(path, "No leader has been elected.")
        return None

    def _notice(self, path: PhysicalTablePath, trouble: str) -> None:
        now = asyncio.get_running_loop().time()
        notices.retried(
            f"a leader of {path}",
            trouble,
            since=self._since.setdefault(path, now),
            now=now,
            limit_ms=self._settings.delivery_timeout_ms,
        )

    async def _missing_table(self, path: PhysicalTablePath) -> Found | None:
        # Servers of 0.9.1 answer GET_METADATA for a missing table with an unspecific error.
        request = messages.GetTableInfoRequest(table_path=write_table_path(path.table_path))
        try:
            await self._cluster.ask_any(request, messages.GetTableInfoResponse)
        except FlussError as error:
            if not error.is_retriable:
                return path.table_path, error
        return None

    async def _missing_partition(self, path: PhysicalTablePath) -> Found | None:
        name = path.partition_name or ""
        keys = self.partition_keys.get(path.table_path, ())
        has_expired = self.has_expired.get(path.table_path)
        if has_expired is not None and has_expired(name):
            return await self._find_history(path)
        if not self._settings.creates_partitions:
            return path, PartitionNotFoundError(
                f"The table {path.table_path} has no partition {name!r}.",
                hint=Hint(HintKey.CREATE_PARTITION, table=str(path.table_path)),
                table=str(path.table_path),
                partition=name,
            )
        try:
            await self._create(path, keys)
        except FlussError as error:
            return path, error
        return None

    async def _find_history(self, path: PhysicalTablePath) -> Found | None:
        """Look up the partition that takes the rows of expired ones; it is never created here."""
        if not self.writes_history:
            return path, UnsupportedOperationError(
                f"The partition {path.partition_name!r} of {path.table_path} has expired, and its "
                "rows cannot be written exactly once: all expired partitions share their buckets.",
                hint="Write these rows with a plain writer, which may repeat them, or leave them out.",
                table=str(path.table_path),
                partition=path.partition_name,
            )
        try:
            await self._cluster.refresh([historical_path(path)])
        except PartitionNotFoundError:
            return path, PartitionNotFoundError(
                f"The partition {path.partition_name!r} of {path.table_path} has expired, and the "
                f"table has no partition {HISTORICAL_PARTITION!r} for its rows.",
                hint="The coordinator makes it, once the table has its lake.",
                table=str(path.table_path),
                partition=path.partition_name,
            )
        except FlussError as error:
            if not error.is_retriable:
                return path, error
            self._notice(path, error.message)
        else:
            self._cluster.view.forget_partition(path)
            self.in_history.add(path)
        return None

    async def _create(self, path: PhysicalTablePath, keys: Sequence[str]) -> None:
        spec = parse_partition_name(path.partition_name or "", keys)
        request = messages.CreatePartitionRequest(
            table_path=write_table_path(path.table_path),
            partition_spec=write_partition_spec(spec),
            # The name of the flag in the protocol is the opposite of its meaning.
            ignore_if_not_exists=True,
        )
        await self._cluster.ddl_pacing.wait_until_table_settled(self._cluster, path.table_path)
        await self._cluster.ask_coordinator(request, messages.CreatePartitionResponse)
