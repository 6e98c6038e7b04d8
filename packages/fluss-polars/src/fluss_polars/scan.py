"""A Fluss table as a LazyFrame: the schema is asked for lazily, only the columns used are read.

Polars calls the source at every collect with the columns, the filter and the number of rows it
wants. Columns are handed on to Fluss; filter and row count are applied here, batch by batch, so
that reading stops as soon as there are enough rows. Offsets are pinned at each collect.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl
from polars.io.plugins import register_io_source

from fluss.connector import ScanSplit, describe, open_split, splits
from fluss.model.config import Config
from fluss.model.paths import TablePath


def scan_fluss(
    table: TablePath | str, *, config: Config | Mapping[str, Any] | None = None
) -> pl.LazyFrame:
    """Scan a Fluss table lazily, as it is when it is collected: a log, or the state of its keys.

    Args:
        table: `"database.table"`.
        config: How to reach the cluster; FLUSS_BOOTSTRAP_SERVERS or 127.0.0.1:9123 otherwise.

    Example:
        >>> pl.scan_fluss("fluss.events").select("id").collect()  # doctest: +SKIP
    """

    def schema() -> pl.Schema:
        arrow = describe(table, config=config)
        return pl.Schema(pl.DataFrame(arrow.empty_table()).schema)

    def source(
        with_columns: list[str] | None,
        predicate: pl.Expr | None,
        n_rows: int | None,
        batch_size: int | None,  # noqa: ARG001 - Fluss's batches have the size they were written in
    ) -> Iterator[pl.DataFrame]:
        planned = splits(
            table, columns=_columns_to_read(table, with_columns, config), config=config
        )
        left = n_rows
        for frame in _frames(planned, config):
            taken = frame if predicate is None else frame.filter(predicate)
            if with_columns is not None:
                taken = taken.select(with_columns)
            if left is not None:
                taken = taken.head(left)
                left -= taken.height
            yield taken
            if left == 0:
                return

    return register_io_source(source, schema=schema, validate_schema=True)


def _columns_to_read(
    table: TablePath | str,
    with_columns: list[str] | None,
    config: Config | Mapping[str, Any] | None,
) -> list[str] | None:
    """At least one column, because a frame without columns has no rows to count."""
    if with_columns:
        return with_columns
    return None if with_columns is None else describe(table, config=config).names[:1]


def _frames(
    planned: Sequence[ScanSplit], config: Config | Mapping[str, Any] | None
) -> Iterator[pl.DataFrame]:
    if not planned:
        return
    # Bucket by bucket, so that the same rows come in the same order however often.
    for batch in open_split(planned, config=config, order="bucket"):
        frame = pl.from_arrow(batch)
        if not isinstance(frame, pl.DataFrame):
            raise TypeError(f"a batch became a {type(frame).__name__}")
        yield frame
