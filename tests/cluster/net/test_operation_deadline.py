"""No call outlives `operation-timeout`, whatever it waits for and how long a request may take."""

import time
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa
import pytest

import fluss
from fluss.errors import FlussError, RequestTimeoutError
from fluss.lookup.lookup_cores import key_lookup
from fluss.model.schema.schema import Schema
from fluss.net.handoff import BlockingSink
from fluss.wire.api import ApiKey
from tests.support.scripted.scripted_cluster import SERVED
from tests.support.scripted.scripted_kv import SERVED_TOO, ScriptedKv
from tests.support.scripted.scripted_peer import api_versions, success

KEYED = Schema(
    pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())]), ["id"]
)
LIMIT_S = 0.4
LATER_S_MAX = 2.0
SETTINGS = {
    "operation_timeout_ms": 400,
    "request_timeout_ms": 60_000,
    "connect_timeout_ms": 60_000,
    "retry_backoff_ms": 5,
}


@dataclass
class Mute(ScriptedKv):
    """A server that gives no answer to some APIs, and a late one to others."""

    silent: set[ApiKey] = field(default_factory=set)
    delays: dict[ApiKey, float] = field(default_factory=dict)

    def _answer(self, request):
        time.sleep(self.delays.get(request.api_key, 0.0))
        if request.api_key in self.silent:
            self.asked.append(ApiKey(request.api_key))
            return None
        if request.api_key == ApiKey.API_VERSIONS:
            served = [*SERVED, *SERVED_TOO, ApiKey.CREATE_DATABASE]
            return success(request, api_versions(*served))
        return super()._answer(request)


@pytest.fixture
def cluster():
    with Mute(KEYED) as made:
        made.append({"id": [1], "name": ["a"]}, change_types=[0])
        made.stored = [(1, {"id": 1, "name": "a"})]
        made.stored_at = 1
        yield made


@pytest.fixture
def session(cluster):
    with fluss.connect(f"fluss://{cluster.bootstrap}/db", **SETTINGS) as opened:
        yield opened


@contextmanager
def ended_in_time(match):
    begin = time.monotonic()
    with pytest.raises(FlussError, match=match) as raised:
        yield raised
    assert LIMIT_S - 0.1 <= time.monotonic() - begin <= LIMIT_S + LATER_S_MAX


def test_opening_a_session(cluster):
    cluster.silent = {ApiKey.API_VERSIONS}
    with ended_in_time("waited for a connection to 127"):
        fluss.connect(f"fluss://{cluster.bootstrap}/db", **SETTINGS)


def test_asking_any_server(cluster, session):
    cluster.silent = {ApiKey.GET_TABLE_INFO}
    with ended_in_time(r"given up after 0\.4 s.*to answer GET_TABLE_INFO") as raised:
        session.table("t")
    assert isinstance(raised.value, RequestTimeoutError)
    assert "operation-timeout" in raised.value.hint


@pytest.mark.parametrize("api", [ApiKey.FETCH_LOG, ApiKey.SCAN_KV], ids=str)
def test_scanning_a_state(cluster, session, api):
    table = session.table("t")
    cluster.silent = {api}
    with ended_in_time(f"to answer {api.name}"):
        table.scan().to_arrow()


def test_reading_a_log(cluster, session):
    table = session.table("t")
    # The plan is answered, and no fetch that would bring rows.
    cluster.on_fetch = lambda asked: None if asked.max_bytes > 1 else "as usual"
    with ended_in_time("FETCH_LOG"):
        table.scan(mode="changelog").to_arrow()


def test_finding_a_time(cluster, session):
    table = session.table("t")
    cluster.silent = {ApiKey.LIST_OFFSETS}
    with ended_in_time("to answer LIST_OFFSETS"):
        table.scan(mode="changelog", start="-1h").to_arrow()


def test_planning_by_several_requests_that_are_each_answered_in_time(cluster, session):
    table = session.table("t")
    cluster.delays = {ApiKey.FETCH_LOG: 0.3, ApiKey.LIST_OFFSETS: 0.3}
    with ended_in_time("to answer LIST_OFFSETS"):
        table.scan(mode="changelog", start="-1h").splits()


@pytest.mark.parametrize("keys", [{"id": 1}, [{"id": 1}, {"id": 2}]], ids=["one", "many"])
def test_looking_up(cluster, session, keys):
    table = session.table("t")
    cluster.silent = {ApiKey.LOOKUP}
    with ended_in_time("LOOKUP"):
        table.lookup(keys)


def test_looking_up_a_key_among_those_of_other_callers(cluster, session):
    core = key_lookup(session.table("t").__fluss_table__())
    cluster.hold_lookups.clear()
    begin = time.monotonic()
    callers = []
    for number in range(3):
        callers.append(BlockingSink(core.decode))
        core.ask([number], callers[-1])
        time.sleep(0.1)
    for number, caller in enumerate(callers):
        assert caller.wait(LIMIT_S + LATER_S_MAX)
        with pytest.raises(RequestTimeoutError):
            caller.result()
        # Each has its own time, also those that had to wait for the others.
        assert time.monotonic() - begin >= LIMIT_S + 0.1 * number - 0.05
    assert time.monotonic() - begin < LIMIT_S + LATER_S_MAX


def test_a_change_that_the_coordinator_does_not_answer_is_in_doubt_and_sent_once(cluster, session):
    cluster.silent = {ApiKey.CREATE_DATABASE}
    with ended_in_time("may or may not have carried it out") as raised:
        session.create_database("other")
    assert "Check whether it has been carried out" in raised.value.hint
    assert cluster.asked.count(ApiKey.CREATE_DATABASE) == 1


@pytest.mark.parametrize("keys", [{"id": 1}, [{"id": 1}, {"id": 2}]], ids=["one", "many"])
def test_looking_up_in_a_bucket_without_a_leader(cluster, session, keys):
    table = session.table("t")
    cluster.leads = False
    with ended_in_time("has no leader"):
        table.lookup(keys)
