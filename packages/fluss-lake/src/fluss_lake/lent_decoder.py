"""Reads rows of a Parquet file with the decoder that an engine lends, piece by piece.

Polars decodes Parquet faster than pyarrow, straight into its own memory. The decoder gets only
columns of types that both decode to the same values, and only files on local disks. If it fails, or
returns anything unexpected, pyarrow reads the same rows, so errors of files are always pyarrow's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from fluss.lake.file_decoder import FileDecoder
from fluss.records.arrow.views import VIEWS
from fluss_lake.row_groups import Run

LENT_TYPES: Final = frozenset(
    {
        pa.bool_(),
        pa.int32(),
        pa.int64(),
        pa.float32(),
        pa.float64(),
        pa.date32(),
        pa.timestamp("us"),
        pa.timestamp("us", "UTC"),
        *VIEWS,
    }
)
# The rows that one call of a decoder returns; several readers hold such a piece each. A row group
# is cut only beyond the second bound: a decoder may decompress its pages once for each piece.
PIECE_BYTES_USEFUL: Final = 32 * 1024 * 1024
PIECE_BYTES_MAX: Final = 64 * 1024 * 1024
# Opening a file again costs a decoder a millisecond or more, and decoding this much takes longer.
RUN_BYTES_MIN: Final = 2 * 1024 * 1024
_VIEW_BYTES: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class _Size:
    """The rows of a row group, and an estimate of their bytes in memory."""

    rows: int
    size_bytes: int


class LentDecoder:
    """The decoder of an engine for one file.

    Args:
        decoder: The decoder.
        path: The path of the file on a local disk.
        parquet: The file.
        columns: The names of the columns in the file.
    """

    def __init__(
        self, decoder: FileDecoder, path: str, parquet: pq.ParquetFile, columns: Sequence[str]
    ) -> None:
        self._decoder = decoder
        self._path = path
        self._metadata = metadata = parquet.metadata
        self._places = {metadata.schema.column(at).path: at for at in range(metadata.num_columns)}
        self._columns = list(columns)
        schema = parquet.schema_arrow
        self._types = [schema.field(name).type for name in columns]
        self._may_try = bool(columns) and LENT_TYPES.issuperset(self._types)

    def read(self, run: Run) -> Iterator[pa.RecordBatch]:
        """Read the first rows of some row groups: all of them, or those before a failure."""
        if not self._may_try:
            return
        groups = [self._size(each) for each in run.groups]
        if sum(each.size_bytes for each in groups) < RUN_BYTES_MIN:
            return
        first_row = run.first_row
        for rows in _pieces(groups):
            found = self._decoded(first_row, rows)
            if found is None:
                self._may_try = False
                return
            yield from found
            first_row += rows

    def _decoded(self, first_row: int, rows: int) -> Sequence[pa.RecordBatch] | None:
        try:
            found = self._decoder(self._path, self._columns, first_row=first_row, rows=rows)
        except Exception:  # noqa: BLE001 - pyarrow reads these rows, or reports why it cannot
            return None
        is_whole = sum(each.num_rows for each in found) == rows
        return found if is_whole and all(map(self._fits, found)) else None

    def _fits(self, batch: pa.RecordBatch) -> bool:
        """Whether a batch has the columns that pyarrow would read, or views in their place."""
        if batch.schema.names != self._columns:
            return False
        return all(
            field.type in (expected, VIEWS.get(expected))
            for field, expected in zip(batch.schema, self._types, strict=True)
        )

    def _size(self, number: int) -> _Size:
        """The size of these columns of a row group in memory."""
        group = self._metadata.row_group(number)
        size = 0
        for name, kind in zip(self._columns, self._types, strict=True):
            if kind in VIEWS:
                # Rows with the same entry of a dictionary share its text.
                column = group.column(self._places[name])
                size += _VIEW_BYTES * group.num_rows + column.total_uncompressed_size
            else:
                size += group.num_rows * kind.bit_width // 8
        return _Size(rows=group.num_rows, size_bytes=size)


def _pieces(groups: Sequence[_Size]) -> Iterator[int]:
    """The rows of each piece: of some row groups together, or of a part of a large one."""
    rows = size = 0
    for group in groups:
        if rows and size + group.size_bytes > PIECE_BYTES_USEFUL:
            yield from _cut(rows, size)
            rows = size = 0
        rows += group.rows
        size += group.size_bytes
    yield from _cut(rows, size)


def _cut(rows: int, size_bytes: int) -> Iterator[int]:
    rows_each = max(1, -(-rows // -(-size_bytes // PIECE_BYTES_MAX)))
    for start in range(0, rows, rows_each):
        yield min(rows_each, rows - start)
