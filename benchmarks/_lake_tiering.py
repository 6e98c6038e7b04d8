"""How fast tables are copied into a lake: a log beside its parts, and a changelog folded by key.

Run by itself: `python -m benchmarks._lake_tiering [--rows N] [--changes N] [--pairs N]`. It starts
a real Fluss with a lake, and measures

- a round of a log of N rows (2 million) in four buckets, beside reading the same rows with system
  columns and writing them as Parquet by pyarrow, in turns;
- rounds of N changes (2 million) of a primary-key table, of which a third of the keys come again.

Processor time is that of this process; the server's is not in it.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import fluss
from benchmarks._measure import machine, print_table
from fluss.net.cancellation import Cancellation
from fluss_lake.tiering.carrying import carry_out_all
from fluss_lake.tiering.round_driver import RoundOptions, abort_round, begin_round
from fluss_testkit.java_cluster import JavaCluster
from fluss_testkit.lake_profile import iceberg_lake

ROWS, CHANGES, PAIRS, BUCKETS, THREADS = 2_000_000, 2_000_000, 3, 4, 2
SHARE_MIN, CHANGES_PER_S_MIN = 0.7, 500_000
COLUMNS = {"id": "BIGINT", "kind": "INT", "amount": "DOUBLE", "name": "STRING"}
LAKE = {"table.datalake.enabled": "true", "table.datalake.freshness": "1h"}


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description="Tiering beside its parts.")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--changes", type=int, default=CHANGES)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    given = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory(prefix="fluss-bench-") as folder:
        measure(Path(folder), given.rows, given.changes, given.pairs)


def measure(folder: Path, rows: int, changes: int, pairs: int) -> None:
    """Measure both, and print a table."""
    with (
        JavaCluster(iceberg_lake(folder)) as cluster,
        fluss.connect(f"fluss://{cluster.bootstrap_servers}/lake") as session,
    ):
        session.create_database("lake")
        lines = [_log(session, folder, rows, pairs), _changelog(session, changes, pairs)]
    heads = ("table", "wall time", "processor time", "per second", "beside", "bar")
    print_table(f"{rows:,} rows of a log, {changes:,} changes by key", heads, lines)


def _log(session: Any, folder: Path, rows: int, pairs: int) -> tuple[str, ...]:
    table = session.create_table("log", COLUMNS, buckets=BUCKETS, properties=LAKE)
    for start in range(0, rows, 250_000):
        table.append(_rows(np.arange(start, min(rows, start + 250_000))))
    ours, parts = [], []
    for _ in range(pairs):
        parts.append(_taken(lambda: _by_parts(table, folder)))
        ours.append(_taken(lambda: _round(table)))
    wall, processor = _medians(ours)
    wall_of_parts, processor_of_parts = _medians(parts)
    share = processor_of_parts / processor
    return (
        "log, beside reading it and pyarrow's Parquet",
        f"{wall:.2f} s",
        f"{processor:.2f} s",
        f"{rows / wall:,.0f}",
        f"{share:.0%} (wall {wall_of_parts / wall:.0%})",
        f"≥ {SHARE_MIN:.0%}",
    )


def _changelog(session: Any, changes: int, pairs: int) -> tuple[str, ...]:
    table = session.create_table(
        "keys", COLUMNS, primary_key="id", buckets=BUCKETS, properties=LAKE
    )
    # An upsert of a key that is there is two changes.
    rng, keys = np.random.default_rng(0), changes // 2
    for start in range(0, keys, 250_000):
        table.upsert(_rows(np.arange(start, min(keys, start + 250_000))))
    again = rng.choice(keys, changes // 4, replace=False)
    for start in range(0, len(again), 250_000):
        table.upsert(_rows(again[start : start + 250_000]))
    taken = [_taken(lambda: _round(table)) for _ in range(pairs)]
    wall, processor = _medians(taken)
    count = keys + 2 * len(again)
    return (
        "changelog, folded and written",
        f"{wall:.2f} s",
        f"{processor:.2f} s",
        f"{count / wall:,.0f} changes",
        "",
        f"≥ {CHANGES_PER_S_MIN:,} changes",
    )


def _round(table: Any) -> None:
    """A round up to its commit, and its files removed, so that it can be made again."""
    handle = table.__fluss_table__()
    round_ = begin_round(handle, RoundOptions(), now_ms=time.time_ns() // 1_000_000)
    written = carry_out_all(round_, threads=THREADS, cancellation=Cancellation())
    abort_round(round_, written)


def _by_parts(table: Any, folder: Path) -> None:
    """Read the same rows, and write them with pyarrow; one file for all of them."""
    reader = table.scan(with_metadata=True, lake="off").to_reader()
    path = folder / "parts.parquet"
    with pq.ParquetWriter(path, reader.schema, compression="zstd") as writer:
        waiting: list[pa.RecordBatch] = []
        for batch in reader:
            waiting.append(batch)
            if sum(each.num_rows for each in waiting) >= 500_000:
                writer.write_table(pa.Table.from_batches(waiting))
                waiting = []
        if waiting:
            writer.write_table(pa.Table.from_batches(waiting))
    path.unlink()


def _rows(ids: np.ndarray[Any, Any]) -> pa.Table:
    kinds = (ids % 100).astype(np.int32)
    names = pa.array([f"name of {each}" for each in range(100)])
    return pa.table(
        {"id": ids, "kind": kinds, "amount": ids / 7, "name": names.take(pa.array(kinds))}
    )


def _taken(work: Any) -> tuple[float, float]:
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - processor


def _medians(taken: list[tuple[float, float]]) -> tuple[float, float]:
    return (
        statistics.median(wall for wall, _ in taken),
        statistics.median(processor for _, processor in taken),
    )


if __name__ == "__main__":
    main()
