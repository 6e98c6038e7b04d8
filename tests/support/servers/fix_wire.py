"""The fixture `wire`: a recorder in front of the cluster, for assertions about requests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.servers.fix_cluster import ClusterUnderTest
from tests.support.servers.wire_recorder import WireRecorder


@pytest.fixture
def wire(cluster: ClusterUnderTest) -> Iterator[WireRecorder]:
    """A recorder in front of this worker's cluster; clients connect to its `bootstrap`."""
    with WireRecorder(cluster.bootstrap) as recorder:
        yield recorder
