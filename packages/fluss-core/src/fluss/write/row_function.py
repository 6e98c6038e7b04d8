"""Compiles one function per writer that reads a whole row, with the loop over columns unrolled.

Appending a row takes about a microsecond, and loops would double that. The source is made of the
types alone (no name and no value of a user gets into it) and compiled once, as
`collections.namedtuple` does. A value of the plain type passes immediately; all others go to the
column's converter (`model.values.conversion`), which accepts or refuses them. Rows that are not a
plain dict, list or tuple of the right length are brought into order by `write.row_values`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any

from fluss.model.types import data_type as t
from fluss.model.types.data_type import DataType
from fluss.model.types.type_facts import ArrowLayout

# Takes a row; returns the physical values of all columns of the table, and their approximate size.
RowFunction = Callable[[Any], tuple[tuple[Any, ...], int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowShape:
    """The shape of the rows of a writer.

    Attributes:
        names: The columns of a row, in order; at least one.
        types: Their types.
        converters: The converter of each, from `model.values.conversion.to_physical`.
        positions: Their positions in the table; the other columns are NULL.
        width: How many columns the table has.
        by_name: Brings a mapping with other names into order.
        otherwise: Brings all other rows into order.
    """

    names: tuple[str, ...]
    types: tuple[DataType, ...]
    converters: tuple[Callable[[Any], Any], ...]
    positions: tuple[int, ...]
    width: int
    by_name: Callable[[Mapping[Any, Any]], Sequence[Any]]
    otherwise: Callable[[Any], Sequence[Any]]


_OFFSET_WIDTH = 4
_NESTED_WIDTH = 8


def row_function(shape: RowShape) -> RowFunction:
    """Compile the function for rows of this shape.

    Returns:
        The function. It raises the errors of the converters. Strings count by their characters: the
        size decides when a batch is full, not what is too large.
    """
    count = len(shape.types)
    values = [f"v{index}" for index in range(count)]
    names: dict[str, Any] = {
        "pick": itemgetter(*shape.names),
        "by_name": shape.by_name,
        "otherwise": shape.otherwise,
        "nested": _nested_size,
        "datetime": datetime,
        "utc": UTC,
        "epoch": datetime(1970, 1, 1),  # noqa: DTZ001 - times without a zone are subtracted from it
        "epoch_utc": datetime(1970, 1, 1, tzinfo=UTC),
    }
    names |= {f"c{index}": each for index, each in enumerate(shape.converters)}
    whole = ["None"] * shape.width
    for position, value in zip(shape.positions, values, strict=True):
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
        *(f"    {line}" for pair in enumerate(shape.types) for line in _conversion(*pair)),
        f"    return ({', '.join(whole)},), {' + '.join(_sizes(shape.types))}",
    ]
    exec("\n".join(lines), names)  # noqa: S102 - made of numbers and names of this file only
    made: RowFunction = names["read"]
    return made


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
