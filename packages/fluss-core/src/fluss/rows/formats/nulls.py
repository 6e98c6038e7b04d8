"""NULLs at the head of a row: one bit per field, set where the field is NULL.

Field i is bit i % 8 of byte i // 8. Compacted and indexed rows share this head; a NULL field has no
further bytes. Java: `CompactedRow.calculateBitSetWidthInBytes`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from fluss.errors import InvalidValueError
from fluss.rows.buffers.byte_runs import Part, fixed_words
from fluss.rows.buffers.columns import Column, Int64Array
from fluss.rows.formats.row_cursor import RowCursor

_FIELDS_PER_WORD = 64


def null_bytes(fields: int) -> int:
    """Return how many bytes the bits of so many fields take."""
    return (fields + 7) // 8


def check_not_null(column: Column) -> None:
    """Refuse NULL in a NOT NULL column, which a Java reader would read as a value.

    Raises:
        InvalidValueError: A row is NULL and the type does not allow it.
    """
    if column.type.nullable or column.valid is None or column.valid.all():
        return
    row = int(np.flatnonzero(~column.valid)[0])
    raise InvalidValueError(f"The value is NULL, but its type is {column.type}.").add_context(
        row=row
    )


@contextmanager
def naming_column(index: int) -> Iterator[None]:
    """Add the column to a refused value; the outermost column counts."""
    try:
        yield
    except InvalidValueError as error:
        error.facts["column"] = index
        raise


def rows_in_columns(columns: Sequence[Column]) -> int:
    """Return the length that all columns have; there is at least one."""
    lengths = {column.length for column in columns}
    if len(lengths) != 1:
        raise ValueError(f"Columns differ in length: {sorted(lengths)}.")
    return lengths.pop()


def null_bits(columns: Sequence[Column], rows: int) -> list[Part]:
    """Return the head of every row."""
    parts: list[Part] = []
    for first in range(0, len(columns), _FIELDS_PER_WORD):
        some = columns[first : first + _FIELDS_PER_WORD]
        bits = np.zeros(rows, np.uint64)
        for index, column in enumerate(some):
            with naming_column(first + index):
                check_not_null(column)
            if column.valid is not None:
                bits |= (~column.valid).astype(np.uint64) << np.uint64(index)
        parts.append(fixed_words(bits, null_bytes(len(some)), None))
    return parts


def read_null_bits(cursor: RowCursor, fields: int) -> list[Int64Array | None]:
    """For each field the rows in which it is not NULL; None where that is all of them."""
    present: list[Int64Array | None] = []
    for first in range(0, fields, 8):
        bits = cursor.fixed(None, "u1")
        ever_null = int(np.bitwise_or.reduce(bits, initial=0))
        for index in range(min(8, fields - first)):
            mask = 1 << index
            some = bool(ever_null & mask)
            present.append(np.flatnonzero(bits & np.uint8(mask) == 0) if some else None)
    return present
