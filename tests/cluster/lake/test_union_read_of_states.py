"""The state of a table with a primary key: the rows of its lake, and the changes since then."""

from __future__ import annotations

import random
import uuid

import polars as pl
import pyarrow as pa
import pytest

import fluss_polars
from fluss.errors import UnsupportedOperationError
from tests.cluster.lake.conftest import LAKE
from tests.support.lake.plain_tiering import tier_state

KEYS, DAYS = 300, 3


def change(table, rng, count):
    """Upserts and deletes, some of the same keys."""
    days = [f"d{rng.randrange(DAYS)}" for _ in range(count)]
    table.upsert(
        pa.table(
            {
                "id": [rng.randrange(KEYS) for _ in range(count)],
                "day": days,
                "n": pa.array([rng.randrange(50) for _ in range(count)], pa.int32()),
            }
        )
    )
    table.delete(
        [{"id": rng.randrange(KEYS), "day": f"d{rng.randrange(DAYS)}"} for _ in range(count // 4)]
    )


@pytest.fixture(scope="module")
def keyed(lake_cluster, session, iceberg):
    session.create_table(
        "keyed",
        {"id": "BIGINT", "day": "STRING", "n": "INT"},
        primary_key=["id", "day"],
        partition_by=["day"],
        buckets=2,
        properties=LAKE,
    )
    table, rng = session.table("keyed"), random.Random(7)
    change(table, rng, 600)
    tier_state(table, lake_cluster.bootstrap_servers, iceberg(table))
    change(table, rng, 200)
    return table


def in_order(rows):
    return rows.sort_by([(name, "ascending") for name in rows.column_names])


OPTIONS = {
    "whole": {},
    "filter of a value": {"filter": "n < 10"},
    "filter of a key": {"filter": "id > 100 AND id < 120"},
    "columns without the key": {"columns": ["n"]},
    "a partition": {"filter": "day = 'd1'", "columns": ["id"]},
    "metadata": {"with_metadata": ["_bucket", "_partition"]},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_the_state_is_that_of_fluss(keyed, options):
    expected = keyed.scan(**options, lake="off").to_arrow()
    found = keyed.scan(**options)
    assert in_order(found.to_arrow()) == in_order(expected)
    assert found.count() == expected.num_rows


def test_the_plan_names_the_lake(keyed):
    assert "lake: the lake has it as of offset" in keyed.scan().explain()
    assert "lake: not read" in keyed.scan(strategy="changelog", lake="off").explain()


def test_a_moment_before_the_snapshot_does_not_come_from_the_lake(keyed):
    early = {(name, bucket): 5 for name in ("d0", "d1", "d2") for bucket in (0, 1)}
    scan = keyed.scan(as_of=early)
    assert "the lake has it" not in scan.explain()
    assert in_order(scan.to_arrow()) == in_order(keyed.scan(as_of=early, lake="off").to_arrow())


def test_only_gives_the_state_of_the_snapshot(keyed, iceberg):
    table = iceberg(keyed)
    assert keyed.scan(lake="only").count() == table.scan().to_arrow().num_rows


def test_polars_reads_both(keyed):
    expected = keyed.scan(lake="off", filter="n < 25").count()
    assert fluss_polars.scan_fluss(keyed).filter(pl.col("n") < 25).collect().height == expected


def test_changes_are_not_in_a_lake(keyed):
    with pytest.raises(UnsupportedOperationError, match="not its changes"):
        keyed.scan(mode="changelog", lake="union").count()
    assert keyed.scan(mode="changelog").count() > 0


def test_a_partition_that_was_dropped_keeps_its_last_state(keyed):
    last = in_order(keyed.scan(filter="day = 'd2'", lake="only").to_arrow())
    assert last.num_rows
    keyed.drop_partition({"day": "d2"})
    assert keyed.scan(filter="day = 'd2'", lake="off").count() == 0
    assert in_order(keyed.scan(filter="day = 'd2'").to_arrow()) == last


@pytest.mark.parametrize("options", [{}, {"filter": "n < 10"}, {"with_metadata": ["_bucket"]}])
def test_rows_of_a_kv_snapshot_have_no_offset_and_are_read(lake_cluster, session, iceberg, options):
    name = f"loaded_{uuid.uuid4().hex[:8]}"
    columns = {"id": "BIGINT", "n": "BIGINT"}
    table = session.create_table(name, columns, primary_key=["id"], buckets=2, properties=LAKE)
    table.upsert({"id": list(range(100)), "n": list(range(100))})
    tier_state(table, lake_cluster.bootstrap_servers, iceberg(table), is_of_snapshot=True)
    in_lake = table.scan(**options, lake="off").to_arrow()
    assert in_order(table.scan(**options, lake="only").to_arrow()) == in_order(in_lake)
    table.upsert({"id": [5, 200], "n": [-1, -2]})
    expected = table.scan(**options, lake="off").to_arrow()
    assert in_order(table.scan(**options).to_arrow()) == in_order(expected)
    assert table.scan(**options).count() == expected.num_rows
