"""The memory of the embedded server under load: `./dev bench server --only load --load-s 3600`.

Clients append, upsert known keys, look up, scan, create and drop tables, connect and leave, at a
steady pace that leaves the server time to rest, so that its memory shows what stays and not what
is in work. The table of keys keeps its size, and the log grows. Memory is read every few seconds;
the line compares the median after the first tenth with that of the last.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

import fluss
from benchmarks._measure import resident_bytes
from benchmarks._peer_bench import SCHEMA, data_of
from benchmarks._server_tasks import keyed_batches
from fluss_server import LocalCluster

KEYS = 200_000
BATCH_ROWS = 10_000
PAUSE_S = 0.5
SAMPLE_S = 5.0
GROWTH_MAX = 1.1
WARM_SHARE = 0.1  # of the time, the first part and the last part
SAID_EVERY = 60


def load_lines(options: argparse.Namespace) -> list[Sequence[str]]:
    """Measure the memory of a server under load."""
    with tempfile.TemporaryDirectory(prefix="fluss-bench-") as scratch:
        with LocalCluster(Path(scratch), durability="process") as cluster:
            found, rounds, failed = _under_load(cluster, options.load_s)
        size = sum(each.stat().st_size for each in Path(scratch).rglob("*.log")) / 1e9
    part = max(1, int(len(found) * WARM_SHARE))
    first, last = statistics.median(found[part : 2 * part]), statistics.median(found[-part:])
    return [
        (
            f"memory under load for {options.load_s:.0f} s, {size:.1f} GB of log: after a tenth → end",
            f"{first / 1e6:.0f} → {last / 1e6:.0f} MB",
            f"{min(found) / 1e6:.0f}-{max(found) / 1e6:.0f} MB",
            f"<= {GROWTH_MAX:.1f}x",
            "MISSED" if last > first * GROWTH_MAX else "",
        ),
        ("rounds of each client in that time", ", ".join(map(str, rounds)), "", "", failed),
    ]


def _under_load(cluster: LocalCluster, seconds: float) -> tuple[list[int], list[int], str]:

    ends = time.monotonic() + seconds
    with fluss.connect(cluster.url) as session:
        batches = keyed_batches(KEYS, BATCH_ROWS)
        session.create_table("fluss.users", batches[0].schema, primary_key=["id"], buckets=2)
        session.create_table("fluss.events", SCHEMA, buckets=2)
        session.upsert("fluss.users", iter(batches))
    works = (_append, _upsert, _look_up, _scan, _come_and_go)
    rounds, errors = [0] * len(works), list[BaseException]()

    def run(number: int, work: Callable[[fluss.Session, int], object]) -> None:
        try:
            with fluss.connect(cluster.url) as session:
                for turn in itertools.count():
                    if time.monotonic() > ends:
                        return
                    work(session, turn)
                    rounds[number] += 1
                    time.sleep(PAUSE_S)
        except BaseException as error:
            errors.append(error)
            raise

    threads = [threading.Thread(target=run, args=each, daemon=True) for each in enumerate(works)]
    for thread in threads:
        thread.start()
    found = []
    while time.monotonic() < ends:
        time.sleep(min(SAMPLE_S, seconds / 20))
        found.append(resident_bytes(cluster.pid))
        if len(found) % SAID_EVERY == 0:
            print(f"{found[-1] / 1e6:.0f} MB", end=" ", file=sys.stderr, flush=True)
    for thread in threads:
        thread.join()
    return found, rounds, f"FAILED: {errors[0]!r}" if errors else ""


def _append(session: fluss.Session, turn: int) -> None:
    del turn
    session.append("fluss.events", data_of(BATCH_ROWS))


def _upsert(session: fluss.Session, turn: int) -> None:
    batches = keyed_batches(KEYS, BATCH_ROWS)
    session.upsert("fluss.users", batches[turn % len(batches)])


def _look_up(session: fluss.Session, turn: int) -> None:
    ids = np.random.default_rng(turn).integers(0, KEYS, 1_000)
    session.table("fluss.users").lookup(pa.table({"id": ids}))


def _scan(session: fluss.Session, turn: int) -> None:
    del turn
    session.table("fluss.events").scan(tail=2 * BATCH_ROWS).to_arrow()
    session.table("fluss.users").scan(limit=1_000).to_arrow()


def _come_and_go(session: fluss.Session, turn: int) -> None:
    with fluss.connect(f"fluss://{session.config.bootstrap_servers}") as other:
        name = f"fluss.passing_{turn % 3}"
        other.create_table(name, SCHEMA, buckets=1)
        other.append(name, data_of(10))
        other.drop_table(name)
