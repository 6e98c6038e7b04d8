"""A caller that waits long is notified of the server it waits for, once and then with pauses."""

import asyncio

import pytest

import fluss.net.wait_notices
import fluss.write.partition_finder
from fluss.errors import ConnectError, FlussError
from fluss.net.operation_deadline import Operation, limited, note_waiting
from fluss.net.wait_notices import NOTICE_AFTER_S, REST_S, WaitNotices
from fluss.wire.api import ApiKey
from tests.cluster.net.test_operation_deadline import KEYED, SETTINGS, Mute
from tests.support.scripted.scripted_cluster import ScriptedCluster

LOOKUP = "10.0.0.1:9123 to answer LOOKUP"


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(fluss.net.wait_notices, "NOTICE_AFTER_S", 0.1)
    monkeypatch.setattr(fluss.net.wait_notices, "TICK_S", 0.02)


@pytest.fixture
def lines(monkeypatch):
    reported = []
    monkeypatch.setattr(fluss.net.operation_deadline, "notices", WaitNotices(reported.append))
    return reported


def run(work):
    with pytest.raises(FlussError):
        asyncio.run(limited(400, work))


def test_a_call_that_waits_names_its_server(quick, lines):
    async def work(call):
        note_waiting("10.0.0.1:9123 to answer GET_TABLE_INFO")
        call.last_error = ConnectError("It hung up.")
        await asyncio.sleep(10)

    run(work)
    (line,) = lines
    assert line.startswith("fluss: waiting for 10.0.0.1:9123 to answer GET_TABLE_INFO since 0 s")
    assert "it is tried again after: It hung up (given up after 0.4 s" in line


def test_many_calls_have_one_line(quick, lines):
    async def many():
        begun_at = asyncio.get_running_loop().time()
        # They are late together, however long it takes to begin so many.
        calls = [
            Operation(deadline=begun_at + 10, limit_ms=300, waits_for=LOOKUP, begun_at=begun_at)
            for _ in range(50)
        ]
        for call in calls:
            fluss.net.operation_deadline.notices.begin(call)
        await asyncio.sleep(0.3)
        for call in calls:
            fluss.net.operation_deadline.notices.end(call)

    asyncio.run(many())
    (line,) = lines
    assert "as 49 more calls do" in line


def test_quick_calls_and_idle_calls_are_not_reported(quick, lines, monkeypatch):
    monkeypatch.setattr(fluss.net.wait_notices, "NOTICE_AFTER_S", 1.0)

    async def quickly(_):
        note_waiting(LOOKUP)
        await asyncio.sleep(0.01)

    async def idle(call):
        note_waiting("10.0.0.1:9123 to answer FETCH_LOG")
        call.idle_s = 5.0
        await asyncio.sleep(1.2)

    async def both():
        for _ in range(20):
            await limited(1_000, quickly)
        await limited(5_000, idle)

    asyncio.run(both())
    assert lines == []


def test_lines_come_less_and_less_often_and_start_again_after_a_pause():
    reported = []
    notices = WaitNotices(reported.append)
    seconds = []
    for second in range(200):
        before = len(reported)
        notices.retried("a server", "It hung up.", since=0.0, now=float(second), limit_ms=600_000)
        seconds += [second] * (len(reported) - before)
    assert seconds == [5, 10, 20, 40, 80, 140]
    later = 200 + 2 * REST_S
    notices.retried("a server", "It hung up.", since=later - 4, now=later, limit_ms=600_000)
    assert len(reported) == len(seconds)
    later += NOTICE_AFTER_S
    notices.retried("a server", "It hung up.", since=later - 9, now=later, limit_ms=600_000)
    assert len(reported) == len(seconds) + 1


@pytest.mark.parametrize(
    ("api", "work"),
    [
        (ApiKey.GET_TABLE_INFO, lambda session: session.table("t")),
        (ApiKey.CREATE_DATABASE, lambda session: session.create_database("other")),
        (ApiKey.FETCH_LOG, lambda session: session.table("t").scan(mode="changelog").count()),
    ],
    ids=["asking", "changing", "reading"],
)
def test_a_session_that_waits_for_a_hung_server_is_reported(quick, caplog, monkeypatch, api, work):
    monkeypatch.setattr(fluss.net.operation_deadline, "notices", WaitNotices())
    with Mute(KEYED) as cluster:
        cluster.append({"id": [1], "name": ["a"]}, change_types=[0])
        with fluss.connect(f"fluss://{cluster.bootstrap}/db", **SETTINGS) as session:
            cluster.silent = {api}
            with pytest.raises(FlussError):
                work(session)
    logged = [each.getMessage() for each in caplog.records if each.name == "fluss.waiting"]
    assert len(logged) == 1
    assert logged[0].startswith(
        f"fluss: waiting for {cluster.bootstrap} to answer {api.name} since"
    )


def test_a_writer_that_waits_for_a_leader_is_reported(quick, caplog, monkeypatch):
    monkeypatch.setattr(fluss.write.partition_finder, "notices", WaitNotices())
    with ScriptedCluster(KEYED) as cluster:
        cluster.leads = False
        with (
            fluss.connect(f"fluss://{cluster.bootstrap}/db", **SETTINGS) as session,
            pytest.raises(FlussError),
        ):
            session.table("t").upsert({"id": 1, "name": "a"})
    logged = [each.getMessage() for each in caplog.records if each.name == "fluss.waiting"]
    assert len(logged) == 1
    assert logged[0].startswith("fluss: waiting for a leader of db.t since")
    assert "No leader has been elected" in logged[0]
