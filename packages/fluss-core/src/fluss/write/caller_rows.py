"""Puts errors of rows in the terms of the caller's frame: its rows, and what kind of frame it is.

Code that checks or encodes rows counts those that it was given: a batch of a frame, a slice of it,
or rows that were grouped by bucket. Each caller translates the number to its own. Hints differ by
the kind of the frame, which is recognised without loading a library.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from fluss.errors import FlussError
from fluss.hints import FrameKind
from fluss.rows.buffers.columns import Int64Array

_ROW_TEXT_MAX: Final = 60  # enough to recognise a row


@contextmanager
def rows_counted(
    *, first: int = 0, positions: Int64Array | None = None, names: Sequence[str] = ()
) -> Iterator[None]:
    """Translate the row and the column of an error that leaves the block.

    Args:
        first: How many rows the caller has before those of the block.
        positions: Which of the caller's rows each row is, where they are in another order.
        names: The names of the columns, where they are counted.
    """
    try:
        yield
    except FlussError as error:
        row, column = error.facts.get("row"), error.facts.get("column")
        if isinstance(row, int):
            row += first
            row = row if positions is None else int(positions[row])
        if isinstance(column, int) and column < len(names):
            column = names[column]
        error.add_context(row=row, column=column)
        raise


def row_text(row: object) -> str:
    """A row as the texts of errors show it, shortened."""
    text = repr(row)
    return text if len(text) <= _ROW_TEXT_MAX else f"{text[:_ROW_TEXT_MAX]}…"


_BY_LIBRARY: Final = {
    "pandas": FrameKind.PANDAS,
    "polars": FrameKind.POLARS,
    "duckdb": FrameKind.DUCKDB,
    "fluss_duckdb": FrameKind.DUCKDB,
    "pyarrow": FrameKind.ARROW,
}


def frame_kind_of(data: Any) -> FrameKind:
    """The kind of a frame, by the library of its class; dicts and lists are rows."""
    if isinstance(data, dict | list | tuple):
        first = data[0] if isinstance(data, list | tuple) and data else None
        return FrameKind.ROWS if _library_of(first) != "pyarrow" else FrameKind.ARROW
    return _BY_LIBRARY.get(_library_of(data), FrameKind.ARROW)


def _library_of(data: Any) -> str:
    return type(data).__module__.partition(".")[0]


@contextmanager
def naming_frame(data: Any) -> Iterator[None]:
    """Add the kind of the caller's frame to errors that leave the block."""
    try:
        yield
    except FlussError as error:
        error.add_context(frame=frame_kind_of(data))
        raise
