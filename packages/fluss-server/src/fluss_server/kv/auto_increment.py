"""Numbers for auto-increment columns: each bucket takes ranges, and assigns them one by one.

Ranges come from the table's counter, which is stored before a range is used, so no number is
assigned twice. The rest of a range is lost when the server stops, as in Java.
"""

from __future__ import annotations

from collections.abc import Callable

from fluss.errors import LimitExceededError
from fluss.model.schema.schema import Schema
from fluss.model.tables.table_options import TableOptions
from fluss.model.types.data_type import DataType, IntType
from fluss_server.kv.stored_row_codec import StoredRowCodec

# How many numbers to take -> the last number that was taken before.
TakeRange = Callable[[int], int]


class NumberSequence:
    """The numbers of one bucket. The caller holds the bucket's lock."""

    def __init__(
        self, column: str, data_type: DataType, take_range: TakeRange, range_size: int
    ) -> None:
        self.column = column
        self._greatest = 2**31 - 1 if isinstance(data_type, IntType) else 2**63 - 1
        self._take_range = take_range
        self._range_size = range_size
        self._last = self._end = 0

    def fill(self, rows: StoredRowCodec) -> Callable[[bytes], bytes]:
        """Return a function that sets the column of a stored row to the next number."""
        position = rows.latest.column_names.index(self.column)

        def numbered(row: bytes) -> bytes:
            values = rows.read(row)
            values[position] = self.next_value()
            return rows.write(values)

        return numbered

    def next_value(self) -> int:
        """Return the next number; the first one is 1.

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


def number_sequence_of(
    schema: Schema, options: TableOptions, take_range: TakeRange | None
) -> NumberSequence | None:
    """Return the numbers of a table's auto-increment column; None where it has none."""
    if not schema.auto_increment_columns or take_range is None:
        return None
    name = schema.auto_increment_columns[0]
    data_type = schema.columns[schema.column_names.index(name)].data_type
    return NumberSequence(name, data_type, take_range, options.auto_increment_cache_size)
