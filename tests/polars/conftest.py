"""A session on the cluster of the test run, and tables with rows in them."""

from __future__ import annotations

import pyarrow as pa
import pytest

import fluss

ROWS = 1_000
DAYS = ("2026-01-01", "2026-01-02", "2026-01-03")


@pytest.fixture
def session(cluster, database):
    with fluss.connect(f"fluss://{cluster.bootstrap}/{database}") as opened:
        yield opened


@pytest.fixture
def rows():
    return pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "day": [DAYS[each % 3] for each in range(ROWS)],
            "name": [f"n{each % 7}" for each in range(ROWS)],
            "score": [each / 8 for each in range(ROWS)],
        }
    )


@pytest.fixture
def events(session, rows):
    """A log table of four buckets, written in ten batches that lie in several of them."""
    table = session.create_table("events", rows, buckets=4, bucket_key=["id"])
    for start in range(0, ROWS, 100):
        table.append(rows.slice(start, 100))
    return table


@pytest.fixture
def parted(session, rows):
    """The same, in a partition for each day."""
    table = session.create_table("parted", rows, buckets=2, partition_by=["day"])
    table.append(rows)
    return table


@pytest.fixture
def keyed(session, rows):
    """A table with a primary key: every row written, the first ten changed, then ten deleted."""
    table = session.create_table("keyed", rows, primary_key=["id"], buckets=3)
    table.upsert(rows)
    table.upsert(rows.slice(0, 10).set_column(3, "score", pa.array([-1.0] * 10)))
    table.delete(rows.slice(10, 10).select(["id"]))
    return table
