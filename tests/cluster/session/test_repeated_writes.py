"""Many small writes of a session: what they ask the cluster, and tables that change meanwhile."""

import pytest

import fluss
from fluss.connection import table_cache
from fluss.errors import SchemaMismatchError, TableNotFoundError, UnsupportedOperationError

EVENTS = {"id": "BIGINT NOT NULL", "name": "STRING"}
ROW = {"id": 1, "name": "one"}


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


def test_a_table_that_another_client_created_again_is_written(session, other):
    session.create_table("events", EVENTS)
    session.append("events", ROW)
    other.drop_table("events")
    other.create_table("events", {"id": "BIGINT NOT NULL", "name": "STRING"})
    report = session.append("events", [ROW, ROW])
    found = session.table("events")
    assert {bucket.table_id for bucket in report.last_offsets} == {found.info.table_id}
    assert found.scan().count() == 2


def test_a_table_that_another_client_created_again_with_a_key_refuses_appends(session, other):
    session.create_table("events", EVENTS)
    session.append("events", ROW)
    other.drop_table("events")
    other.create_table("events", EVENTS, primary_key=["id"])
    with pytest.raises(UnsupportedOperationError, match="has a primary key"):
        session.append("events", ROW)
    assert session.upsert("events", ROW).rows == 1


def test_a_table_that_another_client_dropped_is_missing(session, other):
    session.create_table("events", EVENTS)
    session.append("events", ROW)
    other.drop_table("events")
    with pytest.raises(TableNotFoundError, match="does not exist"):
        session.append("events", ROW)


def test_a_session_that_is_closed_writes_nothing(cluster, database):
    session = fluss.connect(f"fluss://{cluster.bootstrap}/{database}")
    session.create_table("events", EVENTS)
    session.close()
    with pytest.raises(fluss.errors.ClosedError):
        session.append("events", ROW)
