"""The axes of `benchmarks/growth.py`: the tables, and what is measured at each size.

Each axis grows one thing and keeps the rest: the amount of data per size is bounded, so a table
with more columns has fewer rows.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

import fluss
from benchmarks._growth_figures import Figure, Work
from benchmarks._peer_bench import SCHEMA, data_of, expect
from benchmarks._server_tasks import keyed_batches
from fluss.session import Scan, Session, Table

ROUNDS = 5
BUDGET_S = 1.0
CHUNK_ROWS = 100_000
CELLS = 2_000_000
SPREAD_ROWS = 100_000
VALUE_BYTES = 32 << 20

APPEND_ROW, READ_ROW = Work(name="append", unit="row"), Work(name="whole read", unit="row")
APPEND, READ = Work(name="append"), Work(name="whole read")
FIRST_APPEND = Work(name="first append")
PLAN, FIRST, COUNT = Work(name="plan"), Work(name="first row"), Work(name="count")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Where it is measured: a session, the address of the server and its process."""

    session: Session
    url: str
    pid: int

    def table(self, name: str, schema: pa.Schema, **options: object) -> Table:
        """Create a table; a real server may need a moment until it knows it."""
        return self.session.create_table(f"growth.{name}", schema, **options)  # type: ignore[arg-type]

    def once(self, work: Work, size: int, run: Callable[[], object], *, units: int = 1) -> Figure:
        """Measure one run."""
        seconds, cpu = _taken(self.pid, run)
        return Figure(work=work, size=size, seconds=seconds / units, cpu=cpu / units)

    def often(self, work: Work, size: int, run: Callable[[], object], *, units: int = 1) -> Figure:
        """Measure the median of several runs, or of those within a second; one is a warm-up."""
        run()
        taken = []
        until = time.perf_counter() + BUDGET_S
        while len(taken) < ROUNDS and (not taken or time.perf_counter() < until):
            taken.append(_taken(self.pid, run))
        return Figure(
            work=work,
            size=size,
            seconds=statistics.median(each[0] for each in taken) / units,
            cpu=statistics.median(each[1] for each in taken) / units,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthAxis:
    """What grows, its sizes, and the figures of a size."""

    name: str
    sizes: tuple[int, ...]
    measure: Callable[[Ground, int], list[Figure]]
    sizes_full: tuple[int, ...] = ()


def _taken(pid: int, run: Callable[[], object]) -> tuple[float, float]:
    cpu = time.process_time() + _cpu_of(pid)
    began = time.perf_counter()
    run()
    return time.perf_counter() - began, time.process_time() + _cpu_of(pid) - cpu


def _cpu_of(pid: int) -> float:
    """Return the processor time of all threads of a process; 0 where Linux does not report it."""
    if pid == os.getpid():
        return 0.0
    total = 0
    for each in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with suppress(OSError):  # the thread has just ended
            total += int(each.read_text().split()[0])
    return total / 1e9


def _first_row(scan: Callable[[], Scan]) -> None:
    with scan().to_reader() as reader:
        expect(reader.read_next_batch().num_rows > 0, True)


def _read(scan: Scan, rows: int) -> None:
    expect(sum(batch.num_rows for batch in scan.to_reader()), rows)


def _reads(ground: Ground, table: Table, size: int, rows: int) -> list[Figure]:
    """Measure plan, first row and whole read, per call."""
    return [
        ground.often(PLAN, size, lambda: table.scan().splits()),
        ground.often(FIRST, size, lambda: _first_row(table.scan)),
        ground.often(READ, size, lambda: _read(table.scan(), rows)),
    ]


# --- rows and keys --------------------------------------------------------------------------------


def measure_rows(ground: Ground, size: int) -> list[Figure]:
    """A log of six columns in four buckets, which grows to this size."""
    name = "growth.rows"
    if "rows" not in ground.session.tables("growth"):
        ground.table("rows", SCHEMA, buckets=4)
    table = ground.session.table(name)
    there = table.count()
    batch = data_of(CHUNK_ROWS)
    chunks = (batch for _ in range((size - there) // CHUNK_ROWS))
    append = Work(name="append", unit="row", is_counted=True)
    read = Work(name="whole read", unit="row", is_counted=True)
    return [
        ground.once(append, size, lambda: table.append(chunks), units=size - there),
        ground.often(PLAN, size, lambda: table.scan().splits()),
        ground.often(FIRST, size, lambda: _first_row(table.scan)),
        ground.often(Work(name="last row"), size, lambda: table.scan(tail=1).to_arrow()),
        ground.often(COUNT, size, lambda: expect(table.count(), size)),
        ground.once(read, size, lambda: _read(table.scan(), size), units=size),
    ]


def measure_keys(ground: Ground, size: int) -> list[Figure]:
    """A table with a primary key and one bucket."""
    batches = keyed_batches(size, 10_000)
    table = ground.table(f"keys_{size}", batches[0].schema, primary_key=["id"], buckets=1)
    asked = pa.table({"id": np.random.default_rng(5).integers(0, size, 1_000)})
    upsert = Work(name="upsert", unit="row", is_counted=True)
    read = Work(name="whole read", unit="row", is_counted=True)
    lookups = Work(name="1000 lookups")
    return [
        ground.once(upsert, size, lambda: table.upsert(iter(batches)), units=size),
        ground.often(Work(name="lookup"), size, lambda: table.lookup(asked.slice(0, 1))),
        ground.often(lookups, size, lambda: expect(table.lookup(asked).num_rows, 1_000)),
        ground.often(PLAN, size, lambda: table.scan().splits()),
        ground.often(FIRST, size, lambda: _first_row(table.scan)),
        ground.often(read, size, lambda: _read(table.scan(), size), units=size),
    ]


# --- the shape of a table -------------------------------------------------------------------------


def measure_columns(ground: Ground, size: int) -> list[Figure]:
    """Columns of numbers; two million values whatever the width."""
    rows = CELLS // size
    rng = np.random.default_rng(3)
    data = pa.table({f"c{each}": rng.random(rows) for each in range(size)})
    table = ground.table(f"columns_{size}", data.schema, buckets=1)
    figures = [ground.often(APPEND_ROW, size, lambda: table.append(data), units=rows)]
    held = table.count()
    narrow = Work(name="read of one column", unit="row")
    return [
        *figures,
        ground.often(PLAN, size, lambda: table.scan().splits()),
        ground.often(FIRST, size, lambda: _first_row(table.scan)),
        ground.often(READ_ROW, size, lambda: _read(table.scan(), held), units=held),
        ground.often(narrow, size, lambda: _read(table.scan(columns=["c1"]), held), units=held),
    ]


def measure_buckets(ground: Ground, size: int) -> list[Figure]:
    """100 000 rows, spread over the buckets by their key; the first append makes the logs."""
    data = pa.Table.from_batches([data_of(SPREAD_ROWS)])
    table = ground.table(f"buckets_{size}", SCHEMA, buckets=size, bucket_key=["id"])
    figures = [
        ground.once(FIRST_APPEND, size, lambda: table.append(data)),
        ground.often(APPEND, size, lambda: table.append(data)),
    ]
    return [*figures, *_reads(ground, table, size, table.count())]


def measure_partitions(ground: Ground, size: int) -> list[Figure]:
    """100 000 rows, spread over the partitions; the first append makes the logs."""
    parts = pa.array([f"p{each % size:04d}" for each in range(SPREAD_ROWS)])
    data = pa.Table.from_batches([data_of(SPREAD_ROWS)]).append_column("part", parts)
    table = ground.table(f"partitions_{size}", data.schema, partition_by=["part"], buckets=1)
    create = Work(name="create", unit="partition", is_counted=True)

    def create_all() -> None:
        for number in range(size):
            table.create_partition({"part": f"p{number:04d}"})

    figures = [
        ground.once(create, size, create_all, units=size),
        ground.once(FIRST_APPEND, size, lambda: table.append(data)),
        ground.often(APPEND, size, lambda: table.append(data)),
    ]
    return [*figures, *_reads(ground, table, size, table.count())]


# --- clients and values ---------------------------------------------------------------------------


def measure_connections(ground: Ground, size: int) -> list[Figure]:
    """Sessions of one process that are all open; each figure is that of one of them."""
    works = ("connect", "append of one row", "plan", "first row")
    connect, append, plan, first = (
        Work(name=name, unit="connection", is_counted=True) for name in works
    )
    one = pa.Table.from_batches([data_of(1)])
    ground.table(f"appended_{size}", SCHEMA, buckets=1)
    ground.table(f"read_{size}", SCHEMA, buckets=1).append(data_of(CHUNK_ROWS).slice(0, 1_000))
    with ExitStack() as stack:
        sessions: list[Session] = []

        def open_all() -> None:
            for _ in range(size):
                sessions.append(stack.enter_context(fluss.connect(ground.url)))
                sessions[-1].databases()

        def each(name: str, call: Callable[[Table], object]) -> Callable[[], object]:
            return lambda: [call(each.table(f"growth.{name}_{size}")) for each in sessions]

        return [
            ground.once(connect, size, open_all, units=size),
            ground.often(append, size, each("appended", lambda t: t.append(one)), units=size),
            ground.often(plan, size, each("read", lambda t: t.scan().splits()), units=size),
            ground.often(first, size, each("read", lambda t: _first_row(t.scan)), units=size),
        ]


def measure_values(ground: Ground, size: int) -> list[Figure]:
    """Values of random bytes, which do not compress; at most 32 MiB of them."""
    rows = min(SPREAD_ROWS, VALUE_BYTES // size)
    schema = pa.schema([("id", pa.int64()), ("value", pa.binary())])
    table = ground.table(f"values_{size}", schema, buckets=1)
    data = pa.table([pa.array(range(rows)), pa.array(_random_values(rows, size))], schema=schema)
    figures = [ground.often(APPEND_ROW, size, lambda: table.append(data), units=rows)]
    held = table.count()
    return [
        *figures,
        ground.often(PLAN, size, lambda: table.scan().splits()),
        ground.often(FIRST, size, lambda: _first_row(table.scan)),
        ground.often(READ_ROW, size, lambda: _read(table.scan(), held), units=held),
    ]


def _random_values(rows: int, size: int) -> Iterator[bytes]:
    data = np.random.default_rng(1).bytes(rows * size)
    return (data[start : start + size] for start in range(0, rows * size, size))


AXES = (
    GrowthAxis(
        name="rows",
        sizes=(100_000, 1_000_000, 10_000_000),
        sizes_full=(100_000_000,),
        measure=measure_rows,
    ),
    GrowthAxis(name="keys", sizes=(10_000, 100_000, 1_000_000), measure=measure_keys),
    GrowthAxis(name="columns", sizes=(5, 50, 500), measure=measure_columns),
    GrowthAxis(name="buckets", sizes=(1, 64, 1_000), measure=measure_buckets),
    GrowthAxis(name="partitions", sizes=(1, 100, 1_000), measure=measure_partitions),
    GrowthAxis(name="connections", sizes=(1, 10, 100), measure=measure_connections),
    GrowthAxis(name="values", sizes=(8, 1 << 10, 1 << 15, 1 << 20), measure=measure_values),
)
