"""What any server knows is asked of another one when a server is down, or hangs."""

import asyncio
import time
from contextlib import contextmanager

import pyarrow as pa
import pytest

from fluss.connection.connection import ClientConnection
from fluss.errors import ConnectError, RequestTimeoutError, TableNotFoundError
from fluss.model.options.config import Config
from fluss.model.paths import PhysicalTablePath, TableBucket
from fluss.model.schema.schema import Schema
from fluss.net.engine_thread import engine
from fluss.net.hedged_requests import first_answer
from fluss.state.state_planner import plan_states
from fluss.wire.api import ApiKey
from tests.support.scripted.scripted_cluster import PATH, SERVER_ID, TABLE_ID, ScriptedCluster
from tests.support.scripted.scripted_kv import ScriptedKv
from tests.support.scripted.scripted_servers import ScriptedServers

LOG = Schema(pa.schema([("id", pa.int64())]))
KEYED = Schema(pa.schema([pa.field("id", pa.int64(), nullable=False)]), ["id"])
PATIENT = {
    "retry.backoff-ms": "5",
    "retry.backoff-max-ms": "20",
    "connect-timeout": "60s",
    "request-timeout": "60s",
    "operation-timeout": "60s",
}
SHORT = PATIENT | {"operation-timeout": "500ms"}
SOON_S = 20.0
NUMBERS = (0, 1, 2)
BUCKET = TableBucket(TABLE_ID, 0)


@pytest.fixture
def servers():
    with ScriptedServers(ScriptedCluster(LOG)) as found:
        yield found


@pytest.fixture
def keyed():
    with ScriptedServers(ScriptedKv(KEYED)) as found:
        yield found


@contextmanager
def connected(servers, settings=PATIENT, *, bootstrap=None):
    running = engine()
    config = Config({"bootstrap.servers": bootstrap or servers.bootstrap} | settings)
    core = running.run(ClientConnection.open(running, config))
    try:
        yield core
    finally:
        running.run(core.close())


def refresh(core):
    engine().run(core.cluster.refresh())


@pytest.fixture(params=["down", "hanging"])
def hurt(request):
    def hurt(servers, number):
        servers.take_down(number) if request.param == "down" else servers.hang(number)

    return hurt


# --- a new session --------------------------------------------------------------------------------


@pytest.mark.parametrize("number", NUMBERS)
def test_a_session_opens_while_one_server_does_not_answer(servers, hurt, number):
    hurt(servers, number)
    begin = time.monotonic()
    with connected(servers) as core:
        assert engine().run(core.table(PATH)).info.table_id == TABLE_ID
    assert time.monotonic() - begin < SOON_S


@pytest.mark.parametrize("number", NUMBERS)
def test_what_the_servers_offer_is_asked_of_one_that_answers(keyed, hurt, number):
    hurt(keyed, number)
    with connected(keyed) as core:
        assert engine().run(core.cluster.offers(ApiKey.SCAN_KV))
        assert not engine().run(core.cluster.offers(ApiKey.LIMIT_SCAN))


def test_a_session_opens_while_only_the_last_server_answers(servers):
    servers.take_down(0)
    servers.hang(1)
    with connected(servers) as core:
        assert engine().run(core.table(PATH)).info.table_id == TABLE_ID


def test_no_session_opens_where_no_server_can_be_reached(servers):
    for number in NUMBERS:
        servers.take_down(number)
    begin = time.monotonic()
    with pytest.raises(ConnectError, match="None of the servers can be reached") as refused, \
            connected(servers):  # fmt: skip
        pass
    assert all(each in refused.value.message for each in servers.bootstrap.split(","))
    assert refused.value.hint
    assert time.monotonic() - begin < SOON_S


def test_a_session_does_not_open_where_no_tablet_server_can_be_reached(servers):
    answering = servers.peers[0]
    servers.peers[:] = servers.peers[1:]
    entrance = f"{answering.host}:{answering.port}"
    for peer in servers.peers:
        peer.__exit__()
    try:
        with (
            pytest.raises(ConnectError, match="advertises"),
            connected(servers, bootstrap=entrance),
        ):
            pass
    finally:
        answering.__exit__()


# --- a session that is open -----------------------------------------------------------------------


@pytest.mark.parametrize("number", [each for each in NUMBERS if each != SERVER_ID])
def test_a_state_is_planned_while_one_server_does_not_answer(keyed, hurt, number):
    with connected(keyed) as core:
        table = engine().run(core.table(PATH))
        hurt(keyed, number)
        begin = time.monotonic()
        places = {BUCKET: PhysicalTablePath(PATH)}
        plans = engine().run(plan_states(table, places, {BUCKET: 0}))
        assert plans[BUCKET].pin == 0
        refresh(core)
        assert time.monotonic() - begin < SOON_S


def test_what_the_servers_offer_is_asked_once(keyed):
    with connected(keyed) as core:
        for _ in range(5):
            assert engine().run(core.cluster.offers(ApiKey.SCAN_KV))
            assert core.cluster.offers_now(ApiKey.SCAN_KV)
        assert sum(keyed.asked_of(each, ApiKey.API_VERSIONS) for each in NUMBERS) == 1


def test_a_server_that_hangs_is_not_asked_first_again(servers):
    with connected(servers) as core:
        refresh(core)
        (first,) = (each for each in NUMBERS if servers.asked_of(each, ApiKey.GET_METADATA))
        servers.hang(first)
        refresh(core)
        before = servers.asked_of(first, ApiKey.GET_METADATA)
        begin = time.monotonic()
        for _ in range(20):
            refresh(core)
        assert servers.asked_of(first, ApiKey.GET_METADATA) == before
        assert time.monotonic() - begin < 1.0


# --- hedging --------------------------------------------------------------------------------------


class Servers:
    """Answers, errors, or silence, by name; and the servers that were asked, and cancelled."""

    def __init__(self, **answers):
        self.answers = answers
        self.asked = []
        self.late = []
        self.cancelled = []

    async def ask(self, name):
        self.asked.append(name)
        answer = self.answers[name]
        try:
            if answer is None:
                await asyncio.sleep(60)
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.cancelled.append(name)
            raise
        if isinstance(answer, Exception):
            raise answer
        return answer

    def first(self):
        async def run():
            work = first_answer(
                list(self.answers), self.ask, after_s=0.02, given_up=self.late.append
            )
            async with asyncio.timeout(10):
                return await work

        return asyncio.run(run())


def test_a_server_that_answers_is_the_only_one_asked():
    servers = Servers(a=1, b=2)
    assert servers.first() == 1
    assert servers.asked == ["a"]
    assert not servers.late


def test_the_next_server_is_asked_where_one_fails_or_hangs():
    servers = Servers(a=None, b=ConnectError("b is gone"), c=3, d=4)
    assert servers.first() == 3
    assert servers.asked == ["a", "b", "c"]
    assert servers.late == ["a"]
    assert servers.cancelled == ["a"]


def test_a_refusal_of_a_server_is_an_answer():
    servers = Servers(a=RequestTimeoutError("late"), b=TableNotFoundError("no such table"), c=3)
    with pytest.raises(TableNotFoundError):
        servers.first()
    assert servers.asked == ["a", "b"]


def test_where_all_fail_the_error_names_all():
    servers = Servers(a=ConnectError("a is gone."), b=ConnectError("b is gone."))
    with pytest.raises(ConnectError, match=r"a is gone\.; b is gone"):
        servers.first()


def test_the_error_of_a_single_server_is_raised_unchanged():
    error = ConnectError("a is gone.", hint="look")
    with pytest.raises(ConnectError) as raised:
        Servers(a=error).first()
    assert raised.value is error
