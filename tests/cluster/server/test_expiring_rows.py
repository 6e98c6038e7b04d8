"""Tables whose rows expire (`table.kv.ttl`), on the embedded server with a clock of the test's."""

import shutil
from contextlib import closing, contextmanager

import pyarrow as pa
import pytest

import fluss
from fluss import col
from fluss.errors import FlussError, UnsupportedOperationError
from fluss.model.schema.schema import Schema
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.types.arrow_to_type import from_arrow_schema
from fluss.wire import messages as pb
from fluss_server.data_layout import DATA
from tests.support.servers.embedded import Clock, running
from tests.support.servers.raw_client import RawConnection, RefusedError

DAY_MS = 86_400_000
START_MS = 1_700_000_000_000
COLUMNS = pa.schema([("id", pa.int64()), ("at", pa.int64()), ("x", pa.string())])


@pytest.fixture
def clock():
    return Clock(START_MS)


@contextmanager
def opened(tmp_path, clock):
    with (
        running(tmp_path / "data", clock=clock) as server,
        fluss.connect(f"fluss://{server.address}/fluss") as session,
    ):
        yield server, session


@pytest.fixture
def both(tmp_path, clock):
    with opened(tmp_path, clock) as both:
        yield both


@pytest.fixture
def server(both):
    return both[0]


@pytest.fixture
def session(both):
    return both[1]


def table_with(session, name="t", **properties):
    return session.create_table(
        name,
        COLUMNS,
        primary_key=["id"],
        buckets=1,
        properties={"table.kv.ttl": "1 d"} | properties,
    )


def put(table, *ids, at=START_MS, x="x"):
    table.upsert({"id": list(ids), "at": [at] * len(ids), "x": [x] * len(ids)})


def wait(server, clock, millis):
    """Let time pass, and the server remove what has expired."""
    clock.now_ms += millis
    for _ in range(5):
        server.on_loop(server.server._maintenance.run_round)


def ids_of(rows):
    return sorted(rows["id"].to_pylist())


def test_rows_expire_after_their_change(session, server, clock):
    table = table_with(session)
    assert table.info.options.value_layout_version == 2
    put(table, 1, 2)
    wait(server, clock, DAY_MS - 1)
    put(table, 2, 3, x="later")
    assert ids_of(table.to_arrow()) == [1, 2, 3]
    wait(server, clock, 1)
    assert ids_of(table.to_arrow()) == [2, 3]
    for strategy in ("scan_kv", "limit_scan"):
        assert ids_of(table.scan(strategy=strategy).to_arrow()) == [2, 3]
    assert table.lookup([1, 2])["_found"].to_pylist() == [False, True]
    assert ids_of(table.scan(filter=col("id") < 3).to_arrow()) == [2]
    wait(server, clock, DAY_MS)
    assert table.to_arrow().num_rows == table.count() == 0


def test_the_changelog_has_no_deletes_and_begins_keys_again(session, server, clock):
    table = table_with(session)
    put(table, 1)
    wait(server, clock, 2 * DAY_MS)
    put(table, 1, x="again")
    changes = table.scan(mode="changelog").to_arrow()
    assert changes["_change_type"].to_pylist() == ["insert", "insert"]
    assert "leave no change" in table.scan(mode="changelog").explain()


def test_the_state_at_an_earlier_offset_is_refused(session, server, clock):
    table = table_with(session)
    put(table, 1)
    put(table, 2)
    with pytest.raises(UnsupportedOperationError, match="expire") as refused:
        table.scan(as_of=1).to_arrow()
    assert "the strategy 'changelog'" in str(refused.value.hint)
    wait(server, clock, 2 * DAY_MS)
    assert ids_of(table.scan(as_of=1, strategy="changelog").to_arrow()) == [1]
    assert ids_of(table.scan(as_of="latest").to_arrow()) == []


def test_a_column_may_hold_the_time_of_a_row(session, server, clock):
    table = table_with(session, **{"table.kv.ttl.time-column": "at"})
    put(table, 1, at=START_MS - DAY_MS)
    put(table, 2, at=START_MS)
    table.upsert({"id": [3], "at": [None], "x": ["for ever"]})
    wait(server, clock, 0)
    assert ids_of(table.to_arrow()) == [2, 3]
    wait(server, clock, 100 * DAY_MS)
    assert ids_of(table.to_arrow()) == [3]


def test_times_of_rows_survive_a_restart_and_lost_rows(tmp_path, clock):
    with opened(tmp_path, clock) as (_, session):
        table = table_with(session)
        put(table, 1)
        clock.now_ms += DAY_MS // 2
        put(table, 2)
    for removes_rows in (False, True):
        if removes_rows:  # they are rebuilt from the changelog
            (folder,) = (tmp_path / "data" / DATA / "fluss").glob("t-*/kv-0")
            shutil.rmtree(folder)
        with opened(tmp_path, clock) as (server, session):
            table = session.table("t")
            assert table.lookup([2])["_found"].to_pylist() == [True]
            clock.now_ms = START_MS + DAY_MS
            wait(server, clock, 0)
            assert ids_of(table.to_arrow()) == [2]


@pytest.mark.parametrize(
    ("properties", "code"),
    [
        ({"table.kv.ttl.time-column": "x"}, 39),
        ({"table.kv.ttl.time-column": "y"}, 39),
        ({"table.kv.value-layout-version": "1"}, 39),
        ({"table.kv.value-layout-version": "999"}, 39),
        ({"table.kv.ttl": "0 s"}, 39),
        ({"table.kv.ttl": "9223372036854776 s"}, 39),
        ({"table.datalake.table-name": "t"}, 39),
    ],
)
def test_options_that_contradict_each_other_are_refused(server, properties, code):
    descriptor = TableDescriptor(
        Schema(from_arrow_schema(COLUMNS), primary_keys=["id"]),
        bucket_count=1,
        properties={"table.kv.ttl": "1 d"} | properties,
    )
    request = pb.CreateTableRequest(
        table_path=pb.PbTablePath(database_name="fluss", table_name="refused"),
        table_json=descriptor.to_json().encode(),
        ignore_if_exists=False,
    )
    connection = RawConnection(server.address)
    with closing(connection), pytest.raises(RefusedError) as refused:
        connection.call(request)
    assert refused.value.code == code


def test_a_log_has_no_row_ttl_and_a_ttl_cannot_be_changed(session):
    with pytest.raises(FlussError, match="primary key"):
        session.create_table("log", COLUMNS, properties={"table.kv.ttl": "1 d"})
    table_with(session)
    with pytest.raises(FlussError) as refused:
        session.alter_table("t", set_properties={"table.kv.ttl": "2 d"})
    assert refused.value.error_code == 56
