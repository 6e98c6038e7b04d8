"""The fixture `wire`: a recorder before the cluster, for whoever claims what is asked and sent."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.servers.fix_cluster import ClusterUnderTest
from tests.support.servers.wire_recorder import WireRecorder


@pytest.fixture
def wire(cluster: ClusterUnderTest) -> Iterator[WireRecorder]:
    """A recorder before the cluster of this worker; clients are given its `bootstrap`."""
    with WireRecorder(cluster.bootstrap) as recorder:
        yield recorder
