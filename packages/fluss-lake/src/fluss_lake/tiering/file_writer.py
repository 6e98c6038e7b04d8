"""Writes batches of rows into Parquet files of one bucket, each of about the requested size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.io import FileIO
from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema

from fluss_lake.file_plan import OFFSET
from fluss_lake.iceberg_writes import ParquetFile, arrow_schema, remove_files
from fluss_lake.tiering.lake_target import LakeTarget, properties_of

# Rows are collected until a row group is so large: a smaller one is not worth its statistics.
GROUP_BYTES: Final = 32 * 1024 * 1024
GROUP_ROWS: Final = 1_048_576


@dataclass(slots=True, kw_only=True, eq=False)
class FileWriter:
    """Writes rows, or deletes, of one bucket.

    Args:
        io: The file system of the lake.
        target: The table.
        record: The partition values of the files.
        name: The prefix of the files' names.
        file_bytes: A file of this size is closed, and the next one is opened.
        equality_ids: The ids of the key columns of a delete file; empty for a file of rows.
    """

    io: FileIO
    target: LakeTarget
    record: tuple[Any, ...]
    name: str
    file_bytes: int
    equality_ids: Sequence[int] = ()
    rows: int = 0
    files: list[DataFile] = field(default_factory=list)
    _open: ParquetFile | None = None
    _opened: list[str] = field(default_factory=list)
    _waiting: list[pa.RecordBatch] = field(default_factory=list)
    _waiting_rows: int = 0
    _waiting_bytes: int = 0

    @property
    def schema(self) -> Schema:
        """The columns that are written."""
        return self.target.key_schema if self.equality_ids else self.target.schema

    def write(self, batch: pa.RecordBatch) -> None:
        """Write rows. Their columns have the names of the lake's columns, in any order."""
        for piece in _cut(batch):
            self._waiting.append(piece)
            self._waiting_rows += piece.num_rows
            self._waiting_bytes += piece.nbytes
            if self._waiting_bytes >= GROUP_BYTES or self._waiting_rows >= GROUP_ROWS:
                self._write_group()

    def finish(self) -> list[DataFile]:
        """Close the last file, and return all files."""
        self._write_group()
        self._end_file()
        return self.files

    def abandon(self) -> None:
        """Remove all files."""
        if self._open is not None:
            self._open.abandon()
        remove_files(self.io, self._opened)

    def _write_group(self) -> None:
        if not self._waiting_rows:
            return
        rows = pa.Table.from_batches(self._waiting)
        self._waiting, self._waiting_rows, self._waiting_bytes = [], 0, 0
        if self._open is None:
            self._open = self._new_file()
        self._open.write(lake_rows(rows, arrow_schema(self.schema), self.schema))
        self.rows += rows.num_rows
        if self._open.size_bytes >= self.file_bytes:
            self._end_file()

    def _new_file(self) -> ParquetFile:
        path = self.target.path(self.record, f"{self.name}-{len(self._opened)}.parquet")
        self._opened.append(path)
        return ParquetFile(self.io, path, self.schema, properties_of(self.target), (OFFSET,))

    def _end_file(self) -> None:
        if self._open is not None:
            self.files.append(
                self._open.finish(
                    partition=self.record,
                    spec_id=self.target.spec.spec_id,
                    equality_ids=self.equality_ids,
                )
            )
            self._open = None


def lake_rows(rows: pa.Table, requested: pa.Schema, schema: Schema) -> pa.Table:
    """Rows with the types that they have in the lake.

    Times are truncated to microseconds, as Fluss's own job does.
    """
    columns = []
    for field_, arrow_field in zip(schema.fields, requested, strict=True):
        columns.append(lake_column(rows.column(field_.name), arrow_field.type))
    return pa.Table.from_arrays(columns, schema=requested)


def lake_column(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """A column with the type that it has in the lake."""
    if column.type.equals(kind):
        return column
    if pa.types.is_decimal(column.type) or not _loses_digits(column.type):
        return column.cast(kind)
    return pc.cast(column, options=pc.CastOptions(kind, allow_time_truncate=True))


def _loses_digits(kind: pa.DataType) -> bool:
    if pa.types.is_temporal(kind):
        return True
    return any(_loses_digits(kind.field(each).type) for each in range(kind.num_fields))


def _cut(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Cut a batch into pieces that are no larger than a row group."""
    if batch.num_rows == 0:
        return
    pieces = max(1, -(-batch.nbytes // GROUP_BYTES), -(-batch.num_rows // GROUP_ROWS))
    size = -(-batch.num_rows // pieces)
    for start in range(0, batch.num_rows, size):
        yield batch.slice(start, size)
