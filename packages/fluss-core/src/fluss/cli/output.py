"""Rows on the standard output: as a table for people, as JSON lines, CSV or Arrow for programs.

A table is for a screen and shortens what is long; the other forms lose as little as they can:
64-bit integers and decimals keep their digits, bytes are base64, times are ISO 8601.
"""

from __future__ import annotations

import base64
import csv
import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable
from datetime import date, datetime, time
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Final, TextIO

import pyarrow as pa
import typer
from pyarrow import ipc
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from fluss.errors import InvalidValueError

_CELL_CHARS_MAX: Final = 60


class Format(StrEnum):
    """How rows are written."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    ARROW = "arrow"


FormatOption = Annotated[
    Format | None,
    typer.Option("--format", "-o", help="A table on a screen, JSON lines in a pipe, otherwise."),
]


def write_rows(batches: Iterable[pa.RecordBatch], schema: pa.Schema, chosen: Format | None) -> None:
    """Write batches as they come."""
    is_screen = sys.stdout.isatty()
    chosen = chosen or (Format.TABLE if is_screen else Format.JSON)
    if chosen is Format.ARROW and is_screen:
        raise InvalidValueError(
            "Arrow is not for screens.", hint="write it to a file or a pipe: ... -o arrow > rows"
        )
    writer = _WRITERS[chosen](schema)
    for each in batches:
        writer.write(each)
    writer.close()


class _Writer(ABC):
    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema

    @abstractmethod
    def write(self, batch: pa.RecordBatch) -> None:
        """Write some rows."""

    def close(self) -> None:
        """Write what belongs at the end."""
        sys.stdout.flush()


class _JsonLines(_Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        for row in batch.to_pylist():
            sys.stdout.write(json.dumps(row, ensure_ascii=False, default=plain_value) + "\n")
        sys.stdout.flush()


class _Csv(_Writer):
    def __init__(self, schema: pa.Schema, out: TextIO | None = None) -> None:
        super().__init__(schema)
        self._writer = csv.writer(out or sys.stdout, lineterminator="\n")
        self._writer.writerow(schema.names)

    def write(self, batch: pa.RecordBatch) -> None:
        columns = [each.to_pylist() for each in batch.columns]
        self._writer.writerows(zip(*(map(csv_cell, each) for each in columns), strict=True))
        sys.stdout.flush()


class _Arrow(_Writer):
    def __init__(self, schema: pa.Schema) -> None:
        super().__init__(schema)
        self._writer = ipc.new_stream(sys.stdout.buffer, schema)

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)
        sys.stdout.buffer.flush()

    def close(self) -> None:
        self._writer.close()
        sys.stdout.buffer.flush()


class _Screen(_Writer):
    """A table for each batch: rows that are followed cannot wait for the widest of them."""

    def __init__(self, schema: pa.Schema) -> None:
        super().__init__(schema)
        self._console = Console(soft_wrap=False)
        self._shown = 0

    def write(self, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        table = RichTable(box=None, header_style="bold", pad_edge=False)
        for field in self.schema:
            numbers = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
            right = numbers or pa.types.is_decimal(field.type)
            table.add_column(Text(field.name), justify="right" if right else "left", no_wrap=True)
        for row in zip(*(each.to_pylist() for each in batch.columns), strict=True):
            table.add_row(*map(_screen_cell, row))
        self._console.print(table)
        self._shown += batch.num_rows

    def close(self) -> None:
        if not self._shown:
            self._console.print(Text("no rows", style="dim"))


_WRITERS: Final[dict[Format, type[_Writer]]] = {
    Format.TABLE: _Screen,
    Format.JSON: _JsonLines,
    Format.CSV: _Csv,
    Format.ARROW: _Arrow,
}


def plain_value(value: Any) -> Any:
    """A value that JSON has no form for, as text."""
    match value:
        case bytes():
            return base64.b64encode(value).decode("ascii")
        case Decimal():
            return str(value)
        case datetime() | date() | time():
            return value.isoformat()
        case _:
            return str(value)


def csv_cell(value: Any) -> Any:
    """A value for a cell: nested ones as JSON."""
    if isinstance(value, list | dict | tuple):
        return json.dumps(value, ensure_ascii=False, default=plain_value)
    if value is None or isinstance(value, int | float | str):
        return value
    return plain_value(value)


def _screen_cell(value: Any) -> Text:
    if value is None:
        return Text("NULL", style="dim")
    text = str(csv_cell(value)).replace("\n", "⏎")
    return Text(text if len(text) <= _CELL_CHARS_MAX else f"{text[: _CELL_CHARS_MAX - 1]}…")
