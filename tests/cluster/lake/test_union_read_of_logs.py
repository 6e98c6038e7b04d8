"""A log whose past is in a lake is one log: each row once, at every bound, in every engine."""

from __future__ import annotations

from datetime import timedelta

import polars as pl
import pyarrow as pa
import pytest

import fluss_duckdb
import fluss_polars
from fluss import col
from fluss.errors import FlussError, UnsupportedOperationError
from fluss.net.operation_deadline import _current
from fluss_lake.iceberg import ICEBERG
from tests.cluster.lake.conftest import LAKE
from tests.support.lake.plain_tiering import tier_log

PLACE = [(name, "ascending") for name in ("_partition", "_bucket", "_log_offset")]
TIERED, SINCE = 1_000, 300


def rows_from(start, count):
    ids = range(start, start + count)
    return pa.table(
        {"id": list(ids), "day": [f"d{each % 3}" for each in ids], "n": [each % 7 for each in ids]}
    )


def in_order(rows):
    return rows.sort_by(PLACE)


@pytest.fixture(scope="module")
def log(lake_cluster, session, iceberg):
    """Two buckets; the first rows are in the lake, in two files of one of them, and in the log."""
    session.create_table(
        "log",
        {"id": "BIGINT", "day": "STRING", "n": "TINYINT"},
        bucket_key=["id"],
        buckets=2,
        properties=LAKE,
    )
    table = session.table("log")
    for start in (0, TIERED // 2):
        table.append(rows_from(start, TIERED // 2))
        rows = table.scan(with_metadata=True, lake="off", filter=col("id") >= start).to_arrow()
        tier_log(table, lake_cluster.bootstrap_servers, iceberg(table), rows)
    table.append(rows_from(TIERED, SINCE))
    return table


@pytest.fixture(scope="module")
def halfway(log):
    """The time of the first row that only the log has."""
    rows = log.scan(with_metadata=True, lake="off", filter=col("id") >= TIERED).to_arrow()
    return min(rows["_commit_timestamp"].to_pylist())


BOUNDS = {
    "whole": {},
    "filter": {"filter": "id > 995 AND id < 1005"},
    "filter that the files' bounds decide": {"filter": col("id") < 100},
    "filter of a small integer": {"filter": "n = 3", "columns": ["id"]},
    "offset within the lake": {"start": 200},
    "offsets of both": {"start": 400, "end": 600},
    "a short tail": {"tail": 10},
    "a long tail": {"tail": 700},
    "tail, then filter": {"tail": 700, "filter": "n = 2"},
    "offsets by filter": {"filter": "_log_offset >= 450 AND _log_offset < 520"},
    "no columns": {"columns": []},
    "by time": {"order": "timestamp"},
    "by bucket": {"order": "bucket"},
}


@pytest.mark.parametrize("options", BOUNDS.values(), ids=BOUNDS)
def test_the_rows_are_those_of_the_whole_log(log, options):
    expected = log.scan(**{"with_metadata": True, **options}, lake="off")
    found = log.scan(**{"with_metadata": True, **options})
    assert found.schema == expected.schema
    assert in_order(found.to_arrow()) == in_order(expected.to_arrow())
    assert log.scan(**options).count() == log.scan(**options, lake="off").count()


@pytest.mark.parametrize("bound", ["start", "end"])
@pytest.mark.parametrize("shift_ms", [-1, 0, 1])
def test_a_time_divides_it_as_the_log_alone(log, halfway, bound, shift_ms):
    options = {bound: halfway + timedelta(milliseconds=shift_ms), "with_metadata": True}
    expected = in_order(log.scan(**options, lake="off").to_arrow())
    assert in_order(log.scan(**options).to_arrow()) == expected


def test_the_plan_says_what_is_read_where(log):
    plan = log.scan(filter=col("id") < 100).explain()
    assert "lake: snapshot" in plan
    assert "1 of 2 files" in plan
    assert log.scan(lake="off").explain().count("lake: not read, as requested") == 1


def test_order_by_bucket_is_the_order_of_offsets(log):
    rows = log.scan(order="bucket", with_metadata=True).to_arrow()
    assert rows == in_order(rows)


def test_only_gives_what_the_lake_has(log):
    only = log.scan(lake="only")
    assert (only.count(), only.to_arrow().num_rows) == (TIERED, TIERED)
    assert log.scan(lake="only", filter=col("id") >= TIERED).count() == 0


def test_a_cursor_continues_in_the_log(log):
    before = log.scan()
    assert before.count() >= TIERED + SINCE
    later = rows_from(50_000, 5)
    log.append(later)
    assert log.scan(start=before.cursor()).to_arrow().sort_by("id") == later.cast(log.schema)


def test_every_engine_reads_both(log, session):
    expected = log.count(lake="off")
    assert fluss_polars.scan_fluss(log).select(pl.len()).collect().item() == expected
    assert fluss_polars.scan_fluss(log).filter(pl.col("id") < 1_010).collect().height == 1_010
    with fluss_duckdb.connect(session=session) as connection:
        sql = f"SELECT count(*) FROM fluss('{log.name}'"  # noqa: S608 - the name is ours
        assert connection.execute(f"{sql})").fetchall() == [(expected,)]
        assert connection.execute(f"{sql}, lake := 'only')").fetchall() == [(TIERED,)]


def test_a_partition_that_was_dropped_is_still_read(lake_cluster, session, iceberg):
    session.create_table(
        "days",
        {"id": "BIGINT", "day": "STRING", "n": "INT"},
        partition_by=["day"],
        buckets=1,
        properties=LAKE,
    )
    table = session.table("days")
    table.append(rows_from(0, 90).set_column(2, "n", pa.array(range(90), pa.int32())))
    rows = table.scan(with_metadata=True, lake="off").to_arrow()
    tier_log(table, lake_cluster.bootstrap_servers, iceberg(table), rows)
    table.drop_partition({"day": "d0"})
    assert table.scan(lake="off").count() == 60
    assert in_order(table.scan(with_metadata=True).to_arrow()) == in_order(rows)
    assert table.scan(partitions=["d0"]).count() == 30
    assert table.scan(filter="day = 'd0'").count() == 30
    assert table.scan(filter="day = 'd1'").count() == 30


def test_a_file_in_another_order_is_read_in_the_order_of_offsets(lake_cluster, session, iceberg):
    table = session.create_table("turned", {"id": "BIGINT"}, buckets=1, properties=LAKE)
    table.append({"id": list(range(100))})
    rows = table.scan(with_metadata=True, lake="off").to_arrow()
    turned = rows.take(pa.array(range(99, -1, -1)))
    tier_log(table, lake_cluster.bootstrap_servers, iceberg(table), turned)
    found = table.scan(order="bucket", with_metadata=True, lake="only").to_arrow()
    assert found.column("_log_offset").to_pylist() == list(range(100))
    assert found == rows
    assert table.scan(order="bucket", tail=3).to_arrow().column("id").to_pylist() == [97, 98, 99]


def test_a_lake_that_cannot_be_read_is_not_passed_over(log, monkeypatch):
    # The catalog has no tables under this name.
    monkeypatch.setattr("fluss_lake.catalog_properties.DEFAULT_NAME", "another")
    with pytest.raises(FlussError, match="lake"):
        log.scan().count()
    assert log.scan(lake="off").count() > 0


def test_a_table_without_a_lake_has_none_to_read(session):
    session.create_table("plain", {"id": "BIGINT"}, buckets=1)
    with pytest.raises(UnsupportedOperationError, match="not copied into a lake"):
        session.table("plain").scan(lake="only").count()
    assert session.table("plain").scan().count() == 0


def test_a_lake_without_a_snapshot_adds_nothing(session):
    session.create_table("young", {"id": "BIGINT"}, buckets=1, properties=LAKE)
    table = session.table("young")
    table.append({"id": [1, 2]})
    assert table.count() == 2
    assert "no snapshot yet" in table.scan().explain()
    assert table.scan(lake="only").count() == 0


def test_a_name_that_ends_in_lake_gives_what_the_lake_has(log, session):
    name = log.name.partition(".")[2]
    assert session.table(f"{name}$lake").count() == TIERED
    assert fluss_polars.scan_fluss(f"{log.name}$lake").collect().height == TIERED


def test_a_call_that_opens_a_lake_waits_for_the_lake_and_for_no_server(log, monkeypatch):
    opened, waited = type(ICEBERG).open, []

    def open_slowly(*given, **more):
        waited.append(_current.get().waits_for)
        return opened(*given, **more)

    monkeypatch.setattr(type(ICEBERG), "open", open_slowly)
    assert log.scan().splits()
    assert waited == [f"the lake of {log.name}"]
