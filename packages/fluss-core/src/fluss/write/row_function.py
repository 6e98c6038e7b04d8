"""Converts a user's row to a tuple of physical values in the order of the table's columns.

A row is a mapping by column name, or a sequence by position. Values are converted when the row is
taken, so an error concerns that row, and nothing of it was queued. Frames are cast column by column
instead (`records.convert.cast`).

Appending a row takes about a microsecond, and loops over columns would double that. So one function
is compiled per writer, as `collections.namedtuple` does, with the loop unrolled. Its source is made
of the types alone: no name and no value of a user gets into it. A value of the plain type passes
immediately; all others go to the column's converter (`model.values.conversion`), which accepts or
refuses them. Rows that are not a plain dict, list or tuple of the right length are brought into
order first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any, Self

from fluss.errors import InvalidValueError
from fluss.model.did_you_mean import did_you_mean
from fluss.model.tables.table_info import TableInfo
from fluss.model.types import data_type as t
from fluss.model.types.data_type import DataType
from fluss.model.types.type_facts import ArrowLayout
from fluss.model.values.conversion import to_physical
from fluss.model.values.limits import NO_LIMITS, ValueLimits
from fluss.write.caller_rows import row_text

# Takes a row; returns the physical values of all columns of the table, and their approximate size:
# it decides when a batch is full, not what is too large, so that texts count by their characters.
RowFunction = Callable[[Any], tuple[tuple[Any, ...], int]]

_OFFSET_WIDTH = 4
_NESTED_WIDTH = 8


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
        self.read = self._compiled()
        return self.read(row)

    def _compiled(self) -> RowFunction:
        count = len(self._types)
        values = [f"v{index}" for index in range(count)]
        names: dict[str, Any] = {
            "pick": itemgetter(*self._names),
            "by_name": self._by_name,
            "otherwise": self._otherwise,
            "nested": _nested_size,
            "datetime": datetime,
            "utc": UTC,
            "epoch": datetime(1970, 1, 1),  # noqa: DTZ001 - times without a zone are subtracted from it
            "epoch_utc": datetime(1970, 1, 1, tzinfo=UTC),
        }
        for index, (name, data_type) in enumerate(zip(self._names, self._types, strict=True)):
            names[f"c{index}"] = to_physical(data_type, name, limits=self._limits)
        whole = ["None"] * self._width
        for position, value in zip(self._positions, values, strict=True):
            whole[position] = value
        given = f"{', '.join(values)}," if count > 1 else "v0"  # as itemgetter gives them
        lines = [
            "def read(row):",
            "    kind = type(row)",
            f"    if kind is dict and len(row) == {count}:",
            "        try:",
            f"            {given} = pick(row)",
            "        except KeyError:",
            f"            {', '.join(values)}, = by_name(row)",
            f"    elif (kind is tuple or kind is list) and len(row) == {count}:",
            f"        {', '.join(values)}, = row",
            "    else:",
            f"        {', '.join(values)}, = otherwise(row)",
            *(f"    {line}" for pair in enumerate(self._types) for line in _conversion(*pair)),
            f"    return ({', '.join(whole)},), {' + '.join(_sizes(self._types))}",
        ]
        exec("\n".join(lines), names)  # noqa: S102 - made of numbers and names of this file only
        made: RowFunction = names["read"]
        return made

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


def _sizes(types: Sequence[DataType]) -> list[str]:
    """The terms of the size of a row."""
    sizes = [str(sum(each.row_width for each in types))]
    for index, data_type in enumerate(types):
        value = f"v{index}"
        if data_type.layout is ArrowLayout.VARIABLE:
            sizes.append(f"(0 if {value} is None else len({value}))")
        elif data_type.is_nested:
            sizes.append(f"nested({value})")
    return sizes


def _conversion(index: int, data_type: DataType) -> list[str]:
    """The lines that convert a value; a value that passes immediately is not converted."""
    v, convert = f"v{index}", f"v{index} = c{index}(v{index})"
    match data_type:
        case t.BooleanType():
            return [f"if {v} is not True and {v} is not False: {convert}"]
        case t.IntegerFamily():
            limit = 1 << data_type.bits - 1
            return [f"if type({v}) is not int or not {-limit} <= {v} < {limit}: {convert}"]
        case t.DoubleType():
            return [f"if type({v}) is not float: {convert}"]
        case t.StringType():
            return [f"if type({v}) is not str or not {v}.isascii(): {convert}"]
        case t.BytesType():
            return [f"if type({v}) is not bytes: {convert}"]
        case t.TimestampFamily(unit="us"):
            zone, epoch = (
                ("None", "epoch") if data_type.arrow_zone is None else ("utc", "epoch_utc")
            )
            return [
                f"if type({v}) is datetime and {v}.tzinfo is {zone}:",
                f"    delta = {v} - {epoch}",
                f"    {v} = (delta.days * 86400 + delta.seconds) * 1000000 + delta.microseconds",
                f"else: {convert}",
            ]
        case _:
            return [convert]  # right for every type; the others are there for speed


def _nested_size(value: Any) -> int:
    if isinstance(value, str | bytes):
        return len(value) + _OFFSET_WIDTH
    if isinstance(value, list | tuple):
        return sum(map(_nested_size, value)) + _OFFSET_WIDTH
    return _NESTED_WIDTH
