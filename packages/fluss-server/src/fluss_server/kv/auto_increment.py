"""Numbers for auto-increment columns: each bucket takes ranges, and gives them out one by one.

Ranges come from the table's counter, which is stored before a range is used, so a number is never
given twice; what is left of a range when the server ends is never given at all, as in Java.
"""

from __future__ import annotations

from collections.abc import Callable

from fluss.errors import LimitExceededError
from fluss.model.schema.schema import Schema
from fluss.model.tables.table_options import TableOptions
from fluss.model.types.data_type import DataType, IntType
from fluss_server.kv.stored_rows_codec import TableRows

# How many numbers are wanted, to the last number that was given before.
TakeRange = Callable[[int], int]


class Sequence:
    """The numbers of one bucket; whoever holds the bucket's turn uses them."""

    def __init__(
        self, column: str, data_type: DataType, take_range: TakeRange, range_size: int
    ) -> None:
        self.column = column
        self._greatest = 2**31 - 1 if isinstance(data_type, IntType) else 2**63 - 1
        self._take_range = take_range
        self._range_size = range_size
        self._last = self._end = 0

    def fill(self, rows: TableRows) -> Callable[[bytes], bytes]:
        """What sets the column of a stored row to the next number."""
        position = rows.latest.column_names.index(self.column)

        def numbered(row: bytes) -> bytes:
            values = rows.read(row)
            values[position] = self.next_value()
            return rows.write(values)

        return numbered

    def next_value(self) -> int:
        """The next number; the first one is 1.

        Raises:
            LimitExceededError: The column's type has no greater number.
        """
        if self._last == self._end:
            self._last = self._take_range(self._range_size)
            self._end = self._last + self._range_size
        if self._last >= self._greatest:
            raise LimitExceededError(
                f"The auto-increment column {self.column} has reached {self._greatest}, "
                "the greatest number of its type.",
                column=self.column,
            )
        self._last += 1
        return self._last


def numbers_of(
    schema: Schema, options: TableOptions, take_range: TakeRange | None
) -> Sequence | None:
    """The numbers of a table's auto-increment column, None where it has none."""
    if not schema.auto_increment_columns or take_range is None:
        return None
    name = schema.auto_increment_columns[0]
    data_type = schema.columns[schema.column_names.index(name)].data_type
    return Sequence(name, data_type, take_range, options.auto_increment_cache_size)
