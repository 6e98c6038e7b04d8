"""The second table of `benchmarks/server.py`: figures of the embedded server alone.

Time from start to the first response, memory at rest, the start in a large directory after a clean
stop and after SIGKILL under load, and many connections (`_server_crowd`). Each figure is a median
over new processes, from `LocalCluster(...).start()` on.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

import fluss
from benchmarks._measure import resident_bytes
from benchmarks._peer_bench import SCHEMA, data_of
from benchmarks._server_crowd import crowd_lines
from benchmarks._server_load import load_lines
from benchmarks._server_tasks import keyed_batches
from fluss_server import LocalCluster

STARTS = 7
RESTARTS = 3
START_SECONDS_MAX = 1.0
RESTART_SECONDS_MAX = 2.0
IDLE_BYTES_MAX = 150e6
REST_S = 3.0  # background imports are done by then
KEYS_MAX = 1_000_000
LOG_BUCKETS = 4
BATCH_ROWS = 100_000


def alone_lines(options: argparse.Namespace) -> list[Sequence[str]]:
    """Return the lines that `--only` selects."""
    gigabytes, keys = options.restart_gb, min(KEYS_MAX, int(options.restart_gb * KEYS_MAX))
    parts: tuple[tuple[str, Callable[[], list[Sequence[str]]]], ...] = (
        ("start memory", lambda: _start_lines(options)),
        ("restart", lambda: _restart_lines(gigabytes, keys)),
        ("crowd connections", lambda: crowd_lines(options)),
        ("load memory", lambda: load_lines(options)),
    )
    found: list[Sequence[str]] = []
    for name, lines in parts:
        if not options.only or any(word in name for word in options.only):
            print(f"  {name}: ", end="", file=sys.stderr, flush=True)
            made = lines()
            print("; ".join(f"{each[0]}: {each[1]}" for each in made), file=sys.stderr)
            found += made
    return found


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process; 0 where the system does not report it."""
    with suppress(OSError):
        behind_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(behind_name[11]) + int(behind_name[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def timed(what: str, seconds: Sequence[float], seconds_max: float) -> Sequence[str]:
    """Return a line about times and their target."""
    middle = statistics.median(seconds)
    return (
        what,
        f"{middle:.2f} s",
        f"{min(seconds):.2f}-{max(seconds):.2f}",
        f"< {seconds_max:.0f} s",
        "MISSED" if middle >= seconds_max else "",
    )


# --- start and memory -----------------------------------------------------------------------------


def _start_lines(options: argparse.Namespace) -> list[Sequence[str]]:
    answers, rows, memory = [], [], []
    for number in range(max(options.pairs, STARTS)):
        started = time.perf_counter()
        with LocalCluster() as cluster, fluss.connect(cluster.url) as session:
            session.databases()
            answers.append(time.perf_counter() - started)
            session.create_table("fluss.first", pa.schema([("id", pa.int64())]))
            session.append("fluss.first", pa.table({"id": [1]}))
            rows.append(time.perf_counter() - started)
        if number < RESTARTS:
            with LocalCluster() as cluster:
                time.sleep(REST_S)
                memory.append(resident_bytes(cluster.pid))
    largest = max(memory)
    return [
        timed("start until the first answer", answers, START_SECONDS_MAX),
        (
            "start until the first row is acknowledged",
            f"{statistics.median(rows):.2f} s",
            f"{min(rows):.2f}-{max(rows):.2f}",
            "",
            "",
        ),
        (
            "memory at rest",
            f"{largest / 1e6:.0f} MB",
            "",
            f"< {IDLE_BYTES_MAX / 1e6:.0f} MB",
            "MISSED" if largest >= IDLE_BYTES_MAX else "",
        ),
    ]


# --- restart --------------------------------------------------------------------------------------


def _restart_lines(gigabytes: float, keys: int) -> list[Sequence[str]]:
    with tempfile.TemporaryDirectory(prefix="fluss-bench-") as scratch:
        path = Path(scratch)
        with LocalCluster(path, durability="process") as cluster:
            _fill(cluster, gigabytes=gigabytes, keys=keys)
        size = sum(each.stat().st_size for each in path.rglob("*.log")) / 1e9
        text = f"{size:.1f} GB of log, {keys:,} keys"
        clean = [_restarted(path, keys, kill=False) for _ in range(RESTARTS)]
        _restarted(path, keys, kill=True)
        killed = [_restarted(path, keys, kill=True) for _ in range(RESTARTS)]
    return [
        timed(f"restart after a clean end, {text}", clean, RESTART_SECONDS_MAX),
        timed(f"restart after SIGKILL under load, {text}", killed, RESTART_SECONDS_MAX),
    ]


def _fill(cluster: LocalCluster, *, gigabytes: float, keys: int) -> None:
    with fluss.connect(cluster.url) as session:
        session.create_table(
            "fluss.events",
            SCHEMA,
            buckets=LOG_BUCKETS,
            properties={"table.log.arrow.compression.type": "NONE"},
        )
        batch = data_of(BATCH_ROWS)
        rounds = max(1, int(gigabytes * 1e9 / batch.nbytes))
        session.append("fluss.events", (batch for _ in range(rounds)))
        batches = keyed_batches(keys, 10_000)
        session.create_table("fluss.users", batches[0].schema, primary_key=["id"], buckets=1)
        session.upsert("fluss.users", iter(batches))


def _restarted(path: Path, keys: int, *, kill: bool) -> float:
    """Return the seconds until a lookup has a response and the log's last rows are read."""
    started = time.perf_counter()
    cluster = LocalCluster(path, durability="process").start()
    try:
        with fluss.connect(cluster.url) as session:
            found = session.table("fluss.users").lookup(pa.table({"id": [keys - 1]}))
            last = session.table("fluss.events").scan(tail=1).to_arrow()
            taken = time.perf_counter() - started
            if found.num_rows != 1 or not last.num_rows:
                raise ValueError(f"{found.num_rows} and {last.num_rows} rows were found")
            if kill:
                _kill_under_load(cluster, keys)
    finally:
        cluster.stop()
    return taken


def _kill_under_load(cluster: LocalCluster, keys: int) -> None:
    """Kill the process while writers of logs and keys are active, and wait until these give up.

    Writers that went on would take the processor from the start that is measured next.
    """
    impatient = {"operation_timeout_ms": "3000"}

    def write(name: str, data: pa.RecordBatch, *, is_keyed: bool) -> None:
        gone = (fluss.FlussError, asyncio.CancelledError)
        with suppress(*gone), fluss.connect(cluster.url, **impatient) as session:
            while True:
                (session.upsert if is_keyed else session.append)(name, data)

    threads = [
        threading.Thread(
            target=write, args=(name, data), kwargs={"is_keyed": is_keyed}, daemon=True
        )
        for name, data, is_keyed in (
            ("fluss.events", data_of(1_000), False),
            ("fluss.users", keyed_batches(keys, 1_000)[0], True),
        )
    ]
    for thread in threads:
        thread.start()
    time.sleep(3)
    cluster.kill()
    for thread in threads:
        thread.join(10)
