"""The row formats behind one interface, so that one test covers all of them.

Each format has a path for columns and a path for single rows. Here both take rows of physical
values and return a list of byte strings, and the reverse.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fluss.model.types.data_type import DataType
from fluss.rows.buffers.columns import Column
from fluss.rows.formats.aligned import write_aligned_rows
from fluss.rows.formats.aligned_row import AlignedRowReader, AlignedRowWriter
from fluss.rows.formats.compacted import read_compacted_rows, write_compacted_rows
from fluss.rows.formats.compacted_row import CompactedRowReader, CompactedRowWriter
from fluss.rows.formats.indexed import read_indexed_rows, write_indexed_rows
from fluss.rows.formats.indexed_row import IndexedRowReader, IndexedRowWriter
from tests.support.differential.oracle_types import RowFormat
from tests.support.generators.encoded import joined
from tests.support.generators.random_columns import columns_of, rows_in
from tests.support.generators.seeded_values import ALL_TYPES, LEAF_TYPES

Types = Sequence[DataType]
Rows = Sequence[Sequence[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCodec:
    """One path of one row format."""

    row_format: RowFormat
    path: str
    types: tuple[DataType, ...]  # which a row may have
    write: Callable[[Types, Rows], list[bytes]]
    read: Callable[[Types, Sequence[bytes]], list[tuple[Any, ...]]]

    def __str__(self) -> str:
        return f"{self.row_format.lower()} {self.path}"


def _by_columns(
    row_format: RowFormat, write: Callable[..., Any], read: Callable[..., Any]
) -> RowCodec:
    def write_all(types: Types, rows: Rows) -> list[bytes]:
        return list(write(columns_of(types, rows)))

    def read_all(types: Types, encoded: Sequence[bytes]) -> list[tuple[Any, ...]]:
        return rows_in(read(*joined(encoded), types), length=len(encoded))

    return RowCodec(
        row_format=row_format,
        path="columns",
        types=_types_of(row_format),
        write=write_all,
        read=read_all,
    )


def _row_by_row(
    row_format: RowFormat, writer: Callable[[Types], Any], reader: Callable[[Types], Any]
) -> RowCodec:
    def write_all(types: Types, rows: Rows) -> list[bytes]:
        return [writer(types).write(row) for row in rows]

    def read_all(types: Types, encoded: Sequence[bytes]) -> list[tuple[Any, ...]]:
        return [reader(types).read(each) for each in encoded]

    return RowCodec(
        row_format=row_format,
        path="rows",
        types=_types_of(row_format),
        write=write_all,
        read=read_all,
    )


def _read_aligned_rows(data: Any, starts: Any, ends: Any, types: Types) -> list[Column]:
    """Aligned rows are only read one by one: there are two of them in a batch."""
    rows = [
        AlignedRowReader(types).read(data[start:end].tobytes())
        for start, end in zip(starts, ends, strict=True)
    ]
    return columns_of(types, rows)


def _types_of(row_format: RowFormat) -> tuple[DataType, ...]:
    # Aligned rows are for the statistics of log batches, which have no nested columns.
    return LEAF_TYPES if row_format == "ALIGNED" else ALL_TYPES


ROW_CODECS = (
    _by_columns("COMPACTED", write_compacted_rows, read_compacted_rows),
    _row_by_row("COMPACTED", CompactedRowWriter, CompactedRowReader),
    _by_columns("INDEXED", write_indexed_rows, read_indexed_rows),
    _row_by_row("INDEXED", IndexedRowWriter, IndexedRowReader),
    _by_columns("ALIGNED", write_aligned_rows, _read_aligned_rows),
    _row_by_row("ALIGNED", AlignedRowWriter, AlignedRowReader),
)
