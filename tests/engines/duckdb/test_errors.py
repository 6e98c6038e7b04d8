"""Bad input and lost servers: errors of Fluss leave DuckDB with their types and texts."""

import duckdb
import pytest

import fluss_duckdb
from fluss.errors import (
    ConfigError,
    ConnectError,
    FlussError,
    InvalidNameError,
    InvalidValueError,
    RequestTimeoutError,
    TableNotFoundError,
    UnsupportedOperationError,
)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        ("fluss('{db}.evnts')", TableNotFoundError, "did you mean 'events'"),
        ("fluss.{db}.evnts", TableNotFoundError, "did you mean 'events'"),
        ("fluss('{db}.events', strt := 1)", ConfigError, "did you mean 'start'"),
        ("fluss('{db}.events', filter := 1)", InvalidValueError, "filter := 'id > 5'"),
        ("fluss('{db}.events', filter := id > 1)", InvalidValueError, "its quotes doubled"),
        ("fluss('{db}.events', filter := 'idd > 1')", FlussError, "did you mean 'id'"),
        ("fluss('{db}.events', tail := 1, tail := 2)", ConfigError, "twice"),
        ("fluss('{db}.events', tail := 'many')", InvalidValueError, "tail='many'"),
        ("fluss('{db}.events', start := DATE '2026-01-01')", InvalidValueError, "start="),
        ("fluss('{db}.events', start := INTERVAL 1 MONTH)", InvalidValueError, "30 DAYS"),
        ("fluss('{db}.events', start := 10, end := 5)", InvalidValueError, "begins at"),
        ("fluss('{db}.events', as_of := 1, tail := 5)", InvalidValueError, "both given"),
        ("fluss('{db}.events$changelog', mode := 'log')", InvalidValueError, "leave one of them"),
        ("fluss('{db}.events$log')", InvalidNameError, "$binlog"),
        ("fluss('a.b.c')", InvalidNameError, "a.b.c"),
        ("fluss(events)", InvalidValueError, "no constant"),
        ("fluss(42)", InvalidNameError, "42"),
        ("fluss()", InvalidValueError, "one table"),
        ("fluss('a', 'b')", InvalidValueError, "by name"),
        ("fluss('{db}.events', follow := true)", FlussError, "follow"),
        ("fluss('{db}.events', columns := ['nam'])", FlussError, "did you mean 'name'"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(con, events, shared, call, error, text):
    with pytest.raises(error) as raised:
        con.execute("FROM " + call.format(db=shared))
    assert text in str(raised.value)
    assert con.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO fluss.{table} VALUES (1)",
        "UPDATE fluss.{table} SET id = 1",
        "DELETE FROM fluss.{table}",
        "DROP TABLE fluss.{table}",
        "ALTER TABLE fluss.{table} ADD COLUMN x INTEGER",
    ],
)
def test_a_statement_that_writes_says_what_writes(con, events, statement):
    with pytest.raises(UnsupportedOperationError, match="only reads tables of Fluss") as caught:
        con.execute(statement.format(table=events.name))
    assert "fluss_duckdb.append" in caught.value.hint


@pytest.mark.parametrize("create", ["CREATE TABLE", "create or replace table"])
def test_no_table_is_made_in_the_memory_of_duckdb_under_the_name_of_fluss(con, shared, create):
    with pytest.raises(UnsupportedOperationError, match="lose it") as caught:
        con.execute(f"{create} fluss.{shared}.made AS SELECT 1 AS id")
    assert "create=True" in caught.value.hint
    con.execute("CREATE TABLE local AS SELECT 1 AS id")
    assert con.execute("FROM local").fetchall() == [(1,)]


def test_a_database_named_without_the_catalog_is_explained(con, shared):
    with pytest.raises(InvalidNameError) as caught:
        con.execute(f"FROM {shared}.people")
    assert caught.value.hint == f"write fluss.{shared}.table, or fluss('{shared}.table')"
    with pytest.raises(duckdb.CatalogException):
        con.execute("FROM nowhere.people")


@pytest.mark.parametrize("url", ["fluss://u:secret@host:9123", "host:9123", "embedded:", "h:1/db"])
def test_a_cluster_is_not_taken_for_a_file_of_duckdb(url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidValueError, match="names a cluster") as caught:
        fluss_duckdb.connect(url)
    assert "connect(url=" in caught.value.hint
    assert "secret" not in str(caught.value)
    assert not list(tmp_path.iterdir()), "DuckDB has made no file"


def test_an_unknown_column_is_duckdbs_to_tell(con, events):
    with pytest.raises(duckdb.BinderException, match='"name"'):
        con.execute(f"SELECT nam FROM fluss('{events.name}')")


def test_a_follower_has_no_end_and_is_refused(con, events):
    with pytest.raises(FlussError, match="follow"):
        con.fluss(events.follow())


def test_a_database_of_the_catalogs_name_is_refused_with_another(session, tmp_path):
    path = str(tmp_path / "fluss.db")
    with pytest.raises(InvalidNameError, match="catalog='stream'"):
        fluss_duckdb.connect(path, session=session)
    with fluss_duckdb.connect(path, session=session, catalog="stream") as con:
        assert con.execute("SELECT 1").fetchone() == (1,)


def test_two_ways_to_connect_are_one_too_many(session):
    with pytest.raises(InvalidValueError, match="settings for another one"):
        fluss_duckdb.connect(url="fluss://127.0.0.1", session=session)


def test_an_unreachable_server_is_an_error_of_connect():
    with pytest.raises(ConnectError):
        fluss_duckdb.connect(url="fluss://127.0.0.1:1")


def test_errors_while_rows_are_read_keep_their_type(con, events, monkeypatch):
    from fluss.scan.log_reader import LogReader

    original = LogReader.__iter__

    def failing(self):
        for number, each in enumerate(original(self)):
            if number == 2:
                raise RequestTimeoutError("The server went away.", hint="look for it")
            yield each

    monkeypatch.setattr(LogReader, "__iter__", failing)
    sql = f"SELECT id FROM fluss('{events.name}')"
    asks = {
        "execute": lambda: con.execute(sql).fetchall(),
        "relation": lambda: con.sql(sql).fetchall(),
        "stream": lambda: con.sql(sql).to_arrow_reader().read_all(),
        "table": lambda: con.execute(f"CREATE TABLE never AS {sql}"),
        "frame": lambda: con.sql(sql).pl(),
    }
    for name, ask in asks.items():
        with pytest.raises(RequestTimeoutError) as raised:
            ask()
        assert raised.value.hint == "look for it", name
    monkeypatch.undo()
    assert con.execute(f"SELECT count(*) FROM ({sql})").fetchone() == (1_000,)


def test_interrupting_from_another_thread_ends_the_scans(con, events, monkeypatch):
    import threading

    from fluss.log.range_reader import RangeReader

    waiting = threading.Event()

    async def stalled(self):
        waiting.set()
        import anyio

        await anyio.sleep(0.05)
        if self._closed:
            raise FlussError("closed")
        return await stalled(self)

    monkeypatch.setattr(RangeReader, "take", stalled)
    timer = threading.Thread(target=lambda: (waiting.wait(20), con.interrupt()))
    timer.start()
    with pytest.raises((FlussError, duckdb.Error)):
        con.execute(f"SELECT sum(id) FROM fluss('{events.name}')").fetchall()
    timer.join()
    monkeypatch.undo()
    assert con.execute(f"SELECT count(*) FROM fluss('{events.name}')").fetchone() == (1_000,)


UNFINISHED = {
    "rows": lambda con, name: con.execute(f"FROM fluss('{name}')").fetchone(),
    "reader": lambda con, name: con.sql(f"FROM fluss('{name}')").to_arrow_reader(100),
}
SPOKEN = {
    "call": lambda con, name: con.sql(f"FROM fluss('{name}', limit := 2)").fetchall(),
    "method": lambda con, name: con.fluss(name, limit=2).fetchall(),
    "name": lambda con, name: con.sql(f"FROM fluss.{name}").fetchall(),
    "table": lambda con, name: con.table(f"fluss.{name}").fetchall(),
}


@pytest.mark.parametrize("speak", SPOKEN.values(), ids=SPOKEN)
@pytest.mark.parametrize("begin", UNFINISHED.values(), ids=UNFINISHED)
def test_an_unfinished_result_is_what_duckdb_complains_about(con, events, keyed, begin, speak):
    # As with a table of DuckDB's own: the connection is busy; no view is mentioned.
    unfinished = begin(con, events.name)
    with pytest.raises(duckdb.ResourceInUseException, match="result"):
        speak(con, keyed.name)
    assert len(speak(con.cursor(), keyed.name)) >= 2
    del unfinished
