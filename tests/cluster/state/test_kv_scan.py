"""SCAN_KV by transcript: what is sent, in which order, and what becomes of what comes back."""

import random

import pyarrow as pa
import pytest

from fluss.connection.connection import ClientConnection
from fluss.errors import ScannerLostError, UnsupportedOperationError
from fluss.model.options.config import Config
from fluss.model.paths import PhysicalTablePath, TableBucket
from fluss.model.schema.schema import Schema
from fluss.net.engine_thread import engine
from fluss.state.state_at_offset import read_state
from fluss.state.state_planner import plan_state
from tests.support.hypothesis_profiles import IS_EXHAUSTIVE
from tests.support.scripted.scripted_cluster import PATH, TABLE_ID
from tests.support.scripted.scripted_kv import ScriptedKv
from tests.support.servers.read_harness import eventually

COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("text", pa.string())])
SCHEMA = Schema(COLUMNS, ["id"])
BUCKET = TableBucket(TABLE_ID, 0)
INSERT, BEFORE, AFTER, DELETE = 1, 2, 3, 4
ROUNDS, PINS = (1_700, 50) if IS_EXHAUSTIVE else (12, 20)  # six changes in each


@pytest.fixture
def server():
    with ScriptedKv(schema=SCHEMA) as made:
        yield made


@pytest.fixture
def connect(server):
    made = []

    def open_table(**settings):
        settings = {"bootstrap.servers": server.bootstrap} | settings
        connection = engine().run(ClientConnection.open(engine(), Config(settings)))
        made.append(connection)
        return engine().run(connection.table(PATH))

    yield open_table
    for each in made:
        engine().run(each.close())


def plan(table, pin, **facts):
    return engine().run(plan_state(table, PhysicalTablePath(PATH), BUCKET, pin, **facts))


def read(table, pin, **facts):
    batches = read_state(table, plan(table, pin, **facts))
    return {row["id"]: row["text"] for batch in batches for row in batch.to_pylist()}


def write_at_random(server, *, rounds=12, image="full"):
    """A changelog, the rows it leads to, and what there was at every offset in between."""
    rng = random.Random(1)
    state, states = {}, [{}]

    def change(kind, key, text):
        kinds.append(kind)
        columns["id"].append(key)
        columns["text"].append(text)
        if kind in (INSERT, AFTER):
            state[key] = text
        elif kind == DELETE:
            del state[key]
        states.append(dict(state))

    for number in range(rounds):
        kinds, columns = [], {"id": [], "text": []}
        for place in range(6):
            key, text = rng.randrange(12), f"{number}.{place}"
            if key not in state:
                change(INSERT, key, text)
            elif rng.random() < 0.3:
                change(DELETE, key, state[key])
            else:
                if image == "full":
                    change(BEFORE, key, state[key])
                change(AFTER, key, text)
        server.append(columns, change_types=kinds)
    server.stored = [(1, {"id": key, "text": text}) for key, text in sorted(state.items())]
    server.stored_at = server.end(0)
    return states


def test_the_state_at_any_offset_comes_from_one_later_snapshot(server, connect):
    states = write_at_random(server, rounds=ROUNDS)
    table = connect()
    for pin in random.Random(2).sample(range(len(states)), PINS):
        assert read(table, pin) == states[pin], pin
    assert plan(table, 30).strategy == "scan_kv"
    assert not server.sessions


def test_pages_are_requested_in_order_and_none_after_the_last(server, connect):
    states = write_at_random(server)
    server.page_rows = 2
    table = connect()
    assert read(table, len(states) - 1) == states[-1]
    calls = [each.call_seq_id for each in server.scans]
    assert calls == list(range((len(states[-1]) + 1) // 2))
    assert [each.HasField("bucket_scan_req") for each in server.scans] == [True] + [False] * (
        len(calls) - 1
    )
    assert all(each.batch_size_bytes > 0 for each in server.scans)


def test_an_empty_bucket_needs_no_scanner(server, connect):
    write_at_random(server)
    server.stored = []
    table = connect()
    pin = server.stored_at
    assert read(table, pin) == {}
    assert len(server.scans) == 1


def test_rows_of_older_schemas_are_filled_up(server, connect):
    columns = pa.schema([*COLUMNS, pa.field("late", pa.int32())])
    server.schemas[2] = Schema(columns, ["id"])
    server.page_rows = 1
    server.stored = [(1, {"id": 1, "text": "a"}), (2, {"id": 2, "text": "b", "late": 7})]
    server.append(
        {"id": [1, 2], "text": ["a", "b"], "late": [None, 7]}, schema_id=2, change_types=[1, 1]
    )
    server.stored_at = 2
    table = connect()
    rows = [row for each in read_state(table, plan(table, 2)) for row in each.to_pylist()]
    assert rows == [{"id": 1, "text": "a", "late": None}, {"id": 2, "text": "b", "late": 7}]


def test_a_server_with_too_many_scans_is_asked_again(server, connect):
    states = write_at_random(server)
    server.scan_faults.extend([69, 12, 69])
    assert read(connect(), len(states) - 1) == states[-1]
    assert [each.call_seq_id for each in server.scans[:4]] == [0, 0, 0, 0]


def test_a_scan_that_the_server_lost_is_an_error_not_fewer_rows(server, connect):
    states = write_at_random(server)
    server.page_rows = 1
    server.scan_faults.extend([0, 0, 67])
    table = connect()
    with pytest.raises(ScannerLostError):
        read(table, len(states) - 1)
    assert read(table, len(states) - 1) == states[-1]


def test_a_reader_that_stops_closes_the_scan(server, connect):
    states = write_at_random(server)
    server.page_rows = 1
    table = connect()
    rows = read_state(table, plan(table, len(states) - 1))
    next(rows)
    assert server.sessions
    rows.close()
    eventually(lambda: not server.sessions)  # the reader does not wait for the answer
    assert server.scans[-1].close_scanner
    assert not server.scans[-1].HasField("bucket_scan_req")


def test_a_snapshot_after_the_pin_of_a_changelog_without_images_is_refused(connect, server):
    server.properties = {"table.changelog.image": "wal"}
    states = write_at_random(server, image="wal")
    table = connect()
    assert plan(table, 30).strategy == "changelog"
    assert read(table, 30) == states[30]
    with pytest.raises(UnsupportedOperationError, match="image 'wal'"):
        read(table, 30, strategy="scan_kv")
    assert read(table, len(states) - 1, strategy="scan_kv") == states[-1]
