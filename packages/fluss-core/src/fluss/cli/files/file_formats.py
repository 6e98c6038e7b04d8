"""File formats (Parquet, CSV, JSON lines, Arrow) and writing them. Reading is in `row_files`.

A file is written under a temporary name in the same directory and renamed when it is complete.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, Self

import pyarrow as pa
from pyarrow import ipc

from fluss.cli.files.byte_sources import COMPRESSIONS, STANDARD
from fluss.cli.files.cell_texts import csv_header, csv_lines, json_lines
from fluss.cli.files.format_names import FileFormat
from fluss.errors import InvalidValueError

PART_BYTES: Final = 16 << 20
# Rows are gathered into row groups of Parquet, which are read one by one.
GROUP_BYTES: Final = 64 << 20
GROUP_ROWS: Final = 1_000_000
Write = Callable[[pa.RecordBatch], None]


_SUFFIXES: Final = {
    ".parquet": FileFormat.PARQUET,
    ".pq": FileFormat.PARQUET,
    ".csv": FileFormat.CSV,
    ".json": FileFormat.JSON,
    ".jsonl": FileFormat.JSON,
    ".ndjson": FileFormat.JSON,
    ".arrow": FileFormat.ARROW,
    ".arrows": FileFormat.ARROW,
    ".feather": FileFormat.ARROW,
    ".ipc": FileFormat.ARROW,
}


def format_of(file: str, chosen: FileFormat | None) -> FileFormat:
    """Return the format of a file: as chosen, or by its name (`rows.csv.gz`); JSON lines in a pipe.

    Raises:
        InvalidValueError: The suffix of the name is unknown.
    """
    if chosen is not None:
        return chosen
    if file == STANDARD:
        return FileFormat.JSON
    path = Path(file)
    while path.suffix.lower() in COMPRESSIONS:
        path = path.with_suffix("")
    found = _SUFFIXES.get(path.suffix.lower())
    if found is None:
        raise InvalidValueError(
            f"The name of {file} does not show its format.",
            hint=f"--file-format {' | '.join(FileFormat)}",
        )
    return found


@contextmanager
def open_sink(file: str, file_format: FileFormat, schema: pa.Schema) -> Iterator[Write]:
    """Open a file for batches; on an error nothing is left of it.

    Args:
        file: Its path, or `-`.
        file_format: Its format.
        schema: The columns.
    """
    if file == STANDARD:
        out = standard_output()
        with ExitStack() as stack:
            yield _writer(out, file_format, schema, stack)
        out.flush()
        return
    if Path(file).exists() and not Path(file).is_file():  # a pipe or a device is not replaced
        with open_file(Path(file), file_format, schema) as write:
            yield write
        return
    path = Path(file).resolve()
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        with open_file(unfinished, file_format, schema) as write:
            yield write
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


@contextmanager
def open_file(
    path: Path, file_format: FileFormat, schema: pa.Schema, *, group_bytes: int = GROUP_BYTES
) -> Iterator[Write]:
    """Open a path for batches; what is written stays there, whether it is complete or not.

    Args:
        path: The path.
        file_format: The format.
        schema: The columns.
        group_bytes: How many bytes of rows become a row group of Parquet.
    """
    with path.open("wb") as opened, ExitStack() as stack:
        yield _writer(opened, file_format, schema, stack, group_bytes)


def standard_output() -> BinaryIO:
    """Return the standard output for bytes; the writer flushes it."""
    sys.stdout.flush()
    out = sys.stdout.buffer
    if isinstance(out, io.RawIOBase):  # python -u; it may write less than it is given
        return os.fdopen(sys.stdout.fileno(), "wb", closefd=False)
    return out


def _writer(
    out: BinaryIO,
    file_format: FileFormat,
    schema: pa.Schema,
    stack: ExitStack,
    group_bytes: int = GROUP_BYTES,
) -> Write:
    match file_format:
        case FileFormat.PARQUET:
            from pyarrow import parquet as pq

            groups = _RowGroups(pq.ParquetWriter(out, schema), schema, group_bytes)
            return stack.enter_context(groups).write
        case FileFormat.ARROW:
            return _batches(stack.enter_context(ipc.new_stream(out, schema)))
        case FileFormat.JSON:
            return text_writer(out, json_lines)
        case FileFormat.CSV:
            out.write(csv_header(schema.names))
            return text_writer(out, csv_lines)


class _RowGroups:
    """Gathers batches into row groups: a small group for each batch would be slow to read."""

    def __init__(self, writer: Any, schema: pa.Schema, group_bytes: int) -> None:
        self._writer, self._schema, self._group_bytes = writer, schema, group_bytes
        self._batches: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Take a batch, and write the gathered ones if they are enough."""
        self._batches.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._bytes >= self._group_bytes or self._rows >= GROUP_ROWS:
            self._write_group()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self._write_group()
            self._writer.close()
            return
        # The file is thrown away; its footer may meet the same error, a full disk for example.
        with suppress(OSError, pa.ArrowException):
            self._writer.close()

    def _write_group(self) -> None:
        if self._batches:
            group = pa.Table.from_batches(self._batches, self._schema)
            self._writer.write_table(group, row_group_size=max(1, group.num_rows))
        self._batches, self._rows, self._bytes = [], 0, 0


def _batches(writer: Any) -> Write:
    write: Write = writer.write_batch
    return write


def text_writer(out: BinaryIO, lines_of: Callable[[pa.RecordBatch], memoryview]) -> Write:
    """Return a function that writes the lines of batches, in parts that fit into memory."""

    def write(batch: pa.RecordBatch) -> None:
        parts = max(1, -(-batch.nbytes // PART_BYTES))
        step = max(1, -(-batch.num_rows // parts))
        out.writelines(
            lines_of(batch.slice(start, step)) for start in range(0, batch.num_rows, step)
        )

    return write
