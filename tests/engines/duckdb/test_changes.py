"""Tables that change while DuckDB knows them: rows, columns, and the table itself."""

import threading

import duckdb
import pyarrow as pa
import pytest

import fluss_duckdb
from fluss.errors import SchemaMismatchError, TableNotFoundError, UnsupportedOperationError
from fluss.scan import QuerySnapshot, open_scan


def count(con, name):
    return con.execute(f"SELECT count(*) FROM fluss('{name}')").fetchall()[0][0]


def test_each_query_sees_what_is_there_and_a_relation_when_it_runs(con, session, name):
    session.append(name, {"id": [1]}, create=True, buckets=1)
    relation = con.fluss(name)
    assert (count(con, name), len(relation.fetchall())) == (1, 1)
    session.append(name, {"id": [2]})
    assert (count(con, name), len(relation.fetchall())) == (2, 2)


def test_a_column_that_is_added_is_seen_also_by_views(con, session, name):
    session.append(name, {"id": [1]}, create=True, buckets=1)
    con.execute(f"CREATE VIEW over AS SELECT * FROM fluss('{name}')")
    con.execute(f"PREPARE all_rows AS SELECT * FROM fluss('{name}')")
    assert con.execute("FROM over").fetchall() == [(1,)]
    session.alter_table(name, add_columns=pa.schema([("more", pa.int32())]))
    # Nothing has told DuckDB yet: what it knows of is read, and nothing else.
    assert con.execute("FROM over").fetchall() == [(1,)]
    assert con.execute(f"FROM fluss('{name}')").fetchall() == [(1, None)]
    assert con.execute("FROM over").fetchall() == [(1, None)]
    assert con.execute("EXECUTE all_rows").fetchall()[0][0] == 1


def test_a_table_that_is_replaced_is_noticed(con, session, name):
    session.append(name, {"id": [1]}, create=True, buckets=1)
    relation = con.fluss(name)
    assert count(con, name) == 1
    session.drop_table(name)
    with pytest.raises(TableNotFoundError, match=name):
        count(con, name)
    with pytest.raises(TableNotFoundError, match=name):
        relation.fetchall()  # between plan and read
    session.append(name, {"other": ["a", "b"]}, create=True, buckets=1)
    with pytest.raises(SchemaMismatchError, match="'id' is gone") as raised:
        relation.fetchall()
    assert "fluss('" in raised.value.hint
    assert sorted(con.execute(f"FROM fluss('{name}')").fetchall()) == [("a",), ("b",)]


def test_a_table_new_to_a_transaction_is_refused_with_the_way_out(con, session, name, events):
    session.append(name, {"id": [1]}, create=True, buckets=1)
    count(con, events.name)
    con.begin()
    count(con, events.name)
    with pytest.raises(UnsupportedOperationError, match="inside a transaction"):
        count(con, name)
    con.rollback()
    assert count(con, name) == 1


def test_views_of_a_database_on_disk_are_there_when_it_is_opened_again(session, events, tmp_path):
    path = str(tmp_path / "views.db")
    with fluss_duckdb.connect(path, session=session) as con:
        con.execute(f"CREATE VIEW few AS SELECT id FROM fluss('{events.name}', tail := 3)")
        con.execute(f"CREATE VIEW whole AS SELECT id FROM fluss.{events.name}")
        chosen = f"fluss('{events.name}', filter := 'id < 5 OR name LIKE ''%&?=%''')"
        con.execute(f"CREATE VIEW chosen AS SELECT id FROM {chosen}")
    with fluss_duckdb.connect(path, session=session) as con:
        assert con.execute("SELECT count(*) FROM few").fetchone() == (3,)
        assert con.execute("SELECT count(*) FROM whole").fetchone() == (1_000,)
        assert con.execute("SELECT count(*) FROM chosen").fetchone() == (5,)


# --- one query, one moment ------------------------------------------------------------------------


@pytest.mark.parametrize("is_keyed", [False, True], ids=["log", "state"])
def test_two_scans_of_one_query_see_the_same_rows(session, name, is_keyed):
    schema = pa.schema([pa.field("id", pa.int64(), nullable=not is_keyed), ("x", pa.int64())])
    how = {"primary_key": ["id"]} if is_keyed else {}
    table = session.create_table(name, schema, buckets=2, **how)
    write = table.upsert if is_keyed else table.append

    def read(columns, pins):
        return open_scan(table).at(pins).narrowed(columns=columns).read().read_all()

    write({"id": [1, 2, 3], "x": [0, 0, 0]})
    pins = QuerySnapshot()
    first = read(["id", "x"], pins)
    write({"id": [4, 1], "x": [1, 1]})
    again = read(["x", "id"], pins).select(["id", "x"])
    assert sorted(map(str, first.to_pylist())) == sorted(map(str, again.to_pylist()))
    assert read(["id"], QuerySnapshot()).num_rows == (4 if is_keyed else 5)


def test_a_table_joined_with_itself_under_a_writer_is_one_table(con, session, name):
    session.append(name, {"id": [0]}, create=True, buckets=1)
    stop = threading.Event()

    def write():
        number = 0
        while not stop.is_set():
            number += 1
            session.append(name, {"id": [number]})

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(5):
            sql = (
                f"SELECT count(*) FROM fluss('{name}') a FULL JOIN fluss('{name}') b USING (id) "
                "WHERE a.id IS NULL OR b.id IS NULL"
            )
            assert con.execute(sql).fetchall() == [(0,)]
    finally:
        stop.set()
        writer.join()


# --- plain DuckDB ---------------------------------------------------------------------------------


def test_install_teaches_plain_duckdb_and_uninstall_takes_it_back(session, events):
    original = duckdb.sql
    expected = pa.table({"id": [1, 2]})
    assert expected is not None
    fluss_duckdb.install(session=session)
    try:
        sql = f"SELECT count(*) FROM fluss('{events.name}') JOIN expected USING (id)"
        assert duckdb.sql(sql).fetchall() == [(2,)]
        assert duckdb.execute(sql).fetchall() == [(2,)]
        assert duckdb.sql("SELECT 1").fetchall() == [(1,)]
        with duckdb.connect() as other, pytest.raises(duckdb.CatalogException):
            duckdb.sql(sql, connection=other)
    finally:
        fluss_duckdb.uninstall()
    assert duckdb.sql is original
    with pytest.raises(duckdb.CatalogException):
        duckdb.sql(f"SELECT * FROM fluss('{events.name}')")


def test_attach_brings_what_exists_into_any_connection(session, shared, events, name):
    with duckdb.connect() as con:
        attached = fluss_duckdb.attach(con, session=session, database=shared)
        assert events.name in attached
        asked = f"SELECT count(*) FROM fluss('{events.name}') WHERE id < 10"
        assert con.sql(asked).fetchall() == [(10,)]
        assert con.cursor().sql(f"SELECT count(*) FROM fluss.{events.name}").fetchall() == [
            (1_000,)
        ]
        session.append(name, {"id": [1]}, create=True, buckets=1)
        with pytest.raises(duckdb.CatalogException):
            con.sql(f"SELECT * FROM fluss('{shared}.{name}')")
        assert f"{shared}.{name}" in fluss_duckdb.attach(con, session=session, database=shared)
        assert con.sql(f"SELECT * FROM fluss('{shared}.{name}')").fetchall() == [(1,)]
