"""Lets a new database or table rest before something is made inside it.

A coordinator of 0.9.1 hears of databases, tables and partitions in different ways, and not in their
order. A table that follows its database within a few milliseconds may be overlooked and never gets
a leader (seen with 3 of 1 600, all while the machine was busy; with 0 of 1 100 after 50 to 100 ms);
a partition that follows its table as fast can make the coordinator stop electing leaders for all
new tables, until it is started again. So whoever makes the second waits a moment after the first,
which makes it rarer and not impossible.

A table may be somebody else's: the age of one that is not known here yet is asked for once. A
database's is not, for asking costs each new table a round trip and a database is made once.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

import anyio

from fluss.errors import FlussError
from fluss.model.paths import TablePath
from fluss.wire import messages
from fluss.wire.api import ApiKey
from fluss.wire.table_paths import write_table_path

if TYPE_CHECKING:
    from fluss.net.cluster_client import Cluster

DATABASE_REST_S: Final = 0.1
TABLE_REST_S: Final = 0.3
REMEMBERED_MAX: Final = 1_000


class DdlPacing:
    """From when on something may be made inside what is known. Lives on the engine's loop."""

    def __init__(self) -> None:
        self._rested_at: OrderedDict[str | TablePath, float] = OrderedDict()

    def made(self, what: str | TablePath) -> None:
        """A database or a table has just been made."""
        self._remember(what, _rest_of(what))

    async def wait_until_settled(self, what: str | TablePath) -> None:
        """Wait until it has rested, if it is known to be new."""
        rested_at = self._rested_at.get(what)
        if rested_at is not None:
            await anyio.sleep(max(0.0, rested_at - asyncio.get_running_loop().time()))

    async def let_table_rest(self, cluster: Cluster, path: TablePath) -> None:
        """The same for a table that others may have made."""
        if path not in self._rested_at:
            self._remember(path, await _rest_left(cluster, path))
        await self.wait_until_settled(path)

    def forget(self, what: str | TablePath) -> None:
        """It was dropped: what is made under its name is new again."""
        self._rested_at.pop(what, None)

    def _remember(self, what: str | TablePath, rest_s: float) -> None:
        self._rested_at[what] = asyncio.get_running_loop().time() + rest_s
        self._rested_at.move_to_end(what)
        while len(self._rested_at) > REMEMBERED_MAX:
            self._rested_at.popitem(last=False)


def _rest_of(what: str | TablePath) -> float:
    return TABLE_REST_S if isinstance(what, TablePath) else DATABASE_REST_S


async def _rest_left(cluster: Cluster, path: TablePath) -> float:
    """How long a table of unknown age shall still rest, by the clocks of both machines."""
    request = messages.GetTableInfoRequest(table_path=write_table_path(path))
    try:
        answer = await cluster.ask_any(
            ApiKey.GET_TABLE_INFO, request, messages.GetTableInfoResponse
        )
    except FlussError:
        return 0.0  # the request that follows meets the same trouble, and says it better
    now = time.time()  # noqa: TID251 - the cluster tells the age in wall-clock time
    age_s = now - answer.created_time / 1000
    return min(max(0.0, TABLE_REST_S - age_s), TABLE_REST_S)
