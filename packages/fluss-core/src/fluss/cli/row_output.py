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
from fluss.cli.screen_table import ScreenTable
from fluss.errors import InvalidValueError

_HELD_ROWS_MAX: Final = 1_000
_HOW_TO_SEE_ALL: Final = "name the ones to see, or choose -o json"


def write_rows(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    chosen: OutputFormat | None,
    *,
    is_endless: bool = False,
) -> None:
    """Write batches as they arrive.

    Args:
        batches: The rows.
        schema: Their columns.
        chosen: The format; a table on a screen and JSON lines in a pipe by default.
        is_endless: Whether more rows may come at any time, so that none is held back.
    """
    chosen = format_of_output(chosen)
    if chosen is OutputFormat.ARROW and sys.stdout.isatty():
        raise InvalidValueError(
            "Arrow is not for screens.", hint="write it to a file or a pipe: ... -o arrow > rows"
        )
    is_screen = chosen is OutputFormat.TABLE
    writer = _Screen(schema, is_endless=is_endless) if is_screen else _WRITERS[chosen](schema)
    try:
        for batch in batches:
            writer.write(batch)
    except BaseException:
        writer.flush()
        raise
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

    def flush(self) -> None:  # noqa: B027 - most formats hold nothing back
        """Write the rows that are held back."""

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
    """A table: of the first rows its columns know the widest, and later ones may widen them.

    Rows are held back until there are `_HELD_ROWS_MAX` of them or the last one has come, unless
    the rows have no end.
    """

    def __init__(self, schema: pa.Schema, *, is_endless: bool = False) -> None:
        super().__init__(schema)
        self._console = Console(soft_wrap=False)
        self._table = ScreenTable(schema, how=_HOW_TO_SEE_ALL)
        self._held: list[pa.RecordBatch] = []
        self._held_rows_max = 0 if is_endless else _HELD_ROWS_MAX
        self._has_rows = False

    def write(self, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        self._held.append(batch)
        if sum(each.num_rows for each in self._held) >= self._held_rows_max:
            self.flush()

    def flush(self) -> None:
        held, self._held = self._held, []
        if not held:
            return
        for line in self._table.lines(pa.Table.from_batches(held), self._console.width):
            style = "" if self._has_rows else "bold"  # the first line is the header
            self._console.print(Text(line, style=style), no_wrap=True, crop=False, soft_wrap=True)
            self._has_rows = True

    def close(self) -> None:
        self.flush()
        if not self._has_rows:
            self._console.print(Text("no rows", style="dim"))


_WRITERS: Final[dict[OutputFormat, type[_Writer]]] = {
    OutputFormat.JSON: _JsonLines,
    OutputFormat.CSV: _Csv,
    OutputFormat.ARROW: _Arrow,
}
