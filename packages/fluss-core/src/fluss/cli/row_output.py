"""Writes rows to the standard output: a table for people; JSON lines, CSV or Arrow for programs.

A table is for a screen and shortens long cells. The other formats keep values: 64-bit integers and
decimals keep their digits, bytes are base64, times are ISO 8601.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
from pyarrow import ipc
from rich.console import Console
from rich.text import Text

from fluss.cli.files.cell_texts import csv_header, csv_lines, json_lines
from fluss.cli.files.file_formats import standard_output, text_writer
from fluss.cli.files.format_names import OutputFormat
from fluss.cli.screen_table import screen_table
from fluss.errors import InvalidValueError

_HOW_TO_SEE_ALL: Final = "name the ones to see, or choose -o json"


def write_rows(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, chosen: OutputFormat | None
) -> None:
    """Write batches as they arrive."""
    chosen = format_of_output(chosen)
    if chosen is OutputFormat.ARROW and sys.stdout.isatty():
        raise InvalidValueError(
            "Arrow is not for screens.", hint="write it to a file or a pipe: ... -o arrow > rows"
        )
    writer = _WRITERS[chosen](schema)
    for batch in batches:
        writer.write(batch)
    writer.close()


def format_of_output(chosen: OutputFormat | None) -> OutputFormat:
    """Return the format: as chosen, or a table on a screen and JSON lines in a pipe."""
    return chosen or (OutputFormat.TABLE if sys.stdout.isatty() else OutputFormat.JSON)


def write_records(
    records: Sequence[Mapping[str, Any]],
    columns: Sequence[tuple[str, str | pa.DataType]],
    chosen: OutputFormat | None,
) -> None:
    """Write facts, one record each; on a screen without the columns that are NULL in all of them.

    Args:
        records: The facts.
        columns: The name and the type of each.
        chosen: The format; as of `write_rows`.
    """
    if format_of_output(chosen) is OutputFormat.TABLE:
        empty = {name for name, _ in columns if all(each[name] is None for each in records)}
        columns = [each for each in columns if each[0] not in empty or not records]
    fields = [
        pa.field(name, pa.type_for_alias(kind) if isinstance(kind, str) else kind)
        for name, kind in columns
    ]
    schema = pa.schema(fields)
    write_rows(
        [
            pa.RecordBatch.from_pylist(
                [{name: each[name] for name in schema.names} for each in records], schema=schema
            )
        ],
        schema,
        chosen,
    )


class _Writer(ABC):
    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.out = standard_output()

    @abstractmethod
    def write(self, batch: pa.RecordBatch) -> None:
        """Write some rows."""

    def close(self) -> None:
        """Write the end of the output."""
        self.out.flush()


class _JsonLines(_Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        text_writer(self.out, json_lines)(batch)
        self.out.flush()


class _Csv(_Writer):
    def __init__(self, schema: pa.Schema) -> None:
        super().__init__(schema)
        self.out.write(csv_header(schema.names))

    def write(self, batch: pa.RecordBatch) -> None:
        text_writer(self.out, csv_lines)(batch)
        self.out.flush()


class _Arrow(_Writer):
    def __init__(self, schema: pa.Schema) -> None:
        super().__init__(schema)
        self._writer = ipc.new_stream(self.out, schema)

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)
        self.out.flush()

    def close(self) -> None:
        self._writer.close()
        self.out.flush()


class _Screen(_Writer):
    """A table per batch: while following, the widest row is not known in advance."""

    def __init__(self, schema: pa.Schema) -> None:
        super().__init__(schema)
        self._console = Console(soft_wrap=False)
        self._shown = 0

    def write(self, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        rows = pa.Table.from_batches([batch])
        lines = screen_table(rows, self._console.width, how=_HOW_TO_SEE_ALL)
        for number, line in enumerate(lines):
            style = "" if number else "bold"
            self._console.print(Text(line, style=style), no_wrap=True, crop=False, soft_wrap=True)
        self._shown += batch.num_rows

    def close(self) -> None:
        if not self._shown:
            self._console.print(Text("no rows", style="dim"))


_WRITERS: Final[dict[OutputFormat, type[_Writer]]] = {
    OutputFormat.TABLE: _Screen,
    OutputFormat.JSON: _JsonLines,
    OutputFormat.CSV: _Csv,
    OutputFormat.ARROW: _Arrow,
}
