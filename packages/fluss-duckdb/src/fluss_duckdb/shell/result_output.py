"""Writes the rows of a statement: in the formats of all commands, or the first ones on a screen.

On a screen a table shows its first rows and the columns that fit, and says what it leaves out; the
rest of the query is not run. Programs get all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, Self

import pyarrow as pa

from fluss.cli.files.format_names import OutputFormat
from fluss.cli.row_output import write_rows
from fluss.cli.screen_table import line_table, screen_table
from fluss_duckdb.call_finder import quoted
from fluss_duckdb.proxy import Relation

BATCH_ROWS: Final = 16 * 1024
# Types that the formats of text have no rule for; DuckDB writes them as texts.
_AS_TEXT: Final = frozenset(
    {"interval", "bit", "bignum", "time with time zone", "uhugeint", "enum", "uuid", "union"}
)
_HOW_TO_SEE_ALL: Final = "name the ones to see, or .mode line"


class ResultOutput:
    """Writes rows, and counts them.

    Args:
        write: Writes a line of text on the screen.
        width: Returns the width of the screen.
        rows_max: How many rows a screen shows.
    """

    def __init__(
        self, write: Callable[[str], None], width: Callable[[], int], rows_max: int = 100
    ) -> None:
        self._write = write
        self._width = width
        self.rows_max = rows_max

    def write_all(self, rows: Any, chosen: OutputFormat | None) -> None:
        """Write all rows in a format of the command line."""
        is_binary = chosen is OutputFormat.ARROW
        with _batches(rows, as_text=not is_binary) as found:
            write_rows(map(_narrowed, found) if not is_binary else found, found.schema, chosen)

    def show(self, rows: Any, *, as_lines: bool = False) -> str:
        """Show the first rows, and return a text with their number."""
        with _batches(rows, as_text=True) as found:
            table = _first_rows(found, found.schema, self.rows_max + 1)
        shown = table.slice(0, self.rows_max)
        if not table.num_columns:
            return "no rows"
        lines = (
            line_table(shown)
            if as_lines
            else screen_table(shown, self._width(), how=_HOW_TO_SEE_ALL)
        )
        for line in lines:
            self._write(line)
        if table.num_rows > self.rows_max:
            return f"first {self.rows_max:,} rows; LIMIT or .rows shows more or fewer"
        return "no rows" if not shown.num_rows else f"{shown.num_rows:,} {_rows(shown.num_rows)}"


def _rows(count: int) -> str:
    return "row" if count == 1 else "rows"


class _Opened:
    """The batches of a relation or of a table of Arrow, read within a block."""

    def __init__(self, rows: Any) -> None:
        self._rows = rows
        self._block: Any = None
        self._batches: Any = None
        self.schema: pa.Schema

    def __enter__(self) -> Self:
        if isinstance(self._rows, pa.Table):
            self.schema = self._rows.schema
            self._batches = self._rows.to_batches()
            return self
        self._block = self._rows.streamed(BATCH_ROWS)
        self._batches = self._block.__enter__()
        self.schema = self._batches.schema
        return self

    def __exit__(self, *error: object) -> None:
        if self._block is not None:
            self._block.__exit__(*error)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        yield from self._batches


def _batches(rows: Any, *, as_text: bool) -> _Opened:
    if as_text and type(rows) is Relation:
        rows = _with_texts(rows)
    return _Opened(rows)


def _with_texts(rows: Any) -> Any:
    casts = [
        f"CAST({quoted(name)} AS VARCHAR) AS {quoted(name)}"
        for name, kind in zip(rows.columns, rows.types, strict=True)
        if kind.id in _AS_TEXT
    ]
    return rows.project(f"* REPLACE ({', '.join(casts)})") if casts else rows


def _narrowed(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return whole numbers of 128 bits, which sums have, as those of 64 bits where they fit."""
    columns = []
    for column in batch.columns:
        if pa.types.is_decimal(column.type) and column.type.scale == 0:
            try:
                columns.append(column.cast(pa.int64()))
                continue
            except pa.ArrowInvalid:
                pass
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _first_rows(batches: Any, schema: pa.Schema, count: int) -> pa.Table:
    found: list[pa.RecordBatch] = []
    left = count
    for batch in batches:
        found.append(batch.slice(0, left))
        left -= found[-1].num_rows
        if not left:
            break
    return pa.Table.from_batches(found, schema)
