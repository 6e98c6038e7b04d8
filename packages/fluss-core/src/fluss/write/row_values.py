"""Converts a user's row to a tuple of physical values in the order of the table's columns.

A row is a mapping by column name, or a sequence by position. Plain rows are read by a function that
is compiled once per writer (`write.row_function`); all others are brought into order here. Values
are converted when the row is taken, so an error concerns that row, and nothing of it was queued.
Frames are cast column by column instead (`records.convert.cast`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fluss.errors import InvalidValueError
from fluss.model.did_you_mean import did_you_mean
from fluss.model.types.data_type import DataType
from fluss.model.values.conversion import to_physical
from fluss.model.values.limits import NO_LIMITS, ValueLimits
from fluss.write.caller_rows import row_text
from fluss.write.row_function import RowFunction, RowShape, row_function


class RowReader:
    """Reads rows of some columns of a table; any thread may use it.

    Args:
        names: The columns of a row, in order.
        types: Their types.
        positions: Their positions in the table; other columns are NULL.
        width: How many columns the table has.
        ignored: Further columns that a mapping may have, and that are not read.
        what: The word for such a row in errors.
        limits: The limits that the table adds to those of its types.
    """

    def __init__(
        self,
        names: Sequence[str],
        types: Sequence[DataType],
        *,
        positions: Sequence[int],
        width: int,
        ignored: frozenset[str] = frozenset(),
        what: str = "row",
        limits: ValueLimits = NO_LIMITS,
    ) -> None:
        self._names = tuple(names)
        self._types = tuple(types)
        self._known = frozenset(names) | ignored
        self._what = what
        self._positions = tuple(positions)
        self._width = width
        self._limits = limits
        # Returns the physical values of all columns of the table, and their approximate size.
        # Raises InvalidValueError: a value is missing, unknown, or does not fit its column.
        self.read: RowFunction = self._read_first

    def _read_first(self, row: Any) -> tuple[tuple[Any, ...], int]:
        """Read the first row. The function is compiled here: a writer of frames never needs it."""
        self.read = row_function(
            RowShape(
                names=self._names,
                types=self._types,
                converters=tuple(
                    to_physical(data_type, name, limits=self._limits)
                    for data_type, name in zip(self._types, self._names, strict=True)
                ),
                positions=self._positions,
                width=self._width,
                by_name=self._by_name,
                otherwise=self._otherwise,
            )
        )
        return self.read(row)

    def _otherwise(self, row: Any) -> Sequence[Any]:
        if isinstance(row, Mapping):
            return self._by_name(row)
        if isinstance(row, str | bytes | bytearray) or not isinstance(row, Sequence):
            raise InvalidValueError(
                f"A {self._what} is a dict, a list or a tuple, not {type(row).__name__}: "
                f"{row_text(row)}.",
                hint=f"The columns are {', '.join(self._names)}.",
            )
        if len(row) == len(self._names):
            return row
        if len(row) != self._width:
            raise InvalidValueError(
                f"The {self._what} has {len(row)} values for {len(self._names)} columns.",
                hint=f"The columns are {', '.join(self._names)}, in this order.",
            )
        return [row[position] for position in self._positions]

    def _by_name(self, row: Mapping[Any, Any]) -> Sequence[Any]:
        if not self._known.issuperset(row):
            unknown = next(each for each in row if each not in self._known)
            raise InvalidValueError(
                f"There is no column {unknown!r} for this {self._what}; its columns are "
                f"{', '.join(self._names)}.",
                hint=did_you_mean(str(unknown), self._names),
                column=str(unknown),
            )
        # A column that is not there is NULL; the converter of a NOT NULL column refuses that.
        return [row.get(name) for name in self._names]
