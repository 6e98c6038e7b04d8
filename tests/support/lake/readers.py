"""The engines that read tables with a lake: each gives the rows of a table as an Arrow table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pyarrow as pa

import fluss_duckdb
import fluss_polars

Reader = Callable[[Any, Any], pa.Table]


def by_batches(table: Any, session: Any) -> pa.Table:
    """By the core, batch by batch."""
    return table.scan().to_reader().read_all()


def by_polars(table: Any, session: Any) -> pa.Table:
    """By Polars."""
    return fluss_polars.scan_fluss(table).collect().to_arrow()


def by_duckdb(table: Any, session: Any) -> pa.Table:
    """By DuckDB."""
    with fluss_duckdb.connect(session=session) as connection:
        sql = f"SELECT * FROM fluss('{table.name}')"  # noqa: S608 - the name is ours
        return connection.sql(sql).to_arrow_table()


def by_pandas(table: Any, session: Any) -> pa.Table:
    """By pandas."""
    frame = table.scan().to_pandas()
    assert isinstance(frame, pd.DataFrame)
    return pa.Table.from_pandas(frame, preserve_index=False)


READERS = (by_batches, by_polars, by_duckdb, by_pandas)


def values(rows: pa.Table, names: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """The rows as sorted tuples, for engines that give other types of Arrow."""
    found = (tuple(each[name] for name in names) for each in rows.to_pylist())
    return sorted(found, key=str)
