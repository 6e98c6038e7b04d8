"""Refuses times that would be cut: rows by key have TIME in milliseconds, whatever its precision.

Logs are written in Arrow and keep what the column says; this is for tables with a primary key.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from fluss.errors import InvalidValueError


def check_times(rows: pa.RecordBatch) -> None:
    """Refuse rows with times finer than a millisecond.

    Raises:
        InvalidValueError: Naming the column.
    """
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        try:
            _check(column)
        except pa.ArrowInvalid as error:
            raise InvalidValueError(
                f"The column {name!r} has times finer than a millisecond, and a table with a "
                f"primary key keeps milliseconds of them: {error}.",
                hint="round them to milliseconds, or keep them as a BIGINT or in a TIMESTAMP",
                column=name,
            ) from error


def _check(array: pa.Array) -> None:
    kind = array.type
    if pa.types.is_time64(kind):
        pc.cast(array, pa.time32("ms"))  # which loses no digits without saying so
    elif pa.types.is_struct(kind):
        for each in array.flatten():
            _check(each)
    elif pa.types.is_map(kind):
        _check(array.keys)
        _check(array.items)
    elif pa.types.is_nested(kind):
        _check(array.flatten())
