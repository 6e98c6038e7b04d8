"""Polars' own decoder of Parquet, which the core may use for the files of a lake.

Polars decodes into the memory that its frames use, so a frame of these rows copies nothing. Which
files and rows are read, and what to do if Polars cannot read them, is decided by the lake format.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl
import polars.selectors as cs
import pyarrow as pa

from fluss_polars.process_end import calls_of_polars

_NEWEST: Final = pl.CompatLevel.newest()


def decode(
    path: str, columns: Sequence[str], *, first_row: int, rows: int
) -> Sequence[pa.RecordBatch]:
    """Decode rows of a file on a local disk; see `fluss.scan.FileDecoder`."""
    with calls_of_polars.one():
        try:
            # A name of a file is no pattern, and its folders are no columns. Selectors take the
            # names of columns literally. The streaming engine would decode further ahead.
            frame = (
                pl.scan_parquet(path, glob=False, hive_partitioning=False, cache=False)
                .select(cs.by_name(*columns))
                .slice(first_row, rows)
                .collect(engine="in-memory")
            )
        except pl.exceptions.PanicException as error:  # it is no Exception
            raise RuntimeError(str(error)) from error
    table: pa.Table = frame.to_arrow(compat_level=_NEWEST).select(list(columns))
    batches: list[pa.RecordBatch] = table.to_batches()
    return batches
