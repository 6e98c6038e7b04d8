"""Ctrl-C while a server keeps its answer back: over within a second, and the session goes on."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
INTERRUPTED_S_MAX = 1.0
PATIENCE_S = 30.0
TRIES_MAX = 3  # a machine that has other things to do proves nothing by being late

# Each way to read waits for an answer that does not come; between two of them all is well.
CHILD = """
import signal, sys, time
import anyio
import fluss
from fluss.net.cluster_client import Cluster
from fluss.wire.api import ApiKey

DATA = {ApiKey.FETCH_LOG, ApiKey.LIMIT_SCAN, ApiKey.LOOKUP}
send, stalls = Cluster.send, False

async def stalled(self, server_id, api, body, **named):
    if stalls and api in DATA:
        await anyio.sleep_forever()
    return await send(self, server_id, api, body, **named)

Cluster.send = stalled

def ways(log, keyed):
    key = fluss.col("id") == 7
    yield "follow", lambda scan=log.follow(): list(scan)
    yield "log", log.scan().to_arrow
    yield "log by bucket", log.scan(order="bucket").to_arrow
    yield "log as a stream", lambda scan=log.scan(): scan.to_reader().read_all()
    yield "count", log.scan().count
    yield "state", keyed.scan(strategy="limit_scan").to_arrow
    yield "state by replay", keyed.scan(strategy="changelog").to_arrow
    yield "changelog", keyed.scan(mode="changelog").to_arrow
    yield "binlog", keyed.scan(mode="binlog").to_arrow
    yield "lookup", keyed.scan(filter=key).to_arrow

with fluss.connect(sys.argv[1]) as session:
    log, keyed = session.table("events"), session.table("keyed")
    for name, read in ways(log, keyed):
        scan = getattr(read, "__self__", None)
        if scan is not None and hasattr(scan, "splits"):
            scan.splits()  # pinned, so that what stalls is the reading
        stalls = True
        try:
            print("waiting", name, flush=True)
            read()
            print("ended", name, flush=True)
        except KeyboardInterrupt:
            print("interrupted", name, flush=True)
        stalls = False
        print("usable", log.count(), keyed.scan().count(), flush=True)
"""
WAYS = (
    "follow",
    "log",
    "log by bucket",
    "log as a stream",
    "count",
    "state",
    "state by replay",
    "changelog",
    "binlog",
    "lookup",
)


@pytest.mark.slow  # a Python is started, and waited for
@pytest.mark.skipif(os.name != "posix", reason="Ctrl-C is a signal only there")
def test_an_interrupt_ends_every_way_to_read_within_a_second(cluster, database, events, keyed):
    url = f"fluss://{cluster.bootstrap}/{database}"
    late = set(WAYS)
    for _ in range(TRIES_MAX):
        late -= {name for name, after_s in interrupted(url) if after_s < INTERRUPTED_S_MAX}
        if not late:
            break
    assert not late


def interrupted(url):
    """Each way to read, and how long after the signal it ended."""
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, url], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as child:
        try:
            for name in WAYS:
                assert _line(child) == f"waiting {name}"
                time.sleep(0.3)  # until it waits indeed
                child.send_signal(signal.SIGINT)
                began = time.monotonic()
                assert _line(child) == f"interrupted {name}"
                yield name, time.monotonic() - began
                assert _line(child) == "usable 1000 990"
            assert child.wait(PATIENCE_S) == 0
        finally:
            child.kill()


def _line(child):
    return child.stdout.readline().strip()
