"""Describes the columns of a writer to `fluss_native.RowTaker`, which takes most rows in C.

It flattens rows of plain values as the function of `write.row_taker` does, adds them to the same
lists, and calls that function for every other row. So what is here decides which values are plain:
those that `write.value_source` passes without their converter, and some more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from fluss.model.types import data_type as t
from fluss.model.types.data_type import DataType
from fluss.model.types.type_facts import ArrowLayout
from fluss.model.values.conversion import to_physical
from fluss.model.values.limits import ValueLimits
from fluss.native import find_row_taker
from fluss.records.convert.flat_values import FlatList, FlatMap, FlatRow, FlatValue
from fluss.write.value_source import nested_size
from fluss.write.write_result import WriteResultHandle

if TYPE_CHECKING:
    from fluss.write.row_function import RowReader
    from fluss.write.writer_cores import RowWriter

# A kind, whether it may be NULL, and what the kind needs to know; see column_types.c.
Description: TypeAlias = tuple[Any, ...]

_MILLIS: Final = 1_000


def native_taker(
    reader: RowReader,
    writer: RowWriter,
    otherwise: Callable[[Any], WriteResultHandle],
    *,
    large_row_bytes: int,
) -> Callable[[Any], WriteResultHandle] | None:
    """Make the native function of a writer.

    Args:
        reader: Knows the columns of the rows.
        writer: Takes the rows.
        otherwise: The same function in Python.
        large_row_bytes: A larger row is left to it.

    Returns:
        The function, or None where the native code is not installed, or turned off.
    """
    row_taker = find_row_taker()
    if row_taker is None:
        return None
    rows = writer.open_rows
    flat = writer.flat_rows.columns
    sources = {position: index for index, position in enumerate(reader.positions)}
    columns = [
        # A column that rows do not have is NULL, whatever it is.
        described(reader.types[sources[position]], each, reader.limits)
        if position in sources
        else _absent(each)
        for position, each in enumerate(flat)
    ]
    return row_taker(
        names=reader.names,
        columns=tuple(columns),
        sources=tuple(sources.get(position, -1) for position in range(len(flat))),
        rows=rows,
        streams=(rows.values, *rows.runs),
        writer=writer,
        handle=WriteResultHandle,
        otherwise=otherwise,
        row_bytes=sum(each.row_width for each in reader.types),
        large_row_bytes=large_row_bytes,
    )


def described(data_type: DataType, flat: FlatValue, limits: ValueLimits) -> Description:
    """Describe a column, or a field, that is flattened."""
    nullable = data_type.nullable
    match flat, data_type:
        case FlatRow(), t.RowType(fields=fields):
            pairs = zip(fields, flat.fields, strict=True)
            inner = tuple(described(field.data_type, each, limits) for field, each in pairs)
            return "row", nullable, tuple(data_type.field_names), inner
        case FlatList(), t.ArrayType(element=element):
            return "list", nullable, _described_value(element, limits)
        case FlatMap(), t.MapType(key=key, value=value):
            return "map", nullable, _described_value(key, limits), _described_value(value, limits)
        case _:
            return _described_value(data_type, limits)


def _described_value(data_type: DataType, limits: ValueLimits) -> Description:
    nullable = data_type.nullable
    is_counted = data_type.layout is ArrowLayout.VARIABLE
    match data_type:
        case t.BooleanType():
            return "boolean", nullable
        case t.IntegerFamily():
            return "integer", nullable, data_type.bits
        case t.DoubleType():
            return "double", nullable
        case t.FloatType():
            return "float", nullable
        case t.CharType(length=length):
            return "text", nullable, length, limits.counts_char_bytes
        case t.StringType():
            return "text", nullable, -1, False
        case t.BinaryType(length=length):
            return "bytes", nullable, length, is_counted
        case t.BytesType():
            return "bytes", nullable, -1, is_counted
        case t.DateType():
            return "date", nullable
        case t.TimestampFamily(unit=unit):
            has_zone = data_type.arrow_zone is not None
            return "timestamp", nullable, t.UNITS_PER_SECOND[unit], has_zone
        case t.TimeType(unit=unit) if not limits.keeps_millis or _is_coarse(unit):
            return "time", nullable, t.UNITS_PER_SECOND[unit]
    # The column is named by the Python function, which refuses the value again.
    convert = to_physical(data_type, "", limits=limits)
    return "converted", nullable, convert, nested_size if data_type.is_nested else None


def _is_coarse(unit: str) -> bool:
    return t.UNITS_PER_SECOND[unit] <= _MILLIS


def _absent(flat: FlatValue) -> Description:
    if isinstance(flat, FlatRow):
        inner: Sequence[Description] = [_absent(each) for each in flat.fields]
        return "row", True, tuple(map(str, range(len(inner)))), tuple(inner)
    if isinstance(flat, FlatList):
        return "list", True, ("boolean", True)
    if isinstance(flat, FlatMap):
        return "map", True, ("boolean", True), ("boolean", True)
    return "boolean", True
