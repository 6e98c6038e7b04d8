"""The fixture `harness`: writers on a real cluster, and a look at what the servers then hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.servers.write_harness import Harness


@pytest.fixture
def harness(cluster, database) -> Iterator[Harness]:
    """A connection with writers of the test's own, and eyes that are not the client's."""
    from tests.support.servers.write_harness import Harness

    made = Harness(cluster.bootstrap, database)
    try:
        yield made
    finally:
        made.close()
