"""The tasks of `benchmarks/server.py` for our client, besides those of `_peer_tasks`.

They upsert and look up whole batches, which costs the client so little per row that the server
dominates. pyfluss has no such calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks._peer_bench import Bench, Stopwatch, Taken, expect
from benchmarks._peer_tasks import KEYED


async def upsert_arrow(bench: Bench, *, rows: int, batch_rows: int, again: bool) -> Taken:
    """Upsert whole batches: new keys, or, with `again`, existing keys."""
    table, path = await bench.create(KEYED, keys=["id"])
    writer = table.new_upsert().create_writer()
    batches = keyed_batches(rows, batch_rows)
    if again:
        await _written(writer, batches)
    with Stopwatch() as watch:
        await _written(writer, batches)
    await bench.admin.drop_table(path)
    return watch.taken


async def fill_keys(bench: Bench, *, rows: int) -> dict[str, str]:
    """Create a table for the lookups, and read it once, so that it is open."""
    table, path = await bench.create(KEYED, keys=["id"])
    await _written(table.new_upsert().create_writer(), keyed_batches(rows, 10_000))
    return {"table": path.table_name}


async def lookup_arrow(bench: Bench, *, table: str, keys: int, count: int) -> Taken:
    """Look up many keys with one call, as a session does."""
    ids = np.random.default_rng(3).integers(0, keys, count)
    asked = pa.table({"id": ids})

    def look_up() -> Taken:
        import fluss

        with fluss.connect(f"fluss://{bench.bootstrap}") as session:
            found = session.table(f"{bench.database}.{table}")
            found.lookup(asked.slice(0, 1))
            with Stopwatch() as watch:
                rows = found.lookup(asked)
            expect(rows.num_rows, count)
            return watch.taken

    return await asyncio.to_thread(look_up)


async def _written(writer: Any, batches: list[pa.RecordBatch]) -> None:
    for batch in batches:
        writer.write_arrow_batch(batch)
    await writer.flush()


def keyed_batches(rows: int, batch_rows: int) -> list[pa.RecordBatch]:
    """Return rows of `KEYED` with keys in random order."""
    ids = np.random.default_rng(5).permutation(rows)
    whole = pa.RecordBatch.from_arrays(
        [
            pa.array(ids),
            pa.array([f"user-{each:07d}" for each in ids]),
            pa.array(ids / 7),
        ],
        schema=KEYED,
    )
    return [whole.slice(start, batch_rows) for start in range(0, rows, batch_rows)]


TASKS: dict[str, Callable[..., Awaitable[dict[str, Any]]]] = {
    task.__name__: task for task in (upsert_arrow, fill_keys, lookup_arrow)
}
