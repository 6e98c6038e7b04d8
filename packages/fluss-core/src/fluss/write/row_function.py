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
from fluss.records.convert.flat_values import FlatRows
from fluss.write.caller_rows import row_text
from fluss.write.value_source import Converted, ValueSource, indented

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
        self.names = tuple(names)
        self.types = tuple(types)
        self._known = frozenset(names) | ignored
        self._what = what
        self.positions = tuple(positions)
        self._width = width
        self.limits = limits
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
        read: RowFunction = self.compiled(lambda values, _: (f"return {values}, size",), {})
        self.read = read
        return read(row)

    def compiled(
        self,
        then: Callable[[str, Sequence[str]], Sequence[str]],
        names: Mapping[str, Any],
        *,
        refused: Sequence[str] = ("raise",),
        flat: FlatRows | None = None,
    ) -> Callable[[Any], Any]:
        """Compile a function of a row.

        Args:
            then: Makes the lines after the row was read, of expressions for its values and its
                runs; they know the `size`.
            names: The further names that the lines use.
            refused: The lines that raise `error`, the refusal of a row.
            flat: Has the values flattened: cells stand for the values then, and there may be runs.
        """
        source = ValueSource(self.limits)
        count = len(self.types)
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
            f"        size = {sum(each.row_width for each in self.types)}",
        ]
        columns = [self._column(source, index, flat) for index in range(count)]
        for column in columns:
            lines += indented(column.lines, depth=2)
        lines += [
            "    except InvalidValueError as error:",
            *indented(refused, depth=2),
            *indented(then(*self._whole(columns, flat))),
        ]
        known = source.names | {
            "InvalidValueError": InvalidValueError,
            "pick": itemgetter(*self.names),
            "by_name": self._by_name,
            "otherwise": self._otherwise,
        }
        known |= names
        exec("\n".join(lines), known)  # noqa: S102 - made of numbers and names of this package only
        made: Callable[[Any], Any] = known["read"]
        return made

    def _column(self, source: ValueSource, index: int, flat: FlatRows | None) -> Converted:
        v, data_type, name = f"v{index}", self.types[index], self.names[index]
        if flat is None:
            return Converted(source.conversion(v, data_type, name), [v])
        column = flat.columns[self.positions[index]]
        return source.flattening(v, data_type, name, column)

    def _whole(
        self, columns: Sequence[Converted], flat: FlatRows | None
    ) -> tuple[str, Sequence[str]]:
        """The expressions for the values, or cells, of all columns of the table, and its runs."""
        given = dict(zip(self.positions, columns, strict=True))
        cells: list[str] = []
        runs: list[str] = []
        for position in range(self._width):
            found = given.get(position)
            if found is None:
                column = None if flat is None else flat.columns[position]
                cells += ["None"] * (1 if column is None else column.cells)
                runs += ["()"] * (0 if column is None else column.runs)
            else:
                cells += found.cells
                runs += found.runs
        return f"({', '.join(cells)},)", runs

    def _otherwise(self, row: Any) -> Sequence[Any]:
        if isinstance(row, Mapping):
            return self._by_name(row)
        if isinstance(row, str | bytes | bytearray) or not isinstance(row, Sequence):
            raise InvalidValueError(
                f"A {self._what} is a dict, a list or a tuple, not {type(row).__name__}: "
                f"{row_text(row)}.",
                hint=f"The columns are {', '.join(self.names)}.",
            )
        if len(row) == len(self.names):
            return row
        if len(row) != self._width:
            raise InvalidValueError(
                f"The {self._what} has {len(row)} values for {len(self.names)} columns.",
                hint=f"The columns are {', '.join(self.names)}, in this order.",
            )
        return [row[position] for position in self.positions]

    def _by_name(self, row: Mapping[Any, Any]) -> Sequence[Any]:
        if not self._known.issuperset(row):
            unknown = next(each for each in row if each not in self._known)
            raise InvalidValueError(
                f"There is no column {unknown!r} for this {self._what}; its columns are "
                f"{', '.join(self.names)}.",
                hint=did_you_mean(str(unknown), self.names),
                column=str(unknown),
            )
        # A column that is not there is NULL; the converter of a NOT NULL column refuses that.
        return [row.get(name) for name in self.names]
