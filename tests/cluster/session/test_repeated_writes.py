"""Many small writes of a session: what they ask the cluster, and tables that change meanwhile."""

import time

import pytest

import fluss
from fluss.connection import table_cache
from fluss.errors import (
    FlussError,
    SchemaMismatchError,
    TableNotFoundError,
    UnsupportedOperationError,
)

EVENTS = {"id": "BIGINT NOT NULL", "name": "STRING"}
ROW = {"id": 1, "name": "one"}
DROP_S_MAX = 60


@pytest.fixture(autouse=True)
def _facts_are_kept(monkeypatch):
    """The facts of tables stay for the whole of a test, however slow the machine is."""
    monkeypatch.setattr(table_cache, "REUSED_S", 3_600.0)


@pytest.fixture
def session(cluster, database):
    with fluss.connect(f"fluss://{cluster.bootstrap}/{database}") as opened:
        yield opened


@pytest.fixture
def other(cluster, database):
    """A session with a connection of its own, of which `session` knows nothing."""
    settings = {"request_timeout_ms": 29_999}
    with fluss.connect(f"fluss://{cluster.bootstrap}/{database}", **settings) as opened:
        yield opened


def test_ten_appends_ask_for_the_table_once(wire, database):
    with fluss.connect(f"fluss://{wire.bootstrap}/{database}") as session:
        session.create_table("events", EVENTS)
        session.append("events", ROW)  # leaders and the writer id are known
        session._connection.forget_table(session.path_of("events"))
        with wire.recording() as seen:
            for _ in range(10):
                session.append("events", ROW)
        assert seen.counts() == {"GET_TABLE_INFO": 1, "PRODUCE_LOG": 10}
        with wire.recording() as seen:
            session.append("events", iter(session.table("events").scan().to_arrow().to_batches()))
        assert seen.counts()["GET_TABLE_INFO"] >= 1, "a stream cannot be checked again"


def test_a_column_that_another_client_adds_is_written(session, other):
    session.create_table("events", EVENTS)
    session.append("events", ROW)
    other.alter_table("events", add_columns={"note": "STRING"})
    session.append("events", {**ROW, "note": "new"})
    session.append("events", {**ROW, "note": "newer"})
    assert sorted(
        session.table("events").scan().to_arrow()["note"].to_pylist(), key=lambda note: note or ""
    ) == [None, "new", "newer"]
    with pytest.raises(SchemaMismatchError, match="no column 'nope'"):
        session.append("events", {**ROW, "nope": 1})


def table_ids(result):
    """The tables that a report or an error names."""
    return {bucket.table_id for bucket in getattr(result, "last_offsets", ())}


def until(ends, work):
    """Repeat the work until `ends` accepts its result or error.

    The real server drops a table after it has answered, and takes rows for it until then.
    """
    deadline = time.monotonic() + DROP_S_MAX
    while True:
        try:
            result = work()
        except FlussError as error:
            result = error
        if ends(result):
            return result
        assert time.monotonic() < deadline, f"the old table is still there: {result!r}"


def test_a_table_that_another_client_created_again_is_written(session, other):
    session.create_table("events", EVENTS)
    session.append("events", ROW)
    other.drop_table("events")
    other.create_table("events", EVENTS)
    found = other.table("events")
    until(
        lambda result: table_ids(result) == {found.info.table_id},
        lambda: session.append("events", [ROW, ROW]),
    )
    assert found.scan().count() == 2


def test_a_table_that_another_client_created_again_with_a_key_refuses_appends(session, other):
    session.create_table("events", EVENTS)
    session.append("events", ROW)
    other.drop_table("events")
    other.create_table("events", EVENTS, primary_key=["id"])
    refused = until(
        lambda result: isinstance(result, UnsupportedOperationError),
        lambda: session.append("events", ROW),
    )
    assert "has a primary key" in refused.message
    assert session.upsert("events", ROW).rows == 1


def test_a_table_that_another_client_dropped_is_missing(session, other):
    session.create_table("events", EVENTS)
    session.append("events", ROW)
    other.drop_table("events")
    missing = until(
        lambda result: isinstance(result, TableNotFoundError),
        lambda: session.append("events", ROW),
    )
    assert "does not exist" in missing.message


def test_a_session_that_is_closed_writes_nothing(cluster, database):
    session = fluss.connect(f"fluss://{cluster.bootstrap}/{database}")
    session.create_table("events", EVENTS)
    session.close()
    with pytest.raises(fluss.errors.ClosedError):
        session.append("events", ROW)
