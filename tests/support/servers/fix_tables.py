"""The fixtures `session`, `rows`, `events`, `parted` and `keyed`: tables that many tests read.

Each test has its own tables, so it may write to them. Folders whose tests only read share them
(tests/engines/duckdb), and folders with other columns override `rows`; the last column is a number
that `keyed` changes.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

import fluss
from fluss.session import Session, Table
from tests.support.servers.fix_cluster import IMPATIENT, ClusterUnderTest

ROWS = 1_000
DAYS = ("2026-01-01", "2026-01-02", "2026-01-03")


@pytest.fixture
def session(cluster: ClusterUnderTest, database: str) -> Iterator[Session]:
    """A session on the cluster, with the test's own database in its URL."""
    with fluss.connect(f"fluss://{cluster.bootstrap}/{database}", **IMPATIENT) as opened:
        yield opened


@pytest.fixture
def rows() -> pa.Table:
    """A thousand rows: an id, a day of three, and a number."""
    return pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "day": [DAYS[each % 3] for each in range(ROWS)],
            "x": [each / 8 for each in range(ROWS)],
        }
    )


@pytest.fixture
def events(session: Session, rows: pa.Table) -> Table:
    """A log table of four buckets, written in ten batches."""
    table = session.create_table("events", rows, buckets=4, bucket_key=["id"])
    for start in range(0, ROWS, 100):
        table.append(rows.slice(start, 100))
    return table


@pytest.fixture
def parted(session: Session, rows: pa.Table) -> Table:
    """The same rows in a table with a partition for each day."""
    table = session.create_table("parted", rows, buckets=2, partition_by=["day"])
    table.append(rows)
    return table


@pytest.fixture
def keyed(session: Session, rows: pa.Table) -> Table:
    """A table with a primary key: every row written, the first ten changed, then ten deleted."""
    table = session.create_table("keyed", rows, primary_key=["id"], buckets=3)
    table.upsert(rows)
    last = rows.num_columns - 1
    changed = pa.array([-1.0] * 10)
    table.upsert(rows.slice(0, 10).set_column(last, rows.column_names[last], changed))
    table.delete(rows.slice(10, 10).select(["id"]))
    return table
