"""Reads files of rows in any format: Parquet, CSV, JSON lines and Arrow.

CSV and JSON carry no types: their values are parsed as the types of the table. Parquet and Arrow
do; their columns are cast when the table is written. An error names the file, the line (or the row,
where a file has no lines), the column and the value.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyarrow import ipc

from fluss.cli.files.byte_sources import STANDARD, ByteSource, can_be_read_again, seekable
from fluss.cli.files.cell_parsing import CellError, values_of
from fluss.cli.files.csv_file import (
    ByteSourceFile,
    csv_batches,
    csv_header_of,
    line_of_record,
    sample_cells,
)
from fluss.cli.files.format_names import FileFormat
from fluss.cli.files.inference import fields_of_json, type_of_texts
from fluss.cli.files.json_file import LineError, json_batches, lines_in, parsed_lines
from fluss.errors import InvalidValueError
from fluss.model.did_you_mean import did_you_mean
from fluss.scan import METADATA_TYPES

SAMPLE_BYTES: Final = 4 << 20
PARQUET_BUFFER: Final = 1 << 20  # of each column
_SHOWN_MAX: Final = 60
_HOW_TO_READ: Final = "the file may be half-written: copy it again; where it has another format, --file-format names it"
_ARROW_MAGIC: Final = b"ARROW1"
_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")  # the marks that begin such a file


def shown_name(file: str) -> str:
    """Return the name of a file in a message."""
    return "the standard input" if file == STANDARD else file


_CHECKED_BYTES: Final = 8
# How files begin that are no text, what they are, and how they are imported.
_BINARY: Final = {
    b"PAR1": ("a Parquet file", "--file-format parquet"),
    b"ARROW1": ("an Arrow file", "--file-format arrow"),
    b"PK\x03\x04": (
        "a ZIP archive, as those of Excel are",
        "import the files in it, or a CSV of it",
    ),
    b"\x1f\x8b": (
        "compressed with gzip",
        "its name must end in .gz; or zcat FILE | fluss import ... -",
    ),
}


class RowFile:
    """One file of rows. Its schema may be asked for before its rows, which are read once.

    Args:
        file: A path, or `-`.
        file_format: Its format.
        folder_values: Columns that its folders name, as texts; the file itself comes first.

    Raises:
        InvalidValueError: The file cannot be opened, or has another format.
    """

    def __init__(
        self,
        file: str,
        file_format: FileFormat,
        folder_values: Mapping[str, str | None] | None = None,
    ) -> None:
        self.file = file
        self._file_format = file_format
        self._folder_values = dict(folder_values or {})
        self._rows_read = 0
        self._opened: Any
        self._arrow_fraction = 0.0
        self._source: ByteSource | None = None
        self._row_groups: list[int] = []
        self._first_row_group = 0
        self._closing = ExitStack()
        with _refused_as(file, file_format):
            match file_format:
                case FileFormat.PARQUET:
                    from pyarrow import parquet as pq

                    # Arrow's buffering ahead would keep the bytes of the whole file until its end.
                    self._opened = pq.ParquetFile(
                        self._ours(seekable(file)), pre_buffer=False, buffer_size=PARQUET_BUFFER
                    )
                    self._row_groups = _row_counts(self._opened.metadata)
                case FileFormat.ARROW:
                    self._opened = self._open_arrow()
                case _:
                    self._opened = self._source = self._ours(ByteSource(file))
                    _check_text(self._source.peek(_CHECKED_BYTES), file, file_format)

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
        opened = self._ours(seekable(self.file))
        is_file = opened.read(len(_ARROW_MAGIC)) == _ARROW_MAGIC
        opened.seek(0)
        return ipc.open_file(opened) if is_file else ipc.open_stream(opened)

    @property
    def fraction_read(self) -> float:
        """How much of the file has been read, from 0 to 1; 0 for a pipe."""
        if self._row_groups:
            return self._rows_read / max(1, sum(self._row_groups))
        if self._source is None:
            return self._arrow_fraction
        size = Path(self.file).stat().st_size if can_be_read_again(self.file) else 0
        return min(1.0, self._source.bytes_read / size) if size else 0.0

    def skip(self, rows: int) -> int:
        """Leave out first rows that need not be decoded, and return how many those are.

        Args:
            rows: How many rows may be left out; in Parquet, whole row groups of them are.
        """
        skipped = 0
        for count in self._row_groups:
            if skipped + count > rows:
                break
            skipped += count
            self._first_row_group += 1
        self._rows_read = skipped
        return skipped

    def schema(
        self, types: Mapping[str, pa.Field], folder_types: Mapping[str, pa.DataType] | None = None
    ) -> pa.Schema:
        """Return the columns of a table for this file: its own, or inferred from a sample.

        Args:
            types: The columns whose type is given; these are not inferred.
            folder_types: The types of the columns that folders name.

        Raises:
            InvalidValueError: The file has no columns, or lacks one of `types`.
        """
        with _refused_as(self.file, self._file_format):
            found = self._natural_schema()
        for name, kind in (folder_types or {}).items():
            if name not in found.names:
                found = found.append(pa.field(name, kind))
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
        before = self._rows_read
        own = {name for name in self._folder_values if name in self._own_names()}
        constants = _constants(
            {k: v for k, v in self._folder_values.items() if k not in own}, schema, self.file
        )
        inner = pa.schema([each for each in schema if each.name not in constants])
        try:
            with _refused_as(self.file, self._file_format):
                for batch in self._read(inner, optional):
                    self._rows_read += batch.num_rows
                    yield _with_constants(batch, constants)
                    before = self._rows_read
        except LineError as error:
            raise self._located(error, before) from None

    def location_of(self, row: int) -> str:
        """Describe the location of a row: a line, if the file has lines and can be read again."""
        if self._file_format in {FileFormat.CSV, FileFormat.JSON} and can_be_read_again(self.file):
            find = line_of_record if self._file_format is FileFormat.CSV else _line_of_row
            with closing(ByteSource(self.file)) as source:
                line = find(source, row)
            return f"{self.file}, line {line:,}"
        return f"{shown_name(self.file)}, row {row + 1:,}"

    def _own_names(self) -> list[str]:
        """Return the names of the columns in the file; of JSON lines, those of the first line."""
        if not self._folder_values:
            return []
        with _refused_as(self.file, self._file_format):
            match self._file_format:
                case FileFormat.PARQUET:
                    names: list[str] = self._opened.schema_arrow.names
                case FileFormat.ARROW:
                    names = self._opened.schema.names
                case FileFormat.CSV:
                    names = csv_header_of(self._opened, self.file)
                case _:
                    names = _first_keys(self._opened)
        return names

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
                groups = range(self._first_row_group, len(self._row_groups))
                yield from self._opened.iter_batches(row_groups=list(groups))
            case FileFormat.ARROW:
                yield from self._arrow_batches()
            case FileFormat.CSV:
                names = csv_header_of(self._opened, self.file)
                yield from csv_batches(self._opened, names, schema)
            case _:
                yield from json_batches(
                    self._opened, *_json_columns(self._opened, schema, optional)
                )

    def _arrow_batches(self) -> Iterator[pa.RecordBatch]:
        if not isinstance(self._opened, ipc.RecordBatchFileReader):
            yield from self._opened
            return
        count = self._opened.num_record_batches
        for index in range(count):
            self._arrow_fraction = (index + 1) / count
            yield self._opened.get_batch(index)

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
    keys = _first_keys(source)
    added = [each for each in METADATA_TYPES if each in keys and each not in schema.names]
    own = [each for each in schema if each.name in keys or each.name not in optional]
    fields = [*own, *(pa.field(each, pa.string()) for each in added)]
    return pa.schema(fields), [each.name for each in fields]


def _first_keys(source: ByteSource) -> list[str]:
    """Return the keys of the first line of JSON, without consuming it."""
    first = source.peek(SAMPLE_BYTES).lstrip().partition(b"\n")[0]
    try:
        found = [parsed for _, parsed in parsed_lines(first)]
    except LineError:
        return []  # the reader reports the error
    return list(found[0]) if found and isinstance(found[0], dict) else []


def _row_counts(metadata: Any) -> list[int]:
    return [metadata.row_group(index).num_rows for index in range(metadata.num_row_groups)]


def _constants(
    values: Mapping[str, str | None], schema: pa.Schema, file: str
) -> dict[str, pa.Scalar]:
    """Parse the columns that the folders of a file name; those that the table lacks stay texts."""
    found = {}
    for name, text in values.items():
        kind = schema.field(name).type if name in schema.names else pa.string()
        try:
            found[name] = values_of(pa.array([text], pa.string()), kind)[0]
        except CellError as error:
            raise InvalidValueError(
                f"{file}: its folder {name}={text} is not a value of the column {name!r}: "
                f"it {error.why}.",
                hint=error.hint,
                column=name,
                value=text,
            ) from None
    return found


def _with_constants(batch: pa.RecordBatch, constants: Mapping[str, pa.Scalar]) -> pa.RecordBatch:
    for name, value in constants.items():
        batch = batch.append_column(name, pa.repeat(value, batch.num_rows))
    return batch


def _line_of_row(source: ByteSource, row: int) -> int:
    seen = 0
    number = 0
    for number, is_row in enumerate(lines_in(source), 1):  # noqa: B007 - the last one counts
        if is_row and seen == row:
            break
        seen += is_row
    return number


def _check_text(begin: bytes, file: str, file_format: FileFormat) -> None:
    """Refuse a file that is no text, by its first bytes."""
    if begin[: len(_UTF_16[0])] in _UTF_16:
        raise InvalidValueError(
            f"{shown_name(file)} is in UTF-16, and {file_format.value} is read as UTF-8.",
            hint=f"iconv -f utf-16 -t utf-8 {file}",
        )
    for magic, (kind, remedy) in _BINARY.items():
        if begin.startswith(magic):
            raise InvalidValueError(
                f"{shown_name(file)} is {kind}, and was to be read as {file_format.value}.",
                hint=remedy,
            )


@contextmanager
def _refused_as(file: str, file_format: FileFormat) -> Iterator[None]:
    """Turn errors of Arrow and of the system into one that names the file."""
    try:
        yield
    except FileNotFoundError:
        raise InvalidValueError(f"There is no file {file}.") from None
    except UnicodeDecodeError as error:
        raise InvalidValueError(
            f"{shown_name(file)} cannot be read as {file_format.value}: it is not UTF-8.",
            hint=_HOW_TO_READ,
        ) from error
    except (OSError, pa.ArrowException) as error:
        why = str(getattr(error, "strerror", None) or error).partition("\n")[0].rstrip(".")
        raise InvalidValueError(
            f"{shown_name(file)} cannot be read as {file_format.value}: {why}.",
            hint=None if isinstance(error, PermissionError) else _HOW_TO_READ,
        ) from error
