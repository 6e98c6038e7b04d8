"""A round copies a table into its lake: what was written is there, each row once."""

from __future__ import annotations

import random
import uuid

import polars as pl
import pyarrow as pa
import pytest

import fluss_polars
from tests.cluster.lake.conftest import LAKE
from tests.support.lake.all_types import TYPES, full_row
from tests.support.lake.rounds import one_round

PLACE = [(name, "ascending") for name in ("_partition", "_bucket", "_log_offset")]


def new_name(kind):
    """A name that no earlier attempt at the test has used."""
    return f"{kind}_{uuid.uuid4().hex[:8]}"


def numbered(start, count):
    ids = range(start, start + count)
    return pa.table({"id": list(ids), "day": [f"d{each % 3}" for each in ids], "n": [0] * count})


def in_order(rows):
    return rows.sort_by(PLACE)


def assert_copied(table):
    """The lake has all of the log; a scan of both, and of the lake alone, gives the log."""
    expected = in_order(table.scan(with_metadata=True, lake="off").to_arrow())
    assert in_order(table.scan(with_metadata=True, lake="only").to_arrow()) == expected
    assert in_order(table.scan(with_metadata=True).to_arrow()) == expected


@pytest.mark.parametrize("partitioned", [False, True], ids=["plain", "partitioned"])
@pytest.mark.parametrize("keyed", [False, True], ids=["round robin", "bucket key"])
def test_rounds_of_a_log(session, partitioned, keyed):
    name = new_name("log")
    session.create_table(
        name,
        {"id": "BIGINT", "day": "STRING", "n": "BIGINT"},
        buckets=2,
        properties=LAKE,
        **({"partition_by": ["day"]} if partitioned else {}),
        **({"bucket_key": ["id"]} if keyed else {}),
    )
    table = session.table(name)
    assert one_round(table).snapshot_id is None
    for start in (0, 500, 1_000):
        table.append(numbered(start, 500))
        done = one_round(table)
        assert (done.changes, done.rows, done.deletes) == (500, 500, 0)
        assert_copied(table)
    assert one_round(table).snapshot_id is None
    table.append(numbered(1_500, 10))
    assert table.count() == 1_510
    assert table.scan(lake="only").count() == 1_500


def state_of(table, **options):
    rows = table.scan(with_metadata=["_bucket", "_partition"], **options).to_arrow()
    return rows.sort_by([(each, "ascending") for each in ("_partition", "_bucket", "id")])


def change(table, rng, count):
    keys = [rng.randrange(200) for _ in range(count)]
    days = [f"d{rng.randrange(3)}" for _ in keys]
    table.upsert(pa.table({"id": keys, "day": days, "n": [rng.randrange(99) for _ in keys]}))
    gone = [{"id": rng.randrange(200), "day": f"d{rng.randrange(3)}"} for _ in range(count // 4)]
    table.delete([each if "day" in table.primary_key else (each["id"],) for each in gone])


@pytest.mark.parametrize("mode", ["equality-deletes", "copy-on-write"])
@pytest.mark.parametrize("partitioned", [False, True], ids=["plain", "partitioned"])
def test_rounds_of_a_state(session, iceberg, mode, partitioned, monkeypatch):
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")  # or Polars asks for a package
    name = new_name("keys")
    session.create_table(
        name,
        {"id": "BIGINT", "day": "STRING", "n": "BIGINT"},
        primary_key=["id", "day"] if partitioned else ["id"],
        buckets=2,
        properties=LAKE,
        **({"partition_by": ["day"]} if partitioned else {}),
    )
    session.alter_table(name, set_properties={"tiering.write-mode": mode})
    table, rng = session.table(name), random.Random(3)
    for _ in range(4):
        change(table, rng, 150)
        assert one_round(table).snapshot_id is not None
        expected = state_of(table, lake="off")
        assert state_of(table, lake="only") == expected
        assert state_of(table) == expected
        if mode == "copy-on-write":
            assert_others_read(iceberg(table), table.scan(lake="off").to_arrow())
    change(table, rng, 50)
    assert state_of(table) == state_of(table, lake="off")


def assert_others_read(lake, expected):
    """What reads Iceberg without us gives the rows: pyiceberg, and by it Polars and DuckDB."""
    rows = sorted(map(tuple, expected.select(["id", "day", "n"]).to_pandas().to_numpy().tolist()))
    arrow = lake.scan(selected_fields=("id", "day", "n")).to_arrow()
    assert sorted(map(tuple, arrow.to_pandas().to_numpy().tolist())) == rows
    frame = pl.scan_iceberg(lake).select("id", "day", "n").collect()
    assert sorted(frame.rows()) == rows
    with lake.scan(selected_fields=("id", "day", "n")).to_duckdb("state") as con:
        assert sorted(con.sql("SELECT id, day, n FROM state").fetchall()) == rows


def test_changes_without_an_effect_bring_the_lake_to_the_end_of_the_log(session):
    table = session.create_table(
        new_name("empty"), {"id": "BIGINT"}, primary_key="id", buckets=1, properties=LAKE
    )
    table.upsert({"id": [1, 2]})
    assert one_round(table).changes == 2
    table.delete([(8,), (9,)])  # their batch has no rows, and may take offsets
    one_round(table)
    assert "from the log: at most 0 rows" in table.scan().explain()
    assert one_round(table).snapshot_id is None
    assert sorted(table.to_arrow()["id"].to_pylist()) == [1, 2]


@pytest.mark.parametrize("key", [None, "id"], ids=["log", "primary key"])
def test_all_types(session, key):
    name = new_name("types")
    how = {"primary_key": key} if key else {}
    table = session.create_table(name, {"id": "BIGINT", **TYPES}, properties=LAKE, buckets=1, **how)
    write = table.upsert if key else table.append
    for start in (0, 25):
        write([full_row(each) for each in range(start, start + 50)])
        one_round(table)
        options = {"columns": ["id", *TYPES]}
        expected = table.scan(lake="off", **options).to_arrow().sort_by("id")
        for lake in ("only", "union"):
            found = table.scan(lake=lake, **options).to_arrow().sort_by("id")
            assert str(found.to_pylist()) == str(expected.to_pylist())
            assert found.schema == expected.schema
            # Polars takes texts as views; the rows are those of the plain path.
            frame = fluss_polars.read_fluss(table, lake=lake, **options).sort("id")
            assert frame.equals(pl.DataFrame(expected))
