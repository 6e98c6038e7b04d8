"""Reads files of rows in any format: Parquet, CSV, JSON lines and Arrow.

CSV and JSON carry no types: their values are parsed as the types of the table. Parquet and Arrow
do; their columns are cast when the table is written. An error names the file, the line (or the row,
where a file has no lines), the column and the value.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import Any, Final

import pyarrow as pa
from pyarrow import ipc

from fluss.cli.byte_sources import ByteSource, can_be_read_again, seekable
from fluss.cli.csv_file import (
    ByteSourceFile,
    csv_batches,
    csv_header_of,
    line_of_record,
    sample_cells,
)
from fluss.cli.file_formats import FileFormat
from fluss.cli.inference import fields_of_json, type_of_texts
from fluss.cli.json_file import LineError, json_batches, lines_in, parsed_lines
from fluss.errors import InvalidValueError
from fluss.model.did_you_mean import did_you_mean
from fluss.scan import METADATA_TYPES

SAMPLE_BYTES: Final = 4 << 20
_SHOWN_MAX: Final = 60
_ARROW_MAGIC: Final = b"ARROW1"
_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")  # the marks that begin such a file


class RowFile:
    """One file of rows. Its schema may be asked for before its rows, which are read once.

    Args:
        file: A path, or `-`.
        file_format: Its format.

    Raises:
        InvalidValueError: The file cannot be opened, or has another format.
    """

    def __init__(self, file: str, file_format: FileFormat) -> None:
        self.file = file
        self._file_format = file_format
        self._opened: Any
        self._source: ByteSource | None = None
        self._closing = ExitStack()
        with _refused_as(file, file_format):
            match file_format:
                case FileFormat.PARQUET:
                    from pyarrow import parquet as pq

                    self._opened = pq.ParquetFile(self._ours(seekable(file)))
                case FileFormat.ARROW:
                    self._opened = self._open_arrow()
                case _:
                    self._opened = self._source = self._ours(ByteSource(file))
                    if self._source.peek(len(_UTF_16[0])) in _UTF_16:
                        raise InvalidValueError(
                            f"{file} is in UTF-16, and {file_format.value} is read as UTF-8.",
                            hint=f"iconv -f utf-16 -t utf-8 {file}",
                        )

    def close(self) -> None:
        """Close the file."""
        self._closing.close()

    def stop(self) -> None:
        """Make the threads that read the file see its end now."""
        if self._source is not None:
            self._source.stop()

    def _ours(self, opened: Any) -> Any:
        self._closing.callback(opened.close)
        return opened

    def _open_arrow(self) -> Any:
        if not can_be_read_again(self.file):
            self._source = self._ours(ByteSource(self.file))
            return ipc.open_stream(io.BufferedReader(ByteSourceFile(self._source)))
        opened = self._ours(pa.memory_map(self.file))
        is_file = opened.read(len(_ARROW_MAGIC)) == _ARROW_MAGIC
        opened.seek(0)
        return ipc.open_file(opened) if is_file else ipc.open_stream(opened)

    def schema(self, types: Mapping[str, pa.Field]) -> pa.Schema:
        """Return the columns of a table for this file: its own, or inferred from a sample.

        Args:
            types: The columns whose type is given; these are not inferred.

        Raises:
            InvalidValueError: The file has no columns, or lacks one of `types`.
        """
        with _refused_as(self.file, self._file_format):
            found = self._natural_schema()
        unknown = [name for name in types if name not in found.names]
        if unknown:
            raise InvalidValueError(
                f"{self.file} has no column {unknown[0]!r}.",
                hint=did_you_mean(unknown[0], found.names),
            )
        fields = [types.get(field.name, field) for field in found]
        return pa.schema(fields, metadata=found.metadata)

    def batches(self, schema: pa.Schema, optional: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
        """Read the rows; those of CSV and JSON with the types of a table.

        Args:
            schema: The columns of the table.
            optional: Columns that JSON lines may lack; they are read if the first line has them.

        Raises:
            InvalidValueError: A row cannot be read; the facts name the row and the reason.
        """
        before = 0
        try:
            with _refused_as(self.file, self._file_format):
                for batch in self._read(schema, optional):
                    yield batch
                    before += batch.num_rows
        except LineError as error:
            raise self._located(error, before) from None

    def location_of(self, row: int) -> str:
        """Describe the location of a row: a line, if the file has lines and can be read again."""
        if self._file_format in {FileFormat.CSV, FileFormat.JSON} and can_be_read_again(self.file):
            find = line_of_record if self._file_format is FileFormat.CSV else _line_of_row
            with closing(ByteSource(self.file)) as source:
                line = find(source, row)
            return f"{self.file}, line {line:,}"
        return f"{self.file}, row {row + 1:,}"

    def _natural_schema(self) -> pa.Schema:
        match self._file_format:
            case FileFormat.PARQUET:
                return self._opened.schema_arrow
            case FileFormat.ARROW:
                return self._opened.schema
            case FileFormat.CSV:
                names = csv_header_of(self._opened, self.file)
                cells = sample_cells(self._opened, names, SAMPLE_BYTES)
                return pa.schema(
                    [(name, type_of_texts(cells.column(name).to_pylist())) for name in names]
                )
            case _:
                return self._json_schema()

    def _json_schema(self) -> pa.Schema:
        sample = self._opened.peek(SAMPLE_BYTES)
        if len(sample) == SAMPLE_BYTES:
            sample = sample[: sample.rfind(b"\n") + 1] or sample
        try:
            rows = [parsed for _, parsed in parsed_lines(sample)]
        except LineError as error:
            raise self._located(error, 0) from None
        objects = [each for each in rows if isinstance(each, dict)]
        if not objects:
            raise InvalidValueError(
                f"{self.file} has no rows to infer the columns of a table from.",
                hint="create the table first, and import without --create",
            )
        return pa.schema(list(fields_of_json(objects)))

    def _read(self, schema: pa.Schema, optional: Sequence[str]) -> Iterator[pa.RecordBatch]:
        match self._file_format:
            case FileFormat.PARQUET:
                yield from self._opened.iter_batches()
            case FileFormat.ARROW:
                yield from _arrow_batches(self._opened)
            case FileFormat.CSV:
                names = csv_header_of(self._opened, self.file)
                yield from csv_batches(self._opened, names, schema)
            case _:
                yield from json_batches(
                    self._opened, *_json_columns(self._opened, schema, optional)
                )

    def _located(self, error: LineError, before: int) -> InvalidValueError:
        row = before + error.row
        cell = error.error
        column = None if error.column is None else f"{error.column}{cell.inside}"
        where = self.location_of(row) + ("" if column is None else f", column {column!r}")
        text = cell.text if len(cell.text) <= _SHOWN_MAX else f"{cell.text[:_SHOWN_MAX]}…"
        return InvalidValueError(
            f"{where}: {text!r} {cell.why}.",
            hint=cell.hint,
            file=self.file,
            file_row=row,
            column=column,
            value=cell.text,
        )


def _json_columns(
    source: ByteSource, schema: pa.Schema, optional: Sequence[str]
) -> tuple[pa.Schema, list[str]]:
    """Return the columns to read from JSON lines, and all keys that a line may have.

    Metadata columns, which a scan adds, are read as well if the first line has them.
    """
    first = source.peek(SAMPLE_BYTES).lstrip().partition(b"\n")[0]
    try:
        found = [parsed for _, parsed in parsed_lines(first)]
    except LineError:
        found = []  # the reader reports the error
    keys = found[0] if found and isinstance(found[0], dict) else {}
    added = [each for each in METADATA_TYPES if each in keys and each not in schema.names]
    own = [each for each in schema if each.name in keys or each.name not in optional]
    fields = [*own, *(pa.field(each, pa.string()) for each in added)]
    return pa.schema(fields), [each.name for each in fields]


def _line_of_row(source: ByteSource, row: int) -> int:
    seen = 0
    number = 0
    for number, is_row in enumerate(lines_in(source), 1):  # noqa: B007 - the last one counts
        if is_row and seen == row:
            break
        seen += is_row
    return number


def _arrow_batches(opened: Any) -> Iterator[pa.RecordBatch]:
    if isinstance(opened, ipc.RecordBatchFileReader):
        for index in range(opened.num_record_batches):
            yield opened.get_batch(index)
        return
    yield from opened


@contextmanager
def _refused_as(file: str, file_format: FileFormat) -> Iterator[None]:
    """Turn errors of Arrow and of the system into one that names the file."""
    try:
        yield
    except FileNotFoundError:
        raise InvalidValueError(f"There is no file {file}.") from None
    except (OSError, pa.ArrowException) as error:
        why = getattr(error, "strerror", None) or error
        raise InvalidValueError(f"{file} cannot be read as {file_format.value}: {why}.") from error
