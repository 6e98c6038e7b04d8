"""Writes the Python lines that convert the values of a row; `write.row_function` compiles them.

The lines are made of the types alone: no name and no value of a user gets into them. A value of the
plain type passes immediately, and so does None where it may be NULL; all others go to the converter
of their type (`model.values.conversion`), which accepts or refuses them. It is right for every
value; the lines are there for speed, in lists, maps and rows too: a call of a converter takes as
long as three values that pass (measured, a row of a list, a map and a row: 2.1 instead of 5.0 µs).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from operator import itemgetter
from typing import Any, Final, NamedTuple

from fluss.model.types import data_type as t
from fluss.model.types.data_type import DataType
from fluss.model.types.type_facts import ArrowLayout
from fluss.model.values.conversion import to_physical
from fluss.model.values.limits import ValueLimits

# Rows within rows are converted by lines down to here: Python nests no more than 20 blocks.
_DEPTH_MAX: Final = 4
_OFFSET_WIDTH: Final = 4
_NESTED_WIDTH: Final = 8
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()


class _Passing(NamedTuple):
    """The condition on which a value needs no converter, and the lines that follow then."""

    condition: str
    lines: Sequence[str] = ()


class ValueSource:
    """The lines for the values of one function, and the names that these use.

    Args:
        limits: The limits that the table adds to those of its types.
    """

    def __init__(self, limits: ValueLimits) -> None:
        self._limits = limits
        self.names: dict[str, Any] = {
            "nested": _nested_size,
            "texts": frozenset({str}),
            "date": date,
            "datetime": datetime,
            "utc": UTC,
            "epoch": datetime(1970, 1, 1),  # noqa: DTZ001 - times without a zone are subtracted from it
            "epoch_utc": datetime(1970, 1, 1, tzinfo=UTC),
        }

    def conversion(
        self, v: str, data_type: DataType, column: str, *, depth: int = 0
    ) -> Sequence[str]:
        """The lines that convert the value in a variable, and add what it takes to `size`.

        Args:
            v: The variable.
            data_type: The type of the value.
            column: The name of its column, for errors.
            depth: How many rows it is in.
        """
        convert = [f"{v} = {self._converter(data_type, column)}({v})", *_counting(v, data_type)]
        found = self._passing(v, data_type, column, convert, depth)
        if found is None:
            return [f"if {v} is not None:", *indented(convert)] if data_type.nullable else convert
        # In a table of 30 columns with every second value NULL, passing NULL takes a third off the
        # time of a row.
        otherwise = f"elif {v} is not None:" if data_type.nullable else "else:"
        lines = found.lines or ("pass",)
        return [f"if {found.condition}:", *indented(lines), otherwise, *indented(convert)]

    def _passing(
        self, v: str, data_type: DataType, column: str, convert: Sequence[str], depth: int
    ) -> _Passing | None:
        match data_type:
            case t.RowType(fields=fields) if fields and depth < _DEPTH_MAX:
                return self._row(v, data_type, column, convert, depth)
            case t.ArrayType():
                return self._array(v, data_type, column)
            case t.MapType():
                return self._map(v, data_type, column)
            case _:
                return _plain(v, data_type)

    def _row(
        self, v: str, data_type: t.RowType, column: str, convert: Sequence[str], depth: int
    ) -> _Passing:
        count = len(data_type.fields)
        variables = [f"{v}_{index}" for index in range(count)]
        pick = self._name("pick", itemgetter(*data_type.field_names))
        lines = [
            "try:",
            f"    {', '.join(variables)} = {pick}({v})",
            "except KeyError:",
            *indented(convert),
            "else:",
        ]
        for variable, field in zip(variables, data_type.fields, strict=True):
            name = f"{column}.{field.name}"
            lines += indented(self.conversion(variable, field.data_type, name, depth=depth + 1))
        lines += [
            f"    {v} = ({', '.join(variables)},)",
            f"    size += {count * _NESTED_WIDTH + _OFFSET_WIDTH}",
        ]
        return _Passing(f"type({v}) is dict and len({v}) == {count}", lines)

    # Lists and maps are taken as tuples, because the garbage collector ceases to look at a tuple of
    # plain values: measured, a row of a list, a map and a row took 5.0 µs with lists, and 3.0 so.

    def _array(self, v: str, data_type: t.ArrayType, column: str) -> _Passing | None:
        element = self._expression("e", data_type.element, f"{column}[]")
        if element is None:
            return None
        each = [f"{v} = tuple([{element} for e in {v}])", *_texts("e", "e", v, data_type.element)]
        if isinstance(data_type.element, t.StringType):
            # Plain texts together: measured, 165 instead of 345 ns for a list of three.
            each = [
                f"joined = ''.join({v}) if texts.issuperset(map(type, {v})) else '\\x80'",
                "if joined.isascii():",
                *indented([f"{v} = tuple({v})", "size += len(joined)"]),
                "else:",
                *indented(each),
            ]
        size = f"size += {_OFFSET_WIDTH} + {_NESTED_WIDTH} * len({v})"
        return _Passing(f"type({v}) is list", [size, *each])

    def _map(self, v: str, data_type: t.MapType, column: str) -> _Passing | None:
        key = self._expression("k", data_type.key, f"{column}.key")
        value = self._expression("e", data_type.value, f"{column}.value")
        if key is None or value is None:
            return None
        pair = 2 * _NESTED_WIDTH + _OFFSET_WIDTH
        return _Passing(
            f"type({v}) is dict",
            [
                f"{v} = tuple([({key}, {value}) for k, e in {v}.items()])",
                f"size += {_OFFSET_WIDTH} + {pair} * len({v})",
                *_texts("k", "k, e", v, data_type.key),
                *_texts("e", "k, e", v, data_type.value),
            ],
        )

    def _expression(self, e: str, data_type: DataType, column: str) -> str | None:
        """The expression that converts an element; None if it takes more than an expression."""
        found = _plain(e, data_type)
        if found is None or (data_type.layout is not ArrowLayout.VARIABLE and found.lines):
            return None
        passes = f"{e} is None or {found.condition}" if data_type.nullable else found.condition
        return f"({e} if {passes} else {self._converter(data_type, column)}({e}))"

    def _converter(self, data_type: DataType, column: str) -> str:
        return self._name("c", to_physical(data_type, column, limits=self._limits))

    def _name(self, kind: str, thing: Any) -> str:
        name = f"{kind}{len(self.names)}"
        self.names[name] = thing
        return name


def indented(lines: Sequence[str], *, depth: int = 1) -> list[str]:
    """The lines of a block."""
    return [f"{'    ' * depth}{line}" for line in lines]


def _plain(v: str, data_type: DataType) -> _Passing | None:
    """How a value passes that is no list, map or row; None if only its converter knows."""
    match data_type:
        case t.BooleanType():
            return _Passing(f"{v} is True or {v} is False")
        case t.IntegerFamily():
            limit = 1 << data_type.bits - 1
            return _Passing(f"type({v}) is int and {-limit} <= {v} < {limit}")
        case t.DoubleType():
            return _Passing(f"type({v}) is float")
        case t.StringType():
            return _Passing(f"type({v}) is str and {v}.isascii()", [f"size += len({v})"])
        case t.BytesType():
            return _Passing(f"type({v}) is bytes", [f"size += len({v})"])
        case t.DateType():
            return _Passing(f"type({v}) is date", [f"{v} = {v}.toordinal() - {_EPOCH_DAY}"])
        case t.TimestampFamily(unit="us"):
            has_zone = data_type.arrow_zone is not None
            zone, epoch = ("utc", "epoch_utc") if has_zone else ("None", "epoch")
            lines = [
                f"delta = {v} - {epoch}",
                f"{v} = (delta.days * 86400 + delta.seconds) * 1000000 + delta.microseconds",
            ]
            return _Passing(f"type({v}) is datetime and {v}.tzinfo is {zone}", lines)
        case _:
            return None


def _counting(v: str, data_type: DataType) -> list[str]:
    """The lines that add what a converted value takes beyond the fixed width of its column."""
    if data_type.layout is ArrowLayout.VARIABLE:
        return [f"if {v} is not None: size += len({v})"]
    return [f"size += nested({v})"] if data_type.is_nested else []


def _texts(e: str, each: str, v: str, data_type: DataType) -> list[str]:
    """The lines that add the lengths of texts in a list, or in the pairs of a map."""
    if data_type.layout is not ArrowLayout.VARIABLE:
        return []
    return [f"size += sum([len({e}) for {each} in {v} if {e} is not None])"]


def _nested_size(value: Any) -> int:
    if isinstance(value, str | bytes):
        return len(value) + _OFFSET_WIDTH
    if isinstance(value, list | tuple):
        return sum(map(_nested_size, value)) + _OFFSET_WIDTH
    return _NESTED_WIDTH
