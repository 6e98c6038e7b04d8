"""One function per writer that converts a whole row: what a loop over converters does, unrolled.

Appending a row costs about a microsecond, and half of it would be the loop. The function's source
is put together from the types alone (no name and no value of a user gets into it) and compiled
once, as `collections.namedtuple` does. A value of the plain type passes at once; everything else
goes to the column's converter (`model.values`), which accepts or refuses it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fluss.model.types import (
    BigIntType,
    BooleanType,
    BytesType,
    CharType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntType,
    SmallIntType,
    StringType,
    TimestampLtzType,
    TimestampType,
    TinyIntType,
)

# Takes the values of a row in order; gives the physical ones, and roughly how many bytes they are.
RowFunction = Callable[[Sequence[Any]], tuple[tuple[Any, ...], int]]

_BITS: dict[type[DataType], int] = {TinyIntType: 8, SmallIntType: 16, IntType: 32, BigIntType: 64}
_WIDTHS: dict[type[DataType], int] = {
    BooleanType: 1,
    TinyIntType: 1,
    SmallIntType: 2,
    BigIntType: 8,
    FloatType: 4,
    DoubleType: 8,
    DecimalType: 16,
    TimestampType: 8,
    TimestampLtzType: 8,
}
_WIDTH_OTHERWISE = 4
_NESTED_WIDTH = 8


def row_function(
    types: Sequence[DataType], converters: Sequence[Callable[[Any], Any]]
) -> RowFunction:
    """Make the function for rows of these types.

    Args:
        types: The types of the columns, at least one.
        converters: What `model.values.to_physical` made for each.

    Returns:
        The function. Its argument must have as many values as there are types; it raises what the
        converters raise. Texts count by their characters: the size decides when a batch is full,
        not what is too large.
    """
    values = [f"v{index}" for index in range(len(types))]
    lines = ["def convert(given):", f"    {', '.join(values)}, = given"]
    sizes = [str(sum(_WIDTHS.get(type(each), _WIDTH_OTHERWISE) for each in types))]
    for index, data_type in enumerate(types):
        value = f"v{index}"
        doubt = _doubt(data_type, value)
        convert = f"{value} = c{index}({value})"
        lines.append(f"    {convert}" if doubt is None else f"    if {doubt}: {convert}")
        if isinstance(data_type, CharType | StringType | BytesType):
            sizes.append(f"(0 if {value} is None else len({value}))")
        elif data_type.is_nested:
            sizes.append(f"nested({value})")
    lines.append(f"    return ({', '.join(values)},), {' + '.join(sizes)}")
    names: dict[str, Any] = {f"c{index}": each for index, each in enumerate(converters)}
    names["nested"] = _nested_size
    exec("\n".join(lines), names)  # noqa: S102 - made of numbers and our own words only
    made: RowFunction = names["convert"]
    return made


def _doubt(data_type: DataType, value: str) -> str | None:
    """The condition under which a value must be looked at; None where it always must."""
    match data_type:
        case BooleanType():
            return f"{value} is not True and {value} is not False"
        case TinyIntType() | SmallIntType() | IntType() | BigIntType():
            limit = 1 << _BITS[type(data_type)] - 1
            return f"type({value}) is not int or not {-limit} <= {value} < {limit}"
        case DoubleType():
            return f"type({value}) is not float"
        case StringType():
            return f"type({value}) is not str or not {value}.isascii()"
        case BytesType():
            return f"type({value}) is not bytes"
        case _:
            return None


def _nested_size(value: Any) -> int:
    if isinstance(value, str | bytes):
        return len(value) + _WIDTH_OTHERWISE
    if isinstance(value, list | tuple):
        return sum(map(_nested_size, value)) + _WIDTH_OTHERWISE
    return _NESTED_WIDTH
