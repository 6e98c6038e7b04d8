"""Translates the row number of an error to that of the caller's frame.

Code that checks or encodes rows counts those that it was given: a batch of a frame, a slice of it,
or rows that were grouped by bucket. Each caller translates the number to its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from fluss.errors import FlussError
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
