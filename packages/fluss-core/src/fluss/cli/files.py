"""Files of rows as streams of batches: Parquet, CSV, JSON lines and Arrow, read and written."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO, Final

import pyarrow as pa
from pyarrow import ipc

from fluss.cli.output import csv_cell, plain_value
from fluss.errors import InvalidValueError

STANDARD: Final = "-"
Write = Callable[[pa.RecordBatch], None]


class FileFormat(StrEnum):
    """What a file of rows is."""

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
    """What a file is: what was said, or what its name says; JSON lines in a pipe.

    Raises:
        InvalidValueError: Nobody says.
    """
    if chosen is not None:
        return chosen
    if file == STANDARD:
        return FileFormat.JSON
    found = _SUFFIXES.get(Path(file).suffix.lower())
    if found is None:
        raise InvalidValueError(
            f"What {file} is, its name does not say.",
            hint=f"--file-format {' | '.join(FileFormat)}",
        )
    return found


def open_rows(file: str, form: FileFormat) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The columns of a file, and its rows.

    Raises:
        InvalidValueError: There is no such file, or it is not what it should be.
    """
    try:
        return _READERS[form](file)
    except FileNotFoundError:
        raise InvalidValueError(f"There is no file {file}.") from None
    except (OSError, pa.ArrowException) as error:
        raise InvalidValueError(f"{file} cannot be read as {form.value}: {error}") from error


def _parquet(file: str) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    from pyarrow import parquet as pq

    if file == STANDARD:
        opened = pq.ParquetFile(
            pa.BufferReader(sys.stdin.buffer.read())
        )  # has its index at the end
    else:
        opened = pq.ParquetFile(file)
    return opened.schema_arrow, opened.iter_batches()


def _csv(file: str) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    from pyarrow import csv

    reader = csv.open_csv(_source(file))
    return reader.schema, iter(reader)


def _json(file: str) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    from pyarrow import json as arrow_json

    reader = arrow_json.open_json(_source(file))
    return reader.schema, iter(reader)


def _arrow(file: str) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    if file != STANDARD and _is_arrow_file(file):
        opened = ipc.open_file(pa.memory_map(file))
        return opened.schema, (opened.get_batch(each) for each in range(opened.num_record_batches))
    reader = ipc.open_stream(_source(file))
    return reader.schema, iter(reader)


_READERS: Final = {
    FileFormat.PARQUET: _parquet,
    FileFormat.CSV: _csv,
    FileFormat.JSON: _json,
    FileFormat.ARROW: _arrow,
}


def _source(file: str) -> Any:
    return sys.stdin.buffer if file == STANDARD else file


def _is_arrow_file(file: str) -> bool:
    with Path(file).open("rb") as opened:
        return opened.read(6) == b"ARROW1"


@contextmanager
def open_sink(file: str, form: FileFormat, schema: pa.Schema) -> Iterator[Write]:
    """A file to write batches to; what was begun and failed is not left lying about.

    Args:
        file: Its path, or `-`.
        form: What it shall be.
        schema: The columns.
    """
    if file == STANDARD:
        with ExitStack() as stack:
            yield _writer(sys.stdout.buffer, form, schema, stack)
        sys.stdout.buffer.flush()
        return
    path = Path(file)
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        with unfinished.open("wb") as opened, ExitStack() as stack:
            yield _writer(opened, form, schema, stack)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _writer(out: BinaryIO, form: FileFormat, schema: pa.Schema, stack: ExitStack) -> Write:
    match form:
        case FileFormat.PARQUET:
            from pyarrow import parquet as pq

            return _batches(stack.enter_context(pq.ParquetWriter(out, schema)))
        case FileFormat.ARROW:
            return _batches(stack.enter_context(ipc.new_stream(out, schema)))
        case FileFormat.JSON:
            return lambda batch: _write_json(out, batch)
        case FileFormat.CSV:
            return _csv_writer(out, schema, stack)


def _batches(writer: Any) -> Write:
    write: Write = writer.write_batch
    return write


def _write_json(out: BinaryIO, batch: pa.RecordBatch) -> None:
    out.writelines(
        json.dumps(row, ensure_ascii=False, default=plain_value).encode() + b"\n"
        for row in batch.to_pylist()
    )


def _csv_writer(out: BinaryIO, schema: pa.Schema, stack: ExitStack) -> Write:
    """Arrow's writer where it can, cell by cell where a column is nested or binary."""
    from pyarrow import csv

    if not any(pa.types.is_nested(each) or pa.types.is_binary(each) for each in schema.types):
        return _batches(stack.enter_context(csv.CSVWriter(out, schema)))
    import csv as python_csv
    import io

    text = io.TextIOWrapper(out, encoding="utf-8", newline="")
    stack.callback(text.detach)  # the file itself is closed by whoever opened it
    writer = python_csv.writer(text, lineterminator="\n")
    writer.writerow(schema.names)

    def write(batch: pa.RecordBatch) -> None:
        columns = [map(csv_cell, each.to_pylist()) for each in batch.columns]
        writer.writerows(zip(*columns, strict=True))
        text.flush()

    return write
