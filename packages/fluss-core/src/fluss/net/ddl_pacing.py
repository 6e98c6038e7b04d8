"""Waits until a new database or table has settled before something is created inside it.

A coordinator of 0.9.1 learns of databases, tables and partitions in different ways, and not in
their order. A table that follows its database within a few milliseconds may be overlooked and never
gets a leader (seen with 3 of 1 600 without a pause, 0 of 1 100 after 50 to 100 ms, and 1 of 70
after 100 ms on a machine that was very busy); a partition that follows its table as fast can make
the coordinator stop electing leaders for all new tables, until it is started again. So this client
creates the second a moment after the first, which makes the failure rarer and not impossible.

Another client may have created the table: the age of a table that is not known here yet is asked
for once. The age of a database is not, because that would cost each new table a round trip.
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
from fluss.wire.table_paths import write_table_path

if TYPE_CHECKING:
    from fluss.net.cluster_client import Cluster

DATABASE_SETTLE_S: Final = 0.3
TABLE_SETTLE_S: Final = 0.3
REMEMBERED_MAX: Final = 1_000


class DdlPacing:
    """When each database and table has settled. Lives on the engine's loop."""

    def __init__(self) -> None:
        self._settled_at: OrderedDict[str | TablePath, float] = OrderedDict()

    def created(self, what: str | TablePath) -> None:
        """Note that a database or a table has just been created."""
        is_table = isinstance(what, TablePath)
        self._remember(what, TABLE_SETTLE_S if is_table else DATABASE_SETTLE_S)

    async def wait_until_settled(self, what: str | TablePath) -> None:
        """Wait until it has settled, if it is known to be new."""
        settled_at = self._settled_at.get(what)
        if settled_at is not None:
            await anyio.sleep(max(0.0, settled_at - asyncio.get_running_loop().time()))

    async def wait_until_table_settled(self, cluster: Cluster, path: TablePath) -> None:
        """The same for a table that another client may have created."""
        if path not in self._settled_at:
            self._remember(path, await _settling_left_s(cluster, path))
        await self.wait_until_settled(path)

    def forget(self, what: str | TablePath) -> None:
        """Note that it was dropped: one that is created under its name is new again."""
        self._settled_at.pop(what, None)

    def _remember(self, what: str | TablePath, settle_s: float) -> None:
        self._settled_at[what] = asyncio.get_running_loop().time() + settle_s
        self._settled_at.move_to_end(what)
        while len(self._settled_at) > REMEMBERED_MAX:
            self._settled_at.popitem(last=False)


async def _settling_left_s(cluster: Cluster, path: TablePath) -> float:
    """How long a table of unknown age still needs, by the clocks of both machines."""
    request = messages.GetTableInfoRequest(table_path=write_table_path(path))
    try:
        answer = await cluster.ask_any(request, messages.GetTableInfoResponse)
    except FlussError:
        return 0.0  # the request that follows meets the same error, and reports it better
    now = time.time()  # noqa: TID251 - the cluster gives the age in wall-clock time
    age_s = now - answer.created_time / 1000
    return min(max(0.0, TABLE_SETTLE_S - age_s), TABLE_SETTLE_S)
