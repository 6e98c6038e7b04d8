"""The fixture `desk`: writers on a real cluster, and a look at what the servers then hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.servers.write_harness import Desk


@pytest.fixture
def desk(cluster, database) -> Iterator[Desk]:
    """A connection with writers of the test's own, and eyes that are not the client's."""
    from tests.support.servers.write_harness import Desk

    made = Desk(cluster.bootstrap, database)
    try:
        yield made
    finally:
        made.close()
