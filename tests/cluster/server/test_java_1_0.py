"""The Java client 1.0.0 on the embedded server: each reads what the other wrote.

No server of Fluss 1.0 is published. What its client asks for, and what it makes of the answers, is
therefore compared here.
"""

import pyarrow as pa
import pytest

import fluss
from fluss import col
from fluss_server.local_cluster import LocalCluster
from tests.support.servers.java_client import run_rescaled
from tests.support.servers.rescaling import rescale

DAYS = {"d1": 2, "d2": 5, "d3": 1}
ROWS = 40


def rows_of(day):
    ids = range(ROWS)
    return pa.table(
        {
            "day": [day] * ROWS,
            "id": pa.array(ids, pa.int64()),
            "x": [f"{day} {each}" for each in ids],
        }
    )


def counts_of(table):
    return {each.partition_name: each.bucket_count for each in table.partitions()}


@pytest.mark.usefixtures("java")
@pytest.mark.slow  # one start of a JVM, which compiles the program
def test_java_and_this_client_read_each_other_s_rows():
    with LocalCluster() as cluster, fluss.connect(cluster.url) as session:
        session.create_database("java")
        ours = session.create_table(
            "java.ours", rows_of("d1"), primary_key=["day", "id"], partition_by=["day"], buckets=2
        )
        for day, buckets in DAYS.items():
            rescale(session, "java.ours", buckets)
            ours.upsert(rows_of(day))
        assert run_rescaled(cluster.bootstrap_servers, "java") == [
            "counts [d1=2, d2=5, d3=1]",
            "epoch 2",
            f"lookups {3 * ROWS}",
            f"scanned {3 * ROWS}",
            f"row count {3 * ROWS}",
            "counts [b2=2, b3=3, b7=7]",
            "layout 2",
            "kept true",
        ]
        check_ours(session.table("java.ours"))
        check_theirs(session.table("java.theirs"))
        expiring = session.table("java.expiring")
        assert expiring.info.options.row_ttl_column == "at"
        assert 1 in expiring.to_arrow()["id"].to_pylist()


def check_ours(table):
    """Java has written as many rows into each partition, by a typed writer."""
    assert table.count() == 2 * len(DAYS) * ROWS
    keys = [(day, each) for day in DAYS for each in (1_000, 1_000 + ROWS - 1)]
    assert table.lookup(keys)["x"].to_pylist() == [f"java {day} {each}" for day, each in keys]


def check_theirs(table):
    """A table that Java created and rescaled."""
    assert counts_of(table) == {"b2": 2, "b3": 3, "b7": 7}
    assert table.count() == 3 * ROWS
    keys = [(day, each) for day in ("b2", "b3", "b7") for each in range(ROWS)]
    assert table.lookup(keys)["x"].to_pylist() == [f"java {each}" for _, each in keys]
    # Rows of this client replace Java's, which only those in the same bucket do.
    table.upsert({"day": ["b7"] * ROWS, "id": list(range(ROWS)), "x": ["ours"] * ROWS})
    assert table.count() == 3 * ROWS
    found = table.scan(filter=col("day") == "b7").to_arrow()["x"].to_pylist()
    assert found == ["ours"] * ROWS
