"""Rounds of tiering in Spark's executors, beside one process, and beside Spark's own floor.

A log and a changelog of four buckets are copied up to the commit, and the files are removed again:
by one thread of this process, by two, and by `local[2]` of Spark with a task for each bucket. The
floor is a job of four tasks that do nothing, through the same code. Processor time is that of this
process, and of Spark with its workers; the server's is not in it, but it needs the same processors.
"""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fluss
import fluss_spark
from benchmarks._lake_tiering import LAKE_TABLES, fill_keys, fill_log, planned_round
from benchmarks._measure import print_table
from benchmarks.spark import _cpu_of, _descendants
from fluss.connection.config_sources import resolve
from fluss.net.cancellation import Cancellation
from fluss_lake.tiering.carrying import Carrier, ThreadCarrier
from fluss_lake.tiering.round_driver import abort_round
from fluss_spark.spark_tasks import SparkTasks
from fluss_spark.tiering import SparkCarrier
from fluss_testkit.java_cluster import JavaCluster
from fluss_testkit.lake_profile import iceberg_lake

TIMES_MIN, TASKS, WARM_ROUNDS = 1.5, 4, 1

Taken = tuple[float, float]


def measure(folder: Path, *, rows: int, pairs: int) -> None:
    """Measure, and print a table."""
    with (
        JavaCluster(iceberg_lake(folder)) as cluster,
        fluss.connect(f"fluss://{cluster.bootstrap_servers}/lake") as session,
    ):
        session.create_database("lake")
        log = session.create_table("log", **LAKE_TABLES)
        keys = session.create_table("keys", primary_key="id", **LAKE_TABLES)
        counts = {"log": fill_log(log, rows), "changelog": fill_keys(keys, rows)}
        others = frozenset(_descendants(os.getpid()))
        spark = fluss_spark.session(
            "bench", master="local[2]", spark__ui__enabled=False, spark__log__level="OFF"
        )
        try:
            carriers: dict[str, Carrier] = {
                "one process, one thread": ThreadCarrier(1),
                "one process, two threads": ThreadCarrier(2),
                "Spark, local[2]": SparkCarrier(spark, resolve(session.config).config.written()),
            }
            lines = [("Spark's floor: four empty tasks", *_floor(SparkTasks(spark), others, pairs))]
            for kind, table in (("log", log), ("changelog", keys)):
                lines += _lines(kind, table, carriers, counts[kind], pairs, others)
        finally:
            spark.stop()
    heads = ("tiering", "wall time", "processor time", "per second", "as fast as one thread", "bar")
    print_table(
        f"{rows:,} rows of a log, and as many changes by key, in four buckets", heads, lines
    )


def _floor(tasks: SparkTasks, others: frozenset[int], pairs: int) -> tuple[str, ...]:
    def work() -> None:
        tasks.run(bytes, [b""] * TASKS, description="nothing")

    work()
    wall, processor = _medians([_taken(work, others) for _ in range(pairs)])
    return f"{wall:.2f} s", f"{processor:.2f} s", "", "", ""


def _lines(
    kind: str,
    table: Any,
    carriers: dict[str, Carrier],
    count: int,
    pairs: int,
    others: frozenset[int],
) -> list[tuple[str, ...]]:
    taken: dict[str, list[Taken]] = {name: [] for name in carriers}
    for number in range(WARM_ROUNDS + pairs):
        for name, carry in carriers.items():
            found = _taken(lambda carry=carry: _carried(table, carry), others)
            if number >= WARM_ROUNDS:
                taken[name].append(found)
    alone = _medians(next(iter(taken.values())))[0]
    lines = []
    for name, found in taken.items():
        wall, processor = _medians(found)
        bar = f">= {TIMES_MIN}" if name.startswith("Spark") else ""
        per_s = f"{count / wall:,.0f}"
        times = f"{alone / wall:.2f}"
        lines.append((f"{kind}, {name}", f"{wall:.2f} s", f"{processor:.2f} s", per_s, times, bar))
    return lines


def _carried(table: Any, carry: Carrier) -> None:
    round_ = planned_round(table)
    written = carry(round_, cancellation=Cancellation(), read_s_max=math.inf)
    abort_round(round_, written)


def _taken(work: Callable[[], None], others: frozenset[int]) -> Taken:
    def processor_s() -> float:
        return sum(map(_cpu_of, {os.getpid(), *_descendants(os.getpid())} - others))

    processor, wall = processor_s(), time.perf_counter()
    work()
    return time.perf_counter() - wall, processor_s() - processor


def _medians(taken: list[Taken]) -> Taken:
    wall, processor = (statistics.median(each) for each in zip(*taken, strict=True))
    return wall, processor
