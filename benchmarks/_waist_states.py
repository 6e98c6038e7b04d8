"""The state of a primary-key table by every strategy, and the memory of each way to read.

By default snapshots are taken every ten minutes, so this part starts its own cluster, which takes
them each half minute. Changes are written after the snapshot, so a snapshot and the tail of its
changelog are measured.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa

import fluss
from benchmarks._measure import Rounds
from fluss.errors import FlussError
from fluss.session import Session, Table
from fluss_testkit.cluster_profiles import Profile
from fluss_testkit.java_cluster import JavaCluster

ROOT = Path(__file__).resolve().parent.parent
SNAPSHOTS = Profile(options={"kv.snapshot.interval": "30s"})
SNAPSHOT_WAIT_S = 90
TAIL_ROWS = 50_000
CHUNK_ROWS = 100_000
ROUNDS = 5
BUDGET_MB = 64
BATCHES_PER_SPLIT = 3
# A reader that is slower than its sources shows how much is buffered.
SLOW_S = 0.02

Lines = list[tuple[str, str]]


def measure_states(rows: pa.Table) -> Lines:
    """Measure speed and memory of states and logs of these rows; return a line for each."""
    with JavaCluster(SNAPSHOTS) as running:
        url = f"fluss://{running.bootstrap_servers}/states"
        with fluss.connect(url) as session:
            session.create_database("states")
            keyed = _keyed(session, rows)
            _log(session, rows)
            return [*_speeds(keyed, rows), *_memory(url)]


def _keyed(session: Session, rows: pa.Table) -> Table:
    table = session.create_table("keyed", rows, primary_key=["id"], buckets=4)
    table.upsert(rows)
    return table


def _log(session: Session, rows: pa.Table) -> None:
    table = session.create_table("log", rows, buckets=4, bucket_key=["id"])
    for start in range(0, rows.num_rows, CHUNK_ROWS):
        table.append(rows.slice(start, CHUNK_ROWS))


def _wait_for_snapshot(table: Table, rows: pa.Table) -> None:
    """Wait for a snapshot of all rows; later changes are not in it."""
    deadline = time.monotonic() + SNAPSHOT_WAIT_S
    while True:
        try:
            table.scan(strategy="snapshot").splits()
        except FlussError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            table.upsert(rows.slice(0, TAIL_ROWS))
            return


def _speeds(table: Table, rows: pa.Table) -> Lines:
    lines = []
    for strategy in ("snapshot", "changelog", "limit_scan"):
        if strategy == "snapshot":
            _wait_for_snapshot(table, rows)
        table.scan(strategy=strategy).to_arrow()
        times = Rounds(seconds=tuple(_seconds(table, strategy) for _ in range(ROUNDS)))
        what = "snapshot + tail" if strategy == "snapshot" else strategy
        rate = f"{rows.num_rows / times.median:,.0f} rows/s ({times.spread})"
        lines.append((f"state of 1 M rows by {what}", rate))
    return lines


def _seconds(table: Table, strategy: str) -> float:
    began = time.perf_counter()
    table.scan(strategy=strategy).to_arrow()
    return time.perf_counter() - began


def _memory(url: str) -> Lines:
    cases = [
        ("log", {}),
        ("log", {"order": "bucket"}),
        *(("keyed", {"strategy": each}) for each in ("snapshot", "changelog", "limit_scan")),
        ("keyed", {"mode": "changelog"}),
        ("keyed", {"mode": "binlog"}),
    ]
    return [
        _memory_line(url, name, options, pause_s)
        for name, options in cases
        for pause_s in (0.0, SLOW_S)
    ]


def _memory_line(url: str, name: str, options: dict[str, str], pause_s: float) -> tuple[str, str]:
    command = [sys.executable, "-m", "benchmarks._waist_memory", url, name, json.dumps(options)]
    ran = subprocess.run(
        [*command, str(pause_s)], cwd=ROOT, check=True, capture_output=True, text=True
    )
    result = json.loads(ran.stdout)
    allowed = BUDGET_MB + BATCHES_PER_SPLIT * result["splits"] * result["batch_mb"]
    said = [f"{key}={value}" for key, value in options.items()]
    shown = " ".join([name, *said, *(["slowly"] if pause_s else [])])
    figure = f"{result['above_mb']:,.0f} MB of {allowed:,.0f} ({result['splits']} splits)"
    return f"memory: {shown}", figure
