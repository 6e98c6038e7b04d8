"""Union reads of a lake and a log, beside reading the two one by one.

`./dev bench lake [--rows N] [--tail N] [--deletes N] [--pairs N]` starts a real Fluss with a lake
of Iceberg tables, writes N rows (10 million) into a log of four buckets and into its lake, and a
tail (1 million) that only the log has. It prints

- for the core and for Polars, how many times as long the union takes as reading the same Parquet
  files with the same engine and then the tail; both sides alternate;
- how long the deletes of 1 million keys take on 10 million rows of four files, for keys that are
  close together, scattered numbers, and texts: reading with them, less reading without;
- how much memory a union read batch by batch takes above what there was before;
- how fast tables are copied into a lake (`_lake_tiering`).

Processor time is that of this process; the server's is not in it. Machines are shared, so it is the
figure to compare.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import fluss
import fluss_polars
from benchmarks._lake_tiering import ROWS as ROWS_TIERED, measure as measure_tiering
from benchmarks._measure import machine, print_table
from benchmarks.engines import _grown_mb
from fluss.model.schema.schema import Schema
from fluss.model.types.type_text import parse_type
from fluss_lake.catalogs import open_table
from fluss_lake.file_plan import DataFile, DeleteFile
from fluss_lake.file_reader import PartReader
from fluss_testkit.java_cluster import JavaCluster
from fluss_testkit.lake_profile import iceberg_lake
from tests.support.lake.plain_tiering import tier_log

ROWS, TAIL, DELETES, PAIRS = 10_000_000, 1_000_000, 1_000_000, 5
ROUNDS, BUCKETS, FILES = 4, 4, 4
UNION_MAX, DELETES_S_MAX = 1.2, 1.0
COLUMNS = {"id": "BIGINT", "kind": "INT", "amount": "DOUBLE", "name": "STRING"}


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description="Union reads beside the parts of them.")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--tail", type=int, default=TAIL)
    parser.add_argument("--deletes", type=int, default=DELETES)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    given = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory(prefix="fluss-bench-") as folder:
        _measure_deletes(Path(folder), given.rows, given.deletes)
        _measure_unions(Path(folder), given)
    with tempfile.TemporaryDirectory(prefix="fluss-bench-") as folder:
        measure_tiering(Path(folder), ROWS_TIERED, ROWS_TIERED, given.pairs)


# --- deletes --------------------------------------------------------------------------------------

KEYS: dict[str, Callable[[np.ndarray[Any, Any]], pa.Array]] = {
    "numbers close together": pa.array,
    "scattered numbers": lambda ids: pa.array(ids * 1_000_003),
    "texts": lambda ids: pa.array(ids).cast(pa.string()),
}


def _measure_deletes(folder: Path, rows: int, deletes: int) -> None:
    print_table(
        f"{deletes:,} deletes by key on {rows:,} rows",
        ("keys", "processor time", "bar"),
        [
            (name, f"{_deletes_s(folder, make, rows, deletes):.2f} s", f"< {DELETES_S_MAX} s")
            for name, make in KEYS.items()
        ],
    )


def _deletes_s(
    folder: Path, make: Callable[[np.ndarray[Any, Any]], pa.Array], rows: int, deletes: int
) -> float:
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
        taken[applied] = _processor_s(lambda files=files: _read_files(files, make(ids[:1]).type))
    return taken[(listed,)] - taken[()]


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


_SCHEMA = SimpleNamespace(find_field=_field, fields=(_field("id"),))
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


# --- unions ---------------------------------------------------------------------------------------


def _measure_unions(folder: Path, given: argparse.Namespace) -> None:
    with (
        JavaCluster(iceberg_lake(folder)) as cluster,
        fluss.connect(f"fluss://{cluster.bootstrap_servers}/lake") as session,
    ):
        session.create_database("lake")
        table = _table(session, cluster.bootstrap_servers, given.rows, given.tail)
        files = [str(each) for each in folder.rglob("data/**/*.parquet")]
        ends = _lake_ends(table)
        print_table(
            f"{given.rows:,} rows of the lake and {given.tail:,} of the log, {len(files)} files",
            ("engine", "union", "files + tail", "ratio of processor time", "bar"),
            [
                _compared(
                    "core", lambda: _core(table), lambda: _core_apart(table, files, ends), given
                ),
                _compared(
                    "Polars",
                    lambda: _polars(table),
                    lambda: _polars_apart(table, files, ends),
                    given,
                ),
            ],
        )
        grown = _grown_mb(lambda: sum(each.num_rows for each in table.scan().to_reader()))
        print(f"memory above the start, batch by batch: {grown:,.0f} MB")


def _table(session: Any, bootstrap: str, rows: int, tail: int) -> Any:
    properties = {"table.datalake.enabled": "true", "table.datalake.freshness": "1h"}
    session.create_table("events", COLUMNS, buckets=BUCKETS, properties=properties)
    table = session.table("events")
    begin: dict[int, int] | None = None
    for start in range(0, rows, rows // ROUNDS):
        table.append(_rows(start, rows // ROUNDS))
        written = table.scan(with_metadata=True, lake="off", start=begin).to_arrow()
        tier_log(table, bootstrap, open_table(table.info, {}), written)
        begin = {each["bucket"]: each["end"] for each in table.offsets().to_pylist()}
    table.append(_rows(rows, tail))
    return table


def _rows(start: int, count: int) -> pa.Table:
    ids = np.arange(start, start + count)
    kinds = (ids % 100).astype(np.int32)
    names = pa.array([f"name of {each}" for each in range(100)])
    return pa.table(
        {"id": ids, "kind": kinds, "amount": ids / 7, "name": names.take(pa.array(kinds))}
    )


def _lake_ends(table: Any) -> dict[int, int]:
    """Where the log takes over, by bucket."""
    splits = [each for each in table.scan().splits() if each.lake is not None]
    return {each.bucket.bucket_id: each.stop for each in splits}


def _core(table: Any) -> int:
    return int(table.scan().to_arrow().num_rows)


def _core_apart(table: Any, files: list[str], ends: dict[int, int]) -> int:
    past = ds.dataset(files).to_table(columns=list(COLUMNS))
    return int(past.num_rows + table.scan(start=ends, lake="off").to_arrow().num_rows)


def _polars(table: Any) -> int:
    return fluss_polars.scan_fluss(table).collect().height


def _polars_apart(table: Any, files: list[str], ends: dict[int, int]) -> int:
    past = pl.scan_parquet(files).select(list(COLUMNS)).collect()
    return past.height + fluss_polars.scan_fluss(table, start=ends, lake="off").collect().height


def _compared(
    name: str, union: Callable[[], int], apart: Callable[[], int], given: argparse.Namespace
) -> tuple[str, ...]:
    if (found := union()) != (expected := apart()):
        raise AssertionError(f"{found:,} rows, and {expected:,} were expected")
    pairs = list(_in_turns(union, apart, given.pairs))
    ours, theirs = (statistics.median(each) for each in zip(*pairs, strict=True))
    ratio = statistics.median(mine / other for mine, other in pairs)
    return name, f"{ours:.2f} s", f"{theirs:.2f} s", f"{ratio:.2f}", f"<= {UNION_MAX}"


def _in_turns(
    union: Callable[[], int], apart: Callable[[], int], pairs: int
) -> Iterator[tuple[float, float]]:
    for number in range(pairs):
        if number % 2:
            other = _processor_s(apart)
            yield _processor_s(union), other
        else:
            mine = _processor_s(union)
            yield mine, _processor_s(apart)


def _processor_s(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


if __name__ == "__main__":
    main()
