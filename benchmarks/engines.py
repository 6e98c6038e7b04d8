"""Dataframe engines on a real server, compared with the core that they use.

`./dev bench engines [--rows N] [--bootstrap HOST:PORT] [--engines polars,duckdb,pandas]` writes N
rows (20 million) of six columns into four buckets and asks each engine the same:

- the whole table, beside the core's `to_arrow`: how many times as fast;
- a group-by and a top-10, beside the core's read of those columns and the engine over them in
  memory: how many times as long;
- a scan of two columns, of one key, of ten rows: how many bytes came over the wire;
- a sum over everything, batch by batch: how much memory it took above what there was.

Both sides of a comparison alternate in one run. Wall-clock time and processor time of this process
are
shown, because machines are shared. A cluster is started where none is named.
"""

from __future__ import annotations

import argparse
import os
import statistics
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import fluss
from benchmarks._measure import cluster, machine
from fluss.session import Session, Table

ROWS = 20_000_000
BUCKETS = 4
CHUNK_ROWS = 200_000
NAMES = 1_000
PAIRS = 5
SAMPLE_S = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The queries of one engine; each returns how many rows it found.

    Attributes:
        whole: Reads all rows; the target is `whole_min` times the core's speed.
        grouped: The sum of `x` by `name`, of a scan.
        grouped_in_memory: The same of an Arrow table.
        top: The ten rows with the greatest `y`, of a scan.
        top_in_memory: The same of an Arrow table.
        one_key: The row of one id.
        few: Ten rows.
        total: The sum of `y`, without the table being in memory.
    """

    name: str
    whole_min: float
    whole: Callable[[], int]
    grouped: Callable[[], int]
    grouped_in_memory: Callable[[pa.Table], int]
    top: Callable[[], int]
    top_in_memory: Callable[[pa.Table], int]
    one_key: Callable[[], int]
    few: Callable[[], int]
    total: Callable[[], int]


def main() -> None:
    """Write the table, run the queries, and print."""
    parser = argparse.ArgumentParser(description="Dataframe engines beside the core.")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--bootstrap", default=os.environ.get("FLUSS_TEST_BOOTSTRAP"))
    parser.add_argument("--engines", default=",".join(_ENGINES))
    given = parser.parse_args()
    with cluster(given.bootstrap) as bootstrap:
        database = f"engines_{uuid.uuid4().hex[:8]}"
        url = f"fluss://{bootstrap}/{database}"
        with fluss.connect(url) as session:
            session.create_database(database)
            try:
                table = _written(session, given.rows)
                print(f"{given.rows:,} rows x 6 columns in {BUCKETS} buckets\n{machine()}\n")
                for name in given.engines.split(","):
                    _measure(_ENGINES[name](table, bootstrap), session, table, given.pairs)
            finally:
                session.drop_database(database, cascade=True)


def _written(session: Session, rows: int) -> Table:
    rng = np.random.default_rng(7)
    names = pa.array([f"name {each}" for each in range(NAMES)])
    table = None
    for start in range(0, rows, CHUNK_ROWS):
        count = min(CHUNK_ROWS, rows - start)
        chunk = pa.table(
            {
                "id": pa.array(np.arange(start, start + count)),
                "name": names.take(pa.array(rng.integers(0, NAMES, count))),
                "x": rng.random(count),
                "y": rng.integers(0, 2**40, count),
                "k": pa.array(rng.integers(0, 100, count).astype(np.int32)),
                "at": pa.array(np.arange(start, start + count) * 1_000, pa.timestamp("us")),
            }
        )
        if table is None:
            table = session.create_table("events", chunk, buckets=BUCKETS, bucket_key=["id"])
        table.append(chunk)
    if table is None:
        raise SystemExit("--rows must be more than 0")
    return table


# --- engines --------------------------------------------------------------------------------------


def _polars(table: Table, _: str) -> Bench:
    import polars as pl

    import fluss_polars  # noqa: F401 - gives Polars scan_fluss

    def grouped(frame: pl.LazyFrame) -> int:
        return frame.group_by("name").agg(pl.col("x").sum()).collect().height

    def top(frame: pl.LazyFrame) -> int:
        return frame.select("id", "y").top_k(10, by="y").collect().height

    def lazy(rows: pa.Table) -> pl.LazyFrame:
        return pl.DataFrame(rows).lazy()

    return Bench(
        name="polars",
        whole_min=0.9,
        whole=lambda: pl.scan_fluss(table).collect().height,
        grouped=lambda: grouped(pl.scan_fluss(table)),
        grouped_in_memory=lambda rows: grouped(lazy(rows)),
        top=lambda: top(pl.scan_fluss(table)),
        top_in_memory=lambda rows: top(lazy(rows)),
        one_key=lambda: pl.scan_fluss(table).filter(pl.col("id") == 77).collect().height,
        few=lambda: pl.scan_fluss(table).head(10).collect().height,
        total=lambda: pl.scan_fluss(table).select(pl.col("y").sum()).collect().height,
    )


def _duckdb(table: Table, bootstrap: str) -> Bench:
    import duckdb

    import fluss_duckdb

    con = fluss_duckdb.connect(url=f"fluss://{bootstrap}")
    scan = f"fluss('{table.name}')"
    grouped = "SELECT name, sum(x) FROM {} GROUP BY name"
    top = "SELECT id, y FROM {} ORDER BY y DESC LIMIT 10"

    def asked(sql: str) -> int:
        rows: int = con.sql(sql.format(scan)).to_arrow_table().num_rows
        return rows

    def in_memory(sql: str, rows: pa.Table) -> int:
        with duckdb.connect() as plain:
            plain.register("rows_in_memory", rows)
            found: int = plain.sql(sql.format("rows_in_memory")).to_arrow_table().num_rows
            return found

    return Bench(
        name="duckdb",
        whole_min=0.7,
        whole=lambda: asked("SELECT * FROM {}"),
        grouped=lambda: asked(grouped),
        grouped_in_memory=lambda rows: in_memory(grouped, rows),
        top=lambda: asked(top),
        top_in_memory=lambda rows: in_memory(top, rows),
        one_key=lambda: asked("SELECT * FROM {} WHERE id = 77"),
        few=lambda: asked("SELECT * FROM {} LIMIT 10"),
        total=lambda: asked("SELECT sum(y) FROM {}"),
    )


def _pandas(table: Table, _: str) -> Bench:
    import pandas as pd

    import fluss.pandas  # noqa: F401 - gives pandas read_fluss
    from fluss import col

    def frame(rows: pa.Table) -> Any:
        return rows.to_pandas(types_mapper=pd.ArrowDtype)

    def read(**options: Any) -> Any:
        return pd.read_fluss(table, **options)

    def grouped(rows: Any) -> int:
        return len(rows.groupby("name")["x"].sum())

    def total() -> int:
        with read(columns=["y"], chunksize=100_000) as chunks:
            return int(sum(each["y"].sum() for each in chunks) != 0)

    return Bench(
        name="pandas",
        whole_min=0.9,
        whole=lambda: len(read()),
        grouped=lambda: grouped(read(columns=["name", "x"])),
        grouped_in_memory=lambda rows: grouped(frame(rows)),
        top=lambda: len(read(columns=["id", "y"]).nlargest(10, "y")),
        top_in_memory=lambda rows: len(frame(rows).nlargest(10, "y")),
        one_key=lambda: len(read(filter=col("id") == 77)),
        few=lambda: len(read(limit=10)),
        total=total,
    )


_ENGINES: dict[str, Callable[[Table, str], Bench]] = {
    "polars": _polars,
    "duckdb": _duckdb,
    "pandas": _pandas,
}


# --- measuring ------------------------------------------------------------------------------------


def _measure(bench: Bench, session: Session, table: Table, pairs: int) -> None:
    print(f"--- {bench.name} ---")
    core = _turns(bench.whole, lambda: table.scan().to_arrow().num_rows, pairs)
    print(f"whole table, times as fast as the core     {core.faster}   target >= {bench.whole_min}")

    def composed(columns: list[str], work: Callable[[pa.Table], int]) -> Callable[[], int]:
        return lambda: work(table.scan(columns=columns).to_arrow())

    grouped = _turns(bench.grouped, composed(["name", "x"], bench.grouped_in_memory), pairs)
    print(f"group-by, times as long as core + engine   {grouped.longer}   target <= 1.25")
    top = _turns(bench.top, composed(["id", "y"], bench.top_in_memory), pairs)
    print(f"top 10, times as long as core + engine     {top.longer}   target <= 1.25")
    for name, work in (
        ("the whole table", bench.whole),
        ("two of six columns", bench.grouped),
        ("one key", bench.one_key),
        ("ten rows", bench.few),
    ):
        print(f"bytes for {name:<33}{_bytes_of(session, work):>15,}")
    print(f"memory above the start, for a sum          {_grown_mb(bench.total):>12,.0f} MB\n")


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
    started = highest = _resident_mb()
    ended = threading.Event()

    def sample() -> None:
        nonlocal highest
        while not ended.wait(SAMPLE_S):
            highest = max(highest, _resident_mb())

    watching = threading.Thread(target=sample, daemon=True)
    watching.start()
    work()
    ended.set()
    watching.join()
    return highest - started


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    main()
