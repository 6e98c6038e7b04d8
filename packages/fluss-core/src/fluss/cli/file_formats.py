"""File formats (Parquet, CSV, JSON lines, Arrow) and writing them. Reading is in `cli.row_files`.

A file is written under a temporary name in the same directory and renamed when it is complete.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO, Final

import pyarrow as pa
from pyarrow import ipc

from fluss.cli.byte_sources import STANDARD
from fluss.cli.cell_texts import csv_header, csv_lines, json_lines
from fluss.errors import InvalidValueError

PART_BYTES: Final = 16 << 20
Write = Callable[[pa.RecordBatch], None]


class FileFormat(StrEnum):
    """The format of a file of rows."""

    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"
    ARROW = "arrow"


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
    """Return the format of a file: as chosen, or by its name; JSON lines in a pipe.

    Raises:
        InvalidValueError: The suffix of the name is unknown.
    """
    if chosen is not None:
        return chosen
    if file == STANDARD:
        return FileFormat.JSON
    found = _SUFFIXES.get(Path(file).suffix.lower())
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
        with Path(file).open("wb") as opened, ExitStack() as stack:
            yield _writer(opened, file_format, schema, stack)
        return
    path = Path(file).resolve()
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        with unfinished.open("wb") as opened, ExitStack() as stack:
            yield _writer(opened, file_format, schema, stack)
        unfinished.replace(path)
    except OSError as error:
        if error.filename is not None:
            error.filename = file  # the name that the caller knows
        raise
    finally:
        unfinished.unlink(missing_ok=True)


def standard_output() -> BinaryIO:
    """Return the standard output for bytes; the writer flushes it."""
    sys.stdout.flush()
    out = sys.stdout.buffer
    if isinstance(out, io.RawIOBase):  # python -u; it may write less than it is given
        return os.fdopen(sys.stdout.fileno(), "wb", closefd=False)
    return out


def _writer(out: BinaryIO, file_format: FileFormat, schema: pa.Schema, stack: ExitStack) -> Write:
    match file_format:
        case FileFormat.PARQUET:
            from pyarrow import parquet as pq

            return _batches(stack.enter_context(pq.ParquetWriter(out, schema)))
        case FileFormat.ARROW:
            return _batches(stack.enter_context(ipc.new_stream(out, schema)))
        case FileFormat.JSON:
            return text_writer(out, json_lines)
        case FileFormat.CSV:
            out.write(csv_header(schema.names))
            return text_writer(out, csv_lines)


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
