"""Reads CSV as batches: a header, then records, whose cells are parsed as the table's types.

An empty cell is NULL, and `""` is an empty text; nothing else stands for NULL. Within quotes, texts
may hold commas, quotes and line breaks. In a file of one column an empty line is a NULL; in others
it is skipped.

Arrow's reader splits blocks into cells, and `cell_parsing` parses them. A block must end where
a record ends, and whether a line break is within quotes depends on all quotes before it. So a
marker record is added after each block: if it does not come out whole, the block ended in quotes.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyarrow import csv as arrow_csv

from fluss.cli.files.byte_sources import ByteSource
from fluss.cli.files.cell_parsing import CellError, values_of
from fluss.cli.files.json_file import LineError, parse_json_value, values_of_json
from fluss.errors import InvalidValueError, LimitExceededError

BLOCK_BYTES: Final = 4 << 20
RECORD_BYTES_MAX: Final = 64 << 20
_PEEK_BYTES: Final = 1 << 20
_ENDS_TRIED_MAX: Final = 100
_LAST_CELL: Final = b"\x1eend of the block\x1e"


def csv_header_of(source: ByteSource, file: str) -> list[str]:
    """Return the names of the columns without consuming them.

    Raises:
        InvalidValueError: The file has no header, or a name occurs twice in it.
    """
    # The decoder drops a character that is cut off at the end.
    text = codecs.getincrementaldecoder("utf-8")("replace").decode(source.peek(_PEEK_BYTES))
    names: list[str] | None = next(_records(io.StringIO(text, newline="")), None)
    if not names:
        raise InvalidValueError(
            f"{file} is empty, or begins with an empty line.",
            hint="the first line of CSV has the names of the columns",
        )
    twice = [each for each in names if names.count(each) > 1]
    if twice:
        raise InvalidValueError(f"{file} has two columns {twice[0]!r}.", hint="rename one of them")
    return names


def csv_batches(
    source: ByteSource, names: Sequence[str], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Read the rows of CSV.

    Args:
        source: The file, from its header on.
        names: The names that `csv_header_of` returned.
        schema: The types of the table; columns that the table lacks are read as texts.

    Raises:
        LineError: A record has too few or too many cells, or a cell is not of its column's type.
    """
    kinds = [_kind_of(schema, each) for each in names]
    out = pa.schema(list(zip(names, kinds, strict=True)))
    for cells in _cells(source, names):
        columns = [
            _column(cells.column(index), name, kind)
            for index, (name, kind) in enumerate(zip(names, kinds, strict=True))
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=out)


def sample_cells(source: ByteSource, names: Sequence[str], size: int) -> pa.Table:
    """Return cells of the next records as texts, without consuming them."""
    found = source.peek(size)
    is_all = len(found) < size
    cells = _read(found, names, has_header=True, on_wrong=lambda _: "skip")
    whole = cells if is_all else cells.slice(0, max(cells.num_rows - 1, 0))  # one may be cut
    return pa.table({name: _decoded(whole.column(name)) for name in names})


def line_of_record(source: ByteSource, row: int) -> int:
    """Return the line in which the record of a row begins; the header is not a row."""
    stream = io.BufferedReader(ByteSourceFile(source), _PEEK_BYTES)
    lines = _records(io.TextIOWrapper(stream, encoding="utf-8", errors="replace", newline=""))
    header: list[str] = next(lines, [])
    begins, seen = int(lines.line_num) + 1, 0
    for record in lines:
        if record or len(header) == 1:
            if seen == row:
                break
            seen += 1
        begins = int(lines.line_num) + 1
    return begins


class ByteSourceFile(io.RawIOBase):
    """A `ByteSource` with the interface of a Python file."""

    def __init__(self, source: ByteSource) -> None:
        self._source = source

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        found = self._source.read(len(into))
        into[: len(found)] = found
        return len(found)


def _records(stream: Any) -> Any:
    csv.field_size_limit(RECORD_BYTES_MAX)
    return csv.reader(stream)


# --- blocks ---------------------------------------------------------------------------------------


class _WithinQuotesError(Exception):
    """A block ends within quotes that its last record opens."""

    def __init__(self, rows: int) -> None:
        super().__init__(rows)
        self.rows = rows


@dataclass(slots=True)
class _BlockStart:
    """The position at which a block begins.

    Args:
        rows: How many rows come before.
        has_header: Whether its first record is the header.
    """

    rows: int = 0
    has_header: bool = True


def _cells(source: ByteSource, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Read all cells as bytes; an empty cell is NULL."""
    start = _BlockStart()
    left = b""
    while True:
        more = source.read(BLOCK_BYTES)
        left += more
        if len(more) < BLOCK_BYTES:
            break
        for end in _ends(left):
            try:
                cells = _whole(left[:end], names, start)
            except _WithinQuotesError:
                continue
            left = left[end:]
            start = _BlockStart(start.rows + cells.num_rows, has_header=False)
            yield cells
            break
        if len(left) > RECORD_BYTES_MAX:
            raise LimitExceededError(
                f"The record of row {start.rows + 1:,} has more than {RECORD_BYTES_MAX:,} bytes.",
                hint="an unclosed quote makes one record of everything after it",
            )
    try:
        yield _whole(left, names, start)
    except _WithinQuotesError as error:
        why = CellError("The record", "opens a quote that is never closed")
        raise LineError(start.rows + error.rows, None, why) from None


def _ends(block: bytes) -> Iterator[int]:
    """Return ends of records, likely ones first: the last outside of quotes, then the last."""
    line_end = b"\n" if b"\n" in block else b"\r"
    last = end = block.rfind(line_end)
    quotes = block.count(b'"', 0, max(end, 0))
    for _ in range(_ENDS_TRIED_MAX):
        if end < 0 or quotes % 2 == 0:
            break
        # An odd number of quotes: the last one is open, and a record ends before it.
        before = block.rfind(line_end, 0, block.rfind(b'"', 0, end))
        quotes -= block.count(b'"', max(before, 0), end)
        end = before
    for position in dict.fromkeys((end, last)):
        if position >= 0:
            yield position + 1


def _whole(block: bytes, names: Sequence[str], start: _BlockStart) -> pa.RecordBatch:
    """Split a block that ends where a record ends into cells.

    Raises:
        _WithinQuotesError: The block ends within a record.
        LineError: A record has another number of cells than the header.
    """
    wrong: list[Any] = []

    def refuse(record: Any) -> str:
        wrong.append(record)
        return "error"

    closing = b"" if not block or block.endswith((b"\n", b"\r")) else b"\n"
    marker = b"," * (len(names) - 1) + _LAST_CELL + b"\n"
    try:
        cells = _read(block + closing + marker, names, has_header=start.has_header, on_wrong=refuse)
    except pa.ArrowInvalid as error:
        if not wrong:
            raise InvalidValueError(f"The file cannot be read as CSV: {error}.") from error
        record = wrong[0]
        row = record.number - (2 if start.has_header else 1)  # Arrow counts from 1
        if _LAST_CELL.decode() in record.text:
            raise _WithinQuotesError(row) from None
        why = f"has {record.actual_columns} cells, and the header has {record.expected_columns}"
        raise LineError(start.rows + row, None, CellError(record.text, why)) from None
    last = cells.num_rows - 1
    if cells.column(len(names) - 1)[last].as_py() != _LAST_CELL:
        raise _WithinQuotesError(last)
    return cells.slice(0, last)


def _read(data: bytes, names: Sequence[str], *, has_header: bool, on_wrong: Any) -> pa.RecordBatch:
    table = arrow_csv.read_csv(
        pa.BufferReader(data),
        read_options=arrow_csv.ReadOptions(
            use_threads=False,
            block_size=len(data) + 1,
            column_names=None if has_header else list(names),
        ),
        parse_options=arrow_csv.ParseOptions(
            newlines_in_values=True,
            ignore_empty_lines=len(names) > 1,
            invalid_row_handler=on_wrong,
        ),
        convert_options=arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.binary()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    return pa.RecordBatch.from_arrays(
        [each.combine_chunks() for each in table.columns], names=list(names)
    )


# --- cells ----------------------------------------------------------------------------------------


def _kind_of(schema: pa.Schema, name: str) -> pa.DataType:
    index = schema.get_field_index(name)
    return pa.string() if index < 0 else schema.field(index).type


def _column(cells: pa.Array, name: str, kind: pa.DataType) -> pa.Array:
    try:
        texts = _decoded(cells)
        return _nested(texts, kind) if pa.types.is_nested(kind) else values_of(texts, kind)
    except CellError as error:
        raise LineError(error.index, name, error) from None


def _decoded(cells: pa.Array) -> pa.Array:
    try:
        return cells.cast(pa.string())
    except pa.ArrowInvalid:
        for row, cell in enumerate(cells.to_pylist()):
            try:
                (cell or b"").decode()
            except UnicodeDecodeError as error:
                shown = cell.decode(errors="replace")
                raise CellError(shown, f"is not UTF-8 (byte {error.start})", index=row) from None
        raise


def _nested(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    values: list[Any] = []
    for row, text in enumerate(texts.to_pylist()):
        try:
            values.append(None if text is None else parse_json_value(text))
        except CellError as error:
            raise error.at(row) from None
    return values_of_json(values, kind)
