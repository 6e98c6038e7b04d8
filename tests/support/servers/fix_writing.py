"""The fixture `harness`: writers on a cluster, and independent reads of the stored batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.servers.write_harness import WriteHarness


@pytest.fixture
def harness(cluster, database) -> Iterator[WriteHarness]:
    """A connection with its own writers, and reads that do not use the client."""
    from tests.support.servers.write_harness import WriteHarness

    made = WriteHarness(cluster.bootstrap, database)
    try:
        yield made
    finally:
        made.close()
