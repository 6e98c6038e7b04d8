"""The queries of the engines' benchmark: the same for a table of Fluss, Parquet files and Delta.

`deltalake` is in `benchmarks/requirements.txt`; without it nothing is compared with Delta.
DuckDB and pandas read a Delta table by the dataset that `deltalake` gives, Polars by
`pl.scan_delta`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from fluss.session import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Queries:
    """The queries over one source; each returns how many rows it found.

    Attributes:
        whole: All rows.
        grouped: The sum of `x` by `name`.
        top: The ten rows with the greatest `y`.
        one_key: The row of one id.
        few: Ten rows.
        total: The sum of `y`, without the table being in memory.
    """

    whole: Callable[[], int]
    grouped: Callable[[], int]
    top: Callable[[], int]
    one_key: Callable[[], int]
    few: Callable[[], int]
    total: Callable[[], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """One engine.

    Attributes:
        name: Its name.
        whole_min: How many times as fast as the core it reads a whole table, at least.
        fluss: The queries over the table of Fluss.
        files: The same over files of this machine, by the name of their form.
        whole_in_memory: All rows of an Arrow table, in the form that the engine gives them.
        whole_streamed: The same of batches in memory, through the door that a scan of Fluss uses.
        grouped_in_memory: The group-by over an Arrow table.
        top_in_memory: The top 10 of an Arrow table.
    """

    name: str
    whole_min: float
    fluss: Queries
    files: Mapping[str, Queries]
    whole_in_memory: Callable[[pa.Table], int]
    whole_streamed: Callable[[pa.Table], int]
    grouped_in_memory: Callable[[pa.Table], int]
    top_in_memory: Callable[[pa.Table], int]


# --- Polars ---------------------------------------------------------------------------------------


def polars_bench(table: Table, parquet: str, delta: str | None) -> Bench:
    """Polars over all sources."""
    import polars as pl
    from polars.io.plugins import register_io_source

    import fluss_polars  # noqa: F401 - gives Polars scan_fluss

    def grouped(frame: pl.LazyFrame) -> int:
        return frame.group_by("name").agg(pl.col("x").sum()).collect().height

    def top(frame: pl.LazyFrame) -> int:
        return frame.select("id", "y").top_k(10, by="y").collect().height

    def over(scan: Callable[[], pl.LazyFrame]) -> Queries:
        return Queries(
            whole=lambda: scan().collect().height,
            grouped=lambda: grouped(scan()),
            top=lambda: top(scan()),
            one_key=lambda: scan().filter(pl.col("id") == 77).collect().height,
            few=lambda: scan().head(10).collect().height,
            total=lambda: scan().select(pl.col("y").sum()).collect().height,
        )

    def streamed(rows: pa.Table) -> int:
        """Read batches in memory as a source of Polars, as Polars reads a scan."""

        def batches(*_: Any) -> Iterator[pl.DataFrame]:
            yield from map(pl.DataFrame, rows.to_batches())

        schema = pl.DataFrame(rows.schema.empty_table()).schema
        return register_io_source(batches, schema=schema).collect().height

    files = {"Parquet": over(lambda: pl.scan_parquet(f"{parquet}/*.parquet"))}
    if delta is not None:
        files["Delta"] = over(lambda: pl.scan_delta(delta))
    return Bench(
        name="polars",
        whole_min=0.95,
        fluss=over(lambda: pl.scan_fluss(table)),
        files=files,
        whole_in_memory=lambda rows: pl.DataFrame(rows).height,
        whole_streamed=streamed,
        grouped_in_memory=lambda rows: grouped(pl.DataFrame(rows).lazy()),
        top_in_memory=lambda rows: top(pl.DataFrame(rows).lazy()),
    )


# --- DuckDB ---------------------------------------------------------------------------------------

WHOLE = "SELECT * FROM {}"
GROUPED = "SELECT name, sum(x) FROM {} GROUP BY name"
TOP = "SELECT id, y FROM {} ORDER BY y DESC LIMIT 10"


def duckdb_bench(table: Table, parquet: str, delta: str | None) -> Bench:
    """DuckDB over all sources."""
    import duckdb

    import fluss_duckdb

    con = fluss_duckdb.connect(url=f"fluss://{table.to_source().config.bootstrap_servers}")

    def over(connection: Any, source: str) -> Queries:
        def asked(sql: str) -> int:
            rows: int = connection.sql(sql.format(source)).to_arrow_table().num_rows
            return rows

        return Queries(
            whole=lambda: asked(WHOLE),
            grouped=lambda: asked(GROUPED),
            top=lambda: asked(TOP),
            one_key=lambda: asked("SELECT * FROM {} WHERE id = 77"),
            few=lambda: asked("SELECT * FROM {} LIMIT 10"),
            total=lambda: asked("SELECT sum(y) FROM {}"),
        )

    def in_memory(sql: str, rows: pa.Table) -> int:
        with duckdb.connect() as plain:
            plain.register("rows_in_memory", rows)
            found: int = plain.sql(sql.format("rows_in_memory")).to_arrow_table().num_rows
            return found

    def streamed(rows: pa.Table) -> int:
        """Read batches in memory as DuckDB reads a scan: from a reader, which it pulls."""
        with duckdb.connect() as plain:
            plain.register("rows_streamed", rows.to_reader())
            found: int = plain.sql(WHOLE.format("rows_streamed")).to_arrow_table().num_rows
            return found

    plain = duckdb.connect()
    files = {"Parquet": over(plain, f"'{parquet}/*.parquet'")}
    if delta is not None:
        plain.register("delta_rows", _delta(delta).to_pyarrow_dataset())
        files["Delta"] = over(plain, "delta_rows")
    return Bench(
        name="duckdb",
        whole_min=0.95,
        fluss=over(con, f"fluss('{table.name}')"),
        files=files,
        whole_in_memory=lambda rows: in_memory(WHOLE, rows),
        whole_streamed=streamed,
        grouped_in_memory=lambda rows: in_memory(GROUPED, rows),
        top_in_memory=lambda rows: in_memory(TOP, rows),
    )


# --- pandas ---------------------------------------------------------------------------------------


def pandas_bench(table: Table, parquet: str, delta: str | None) -> Bench:
    """Return pandas over all sources."""
    import pandas as pd

    import fluss.pandas  # noqa: F401 - gives pandas read_fluss
    from fluss import col

    def frame(rows: pa.Table) -> Any:
        return rows.to_pandas(types_mapper=pd.ArrowDtype)

    def grouped(rows: Any) -> int:
        return len(rows.groupby("name")["x"].sum())

    def over(read: Callable[..., Any], key: Any, few: Callable[[], int]) -> Queries:
        return Queries(
            whole=lambda: len(read()),
            grouped=lambda: grouped(read(columns=["name", "x"])),
            top=lambda: len(read(columns=["id", "y"]).nlargest(10, "y")),
            one_key=lambda: len(read(**key)),
            few=few,
            total=total,
        )

    def total() -> int:
        with pd.read_fluss(table, columns=["y"], chunksize=100_000) as chunks:
            return int(sum(each["y"].sum() for each in chunks) != 0)

    def of_parquet(**how: Any) -> Any:
        return pd.read_parquet(parquet, dtype_backend="pyarrow", **how)

    def of_delta(**how: Any) -> Any:
        return _delta(str(delta)).to_pandas(types_mapper=pd.ArrowDtype, **how)

    equals = {"filters": [("id", "=", 77)]}
    files = {"Parquet": over(of_parquet, equals, lambda: len(of_parquet().head(10)))}
    if delta is not None:
        files["Delta"] = over(of_delta, equals, lambda: len(of_delta().head(10)))

    def of_fluss(**how: Any) -> Any:
        return pd.read_fluss(table, **how)

    return Bench(
        name="pandas",
        whole_min=0.9,
        fluss=over(of_fluss, {"filter": col("id") == 77}, lambda: len(of_fluss(limit=10))),
        files=files,
        whole_in_memory=lambda rows: len(frame(rows)),
        whole_streamed=lambda rows: len(frame(rows)),
        grouped_in_memory=lambda rows: grouped(frame(rows)),
        top_in_memory=lambda rows: len(frame(rows).nlargest(10, "y")),
    )


def _delta(path: str) -> Any:
    from deltalake import DeltaTable  # type: ignore[import-not-found,unused-ignore]

    return DeltaTable(path)


ENGINES: dict[str, Callable[[Table, str, str | None], Bench]] = {
    "polars": polars_bench,
    "duckdb": duckdb_bench,
    "pandas": pandas_bench,
}
