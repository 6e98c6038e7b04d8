"""`pl.scan_fluss`: lazy, projected, bounded, fresh, and with errors of Fluss."""

from __future__ import annotations

import pickle
import subprocess
import sys
import time

import polars as pl
import pyarrow as pa
import pytest

import fluss
import fluss_polars.lazy_scan
import fluss_polars.split_source
from fluss.errors import (
    ConfigError,
    InvalidValueError,
    SchemaMismatchError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from fluss_polars import read_fluss, scan_fluss

ENGINES = ("auto", "streaming", "in-memory")


def test_importing_the_package_gives_polars_its_functions():
    assert pl.scan_fluss is scan_fluss
    assert pl.read_fluss is read_fluss


@pytest.mark.parametrize("engine", ENGINES)
def test_a_table_is_collected_whole(events, rows, engine):
    frame = pl.scan_fluss(events).collect(engine=engine)
    assert frame.sort("id").equals(pl.DataFrame(rows))
    assert pl.read_fluss(events, columns=["score", "id"]).columns == ["score", "id"]


def test_the_schema_is_known_without_reading(events):
    schema = pl.scan_fluss(events).collect_schema()
    assert schema == {"id": pl.Int64, "day": pl.String, "name": pl.String, "score": pl.Float64}


def test_making_a_frame_asks_no_server():
    frame = pl.scan_fluss("fluss://127.0.0.1:1/nowhere.nothing")
    assert isinstance(frame, pl.LazyFrame)


QUERIES = (
    lambda frame: frame.filter(pl.col("id") % 5 == 0).select("name").sort("name"),
    lambda frame: frame.group_by("name").agg(pl.col("score").sum()).sort("name"),
    lambda frame: frame.select(pl.len()),
    lambda frame: frame.filter(pl.col("name") == "absent"),
    lambda frame: frame.join(frame.select("id", again="score"), on="id").sort("id"),
    lambda frame: frame.filter(pl.col("id") < 10).join(frame, on="name", how="semi").sort("id"),
    lambda frame: pl.concat([frame, frame]).select(pl.len()),
    lambda frame: frame.sort("score", descending=True).head(7),
    lambda frame: frame.filter(pl.col("score") > 3).head(2_000).sort("id"),
    lambda frame: frame.with_columns(x=pl.col("id") * 2).filter(pl.col("x") == 84).drop("day"),
    lambda frame: frame.select(pl.col("score").max(), pl.col("day").n_unique()),
    lambda frame: frame.sort("id").slice(5, 10),
)


@pytest.mark.parametrize("engine", ENGINES)
def test_queries_are_those_of_the_same_frame_in_memory(events, rows, engine):
    lazy, memory = pl.scan_fluss(events), pl.DataFrame(rows).lazy()
    for number, query in enumerate(QUERIES):
        assert query(lazy).collect(engine=engine).equals(query(memory).collect()), number
    assert lazy.head(10).collect(engine=engine).height == 10
    assert lazy.slice(990, 50).collect(engine=engine).height == 10
    assert lazy.filter(pl.col("id") >= 0).head(10).collect(engine=engine).height == 10


@pytest.mark.parametrize("engine", ENGINES)
def test_each_collect_sees_what_was_written_before_it(events, rows, engine):
    count = pl.scan_fluss(events).select(pl.len())
    before = count.collect(engine=engine).item()
    events.append(rows.slice(0, 5))
    assert (before, count.collect(engine=engine).item()) == (1_000, 1_005)


@pytest.mark.parametrize("name", ["events", "parted", "keyed"])
def test_a_pinned_frame_sees_the_same_whatever_is_written(name, request, rows):
    table = request.getfixturevalue(name)
    frame = pl.scan_fluss(table, pinned=True)
    fresh = pl.scan_fluss(table)
    before = frame.collect().sort("id")
    assert before.equals(fresh.collect().sort("id"))
    new = rows.slice(15, 5).set_column(0, "id", pa.array(range(5_000, 5_005)))
    if name == "parted":
        new = new.set_column(1, "day", pa.array(["2026-02-01"] * 5))
        table.create_partition({"day": "2026-02-01"})
    (table.upsert if name == "keyed" else table.append)(new)
    assert frame.collect().sort("id").equals(before)
    assert pickle.loads(pickle.dumps(frame)).collect().sort("id").equals(before)  # noqa: S301
    assert frame.filter(pl.col("id") >= 5_000).collect().height == 0
    assert frame.filter(pl.col("id") == 7).collect().height == 1
    assert fresh.collect().height == before.height + 5


def test_a_frame_travels_pickled_without_its_connection(events, cluster):
    frame = pl.scan_fluss(events).filter(pl.col("id") < 10).select("name")
    program = "import pickle, sys; f = pickle.load(sys.stdin.buffer); print(f.collect().height)"
    done = subprocess.run(
        [sys.executable, "-c", program], input=pickle.dumps(frame), capture_output=True, check=True
    )
    assert done.stdout.split() == [b"10"]
    assert done.stderr == b""


def test_no_pickle_and_no_plan_has_a_password(cluster, database):
    url = f"fluss://me:{'s3cr3t'}@{cluster.bootstrap}/{database}.events"
    frame = pl.scan_fluss(url)
    assert b"s3cr3t" not in pickle.dumps(frame)
    assert "s3cr3t" not in repr(frame)


def test_explain_shows_what_fluss_was_asked(parted, keyed):
    asked = (
        pl.scan_fluss(parted)
        .filter((pl.col("day") == "2026-01-02") & (pl.col("score") > 5))
        .select("name")
        .explain()
    )
    assert "columns: name, score" in asked
    assert "partitions: 1 of 3" in asked
    assert "day = '2026-01-02'" in asked
    assert "[0, " in asked
    asked = pl.scan_fluss(keyed).filter(pl.col("id") == 7).explain()
    assert "lookup of 1 keys" in asked


def test_the_order_asked_for_is_kept(events):
    frame = pl.scan_fluss(events, order="timestamp", with_metadata=True)
    got = frame.select("_commit_timestamp", "_bucket", "_log_offset").collect()
    assert got.equals(got.sort("_commit_timestamp", "_bucket", "_log_offset"))
    by_bucket = pl.scan_fluss(events, order="bucket", with_metadata=["_bucket"]).collect()
    assert by_bucket["_bucket"].is_sorted()


def test_what_is_cut_before_the_filter_is_not_narrowed_by_it(events):
    for options in ({"tail": 100}, {"limit": 100}):
        kept = pl.scan_fluss(events, order="bucket", with_metadata=["_bucket"], **options)
        whole = kept.collect()
        assert whole.height == 100
        bucket = whole["_bucket"][0]
        got = kept.filter(pl.col("_bucket") == bucket).collect()
        assert got.height == whole.filter(pl.col("_bucket") == bucket).height


def test_columns_added_later_are_not_in_a_frame_made_before(events, session):
    frame = pl.scan_fluss(events)
    assert "extra" not in frame.collect_schema()
    session.alter_table("events", add_columns=pa.schema([("extra", pa.int32())]))
    assert frame.collect().height == 1_000
    assert frame.filter(pl.col("id") > 5).select(pl.len()).collect().item() == 994
    again = pl.scan_fluss(events)
    assert again.collect_schema()["extra"] == pl.Int32
    assert again.filter(pl.col("extra").is_null()).collect().height == 1_000


# --- trouble --------------------------------------------------------------------------------------


def test_a_missing_table_is_named_with_the_nearest(events):
    name = events.name.replace("events", "evnts")
    config = events.to_source().config
    with pytest.raises(TableNotFoundError, match="did you mean 'events'"):
        pl.scan_fluss(name, config=config).collect()


def test_wrong_options_are_refused_immediately(events):
    with pytest.raises(ConfigError, match="did you mean 'tail'"):
        pl.scan_fluss(events, tial=5)
    with pytest.raises(InvalidValueError, match="begins at"):
        pl.scan_fluss(events, start=10, end=5)
    with pytest.raises(InvalidValueError, match="order='time'"):
        pl.scan_fluss(events, order="time")


def test_a_scan_without_an_end_is_refused(events):
    with pytest.raises(UnsupportedOperationError, match="cannot be collected"):
        pl.scan_fluss(events, follow=True)
    with events.follow() as following, pytest.raises(UnsupportedOperationError, match="follow"):
        pl.scan_fluss(following)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_table_dropped_after_the_frame_was_made_is_missed_by_name(events, session, engine):
    frame = pl.scan_fluss(events).select("id")
    assert frame.collect_schema().names() == ["id"]
    session.drop_table("events")
    with pytest.raises(TableNotFoundError, match="events"):
        frame.collect(engine=engine)


def test_a_table_dropped_between_plan_and_read_is_missed_by_name(events, session, monkeypatch):
    opened = fluss_polars.split_source.open_split

    def drop_first(splits, **how):
        session.drop_table("events", ignore_if_not_exists=True)
        return opened(splits, **how)

    monkeypatch.setattr(fluss_polars.split_source, "open_split", drop_first)
    with pytest.raises(TableNotFoundError, match="events"):
        pl.scan_fluss(events).collect()


def test_a_table_created_again_with_other_types_is_an_error(events, session):
    frame = pl.scan_fluss(events)
    frame.collect_schema()
    session.drop_table("events")
    session.create_table("events", pa.schema([("id", pa.string())]), buckets=1)
    with pytest.raises(SchemaMismatchError, match="was Int64"):
        frame.select("id").collect()
    with pytest.raises(fluss.FlussError, match="has no column 'day'"):
        frame.collect()


def test_an_unknown_column_is_reported_with_the_known_ones(events):
    with pytest.raises(pl.exceptions.ColumnNotFoundError, match="name"):
        pl.scan_fluss(events).select("nam").collect()
    with pytest.raises(fluss.FlussError, match="did you mean 'name'"):
        pl.scan_fluss(events, columns=["nam"]).collect()


# --- one reader -----------------------------------------------------------------------------------

PATIENCE_S = 60  # for results that are immediate on an idle machine


def patched(monkeypatch, rows_of):
    """Gives Polars `rows_of(reader)` instead; returns how many splits each reader is of."""
    opened, asked = fluss_polars.split_source.open_split, []

    def open_split(splits, **how):
        asked.append(len(splits))
        return rows_of(opened(splits, **how))

    monkeypatch.setattr(fluss_polars.split_source, "open_split", open_split)
    return asked


@pytest.mark.parametrize("options", [{}, {"order": "bucket"}])
def test_one_reader_takes_all_buckets(events, monkeypatch, options):
    asked = patched(monkeypatch, iter)
    assert pl.scan_fluss(events, **options).select("name").collect().height == 1_000
    assert asked == [4]


def endless(pulled):
    """Rows of nulls for ever, each noted when it is asked for."""

    def rows_of(reader):
        schema = reader.schema
        batch = pa.RecordBatch.from_pydict({n: [None] for n in schema.names}, schema=schema)
        while True:
            pulled.append(1)
            yield batch

    return rows_of


def test_reading_stops_when_there_are_enough_rows(events, monkeypatch):
    pulled = []
    patched(monkeypatch, endless(pulled))
    got = pl.scan_fluss(events).filter(pl.col("name").is_null()).select("id").head(10).collect()
    assert got.height == 10
    # Polars may keep a source until its next query; then it is read a few batches ahead, and rests.
    deadline, before = time.monotonic() + PATIENCE_S, 0
    while len(pulled) != before:
        assert time.monotonic() < deadline, "it is read for ever"
        before = len(pulled)
        time.sleep(0.2)


def test_a_slow_consumer_slows_the_read_down(events, monkeypatch):
    pulled, taken = [], []
    patched(monkeypatch, endless(pulled))

    def take(frame):
        time.sleep(0.01)  # time to read ahead without end
        taken.append(frame.height)
        return len(taken) >= 20

    pl.scan_fluss(events, order="bucket").select("name").sink_batches(
        take, chunk_size=1, engine="streaming"
    )
    assert len(pulled) < 300
