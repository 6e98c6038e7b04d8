"""A DuckDB connection to the cluster of the test run, and tables with rows."""

from __future__ import annotations

import time
import uuid

import pyarrow as pa
import pytest

import fluss
import fluss_duckdb
from tests.support.servers.fix_cluster import IMPATIENT
from tests.support.servers.fix_tables import DAYS, ROWS

# A coordinator of 0.9.1 may overlook a table that is created right after its database; these are
# shared, and one that is overlooked would fail many tests.
DATABASE_SETTLE_S = 1.0


@pytest.fixture(scope="package")
def shared(cluster):
    """A database whose tables many tests read and none writes."""
    name = f"duckdb_{uuid.uuid4().hex[:8]}"
    with fluss.connect(f"fluss://{cluster.bootstrap}", **IMPATIENT) as session:
        session.create_database(name)
        time.sleep(DATABASE_SETTLE_S)
        try:
            yield name
        finally:
            session.drop_database(name, cascade=True)


@pytest.fixture
def session(cluster, shared):
    with fluss.connect(f"fluss://{cluster.bootstrap}/{shared}", **IMPATIENT) as opened:
        yield opened


@pytest.fixture
def con(session):
    with fluss_duckdb.connect(session=session) as opened:
        yield opened


@pytest.fixture
def name(request):
    """The name of a table that one test makes."""
    return f"t_{uuid.uuid4().hex[:12]}"


@pytest.fixture(scope="package")
def rows():
    return pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "day": [DAYS[each % 3] for each in range(ROWS)],
            "name": [None if each % 7 == 6 else f"n{each % 7}" for each in range(ROWS)],
            "x": [each / 8 for each in range(ROWS)],
        }
    )


def made(cluster, path, rows, **how):
    with fluss.connect(f"fluss://{cluster.bootstrap}", **IMPATIENT) as session:
        table = session.create_table(path, rows, **how)
        write = table.upsert if "primary_key" in how else table.append
        for start in range(0, ROWS, 200):
            write(rows.slice(start, 200))
        if "primary_key" in how:
            table.upsert(rows.slice(0, 10).set_column(3, "x", pa.array([-1.0] * 10)))
            table.delete(rows.slice(10, 10).select(["id"]))


@pytest.fixture(scope="package")
def events_made(cluster, shared, rows):
    made(cluster, f"{shared}.events", rows, buckets=4, bucket_key=["id"])


@pytest.fixture(scope="package")
def parted_made(cluster, shared, rows):
    made(cluster, f"{shared}.parted", rows, buckets=2, partition_by=["day"])


@pytest.fixture(scope="package")
def keyed_made(cluster, shared, rows):
    made(cluster, f"{shared}.keyed", rows, primary_key=["id"], buckets=3)


@pytest.fixture
def events(session, events_made):
    """A log table of four buckets, written in several batches."""
    return session.table("events")


@pytest.fixture
def parted(session, parted_made):
    """The same, in a partition for each day."""
    return session.table("parted")


@pytest.fixture
def keyed(session, keyed_made):
    """A table with a primary key: every row written, ten changed, then ten others deleted."""
    return session.table("keyed")
