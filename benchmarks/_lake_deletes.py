"""Deletes by key, applied to the rows of Parquet files: reading with them, less reading without.

The keys are numbers that are close together, scattered numbers, and texts; each is measured on
files of its own, without a server.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks._measure import print_table
from fluss.model.schema.schema import Schema
from fluss.model.types.type_text import parse_type
from fluss_lake.file_plan import DataFile, DeleteFile
from fluss_lake.file_reader import PartReader

FILES, REPEATS, DELETES_S_MAX = 4, 3, 1.0

KEYS: dict[str, Callable[[np.ndarray[Any, Any]], pa.Array]] = {
    "numbers close together": pa.array,
    "scattered numbers": lambda ids: pa.array(ids * 1_000_003),
    "texts": lambda ids: pa.array(ids).cast(pa.string()),
    "texts of 24 characters": lambda ids: pa.array([f"customer-{each:015d}" for each in ids]),
}


def measure(folder: Path, *, rows: int, deletes: int) -> None:
    """Measure, and print a table."""
    print_table(
        f"{deletes:,} deletes by key on {rows:,} rows",
        ("keys", "processor time", "wall time", "bar"),
        [_line(name, folder, make, rows, deletes) for name, make in KEYS.items()],
    )


def _line(
    name: str,
    folder: Path,
    make: Callable[[np.ndarray[Any, Any]], pa.Array],
    rows: int,
    deletes: int,
) -> tuple[str, ...]:
    rng = np.random.default_rng(0)
    ids = rng.permutation(rows)
    listed = DeleteFile(
        path=_written(folder / "d.parquet", {"id": make(rng.choice(rows, deletes, replace=False))}),
        sequence=2,
        equality_ids=(1,),
    )
    per_file = rows // FILES
    paths = [
        _written(
            folder / f"{number}.parquet",
            {"id": make(ids[number * per_file : (number + 1) * per_file])},
        )
        for number in range(FILES)
    ]
    taken = {}
    for applied in ((), (listed,)):
        files = tuple(
            DataFile(
                path=path,
                rows=per_file,
                size_bytes=1,
                sequence=1,
                offsets=(0, rows),
                deletes=applied,
            )
            for path in paths
        )
        taken[applied] = _taken(files, make(ids[:1]).type)
    processor, wall = np.subtract(taken[(listed,)], taken[()])
    return name, f"{processor:.2f} s", f"{wall:.2f} s", f"< {DELETES_S_MAX} s"


def _taken(files: tuple[DataFile, ...], kind: pa.DataType) -> tuple[float, float]:
    """The medians of processor time and wall time."""
    pairs = []
    for _ in range(REPEATS):
        began = time.process_time(), time.perf_counter()
        _read_files(files, kind)
        pairs.append((time.process_time() - began[0], time.perf_counter() - began[1]))
    processor, wall = (statistics.median(each) for each in zip(*pairs, strict=True))
    return processor, wall


def _read_files(files: tuple[DataFile, ...], kind: pa.DataType) -> int:
    text = "STRING" if pa.types.is_string(kind) else "BIGINT"
    reader = PartReader(
        table=_FILES_ALONE,
        schema=Schema.builder().column("id", parse_type(text)).build(),
        columns=("id",),
        with_places=False,
    )
    part: Any = SimpleNamespace(files=files)
    return sum(each.batch.num_rows for each in reader.read(part, 0, 2**62))


def _field(_: Any) -> Any:
    return SimpleNamespace(name="id", field_id=1, required=True)


_SCHEMA = SimpleNamespace(find_field=_field, fields=(_field("id"),), identifier_field_ids=[1])
_FILES_ALONE: Any = SimpleNamespace(
    io=SimpleNamespace(new_input=lambda path: SimpleNamespace(open=lambda **_: pa.OSFile(path))),
    schema=lambda: _SCHEMA,
)


def _written(path: Path, columns: dict[str, pa.Array]) -> str:
    fields = [
        pa.field(name, array.type, metadata={"PARQUET:field_id": str(number)})
        for number, (name, array) in enumerate(columns.items(), start=1)
    ]
    table = pa.Table.from_arrays(list(columns.values()), schema=pa.schema(fields))
    pq.write_table(table, path, compression="zstd")
    return str(path)
