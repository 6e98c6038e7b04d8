"""The fixture `dialect`: one of the two dialects of the client, connected to a cluster.

Both dialects have the same calls, so a test is written once: `settle` awaits a result where the
dialect returns an awaitable, and returns it otherwise.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.servers.dialects import Dialect

DIALECTS = ("fluss", "fluss.aio")


@pytest.fixture(params=DIALECTS)
async def dialect(request, cluster, database) -> AsyncIterator[Dialect]:
    """A dialect, connected."""
    from tests.support.servers.dialects import Dialect, load_module

    async with Dialect.opened(load_module(request.param), cluster, database) as opened:
        yield opened
