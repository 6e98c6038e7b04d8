"""Union reads of a lake and a log, beside reading the two apart with the same engine.

A log of four buckets is copied into its lake by four rounds of `fluss_lake.tier`; then it gets a
tail that only the log has. Apart, an engine reads the lake's Parquet files with its own reader, and
then the tail.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds

import fluss
import fluss.pandas
import fluss_duckdb
import fluss_lake
import fluss_polars
from benchmarks._measure import print_table
from benchmarks.engines import _grown_mb
from fluss_testkit.java_cluster import JavaCluster
from fluss_testkit.lake_profile import iceberg_lake

ROUNDS, BUCKETS, UNION_MAX = 4, 4, 1.2
CHUNK_ROWS = 500_000
COLUMNS = {"id": "BIGINT", "kind": "INT", "amount": "DOUBLE", "name": "STRING"}
LAKE = {"table.datalake.enabled": "true", "table.datalake.freshness": "1h"}


def measure(folder: Path, *, rows: int, tail: int, pairs: int) -> None:
    """Measure, and print a table."""
    with (
        JavaCluster(iceberg_lake(folder)) as cluster,
        fluss.connect(f"fluss://{cluster.bootstrap_servers}/lake") as session,
    ):
        session.create_database("lake")
        table = _table(session, rows, tail)
        files = [str(each) for each in folder.rglob("data/**/*.parquet")]
        print_table(
            f"{rows:,} rows of the lake and {tail:,} of the log, {len(files)} files",
            (
                "engine",
                "union",
                "files + tail",
                "ratio of processor time",
                "of wall time",
                "memory",
                "bar",
            ),
            [_compared(engine, pairs) for engine in _engines(table, files)],
        )
        grown = _grown_mb(lambda: sum(each.num_rows for each in table.scan().to_reader()))
        print(f"memory above the start, batch by batch: {grown:,.0f} MB")


def _table(session: Any, rows: int, tail: int) -> Any:
    table = session.create_table("events", COLUMNS, buckets=BUCKETS, properties=LAKE)
    per_round = rows // ROUNDS
    for start in range(0, rows, per_round):
        _append(table, start, min(per_round, rows - start))
        fluss_lake.tier("events", cluster=session, now=True)
    _append(table, rows, tail)
    return table


def _append(table: Any, start: int, count: int) -> None:
    names = pa.array([f"name of {each}" for each in range(100)])
    for first in range(start, start + count, CHUNK_ROWS):
        ids = np.arange(first, min(first + CHUNK_ROWS, start + count))
        kinds = (ids % 100).astype(np.int32)
        columns = {"id": ids, "kind": kinds, "amount": ids / 7}
        table.append(pa.table({**columns, "name": names.take(pa.array(kinds))}))


# --- engines --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """One engine: all rows by the union, and by the two parts apart; each returns the count."""

    name: str
    union: Callable[[], int]
    apart: Callable[[], int]


def _engines(table: Any, files: list[str]) -> list[Engine]:
    tail = {"start": _lake_ends(table), "lake": "off"}
    columns = list(COLUMNS)
    # The names of folders are partitions of Iceberg, and not columns.
    of_pandas: Any = {"columns": columns, "dtype_backend": "pyarrow", "partitioning": None}
    con, plain = fluss_duckdb.connect(), duckdb.connect()
    return [
        Engine(
            name="core",
            union=lambda: table.scan().to_arrow().num_rows,
            apart=lambda: (
                ds.dataset(files).to_table(columns=columns).num_rows
                + table.scan(**tail).to_arrow().num_rows
            ),
        ),
        Engine(
            name="Polars",
            union=lambda: fluss_polars.scan_fluss(table).collect().height,
            apart=lambda: (
                pl.scan_parquet(files).select(columns).collect().height
                + fluss_polars.scan_fluss(table, **tail).collect().height
            ),
        ),
        Engine(
            name="DuckDB",
            union=lambda: con.fluss(table).to_arrow_table().num_rows,
            apart=lambda: (
                plain.read_parquet(files, hive_partitioning=False)
                .select(*columns)
                .to_arrow_table()
                .num_rows
                + con.fluss(table, **tail).to_arrow_table().num_rows
            ),
        ),
        Engine(
            name="pandas",
            union=lambda: len(fluss.pandas.read_fluss(table)),
            apart=lambda: (
                len(pd.read_parquet(files, **of_pandas))
                + len(fluss.pandas.read_fluss(table, **tail))
            ),
        ),
    ]


def _lake_ends(table: Any) -> dict[int, int]:
    """Where the log takes over, by bucket."""
    splits = [each for each in table.scan().splits() if each.lake is not None]
    return {each.bucket.bucket_id: each.stop for each in splits}


# --- measuring ------------------------------------------------------------------------------------


def _compared(engine: Engine, pairs: int) -> tuple[str, ...]:
    if (found := engine.union()) != (expected := engine.apart()):
        raise AssertionError(f"{found:,} rows, and {expected:,} were expected")
    taken = list(_in_turns(engine, pairs))
    ours, theirs = (
        statistics.median(side[0] for side in each) for each in zip(*taken, strict=True)
    )
    processor, wall = (
        statistics.median(mine[which] / other[which] for mine, other in taken) for which in (0, 1)
    )
    grown = [_grown_mb(work) for work in (engine.union, engine.apart)]
    return (
        engine.name,
        f"{ours:.2f} s",
        f"{theirs:.2f} s",
        f"{processor:.2f}",
        f"{wall:.2f}",
        " / ".join(f"{each:,.0f} MB" for each in grown),
        f"<= {UNION_MAX}",
    )


def _in_turns(
    engine: Engine, pairs: int
) -> Iterator[tuple[tuple[float, float], tuple[float, float]]]:
    for number in range(pairs):
        if number % 2:
            other = _taken(engine.apart)
            yield _taken(engine.union), other
        else:
            mine = _taken(engine.union)
            yield mine, _taken(engine.apart)


def _taken(work: Callable[[], object]) -> tuple[float, float]:
    """Processor time and wall time."""
    processor, wall = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - processor, time.perf_counter() - wall
