"""`pl.scan_fluss` on a real cluster: lazy, projected, bounded, and plain in its errors."""

import asyncio

import polars as pl
import pyarrow as pa
import pytest

import fluss
import fluss_polars  # noqa: F401 - gives Polars scan_fluss

ROWS = 1_000
BUCKETS = 3
FRAME = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int64()),
        "name": pa.array([f"n{each % 7}" for each in range(ROWS)]),
        "score": pa.array([each / 8 for each in range(ROWS)]),
    }
)


@pytest.fixture
def events(cluster, database):
    """A log table with rows in it; the settings to reach it, and its name."""

    async def make():
        config = fluss.Config({"bootstrap.servers": cluster.bootstrap})
        with await fluss.FlussConnection.create(config) as connection:
            admin = await connection.get_admin()
            path = fluss.TablePath(database, "events")
            descriptor = fluss.TableDescriptor(fluss.Schema(FRAME.schema), bucket_count=BUCKETS)
            await admin.create_table(path, descriptor)
            table = await connection.get_table(path)
            writer = table.new_append().create_writer()
            for start in range(0, ROWS, 100):
                await writer.write_arrow_batch(FRAME.slice(start, 100).to_batches()[0]).wait()

    asyncio.run(make())
    return {"bootstrap.servers": cluster.bootstrap}, f"{database}.events"


def test_a_table_is_collected_whole(events):
    config, table = events
    frame = pl.scan_fluss(table, config=config).collect()
    assert frame.sort("id").equals(pl.DataFrame(FRAME))


def test_only_the_columns_used_are_read(events):
    config, table = events
    plan = pl.scan_fluss(table, config=config).select("score")
    assert "PROJECT 1/3 COLUMNS" in plan.explain()
    assert plan.collect().sort("score").equals(pl.DataFrame(FRAME.select(["score"])))


def test_the_schema_is_known_without_reading(events):
    config, table = events
    schema = pl.scan_fluss(table, config=config).collect_schema()
    assert schema == {"id": pl.Int64, "name": pl.String, "score": pl.Float64}


def test_filters_limits_and_groups_are_those_of_the_same_frame_in_memory(events):
    config, table = events
    lazy, memory = pl.scan_fluss(table, config=config), pl.DataFrame(FRAME).lazy()
    for query in (
        lambda frame: frame.filter(pl.col("id") % 5 == 0).select("name").sort("name"),
        lambda frame: frame.group_by("name").agg(pl.col("score").sum()).sort("name"),
        lambda frame: frame.select(pl.len()),
        lambda frame: frame.filter(pl.col("name") == "nobody"),
    ):
        assert query(lazy).collect().equals(query(memory).collect())
    assert lazy.head(10).collect().height == 10


def test_rows_written_after_a_collect_are_seen_by_the_next(events, cluster):
    config, table = events
    lazy = pl.scan_fluss(table, config=config).select(pl.len())
    before = lazy.collect().item()

    async def append():
        settings = fluss.Config(config)
        with await fluss.FlussConnection.create(settings) as connection:
            found = await connection.get_table(fluss.TablePath.parse(table))
            await found.new_append().create_writer().append([1, "x", 0.5]).wait()

    asyncio.run(append())
    assert (before, lazy.collect().item()) == (ROWS, ROWS + 1)


def test_a_missing_table_is_named_with_the_nearest(events):
    config, table = events
    with pytest.raises(pl.exceptions.ComputeError, match="did you mean 'events'"):
        pl.scan_fluss(table.replace("events", "evnts"), config=config).collect()


def test_a_table_without_rows_is_a_frame_without_rows(cluster, database):
    config = {"bootstrap.servers": cluster.bootstrap}

    async def make():
        with await fluss.FlussConnection.create(fluss.Config(config)) as connection:
            admin = await connection.get_admin()
            schema = fluss.Schema(FRAME.schema)
            await admin.create_table(
                fluss.TablePath(database, "empty"), fluss.TableDescriptor(schema, bucket_count=2)
            )

    asyncio.run(make())
    frame = pl.scan_fluss(f"{database}.empty", config=config).collect()
    assert frame.shape == (0, 3)
