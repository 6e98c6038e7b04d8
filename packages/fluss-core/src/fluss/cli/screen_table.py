"""Lays out rows for a screen: a table as wide as the screen, or one line for each column.

A cell is shortened, and columns in the middle are left out where the table would be too wide; a
line below says so. A table that gets rows in several pieces has one header, and its columns become
wider where a value needs it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from fluss.cli.files.cell_texts import texts_of

# The longest cell, and whether times are whole: shorter ones where the columns do not fit.
_CELL_CHARS: Final = (
    (60, True),
    (30, True),
    (20, True),
    (16, True),
    (12, True),
    (10, True),
    (12, False),
)
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_GAP: Final = "  "
_NULL: Final = "NULL"


class ScreenTable:
    """A table on a screen that gets its rows in pieces.

    Args:
        schema: Its columns.
        how: How the columns are seen that do not fit.
    """

    def __init__(self, schema: pa.Schema, *, how: str) -> None:
        self._names = [_flat(each) for each in schema.names]
        self._is_right = [_is_number(each) for each in schema.types]
        self._how = how
        self._limits: Sequence[tuple[int, bool]] = _CELL_CHARS
        self._widths = [0] * len(self._names)
        self._shown: list[int | None] | None = None

    def lines(self, rows: pa.Table, width: int) -> Iterator[str]:
        """Yield the lines of some rows; the header is before the first, or where columns change.

        Args:
            rows: The rows.
            width: How many characters a line has.
        """
        texts = [_texts(rows.column(index)) for index in range(rows.num_columns)]
        columns = self._fitted(texts, width)
        shown = _that_fit(self._widths, width)
        has_header = shown != self._shown
        self._shown = shown
        for line in range(0 if has_header else 1, rows.num_rows + 1):
            yield _GAP.join(self._cell(columns, place, line) for place in shown).rstrip()
        left_out = len(columns) - (len(shown) - shown.count(None))
        if left_out and has_header:
            yield f"… {left_out} of {len(columns)} columns do not fit: {self._how}"

    def _fitted(self, texts: Sequence[Sequence[str]], width: int) -> list[list[str]]:
        """Cut names and cells so that as many columns fit as possible, and widen the columns."""
        whole = [[name, *cells] for name, cells in zip(self._names, texts, strict=True)]
        while True:
            limit = self._limits[0]
            columns = [[_cut(each, *limit) for each in column] for column in whole]
            needed = [max(map(_width, each)) for each in columns]
            self._widths = [max(pair) for pair in zip(self._widths, needed, strict=True)]
            if len(self._limits) == 1 or None not in _that_fit(self._widths, width):
                return columns
            self._limits = self._limits[1:]
            self._widths = [min(each, self._limits[0][0]) for each in self._widths]

    def _cell(self, columns: Sequence[Sequence[str]], place: int | None, line: int) -> str:
        if place is None:
            return "…"
        return _padded(columns[place][line], self._widths[place], self._is_right[place])


def screen_table(rows: pa.Table, width: int, *, how: str) -> Iterator[str]:
    """Yield the lines of a table of which all rows are known.

    Args:
        rows: The rows.
        width: How many characters a line has.
        how: How the columns are seen that do not fit.
    """
    yield from ScreenTable(rows.schema, how=how).lines(rows, width)


def line_table(rows: pa.Table) -> Iterator[str]:
    """Yield each row as lines, one for each column."""
    names = rows.schema.names
    widest = max(map(_width, names), default=0)
    texts = [_texts(rows.column(index)) for index in range(rows.num_columns)]
    for row in range(rows.num_rows):
        if row:
            yield ""
        for name, cells in zip(names, texts, strict=True):
            yield f"{_padded(name, widest, True)} = {cells[row]}"


def _that_fit(widths: Sequence[int], width: int) -> list[int | None]:
    """Return the places of the first and last columns that fit; None for the others."""
    if sum(widths) + len(_GAP) * (len(widths) - 1) <= width:
        return list(range(len(widths)))
    left, right = 0, 0
    used = 1  # the sign for the columns that are left out
    while left + right < len(widths):
        takes_left = left <= right
        place = left if takes_left else len(widths) - 1 - right
        if used + widths[place] + len(_GAP) > width:
            break
        used += widths[place] + len(_GAP)
        left, right = (left + 1, right) if takes_left else (left, right + 1)
    left = max(left, 1)
    return [*range(left), None, *range(len(widths) - right, len(widths))]


def _texts(column: pa.ChunkedArray) -> list[str]:
    found: list[str] = []
    for chunk in column.chunks:
        found += [_NULL if each is None else _flat(each) for each in texts_of(chunk).to_pylist()]
    return found


def _flat(text: str) -> str:
    """Return a text in one line, without signs that move the cursor."""
    text = text.replace("\n", "⏎")
    return text if text.isprintable() else "".join(_visible(each) for each in text)


def _visible(sign: str) -> str:
    return sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}"


def _cut(text: str, limit: int, keeps_times: bool) -> str:  # noqa: FBT001 - see `_CELL_CHARS`
    if _width(text) <= limit or (keeps_times and _TIME.fullmatch(text)):
        return text
    kept, used = 0, 1
    for sign in text:
        used += _width(sign)
        if used > limit:
            break
        kept += 1
    return f"{text[:kept]}…"


def _padded(text: str, width: int, is_right: bool) -> str:  # noqa: FBT001 - a fact of the column
    blanks = " " * (width - _width(text))
    return blanks + text if is_right else text + blanks


def _width(text: str) -> int:
    """Return how many cells of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(each) else 2 if unicodedata.east_asian_width(each) in "WF" else 1
        for each in text
    )


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))
