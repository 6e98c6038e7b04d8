"""The tables of one connection as they were a moment ago, so that many small calls ask once.

A job that opens its splits one by one, or appends row by row, needs the facts of its table for
each call. They are kept for a short time, and dropped before that when this client changes a
table, when a server no longer knows one, or when metadata shows that the name belongs to another
table by now.

What is kept does not refer to the connection, which closes when nothing refers to it any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from fluss.connection.describe_table import table_info_of
from fluss.model.paths import TablePath
from fluss.model.schema.schema import Schema
from fluss.model.tables.table_info import TableInfo
from fluss.net.cluster_client import Cluster

# A change that another client makes to a table is noticed no later than this. Longer would save
# little: a call that asks once in five seconds does not feel the request.
REUSED_S: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CachedTable:
    """The facts of a table at one moment.

    Attributes:
        info: The facts.
        schemas: The schemas of the table met so far, by their ids; grows.
        asked_at: When the cluster was asked, on the loop's clock.
        epoch: The cluster's `metadata_epoch` at that moment.
    """

    info: TableInfo
    schemas: dict[int, Schema]
    asked_at: float
    epoch: int


@dataclass(slots=True, eq=False)
class _Entry:
    # Held while the cluster is asked, so that concurrent calls share one request.
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)
    table: CachedTable | None = None


class TableCache:
    """Asks a cluster for tables, and keeps the answers. Lives on the engine's loop."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._entries: dict[TablePath, _Entry] = {}

    async def current(self, path: TablePath) -> CachedTable:
        """A table as it is now.

        Raises:
            TableNotFoundError: There is no such table; the error names the nearest.
        """
        return await self._ask(path, self._entry(path))

    async def recent(
        self, path: TablePath, accepts: Callable[[TableInfo], bool] = lambda _: True
    ) -> CachedTable:
        """A table as it was at most `REUSED_S` ago.

        Args:
            path: The table.
            accepts: Whether the facts that are kept are new enough; the cluster is asked if not.

        Raises:
            TableNotFoundError: There is no such table; the error names the nearest.
        """
        entry = self._entry(path)
        async with entry.asking:
            table = entry.table
            if table is not None and self._is_valid(table) and accepts(table.info):
                return table
            return await self._ask(path, entry)

    def forget(self, path: TablePath) -> None:
        """Drop what is kept of a table, because it proved wrong."""
        entry = self._entries.get(path)
        if entry is not None:
            entry.table = None

    def _entry(self, path: TablePath) -> _Entry:
        entry = self._entries.get(path)
        if entry is None:
            self._entries = {
                known: kept
                for known, kept in self._entries.items()
                if kept.asking.locked() or (kept.table is not None and self._is_valid(kept.table))
            }
            entry = self._entries[path] = _Entry()
        return entry

    def _is_valid(self, table: CachedTable) -> bool:
        info, cluster = table.info, self._cluster
        return (
            asyncio.get_running_loop().time() - table.asked_at < REUSED_S
            and table.epoch == cluster.metadata_epoch
            and cluster.view.table_id(info.table_path) in {None, info.table_id}
        )

    async def _ask(self, path: TablePath, entry: _Entry) -> CachedTable:
        asked_at, epoch = asyncio.get_running_loop().time(), self._cluster.metadata_epoch
        before, entry.table = entry.table, None
        info = await table_info_of(self._cluster, path)
        # Schemas never change as long as a table exists.
        is_same = before is not None and before.info.table_id == info.table_id
        schemas = before.schemas if before is not None and is_same else {}
        schemas[info.schema_id] = info.schema
        entry.table = CachedTable(info=info, schemas=schemas, asked_at=asked_at, epoch=epoch)
        return entry.table
