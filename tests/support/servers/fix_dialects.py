"""The fixture `dialect`: one of the two dialects, connected to a real cluster.

Where the dialects call alike, a test is written once: `settle` awaits what one of them gives to be
awaited and passes on what the other gives at once.
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
