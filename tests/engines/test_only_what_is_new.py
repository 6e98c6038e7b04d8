"""A scan in Polars, DuckDB and pandas: its rows stay the same, and its cursor is where they end."""

import pickle

import pandas as pd
import polars as pl
import pytest

import fluss.pandas  # noqa: F401 - gives pandas read_fluss
import fluss_duckdb
import fluss_polars
from fluss.errors import FlussError, InvalidValueError

ENGINES = ["polars", "duckdb", "pandas"]


@pytest.fixture(params=ENGINES)
def read(request, session):
    """Reads the ids of a scan in an engine, filtered by the engine where it can."""
    if request.param == "polars":
        yield (
            lambda scan: (
                pl.scan_fluss(scan).filter(pl.col("id") >= 0).collect().get_column("id").to_list()
            )
        )
    elif request.param == "pandas":
        yield lambda scan: pd.read_fluss(scan)["id"].to_list()
    else:
        with fluss_duckdb.connect(session=session) as con:
            yield lambda scan: [
                number for (number,) in con.fluss(scan).filter("id >= 0").project("id").fetchall()
            ]


@pytest.mark.parametrize("table", ["events", "parted"])
def test_every_run_reads_what_is_new_and_nothing_twice(request, table, read, rows):
    table = request.getfixturevalue(table)
    seen, cursor = [], "earliest"
    for start in (0, 100, 250):
        scan = table.scan(start=cursor)
        first = read(scan)
        table.append(rows.slice(start, 50))
        assert sorted(read(scan)) == sorted(first)  # in whatever order: the same rows again
        seen.append(sorted(first))
        cursor = scan.cursor()
    assert seen == [list(range(1_000)), list(range(50)), list(range(100, 150))]


def test_the_changes_of_a_key_table_are_read_once(keyed, read):
    cursor = keyed.scan(mode="changelog").cursor()
    keyed.upsert({"id": [5_000, 1], "day": ["d", "d"], "x": [1.0, 2.0]})
    scan = keyed.scan(mode="changelog", start=cursor)
    assert sorted(read(scan)) == [1, 1, 5_000]  # the row before and the row after
    assert read(keyed.scan(mode="changelog", start=scan.cursor())) == []


def test_a_cursor_is_kept_as_text(events, rows):
    cursor = str(events.scan().cursor())
    events.append(rows.slice(0, 3))
    assert pl.scan_fluss(events, start=cursor).collect().height == 3
    assert len(pd.read_fluss(events, start=cursor)) == 3


def test_a_state_is_that_of_a_scan_too(keyed):
    scan = keyed.scan(columns=["id", "x"], filter="id < 20")
    lazy = pl.scan_fluss(scan)
    first = lazy.sort("id").collect()
    keyed.delete(where="id < 5")
    assert lazy.sort("id").collect().equals(first)
    assert first.columns == ["id", "x"]


def test_a_lazy_scan_is_pickled_with_its_end(events, rows):
    lazy = pl.scan_fluss(events.scan(filter="id < 500"))
    events.append(rows)
    again = pickle.loads(pickle.dumps(fluss_polars.lazy_scan.FlussScan(events.scan())))  # noqa: S301
    events.append(rows)
    assert lazy.collect().height == 1_500  # pinned when it is first read
    assert again.lazy().collect().height == 2_000


def test_a_scan_takes_no_further_options(session, events):
    scan = events.scan()
    with fluss_duckdb.connect(session=session) as con:
        for late in (
            lambda: pl.scan_fluss(scan, tail=3),
            lambda: pl.read_fluss(scan, config={}),
            lambda: con.fluss(scan, tail=3),
            lambda: pd.read_fluss(scan, tail=3),
        ):
            with pytest.raises(InvalidValueError, match="has its options already"):
                late()


def test_duckdb_pushes_down_what_a_query_needs(session, parted):
    scan = parted.scan()
    with fluss_duckdb.connect(session=session) as con:
        relation = con.fluss(scan)
        assert relation.filter("day = '2026-01-01' AND id < 6").order("id").fetchall() == [
            (0, "2026-01-01", 0.0), (3, "2026-01-01", 0.375),
        ]  # fmt: skip
        assert con.sql("SELECT count(*) FROM relation").fetchall() == [(1_000,)]
        parted.append(scan.to_arrow())
        assert relation.count("*").fetchall() == [(1_000,)]


@pytest.mark.parametrize("name", ["events", "parted", "keyed"])
def test_a_table_is_read_as_of_the_offsets_that_it_had(request, name, rows):
    table = request.getfixturevalue(name)
    count, offsets = table.count(), table.offsets()
    if name == "keyed":
        table.delete(where="id < 500")
    else:
        table.append(rows)
    polars = pl.DataFrame(offsets)
    for given in (offsets, polars, offsets.to_pylist(), offsets.to_pandas().to_dict("records")):
        assert table.scan(as_of=given).count() == count
    mode = "changelog" if name == "keyed" else None
    new = 490 if name == "keyed" else 1_000
    assert table.scan(start=offsets, mode=mode).count() == new
    assert pl.scan_fluss(table, as_of=offsets).select(pl.len()).collect().item() == count


@pytest.mark.parametrize("given", [[{"bucket": 0}], [{"end": 3}], [5], [{"bucket": "0", "end": 3}]])
def test_frames_that_are_no_offsets_are_refused(events, given):
    with pytest.raises(FlussError, match="as_of"):
        events.scan(as_of=given)
