"""Lets a new database or table rest before something is made inside it.

A coordinator of 0.9.1 hears of databases, tables and partitions in different ways, and not in their
order. A table that follows its database within a few milliseconds may be overlooked and never gets
a leader (seen with 3 of 1 600, all while the machine was busy; with 0 of 1 100 after 50 to 100 ms);
a partition that follows its table as fast can make the coordinator stop electing leaders for all
new tables. So whoever made the one waits a moment before making the other, which makes it rarer and
not impossible. What somebody else has made is not known here.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Final

import anyio

from fluss.model.paths import TablePath

DATABASE_REST_S: Final = 0.1
TABLE_REST_S: Final = 0.3
REMEMBERED_MAX: Final = 1_000


class Newcomers:
    """What a client has made, and when. Lives on the engine's loop."""

    def __init__(self) -> None:
        self._made_at: OrderedDict[str | TablePath, float] = OrderedDict()

    def made(self, what: str | TablePath) -> None:
        """A database or a table has just been made."""
        self._made_at[what] = asyncio.get_running_loop().time()
        self._made_at.move_to_end(what)
        while len(self._made_at) > REMEMBERED_MAX:
            self._made_at.popitem(last=False)

    async def let_rest(self, what: str | TablePath) -> None:
        """Wait until it has rested, if it is new."""
        made_at = self._made_at.pop(what, None)
        if made_at is None:
            return
        rest = TABLE_REST_S if isinstance(what, TablePath) else DATABASE_REST_S
        await anyio.sleep(max(0.0, made_at + rest - asyncio.get_running_loop().time()))
