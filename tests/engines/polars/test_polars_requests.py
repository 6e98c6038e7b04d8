"""The requests of Polars queries, recorded on the wire."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import fluss
import fluss_polars  # noqa: F401 - gives Polars scan_fluss

ROWS_PER_BATCH = 20_000
BATCHES = 60


@pytest.fixture
def session(wire, database):
    """A session that reaches the servers only through the recorder."""
    with fluss.connect(f"fluss://{wire.bootstrap}/{database}") as opened:
        yield opened


@pytest.fixture
def wide(session):
    """Two partitions; in `x` are more rows than one fetch brings, which do not compress."""
    rng = np.random.default_rng(7)
    table = session.create_table(
        "wide",
        pa.schema([("dt", pa.string()), ("a", pa.int64()), ("b", pa.int64()), ("c", pa.int64())]),
        partition_by=["dt"],
        buckets=1,
    )
    for number in range(BATCHES):
        count = ROWS_PER_BATCH if number else 100
        table.append(
            pa.table(
                {
                    "dt": ["x" if number else "y"] * count,
                    "a": rng.integers(0, 2**62, count),
                    "b": rng.integers(0, 2**62, count),
                    "c": rng.integers(0, 2**62, count),
                }
            )
        )
    return table


def test_a_filter_on_a_partition_fetches_its_column_and_stops(wide, wire):
    ids = {each.partition_name: each.partition_id for each in wide.partitions()}
    frame = pl.scan_fluss(wide)
    frame.collect_schema()
    with wire.recording() as whole:
        assert frame.filter(pl.col("dt") == "x").select("a").collect().height > 1_000_000
    with wire.recording() as seen:
        got = frame.filter(pl.col("dt") == "x").select("a").head(10).collect()
    assert got.height == 10
    assert got.columns == ["a"]
    for recorded in (whole, seen):
        asked = recorded.buckets("FETCH_LOG", "LIST_OFFSETS", "LIMIT_SCAN")
        assert {each.partition_id for each in asked} == {ids["x"]}
        assert {each.projected_fields for each in recorded.reads()} == {(1,)}
    fetched = [sum(len(each.records) for each in one.reads()) for one in (whole, seen)]
    assert fetched[0] > 8 * BATCHES * ROWS_PER_BATCH * 0.9
    assert fetched[1] < fetched[0] * 3 / 4  # how much is ahead of a reader, its speed decides


def test_columns_that_are_not_used_are_not_fetched(wide, wire):
    frame = pl.scan_fluss(wide)
    frame.collect_schema()
    with wire.recording() as seen:
        frame.filter(pl.col("a") % 2 == 0).select("dt").collect()
    assert {each.projected_fields for each in seen.reads()} == {(0, 1)}
    with wire.recording() as seen:
        frame.group_by("dt").agg(pl.col("a").max()).collect()
    assert {each.projected_fields for each in seen.reads()} == {(0, 1)}


def test_a_limit_fetches_one_answer(wide, wire):
    frame = pl.scan_fluss(wide, partitions=["x"])
    frame.collect_schema()
    with wire.recording() as seen:
        assert frame.head(10).collect().height == 10
    assert len(seen.reads()) == 1
    assert len(seen.reads()[0].records) < 2 * 24 * ROWS_PER_BATCH  # a server gives whole batches


def test_all_buckets_are_fetched_together(session, wire):
    table = session.create_table(
        "four", {"id": "bigint", "text": "string"}, buckets=4, bucket_key=["id"]
    )
    table.append({"id": list(range(1_000)), "text": [f"text {each}" for each in range(1_000)]})
    frame = pl.scan_fluss(table)
    frame.collect_schema()
    read = {}
    with wire.recording() as core:
        read["core"] = table.scan().to_arrow()
    with wire.recording() as polars:
        read["polars"] = frame.collect()
    assert len(polars.reads()) == len(core.reads()) >= 4
    assert fetches(polars) == fetches(core)
    assert pl.DataFrame(read["core"]).sort("id").equals(read["polars"].sort("id"))


def fetches(recording):
    """How many requests for rows were sent."""
    return sum(each.api == "FETCH_LOG" for each in recording.exchanges)


def test_a_filter_of_keys_is_a_lookup(keyed, wire):
    frame = pl.scan_fluss(keyed)
    frame.filter(pl.col("id") == 6).collect()
    with wire.recording() as seen:
        found = frame.filter(pl.col("id").is_in([5, 15, 500])).sort("id").collect()
    assert found["id"].to_list() == [5, 500]
    assert found["score"].to_list() == [-1.0, 62.5]
    assert [each.keys for each in seen.buckets("LOOKUP")]
    assert sum(each.keys for each in seen.buckets("LOOKUP")) == 3
    assert not seen.reads()


def test_explaining_reads_nothing(wide, wire):
    with wire.recording() as seen:
        pl.scan_fluss(wide).filter(pl.col("a") > 5).explain()
    assert not seen.reads()
