"""Converts a user's row to a tuple of physical values in the order of the table's columns.

A row is a mapping by column name, or a sequence by position. Values are converted when the row is
taken, so an error concerns that row, and nothing of it was queued. Frames are cast column by column
instead (`records.convert.cast`).

Appending a row takes less than a microsecond, and loops over columns would double that. So one
function is compiled per writer, as `collections.namedtuple` does, with the loop unrolled
(`write.value_source` has the lines for each value). Rows that are not a plain dict, list or tuple
of the right length are brought into order first. A writer that knows what it does with the values
of a row gives the lines for that, so that they do not cross from one function to another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Self

from fluss.errors import InvalidValueError
from fluss.model.did_you_mean import did_you_mean
from fluss.model.tables.table_info import TableInfo
from fluss.model.types.data_type import DataType
from fluss.model.values.limits import NO_LIMITS, ValueLimits
from fluss.write.caller_rows import row_text
from fluss.write.value_source import ValueSource, indented

# Takes a row; returns the physical values of all columns of the table, and their approximate size:
# it decides when a batch is full, not what is too large, so that texts count by their characters.
RowFunction = Callable[[Any], tuple[tuple[Any, ...], int]]


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

    @classmethod
    def of(cls, table: TableInfo, positions: Sequence[int]) -> Self:
        """A reader of the rows of some columns of a table."""
        schema = table.schema
        return cls(
            [schema.column_names[position] for position in positions],
            [schema.column_types[position] for position in positions],
            positions=positions,
            width=len(schema.column_names),
            limits=table.value_limits,
        )

    @classmethod
    def of_keys(cls, table: TableInfo) -> Self:
        """A reader of primary keys; a mapping may have the other columns, too."""
        schema, positions = table.schema, table.schema.primary_key_indexes
        return cls(
            [schema.column_names[position] for position in positions],
            [schema.column_types[position].not_null() for position in positions],
            positions=positions,
            width=len(schema.column_names),
            ignored=frozenset(schema.column_names),
            what="key",
            limits=table.value_limits,
        )

    def _read_first(self, row: Any) -> tuple[tuple[Any, ...], int]:
        """Read the first row. The function is compiled here: a writer of frames never needs it."""
        read: RowFunction = self.compiled(("return values, size",), {})
        self.read = read
        return read(row)

    def compiled(
        self,
        then: Sequence[str],
        names: Mapping[str, Any],
        refused: Sequence[str] = ("raise",),
    ) -> Callable[[Any], Any]:
        """Compile a function of a row.

        Args:
            then: The lines after the row was read, which find its `values` and its `size`.
            names: The further names that the lines use.
            refused: The lines that raise `error`, the refusal of a row.
        """
        source = ValueSource(self._limits)
        count = len(self._types)
        values = "".join(f"v{index}, " for index in range(count))
        lines = [
            "def read(row):",
            "    kind = type(row)",
            "    try:",
            f"        if kind is dict and len(row) == {count}:",
            "            try:",
            # `itemgetter` returns a tuple, or the value itself where there is one column.
            f"                {values if count > 1 else 'v0'} = pick(row)",
            "            except KeyError:",
            f"                {values} = by_name(row)",
            f"        elif (kind is tuple or kind is list) and len(row) == {count}:",
            f"            {values} = row",
            "        else:",
            f"            {values} = otherwise(row)",
            f"        size = {sum(each.row_width for each in self._types)}",
        ]
        for index, (name, data_type) in enumerate(zip(self._names, self._types, strict=True)):
            lines += indented(source.conversion(f"v{index}", data_type, name), depth=2)
        lines += [
            "    except InvalidValueError as error:",
            *indented(refused, depth=2),
            f"    values = ({self._whole()},)",
            *indented(then),
        ]
        known = source.names | {
            "InvalidValueError": InvalidValueError,
            "pick": itemgetter(*self._names),
            "by_name": self._by_name,
            "otherwise": self._otherwise,
        }
        known |= names
        exec("\n".join(lines), known)  # noqa: S102 - made of numbers and names of this package only
        made: Callable[[Any], Any] = known["read"]
        return made

    def _whole(self) -> str:
        whole = ["None"] * self._width
        for number, position in enumerate(self._positions):
            whole[position] = f"v{number}"
        return ", ".join(whole)

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
