"""The fixtures `gate` and `s3_cluster`: a real Fluss whose remote store is a local S3.

The embedded server keeps all segments in its own directory and has no such fixture.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fluss_testkit.cluster_profiles import FAST_SNAPSHOTS, SMALL_SEGMENTS, Profile
from fluss_testkit.java_cluster import JavaCluster
from fluss_testkit.s3_profile import s3_store
from tests.support.objects.s3_gate import (
    BUCKET,
    ROLE,
    SERVER_KEY,
    SERVER_SECRET,
    Gate,
    s3_gate,
)
from tests.support.servers.fix_cluster import StartCluster


@pytest.fixture(scope="session")
def gate() -> Iterator[Gate]:
    """A store, behind a gate that counts, checks and disturbs."""
    with s3_gate() as running:
        yield running


@pytest.fixture(scope="session")
def s3_cluster(start_cluster: StartCluster, gate: Gate) -> Iterator[JavaCluster]:
    """A cluster with segments of a megabyte, which move there within a second or two."""
    store = s3_store(
        f"s3://{BUCKET}/remote",
        endpoint=gate.endpoint,
        access_key=SERVER_KEY,
        secret_key=SERVER_SECRET,
        role=ROLE,
    )
    megabyte = Profile(options={"log.segment.file-size": "1mb"})
    with start_cluster(SMALL_SEGMENTS, FAST_SNAPSHOTS, megabyte, store) as running:
        yield running
