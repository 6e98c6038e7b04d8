"""A read that is cancelled from another thread ends, and leaves nothing behind."""

import asyncio
import operator
import threading
from pathlib import Path

import anyio
import pytest

from fluss import col
from fluss.errors import ClosedError
from fluss.net.cluster_client import Cluster
from fluss.net.engine_thread import engine
from fluss.wire.api import ApiKey
from tests.support.servers.read_harness import eventually

PATIENCE_S = 60
OPEN_FILES = Path("/proc/self/fd")
DATA = {ApiKey.FETCH_LOG, ApiKey.LIMIT_SCAN, ApiKey.SCAN_KV, ApiKey.LOOKUP}
WAYS = {
    "log": lambda log, _: log.scan(),
    "log by bucket": lambda log, _: log.scan(order="bucket"),
    "log in time": lambda log, _: log.scan(order="timestamp"),
    "state": lambda _, keyed: keyed.scan(strategy="limit_scan"),
    "state by replay": lambda _, keyed: keyed.scan(strategy="changelog"),
    "changelog": lambda _, keyed: keyed.scan(mode="changelog"),
    "binlog": lambda _, keyed: keyed.scan(mode="binlog"),
    "lookup": lambda _, keyed: keyed.scan(filter=col("id") == 7),
}


@pytest.fixture
def stall(monkeypatch):
    """Called, it leaves requests for rows without answers; returns an event for the first one."""
    sent = threading.Event()

    async def stalled(self, server_id, api, body, **named):
        if api in DATA:
            sent.set()
            await anyio.sleep_forever()
        return await send(self, server_id, api, body, **named)

    def begin():
        monkeypatch.setattr(Cluster, "send", stalled)
        return sent

    send = Cluster.send
    return begin


def left_behind():
    """What a read may hold: tasks of the engine, threads that read, open files and sockets."""

    async def tasks():
        return len(asyncio.all_tasks()) - 1

    threads = [each for each in threading.enumerate() if each.name.startswith("fluss-scan")]
    return engine().run(tasks()), len(threads), len(list(OPEN_FILES.iterdir()))


@pytest.mark.skipif(not OPEN_FILES.is_dir(), reason="open files are counted on Linux")
@pytest.mark.parametrize("is_planned", [False, True], ids=["planning", "reading"])
@pytest.mark.parametrize("way", WAYS)
def test_a_cancelled_read_ends_and_leaves_nothing_behind(
    session, events, keyed, way, is_planned, stall
):
    scan = WAYS[way](session.table("events"), session.table("keyed"))
    if is_planned:
        scan.splits()
    before = left_behind()
    waits = stall()
    outcomes = []

    def read():
        try:
            outcomes.append(scan.to_arrow())
        except ClosedError as error:
            outcomes.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    assert waits.wait(PATIENCE_S)
    scan.cancel()
    reader.join(PATIENCE_S)
    assert [str(each).partition(".")[0] for each in outcomes] == ["The operation was cancelled"]
    eventually(lambda: all(map(operator.le, left_behind(), before)))
