"""Java reads what our rounds have written: Iceberg-Java's generic reader, and Fluss's lake source.

After each round, both read the new snapshot and give the same rows, with buckets, offsets and
times. These are the rows that our own scans give of the lake, and of lake and log together, and the
rows that the server itself holds. Two rounds of some kinds by default, more in `./dev prove lake`.
"""

from __future__ import annotations

import random
import sys
import uuid

import pytest

from tests.cluster.lake.conftest import LAKE
from tests.support.hypothesis_profiles import IS_EXHAUSTIVE
from tests.support.lake.all_types import TYPES_FOR_JAVA, row_for_java
from tests.support.lake.java_judge import (
    java_judge,
    settings_of,
    texts_of,
    without_buckets,
    without_places,
)
from tests.support.lake.rounds import one_round

ROUNDS, WRITES = (8, 120) if IS_EXHAUSTIVE else (2, 40)
KEYS, PARTS = 100, 2
COLUMNS = {"id": "BIGINT", "part": "STRING", **TYPES_FOR_JAVA}
BY_PART = {"partition_by": ["part"]}
KEY = {"primary_key": ["id"]}
PART_KEY = {"primary_key": ["id", "part"], "bucket_key": ["id"], **BY_PART}
KINDS = {
    "log": {},
    "log by key": {"bucket_key": ["id"]},
    "partitioned log": BY_PART,
    "state": KEY,
    "state, copy-on-write": KEY,
    "partitioned state": PART_KEY,
    "partitioned state, copy-on-write": PART_KEY,
}
# Each kind has its own program to compile, so the short form takes those that differ most.
SHORT = ("partitioned log", "state", "partitioned state, copy-on-write")


@pytest.fixture(scope="module")
def judge(java, session, lake_cluster, tmp_path_factory):
    table = session.create_table("judged", {"id": "BIGINT"}, properties=LAKE)
    log = tmp_path_factory.mktemp("judge") / "java.log"
    with java_judge(lake_cluster.bootstrap_servers, settings_of(table), log) as running:
        yield running


def write(table, rng, count):
    rows = [
        {**row_for_java(number), "part": f"p{rng.randrange(PARTS)}"}
        for number in (rng.randrange(10_000) for _ in range(count))
    ]
    if not table.primary_key:
        table.append(rows)
        return
    table.upsert([{**row, "id": row["id"] % KEYS} for row in rows])
    gone = [{"id": rng.randrange(KEYS), "part": f"p{rng.randrange(PARTS)}"} for _ in rows[::4]]
    table.delete([{name: row[name] for name in table.primary_key} for row in gone])


def texts(table, lake):
    is_state = bool(table.primary_key)
    return texts_of(
        table.scan(lake=lake, with_metadata=["_bucket"] if is_state else True).to_arrow()
    )


@pytest.mark.slow  # the JVM compiles its program
@pytest.mark.parametrize("kind", KINDS if IS_EXHAUSTIVE else SHORT)
def test_java_reads_the_rows_of_each_round(session, judge, kind):
    name = f"j_{uuid.uuid4().hex[:8]}"
    session.create_table(name, COLUMNS, buckets=2, properties=LAKE, **KINDS[kind])
    if kind.endswith("copy-on-write"):
        session.alter_table(name, set_properties={"tiering.write-mode": "copy-on-write"})
    table, rng, rows = session.table(name), random.Random(kind), 0
    for _ in range(ROUNDS):
        write(table, rng, WRITES)
        done = one_round(table)
        expected = texts(table, "off")
        assert texts(table, "only") == texts(table, "union") == expected
        found = judge.rows(table, done.snapshot_id)
        iceberg = found["iceberg"] if table.info.bucket_keys else without_buckets(found["iceberg"])
        assert found["fluss"] == iceberg
        same = without_places(found["iceberg"]) if table.primary_key else found["iceberg"]
        assert same == expected
        rows += same.total()
        write(table, rng, WRITES // 4)
        assert texts(table, "union") == texts(table, "off")
    sys.stderr.write(f"lake: {kind}: {ROUNDS} rounds read by Java, {rows} rows, 0 differences\n")
