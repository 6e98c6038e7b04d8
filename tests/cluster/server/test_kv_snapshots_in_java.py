"""Java's client 1.0.0 reads KV snapshots of the embedded server, with the RocksDB that it brings.

No server of Fluss 1.0 is published; its client is the judge of what one would have made.
"""

import pyarrow as pa
import pytest

import fluss
from fluss_server.local_cluster import LocalCluster
from tests.support.servers.java_client import read_kv_snapshots
from tests.support.servers.read_harness import eventually

KEYS = 3_000
COLUMNS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("part", pa.string(), nullable=False),
        pa.field("at", pa.int64()),
        pa.field("x", pa.string()),
    ]
)
pytestmark = [pytest.mark.usefixtures("java"), pytest.mark.slow]  # each starts a JVM


@pytest.fixture(scope="module")
def cluster():
    with LocalCluster(kv_snapshot_interval="1 s") as running:
        yield running


@pytest.fixture(scope="module")
def session(cluster):
    with fluss.connect(cluster.url) as opened:
        opened.create_database("java")
        yield opened


def written(session, name, **options):
    table = session.create_table(f"java.{name}", COLUMNS, buckets=2, **options)
    rows = {each: ("a" if each % 2 else "b", 2**50 + each, f"x{each}") for each in range(KEYS)}
    upsert(table, rows)
    gone = range(0, KEYS, 5)
    table.delete({"id": list(gone), "part": [rows[each][0] for each in gone]})
    for each in gone:
        del rows[each]
    changed = {each: (rows[each][0], 0, None) for each in list(rows)[:100]}
    changed = {each: (part, 2**50, None) for each, (part, _, _) in changed.items()}
    upsert(table, changed)
    return table, rows | changed


def upsert(table, rows):
    columns = list(zip(*rows.values(), strict=True))
    table.upsert(
        {"id": list(rows), **dict(zip(("part", "at", "x"), map(list, columns), strict=True))}
    )


def ends(table):
    found = table.offsets()
    pairs = zip(found.column("bucket").to_pylist(), found.column("end").to_pylist(), strict=True)
    return sorted(pairs)


def check(cluster, name, table, expected):
    bootstrap = cluster.bootstrap_servers

    def read():
        buckets, rows = read_kv_snapshots(bootstrap, "java", name)
        reached = sorted((bucket, offset) for _, bucket, _, offset in buckets)
        return rows if reached == ends(table) else None

    rows = eventually(read, timeout_s=60)
    found = {int(row[0]): tuple(row[1:]) for row in rows}
    assert len(found) == len(rows)
    assert found == {
        each: (part, str(at), str(x) if x is not None else "null", *("null",) * (len(rows[0]) - 4))
        for each, (part, at, x) in expected.items()
    }


def test_rows_of_two_schemas(cluster, session):
    table, rows = written(session, "plain", primary_key=["id", "part"])
    table = session.alter_table("java.plain", add_columns=pa.schema([("more", pa.int32())]))
    check(cluster, "plain", table, rows)


def test_rows_in_partitions(cluster, session):
    table, rows = written(session, "parted", primary_key=["id", "part"], partition_by=["part"])
    check(cluster, "parted", table, rows)


@pytest.mark.parametrize("kv_format", ["compacted", "indexed"])
def test_rows_that_expire_have_their_times_in_front(cluster, session, kv_format):
    properties = {
        "table.kv.ttl": "365 d",
        "table.kv.ttl.time-column": "at",
        "table.kv.format": kv_format,
    }
    name = f"expiring_{kv_format}"
    table, rows = written(session, name, primary_key=["id", "part"], properties=properties)
    assert table.info.options.value_layout_version == 2
    check(cluster, name, table, rows)
