"""Rows of queries, written to tables of Fluss."""

import duckdb
import pyarrow as pa
import pytest

import fluss_duckdb
from fluss.errors import (
    FlussError,
    InvalidValueError,
    SchemaMismatchError,
    UnsupportedTypeError,
)


def test_a_query_is_appended_as_it_runs(con, session, events, name):
    path = str(session.path_of(name))
    rows = con.sql(f"SELECT id, x FROM fluss('{events.name}') WHERE id < 500")
    report = fluss_duckdb.append(path, rows, create=True, buckets=2)
    assert report.rows == 500
    assert con.execute(f"SELECT count(*), sum(id) FROM fluss('{path}')").fetchone() == (
        500, sum(range(500)),
    )  # fmt: skip


def test_rows_are_upserted_by_key_from_any_relation(session, cluster, name):
    path = str(session.path_of(name))
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("x", pa.string())])
    table = session.create_table(path, schema, primary_key=["id"], buckets=1)
    plain = duckdb.connect()
    rows = plain.sql("SELECT range AS id, 'first' AS x FROM range(10)")
    assert fluss_duckdb.upsert(path, rows, session=session).rows == 10
    second = plain.sql("SELECT 3::BIGINT AS id, 'second' AS x")
    fluss_duckdb.upsert(path, second, url=f"fluss://{cluster.bootstrap}")
    fluss_duckdb.upsert(path, pa.table({"id": [4], "x": ["third"]}), session=session)
    found = {row["id"]: row["x"] for row in table.to_arrow().to_pylist()}
    assert (len(found), found[2], found[3], found[4]) == (10, "first", "second", "third")


def test_wide_integers_are_written_where_they_fit(session, name):
    table = session.create_table(name, pa.schema([("a", pa.int64())]), buckets=1)
    plain = duckdb.connect()
    fluss_duckdb.append(
        table.name, plain.sql("SELECT sum(i) AS a FROM range(10) t(i)"), session=session
    )
    fluss_duckdb.append(table.name, plain.sql("SELECT 7::UHUGEINT AS a"), session=session)
    assert sorted(row["a"] for row in table.to_arrow().to_pylist()) == [7, 45]
    largest = plain.sql("SELECT 170141183460469231731687303715884105727::HUGEINT AS a")
    for path, how in ((table.name, {}), (f"{table.name}_made", {"create": True})):
        with pytest.raises(InvalidValueError) as refused:
            fluss_duckdb.append(path, largest, session=session, **how)
        assert (refused.value.column, refused.value.row) == ("a", 0)
    # As Arrow, DuckDB makes -1 of it.
    unsigned = plain.sql("SELECT 340282366920938463463374607431768211455::UHUGEINT AS a")
    with pytest.raises((duckdb.Error, FlussError), match="out of range"):
        fluss_duckdb.append(table.name, unsigned, session=session)
    assert table.count() == 2


@pytest.mark.parametrize("kind", ["BIT", "BIGNUM", "BIGNUM[]", "TIME WITH TIME ZONE"])
def test_what_duckdb_does_not_give_as_arrow_is_refused(session, name, kind):
    rows = duckdb.connect().sql(f"SELECT NULL::{kind} AS a")
    with pytest.raises(UnsupportedTypeError, match="does not export to Arrow") as refused:
        fluss_duckdb.append(str(session.path_of(name)), rows, session=session, create=True)
    assert 'CAST("a" AS VARCHAR)' in refused.value.hint
    assert name not in session.tables()


def test_what_does_not_fit_is_refused_and_errors_of_the_query_come_through(con, session, events):
    with pytest.raises(SchemaMismatchError):
        fluss_duckdb.append(events.name, con.sql("SELECT 1 AS nothing"))
    with pytest.raises(FlussError, match="does not exist"):
        fluss_duckdb.append(events.name, con.sql("FROM fluss('nowhere.at_all')"))
    broken = con.sql("SELECT error('no more') AS id, '' AS day, '' AS name, 1.0::DOUBLE AS x")
    with pytest.raises((duckdb.Error, FlussError, pa.ArrowException), match="no more"):
        fluss_duckdb.append(events.name, broken)
    assert events.count() == 1_000
