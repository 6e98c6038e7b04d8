"""How fast tables are copied into a lake: a log beside its parts, and a changelog folded by key.

One process with two threads makes a round up to its commit, and removes the files again:

- a round of a log of 2 million rows in four buckets, beside reading the same rows with system
  columns and writing them as Parquet by pyarrow, in turns;
- a round of 2 million changes of a primary-key table, of which a third of the keys come again.
"""

from __future__ import annotations

import math
import statistics
import time
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import fluss
from benchmarks._measure import print_table
from benchmarks.engines import _grown_mb
from fluss.net.cancellation import Cancellation
from fluss_lake.tiering.carrying import ThreadCarrier
from fluss_lake.tiering.round_driver import Round, RoundOptions, abort_round, begin_round
from fluss_testkit.java_cluster import JavaCluster
from fluss_testkit.lake_profile import iceberg_lake

THREADS, CHUNK_ROWS = 2, 250_000
SHARE_MIN, CHANGES_PER_S_MIN = 0.7, 500_000
# How both tables are created; the second one has a primary key as well.
LAKE_TABLES: Final[dict[str, Any]] = {
    "schema": {"id": "BIGINT", "kind": "INT", "amount": "DOUBLE", "name": "STRING"},
    "buckets": 4,
    "properties": {"table.datalake.enabled": "true", "table.datalake.freshness": "1h"},
}


def measure(folder: Path, *, rows: int, changes: int, pairs: int) -> None:
    """Measure both, and print a table."""
    with (
        JavaCluster(iceberg_lake(folder)) as cluster,
        fluss.connect(f"fluss://{cluster.bootstrap_servers}/lake") as session,
    ):
        session.create_database("lake")
        lines = [_log(session, folder, rows, pairs), _changelog(session, changes, pairs)]
    heads = ("table", "wall time", "processor time", "per second", "beside", "memory", "bar")
    print_table(f"{rows:,} rows of a log, {changes:,} changes by key", heads, lines)


def fill_log(table: Any, rows: int) -> int:
    """Append rows; return how many."""
    for start in range(0, rows, CHUNK_ROWS):
        table.append(rows_of(np.arange(start, min(rows, start + CHUNK_ROWS))))
    return rows


def fill_keys(table: Any, changes: int) -> int:
    """Upsert rows, and half of them again; return how many changes the table has then."""
    # An upsert of a key that is there is two changes.
    rng, keys = np.random.default_rng(0), changes // 2
    again = rng.choice(keys, changes // 4, replace=False)
    for ids in (np.arange(keys), again):
        for start in range(0, len(ids), CHUNK_ROWS):
            table.upsert(rows_of(ids[start : start + CHUNK_ROWS]))
    return keys + 2 * len(again)


def planned_round(table: Any) -> Round:
    """A round of all rows."""
    options = RoundOptions()
    return begin_round(table.__fluss_table__(), options, now_ms=time.time_ns() // 1_000_000)


def _log(session: Any, folder: Path, rows: int, pairs: int) -> tuple[str, ...]:
    table = session.create_table("log", **LAKE_TABLES)
    fill_log(table, rows)
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
        f"{_grown_mb(lambda: _round(table)):,.0f} MB",
        f">= {SHARE_MIN:.0%}",
    )


def _changelog(session: Any, changes: int, pairs: int) -> tuple[str, ...]:
    table = session.create_table("keys", primary_key="id", **LAKE_TABLES)
    count = fill_keys(table, changes)
    wall, processor = _medians([_taken(lambda: _round(table)) for _ in range(pairs)])
    return (
        "changelog, folded and written",
        f"{wall:.2f} s",
        f"{processor:.2f} s",
        f"{count / wall:,.0f} changes",
        "",
        f"{_grown_mb(lambda: _round(table)):,.0f} MB",
        f">= {CHANGES_PER_S_MIN:,} changes",
    )


def _round(table: Any) -> None:
    """A round up to its commit, and its files removed, so that it can be made again."""
    round_ = planned_round(table)
    carry = ThreadCarrier(THREADS)
    written = carry(round_, cancellation=Cancellation(), read_s_max=math.inf)
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


def rows_of(ids: np.ndarray[Any, Any]) -> pa.Table:
    """The rows of some ids."""
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
