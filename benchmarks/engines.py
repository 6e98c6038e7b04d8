"""Dataframe engines on a real server, compared with their core and with files of this machine.

`./dev bench engines [--rows N] [--shape plain|wide|nested] [--engines polars,duckdb,pandas]` writes
N rows (20 million) into four buckets, into four Parquet files and into a Delta table, and asks each
engine the same:

- the whole table, beside the core's `to_arrow`: how many times as fast; and beside the core and the
  engine's floor, which is the engine over the same batches in memory, through the door that a scan
  uses: how many times as long, and what part of the core's time that floor is;
- the same, a group-by and a top-10, beside the core's read of those columns and the engine over
  them in memory: how many times as long;
- these and one key, beside the engine's own reader of Parquet and of Delta: how many times as
  long it takes to read live data of a server;
- a scan of two columns, of one key, of ten rows: how many bytes came over the wire;
- a sum over everything, batch by batch: how much memory it took above what there was.

Both sides of a comparison alternate in one run. Wall-clock time and processor time of this process
are shown, because machines are shared; the time of the server is not in the latter. A cluster is
started where none is named (`--bootstrap HOST:PORT`). Delta needs `benchmarks/requirements.txt`.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import fluss
from benchmarks._engine_queries import ENGINES, Bench
from benchmarks._engine_rows import BUCKETS, SHAPES, written, written_as_delta
from benchmarks._measure import cluster, machine, resident_bytes
from fluss.session import Session, Table

ROWS = 20_000_000
PAIRS = 5
SAMPLE_S = 0.01


def main() -> None:
    """Write the table, run the queries, and print."""
    parser = argparse.ArgumentParser(description="Dataframe engines beside the core and files.")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--shape", choices=SHAPES, default="plain")
    parser.add_argument("--bootstrap", default=os.environ.get("FLUSS_TEST_BOOTSTRAP"))
    parser.add_argument("--engines", default=",".join(ENGINES))
    given = parser.parse_args()
    with (
        cluster(given.bootstrap) as bootstrap,
        tempfile.TemporaryDirectory(prefix="fluss-bench-") as folder,
    ):
        database = f"engines_{uuid.uuid4().hex[:8]}"
        with fluss.connect(f"fluss://{bootstrap}/{database}") as session:
            session.create_database(database)
            try:
                table = written(session, given.shape, given.rows, Path(folder))
                columns = len(table.schema)
                print(f"{given.rows:,} rows x {columns} columns in {BUCKETS} buckets\n{machine()}")
                delta = written_as_delta(Path(folder))
                if delta is None:
                    print(
                        "deltalake is not installed: nothing is compared with Delta. "
                        "pip install -r benchmarks/requirements.txt"
                    )
                print()
                for name in given.engines.split(","):
                    bench = ENGINES[name](table, f"{folder}/parquet", delta)
                    _measure(bench, session, table, given.pairs)
            finally:
                session.drop_database(database, cascade=True)


# --- measuring ------------------------------------------------------------------------------------


def _measure(bench: Bench, session: Session, table: Table, pairs: int) -> None:
    print(f"--- {bench.name} ---")
    ours = bench.fluss
    core = _turns(ours.whole, lambda: table.scan().to_arrow().num_rows, pairs)
    print(f"whole table, times as fast as the core     {core.faster}   target >= {bench.whole_min}")

    def composed(columns: list[str] | None, work: Callable[[pa.Table], int]) -> Callable[[], int]:
        return lambda: work(table.scan(columns=columns).to_arrow())

    floor = _turns(ours.whole, composed(None, bench.whole_streamed), pairs)
    print(f"whole table, as long as core + its floor   {floor.longer}")
    alone = _floor_alone(bench, table, pairs)
    print(f"that floor alone, part of the core's time  {alone.longer}")
    whole = _turns(ours.whole, composed(None, bench.whole_in_memory), pairs)
    print(f"whole table, as long as core + engine      {whole.longer}   target <= 1.1")
    grouped = _turns(ours.grouped, composed(["name", "x"], bench.grouped_in_memory), pairs)
    print(f"group-by, times as long as core + engine   {grouped.longer}   target <= 1.1")
    top = _turns(ours.top, composed(["id", "y"], bench.top_in_memory), pairs)
    print(f"top 10, times as long as core + engine     {top.longer}   target <= 1.1")
    for form, theirs in bench.files.items():
        for query in ("whole", "grouped", "top", "one_key"):
            turns = _turns(getattr(ours, query), getattr(theirs, query), pairs)
            print(f"{query + ', times as long as of ' + form:<43}{turns.longer}")
    for name, work in (
        ("the whole table", ours.whole),
        ("two columns", ours.grouped),
        ("one key", ours.one_key),
        ("ten rows", ours.few),
    ):
        print(f"bytes for {name:<33}{_bytes_of(session, work):>15,}")
    print(f"memory above the start, for a sum          {_grown_mb(ours.total):>12,.0f} MB\n")


def _floor_alone(bench: Bench, table: Table, pairs: int) -> Turns:
    kept = table.scan().to_arrow()
    return _turns(
        lambda: bench.whole_streamed(kept), lambda: table.scan().to_arrow().num_rows, pairs
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """Times of two alternating sides: wall-clock and this process's processor time."""

    mine: tuple[tuple[float, float], ...]
    other: tuple[tuple[float, float], ...]

    @property
    def faster(self) -> str:
        """How many times as fast the first side was."""
        return self._told(lambda mine, other: other / mine)

    @property
    def longer(self) -> str:
        """How many times as long the first side took."""
        return self._told(lambda mine, other: mine / other)

    def _told(self, ratio: Callable[[float, float], float]) -> str:
        parts = []
        for which, name in ((0, "wall"), (1, "cpu")):
            ratios = [
                ratio(mine[which], other[which])
                for mine, other in zip(self.mine, self.other, strict=True)
            ]
            middle = statistics.median(ratios)
            parts.append(f"{name} {middle:.2f} ({min(ratios):.2f}-{max(ratios):.2f})")
        return ", ".join(parts)


def _turns(mine: Callable[[], int], other: Callable[[], int], pairs: int) -> Turns:
    if (found := mine()) != (expected := other()):
        raise AssertionError(f"{found:,} rows, and {expected:,} were expected")
    taken: tuple[list[tuple[float, float]], list[tuple[float, float]]] = ([], [])
    for number in range(pairs):
        sides = [(taken[0], mine), (taken[1], other)]
        for into, work in sides if number % 2 == 0 else reversed(sides):
            into.append(_seconds(work))
    return Turns(mine=tuple(taken[0]), other=tuple(taken[1]))


def _seconds(work: Callable[[], object]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def _bytes_of(session: Session, work: Callable[[], object]) -> int:
    before: Any = session.counters()["bytes_received"]
    work()
    after: Any = session.counters()["bytes_received"]
    return int(after - before)


def _grown_mb(work: Callable[[], object]) -> float:
    pa.default_memory_pool().release_unused()
    started = highest = resident_bytes()
    ended = threading.Event()

    def sample() -> None:
        nonlocal highest
        while not ended.wait(SAMPLE_S):
            highest = max(highest, resident_bytes())

    watching = threading.Thread(target=sample, daemon=True)
    watching.start()
    work()
    ended.set()
    watching.join()
    return (highest - started) / 1e6


if __name__ == "__main__":
    main()
