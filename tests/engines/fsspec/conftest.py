"""A cluster with a log table, a partitioned table and a primary-key table, seen as files."""

import fsspec
import pyarrow as pa
import pytest

DAYS = ("2026-01-01", "2026-01-02")
ROWS = pa.table({"id": range(1_000), "day": [DAYS[each % 2] for each in range(1_000)]})


@pytest.fixture
def tables(session):
    session.append("events", ROWS, create=True, buckets=2)
    session.append("parted", ROWS, create=True, buckets=1, partition_by=["day"])
    session.upsert("keyed", ROWS, create=True, buckets=1, primary_key=["id"], comment="by id")
    return session


@pytest.fixture
def files(cluster, tables):
    return fsspec.filesystem("fluss", servers=cluster.bootstrap)


@pytest.fixture
def url(cluster, database):
    return f"fluss://{cluster.bootstrap}/{database}"
