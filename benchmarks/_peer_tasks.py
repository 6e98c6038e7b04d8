"""The tasks of `benchmarks/peer.py`: one coroutine per question, the same code for both clients.

They use pyfluss's dialect only. Each prepares its tables, times only the work in question, cleans
up, and returns seconds (for a latency, the median of its samples).
"""

from __future__ import annotations

import asyncio
import importlib
import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pyarrow as pa

from benchmarks._peer_bench import Bench, Stopwatch, Taken, expect, median_of
from benchmarks._peer_rows import SHAPES

POLL_MS = 10_000
SOONEST_S = 1e-6  # a row may arrive before its acknowledgement, and ratios need a positive time
PROJECTED = ["id", "kind"]
KEYED = pa.schema(
    [pa.field("id", pa.int64()), pa.field("name", pa.string()), pa.field("score", pa.float64())]
)
PREFIXED = pa.schema(
    [pa.field("a", pa.int64()), pa.field("b", pa.int64()), pa.field("name", pa.string())]
)
PREFIX_ROWS = 20  # how many rows share a prefix

# --- bulk -----------------------------------------------------------------------------------------


async def write_arrow(bench: Bench, *, rows: int, batch_rows: int, codec: str) -> Taken:
    """Write all batches and wait for the last acknowledgement."""
    batches = bench.batches(rows, batch_rows)
    table, path = await bench.log_table(codec)
    writer = table.new_append().create_writer()
    with Stopwatch() as watch:
        for batch in batches:
            writer.write_arrow_batch(batch)
        await writer.flush()
    await bench.admin.drop_table(path)
    return watch.taken


async def fill(bench: Bench, *, rows: int, batch_rows: int, codec: str) -> dict[str, str]:
    """Create a table for the tasks that read."""
    table, path = await bench.log_table(codec)
    writer = table.new_append().create_writer()
    for batch in bench.batches(rows, batch_rows):
        writer.write_arrow_batch(batch)
    await writer.flush()
    return {"table": path.table_name}


async def to_arrow(bench: Bench, *, table: str, rows: int, projected: bool = False) -> Taken:
    """Read everything as one Arrow table."""
    scanner = await bench.scanner(table, PROJECTED if projected else None)
    with Stopwatch() as watch:
        found = await scanner.to_arrow()
    expect(found.num_rows, rows)
    return watch.taken


async def to_pandas(bench: Bench, *, table: str, rows: int) -> Taken:
    """Read everything as one DataFrame."""
    importlib.import_module("pandas")  # outside the time
    scanner = await bench.scanner(table)
    with Stopwatch() as watch:
        found = await scanner.to_pandas()
    expect(len(found), rows)
    return watch.taken


async def batch_reader(bench: Bench, *, table: str, rows: int) -> Taken:
    """Read everything through a RecordBatchReader."""
    scanner = await bench.scanner(table)
    with Stopwatch() as watch:
        found = sum(batch.num_rows for batch in scanner.to_arrow_batch_reader())
    expect(found, rows)
    return watch.taken


async def poll_arrow(bench: Bench, *, table: str, rows: int) -> Taken:
    """Poll Arrow tables until all rows are there."""
    scanner = await bench.scanner(table)
    found = 0
    with Stopwatch() as watch:
        while found < rows:
            found += (await scanner.poll_arrow(POLL_MS)).num_rows
    return watch.taken


# --- rows -----------------------------------------------------------------------------------------


async def poll(bench: Bench, *, table: str, rows: int, look: bool, column: str = "kind") -> Taken:
    """Poll records until enough have arrived; `look` at each row, or count them."""
    found_table = await bench.conn.get_table(bench.fluss.TablePath(bench.database, table))
    scanner = await found_table.new_scan().create_log_scanner()
    scanner.subscribe(0, bench.fluss.EARLIEST_OFFSET)
    found = total = 0
    with Stopwatch() as watch:
        while found < rows:
            records = await scanner.poll(POLL_MS)
            found += records.count()
            if look:
                for record in records:
                    total += record.row[column]
    return watch.taken


async def append_rows(
    bench: Bench, *, rows: int, shape: str = "plain", as_tuples: bool = False
) -> Taken:
    """Append dicts or tuples of a shape of `_peer_rows`, then flush."""
    schema, data = SHAPES[shape]()
    given: list[Any] = data(rows)
    if as_tuples:
        given = [tuple(row.values()) for row in given]
    table, path = await bench.create(schema)
    writer = table.new_append().create_writer()
    with Stopwatch() as watch:
        for row in given:
            writer.append(row)
        await writer.flush()
    await bench.admin.drop_table(path)
    return watch.taken


async def fill_rows(bench: Bench, *, rows: int, shape: str) -> dict[str, str]:
    """Create a table of a shape for the tasks that read."""
    schema, data = SHAPES[shape]()
    table, path = await bench.create(schema)
    writer = table.new_append().create_writer()
    for row in data(rows):
        writer.append(row)
    await writer.flush()
    return {"table": path.table_name}


async def upsert_rows(bench: Bench, *, rows: int, overwrites: bool = False) -> Taken:
    """Upsert dicts with new keys, or with keys that are there, then flush."""
    data = [{"id": each, "name": f"user-{each:07d}", "score": each / 7} for each in range(rows)]
    table, path = await bench.create(KEYED, keys=["id"])
    writer = table.new_upsert().create_writer()
    if overwrites:
        for row in data:
            writer.upsert(row)
        await writer.flush()
        data = [row | {"score": row["score"] + 1} for row in data]
    with Stopwatch() as watch:
        for row in data:
            writer.upsert(row)
        await writer.flush()
    await bench.admin.drop_table(path)
    return watch.taken


# --- latencies ------------------------------------------------------------------------------------


async def ack(bench: Bench, *, waits: bool, most: int, budget: float = 1.5) -> Taken:
    """One row until it is acknowledged: `handle.wait()`, or `writer.flush()`."""
    table, path = await bench.log_table("ZSTD")
    writer = table.new_append().create_writer()
    row = bench.batches(1, 1)[0].to_pylist()[0]
    writer.append(row)
    await writer.flush()

    async def once(_: int) -> None:
        handle = writer.append(row)
        await (handle.wait() if waits else writer.flush())

    taken = await median_of(once, most=most, budget=budget)
    await bench.admin.drop_table(path)
    return taken


async def tail(
    bench: Bench, *, samples: int, pause_s: float, after_acknowledged: bool = False
) -> Taken:
    """Time from appending a row, or from its acknowledgement, until a waiting reader has it."""
    table, path = await bench.log_table("ZSTD")
    writer = table.new_append().create_writer()
    scanner = await table.new_scan().create_log_scanner()
    scanner.subscribe(0, bench.fluss.EARLIEST_OFFSET)
    arrivals: asyncio.Queue[float] = asyncio.Queue()

    async def read() -> None:
        while True:
            for _ in await scanner.poll(POLL_MS):
                arrivals.put_nowait(time.perf_counter())

    reader = asyncio.create_task(read())
    row = bench.batches(1, 1)[0].to_pylist()[0]
    found: list[float] = []
    with Stopwatch() as watch:
        for _ in range(samples + 1):
            await asyncio.sleep(pause_s)
            started = time.perf_counter()
            writer.append(row)
            await writer.flush()
            if after_acknowledged:
                started = time.perf_counter()
            found.append(max(await arrivals.get() - started, SOONEST_S))
    reader.cancel()
    await bench.admin.drop_table(path)
    return {"seconds": statistics.median(found[1:]), "cpu": watch.taken["cpu"] / len(found)}


async def fill_keyed(bench: Bench, *, rows: int) -> dict[str, str]:
    """Create a table for the lookups, and one for those by prefix."""
    table, path = await bench.create(KEYED, keys=["id"])
    writer = table.new_upsert().create_writer()
    for number in range(rows):
        writer.upsert({"id": number, "name": f"user-{number:07d}", "score": number / 7})
    await writer.flush()
    prefixed, prefix_path = await bench.create(PREFIXED, keys=["a", "b"], bucket_keys=["a"])
    writer = prefixed.new_upsert().create_writer()
    for number in range(PREFIX_ROWS * 50):
        writer.upsert({"a": number // PREFIX_ROWS, "b": number, "name": f"name-{number}"})
    await writer.flush()
    return {"table": path.table_name, "prefixed": prefix_path.table_name}


async def lookups(bench: Bench, *, table: str, keys: int, most: int, budget: float = 1.5) -> Taken:
    """One lookup after the other."""
    found = await bench.conn.get_table(bench.fluss.TablePath(bench.database, table))
    lookuper = found.new_lookup().create_lookuper()

    async def once(number: int) -> None:
        key = number * 7919 % keys
        row = await lookuper.lookup({"id": key})
        expect(row["id"], key)

    return await median_of(once, most=most, budget=budget)


async def gathered(bench: Bench, *, table: str, keys: int, count: int) -> Taken:
    """Many concurrent lookups on one lookuper."""
    found = await bench.conn.get_table(bench.fluss.TablePath(bench.database, table))
    lookuper = found.new_lookup().create_lookuper()
    with Stopwatch() as watch:
        rows = await asyncio.gather(
            *(lookuper.lookup({"id": each % keys}) for each in range(count))
        )
    expect([row["id"] for row in rows], [each % keys for each in range(count)])
    return watch.taken


async def prefix_lookups(bench: Bench, *, table: str, most: int, budget: float = 1.5) -> Taken:
    """One prefix lookup after the other."""
    found = await bench.conn.get_table(bench.fluss.TablePath(bench.database, table))
    lookuper = found.new_lookup().lookup_by(["a"]).create_lookuper()

    async def once(number: int) -> None:
        rows = await lookuper.lookup({"a": number % 50})
        expect(len(rows), PREFIX_ROWS)

    return await median_of(once, most=most, budget=budget)


async def connects(bench: Bench, *, most: int, table: str | None = None) -> Taken:
    """Connect, and with a `table` read its first rows."""

    async def once(_: int) -> None:
        conn = await bench.connect()
        if table is not None:
            found = await conn.get_table(bench.fluss.TablePath(bench.database, table))
            scanner = await found.new_scan().create_record_batch_log_scanner()
            scanner.subscribe(0, bench.fluss.EARLIEST_OFFSET)
            expect((await scanner.poll_arrow(POLL_MS)).num_rows > 0, True)
        opened.append(conn)

    opened: list[Any] = []
    taken = await median_of(once, most=most, budget=2)
    for conn in opened:
        await conn.close()
    return taken


async def drop_database(bench: Bench) -> dict[str, str]:
    """Drop everything on the server."""
    await bench.admin.drop_database(bench.database, ignore_if_not_exists=True)
    return {}


TASKS: dict[str, Callable[..., Awaitable[dict[str, Any]]]] = {
    task.__name__: task
    for task in (
        write_arrow, fill, to_arrow, to_pandas, batch_reader, poll_arrow, poll, append_rows,
        fill_rows, upsert_rows, ack, tail, fill_keyed, lookups, gathered, prefix_lookups, connects,
        drop_database,
    )
}  # fmt: skip
