"""How far lakes are behind while rows are written: a log and a primary-key table, for minutes.

One thread for each table appends or upserts rows at a steady rate, and waits for their
acknowledgement. `fluss tier` copies both tables in a process of its own, which takes a table when
the server says that its freshness is over. Every second this notes the ends of the logs and of the
lakes: a lake is as old as the moment at which the log was as long as the lake is now.
"""

from __future__ import annotations

import contextlib
import itertools
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

import fluss
from benchmarks._lake_tiering import LAKE_TABLES, rows_of
from benchmarks._measure import print_table, resident_bytes
from fluss.errors import SnapshotNotFoundError
from fluss_testkit.java_cluster import JavaCluster
from fluss_testkit.lake_profile import iceberg_lake

FRESHNESS_S, LAG_S_MAX = 10, 20
ROWS_PER_S, BATCH_ROWS, KEYS = 10_000, 1_000, 500_000
# A lake that has no rows yet is not late: the server hands a table out after its freshness.
STARTS_S = 2 * FRESHNESS_S
STOP_S_MAX = 60.0
TABLE: Final[dict[str, Any]] = {
    **LAKE_TABLES,
    "properties": {**LAKE_TABLES["properties"], "table.datalake.freshness": f"{FRESHNESS_S}s"},
}


def measure(folder: Path, *, minutes: float) -> None:
    """Measure, and print a table."""
    with (
        JavaCluster(iceberg_lake(folder)) as cluster,
        fluss.connect(f"fluss://{cluster.bootstrap_servers}/lake") as session,
        contextlib.ExitStack() as stack,
    ):
        session.create_database("lake")
        followed = [
            _Followed(session, session.create_table("log", **TABLE), {}),
            _Followed(
                session,
                session.create_table("keys", primary_key="id", **TABLE),
                {"mode": "changelog"},
            ),
        ]
        writers = [stack.enter_context(_writing(each.table)) for each in followed]
        worker = stack.enter_context(_tiering(cluster.bootstrap_servers, folder / "notes"))
        memory = _sample(followed, worker, until=time.monotonic() + 60 * minutes)
        if worker.poll() is not None:
            raise AssertionError(f"fluss tier ended with {worker.returncode}")
        written = [sum(each) for each in writers]
    lines = [each.line(rows / (60 * minutes)) for each, rows in zip(followed, written, strict=True)]
    print_table(
        f"{minutes:g} minutes with a freshness of {FRESHNESS_S} s",
        ("table", "rows/s", "snapshots", "lag, median", "largest lag", "bar"),
        lines,
    )
    half = len(memory) // 2
    print(
        f"memory of fluss tier: at most {max(memory[:half]):,.0f} MB in the first half, "
        f"{max(memory[half:]):,.0f} MB in the second"
    )


class _Followed:
    """A table, and how far its lake was behind at each moment."""

    def __init__(self, session: Any, table: Any, how: dict[str, str]) -> None:
        self.table = table
        self._session, self._how = session, how
        self._ends: list[tuple[float, int]] = []
        self._began = time.monotonic()
        self._snapshots: set[int] = set()
        self.lags: list[float] = []

    def look(self) -> None:
        now = time.monotonic()
        copied = 0
        with contextlib.suppress(SnapshotNotFoundError):
            snapshot = self._session.get_latest_lake_snapshot(self.table.info.table_path)
            self._snapshots.add(snapshot.snapshot_id)
            copied = sum(snapshot.table_buckets_offset.values())
        splits = self.table.scan(lake="off", **self._how).splits()
        self._ends.append((now, sum(each.stop for each in splits)))
        # What was longer than the lake first is what the lake has waited for since.
        behind = next((at for at, end in self._ends if end > copied), now)
        if now - self._began > STARTS_S:
            self.lags.append(now - behind)

    def line(self, rows_per_s: float) -> tuple[str, ...]:
        median = sorted(self.lags)[len(self.lags) // 2]
        return (
            self.table.info.table_path.table_name,
            f"{rows_per_s:,.0f}",
            str(len(self._snapshots)),
            f"{median:.1f} s",
            f"{max(self.lags):.1f} s",
            f"< {LAG_S_MAX} s",
        )


def _sample(followed: list[_Followed], worker: Any, *, until: float) -> list[float]:
    """Look at the tables once a second; return the resident memory of the worker, in MB."""
    memory = []
    while (began := time.monotonic()) < until:
        for each in followed:
            each.look()
        memory.append(resident_bytes(worker.pid) / 1e6)
        time.sleep(max(0.0, began + 1 - time.monotonic()))
    return memory


@contextlib.contextmanager
def _writing(table: Any) -> Iterator[list[int]]:
    """Write in a thread; the list has how many rows were acknowledged by each call."""
    written: list[int] = []
    errors: list[BaseException] = []
    ended = threading.Event()

    def work() -> None:
        try:
            _write(table, written, ended)
        except BaseException as error:  # noqa: BLE001 - raised below
            errors.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield written
    finally:
        ended.set()
        thread.join()
    if errors:
        raise errors[0]


def _write(table: Any, written: list[int], ended: threading.Event) -> None:
    rng, began = np.random.default_rng(0), time.monotonic()
    has_keys = table.info.has_primary_key()
    write = table.upsert if has_keys else table.append
    for number in itertools.count():
        if ended.wait(max(0.0, began + number * BATCH_ROWS / ROWS_PER_S - time.monotonic())):
            return
        first = number * BATCH_ROWS
        ids = np.arange(first, first + BATCH_ROWS)
        write(rows_of(rng.choice(KEYS, BATCH_ROWS, replace=False) if has_keys else ids))
        written.append(BATCH_ROWS)


@contextlib.contextmanager
def _tiering(servers: str, notes: Path) -> Iterator[subprocess.Popen[bytes]]:
    program = "import sys; from fluss.cli import main; sys.exit(main())"
    url = f"fluss://{servers}/lake"
    words = (sys.executable, "-c", program, "--url", url, "tier", "--notes", str(notes))
    with subprocess.Popen(words, stdout=subprocess.DEVNULL) as worker:
        try:
            yield worker
        finally:
            worker.terminate()
            try:
                worker.wait(STOP_S_MAX)
            except subprocess.TimeoutExpired:
                worker.kill()
