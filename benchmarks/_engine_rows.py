"""The rows of the engines' benchmark: three shapes of table, in Fluss, Parquet and Delta.

Each shape has the columns that the queries name: `id`, `name`, `x` and `y`. Beside them, `plain`
has two numbers, `wide` 26 columns of which every second value is NULL, and `nested` a list, a
struct and a text of 400 characters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fluss.session import Session, Table

BUCKETS: Final = 4
CHUNK_ROWS: Final = 200_000
NAMES: Final = 1_000
TEXTS: Final = 5_000
TEXT_CHARACTERS: Final = 400


def written(session: Session, shape: str, rows: int, folder: Path) -> Table:
    """Write the same rows into a table and into Parquet files, one for each bucket."""
    table: Table | None = None
    per_file = -(-rows // BUCKETS)
    (folder / "parquet").mkdir()
    for number, start in enumerate(range(0, rows, per_file)):
        chunks = _chunks(shape, start, min(start + per_file, rows))
        first = next(chunks)
        if table is None:
            table = session.create_table("events", first, buckets=BUCKETS, bucket_key=["id"])
        with pq.ParquetWriter(folder / "parquet" / f"{number}.parquet", first.schema) as file:
            for chunk in (first, *chunks):
                file.write_table(chunk)
                table.append(chunk)
    if table is None:
        raise SystemExit("--rows must be more than 0")
    return table


def written_as_delta(folder: Path) -> str | None:
    """Write the rows of the Parquet files as a Delta table; None where `deltalake` is missing."""
    try:
        from deltalake import write_deltalake  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        return None
    target = str(folder / "delta")
    for file in sorted((folder / "parquet").glob("*.parquet")):
        write_deltalake(target, pq.read_table(file), mode="append")
    return target


def _chunks(shape: str, start: int, stop: int) -> Iterator[pa.Table]:
    for begin in range(start, stop, CHUNK_ROWS):
        count = min(CHUNK_ROWS, stop - begin)
        rng = np.random.default_rng(begin)
        named = pa.array([f"name {each}" for each in range(NAMES)])
        columns = {
            "id": pa.array(np.arange(begin, begin + count)),
            "name": named.take(pa.array(rng.integers(0, NAMES, count))),
            "x": pa.array(rng.random(count)),
            "y": pa.array(rng.integers(0, 2**40, count)),
        }
        yield pa.table(columns | SHAPES[shape](begin, count, rng))


def _plain(begin: int, count: int, rng: np.random.Generator) -> dict[str, pa.Array]:
    return {
        "k": pa.array(rng.integers(0, 100, count).astype(np.int32)),
        "at": pa.array(np.arange(begin, begin + count) * 1_000, pa.timestamp("us")),
    }


def _wide(_: int, count: int, rng: np.random.Generator) -> dict[str, pa.Array]:
    texts = pa.array([f"value {each}" for each in range(NAMES)])
    columns = {}
    for number in range(26):
        is_null = rng.random(count) < 0.5
        if number % 3 == 0:
            places = pa.array(rng.integers(0, NAMES, count), mask=is_null)
            columns[f"c{number}"] = texts.take(places)
        else:
            columns[f"c{number}"] = pa.array(rng.integers(0, 1_000_000, count), mask=is_null)
    return columns


def _nested(_: int, count: int, rng: np.random.Generator) -> dict[str, pa.Array]:
    letters = rng.integers(97, 123, (TEXTS, TEXT_CHARACTERS)).astype(np.uint8)
    texts = pa.array([bytes(each).decode() for each in letters])
    sizes = rng.integers(0, 5, count)
    offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32))
    numbers = pa.array(rng.integers(0, 2**31, int(sizes.sum())))
    parts = [pa.array(rng.random(count)), texts.take(pa.array(rng.integers(0, 50, count)))]
    return {
        "list": pa.ListArray.from_arrays(offsets, numbers),
        "struct": pa.StructArray.from_arrays(parts, ["weight", "label"]),
        "text": texts.take(pa.array(rng.integers(0, TEXTS, count))),
    }


SHAPES: Final[dict[str, Callable[[int, int, np.random.Generator], dict[str, pa.Array]]]] = {
    "plain": _plain,
    "wide": _wide,
    "nested": _nested,
}
