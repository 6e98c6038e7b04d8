"""The base of the tasks of `benchmarks/peer.py`: one client, its tables, the data, the clock.

The same code runs on both clients, in pyfluss's dialect; `_peer_tasks` has the tasks.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Any, Self

import numpy as np
import pyarrow as pa

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("user", pa.string()),
        pa.field("score", pa.float64()),
        pa.field("kind", pa.int32()),
        pa.field("at", pa.timestamp("us")),
        pa.field("flag", pa.bool_()),
    ]
)

Taken = dict[str, float]
TRIES_MAX = 10
PAUSE_S = 0.1


class Stopwatch:
    """Wall time and processor time of the whole process during the `with` block."""

    def __enter__(self) -> Self:
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.taken = {
            "seconds": time.perf_counter() - self._wall,
            "cpu": time.process_time() - self._cpu,
        }


class Bench:
    """One client, one connection, one database, and the generated data."""

    def __init__(self, fluss: ModuleType, *, bootstrap: str, database: str) -> None:
        self.fluss = fluss
        self.bootstrap = bootstrap
        self.database = database
        self._batches: dict[tuple[int, int], list[pa.RecordBatch]] = {}
        self._tables = 0

    async def open(self) -> None:
        """Connect, and create the database where it is missing."""
        self.conn = await self.connect()
        self.admin = self.conn.get_admin()
        await self.admin.create_database(self.database, ignore_if_exists=True)

    async def connect(self) -> Any:
        """Open a separate connection."""
        config = self.fluss.Config({"bootstrap.servers": self.bootstrap})
        return await self.fluss.FlussConnection.create(config)

    async def create(
        self, schema: pa.Schema, *, keys: list[str] | None = None, **descriptor: Any
    ) -> Any:
        """Create a table with one bucket; return it and its path."""
        self._tables += 1
        name = f"t_{os.getpid()}_{self._tables}"
        path = self.fluss.TablePath(self.database, name)
        descriptor = self.fluss.TableDescriptor(
            self.fluss.Schema(schema, primary_keys=keys), bucket_count=1, **descriptor
        )
        await self.admin.create_table(path, descriptor)
        return await self._appeared(path), path

    async def _appeared(self, path: Any) -> Any:
        # A 0.9.1 server may not know a table that it has just created.
        for _ in range(TRIES_MAX):
            try:
                return await self.conn.get_table(path)
            except self.fluss.FlussError:
                await asyncio.sleep(PAUSE_S)
        return await self.conn.get_table(path)

    async def log_table(self, codec: str) -> Any:
        """Create a log table whose batches are compressed with `codec`."""
        return await self.create(SCHEMA, properties={"table.log.arrow.compression.type": codec})

    async def scanner(self, table: str, columns: list[str] | None = None) -> Any:
        """Return a batch scanner of bucket 0, from its start."""
        found = await self.conn.get_table(self.fluss.TablePath(self.database, table))
        scan = found.new_scan()
        if columns:
            scan = scan.project_by_name(columns)
        scanner = await scan.create_record_batch_log_scanner()
        scanner.subscribe(0, self.fluss.EARLIEST_OFFSET)
        return scanner

    def batches(self, rows: int, batch_rows: int) -> list[pa.RecordBatch]:
        """Return the data, generated once per layout."""
        shape = (rows, batch_rows)
        if shape not in self._batches:
            whole = data_of(rows)
            self._batches[shape] = [
                whole.slice(start, batch_rows) for start in range(0, rows, batch_rows)
            ]
        return self._batches[shape]


def data_of(rows: int) -> pa.RecordBatch:
    """Return growing ids and times, short texts, random numbers: about 44 bytes a row."""
    rng = np.random.default_rng(7)
    users = rng.integers(0, 100_000, rows)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(np.arange(rows, dtype=np.int64)),
            pa.array([f"user-{each:07d}" for each in users]),
            pa.array(rng.random(rows)),
            pa.array(rng.integers(0, 100, rows).astype(np.int32)),
            pa.array(1_700_000_000_000_000 + np.arange(rows) * 1_000, pa.timestamp("us")),
            pa.array(rng.random(rows) < 0.5),
        ],
        schema=SCHEMA,
    )


def expect(found: object, expected: object) -> None:
    """Raise where a result is wrong, however fast."""
    if found != expected:
        raise ValueError(f"expected {str(expected)[:99]}, found {str(found)[:99]}")


async def median_of(work: Callable[[int], Awaitable[object]], *, most: int, budget: float) -> Taken:
    """Return the median of at most `most` calls, or of those within `budget` seconds."""
    samples: list[float] = []
    with Stopwatch() as watch:
        began = time.perf_counter()
        for number in range(most):
            started = time.perf_counter()
            await work(number)
            ended = time.perf_counter()
            samples.append(ended - started)
            if ended - began > budget:
                break
    return {"seconds": statistics.median(samples), "cpu": watch.taken["cpu"] / len(samples)}
