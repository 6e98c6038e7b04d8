"""Known quirks of Java that a comparison of rows must allow for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fluss.model.types.data_type import (
    UNITS_PER_SECOND,
    ArrayType,
    BinaryType,
    CharType,
    DataType,
    MapType,
    RowType,
    StringType,
    TimestampLtzType,
    TimestampType,
)


def with_full_binaries(
    row_format: str, types: Sequence[DataType], rows: Sequence[Sequence[Any]]
) -> list[tuple[Any, ...]]:
    """Rows that Java read, with every BINARY(n) of n bytes again.

    Java's IndexedRow takes the zeros at the end of a BINARY for padding and drops them, although
    the type says how long the value is. For the other formats nothing changes.
    """
    if row_format != "INDEXED":
        return [tuple(row) for row in rows]
    return [
        tuple(_full(each, value) for each, value in zip(types, row, strict=True)) for row in rows
    ]


def _full(data_type: DataType, value: Any) -> Any:
    if value is None:
        return None
    match data_type:
        case BinaryType():
            return value.ljust(data_type.length, b"\x00")
        case ArrayType():
            return [_full(data_type.element, each) for each in value]
        case MapType():
            return [(_full(data_type.key, k), _full(data_type.value, v)) for k, v in value]
        case RowType():
            pairs = zip(data_type.field_types, value, strict=True)
            return tuple(_full(each, field) for each, field in pairs)
        case _:
            return value


def types_java_reads_in_arrow(types: Sequence[DataType]) -> tuple[DataType, ...]:
    """The types with which to ask Java for an ARROW batch of these types.

    CHAR and STRING are one Arrow type, but Java's ColumnarArray takes n bytes for a CHAR(n) element
    however many there are, and so shows what lies behind a shorter one.
    """
    return tuple(_with_strings(each, inside_array=False) for each in types)


def rows_java_reads_in_arrow(
    types: Sequence[DataType], rows: Sequence[Sequence[Any]]
) -> list[tuple[Any, ...]]:
    """The rows, with timestamps before 1970 cut to milliseconds.

    Java's Arrow vectors divide towards zero and then refuse the negative nanoseconds that remain:
    0.9.1 (and main) cannot read such a value from an ARROW batch, whichever client wrote it.
    """
    return [tuple(_cut(each, v) for each, v in zip(types, row, strict=True)) for row in rows]


def _cut(data_type: DataType, value: Any) -> Any:
    if value is None:
        return None
    match data_type:
        case TimestampType() | TimestampLtzType() if value < 0:
            step = UNITS_PER_SECOND[data_type.unit] // 1_000
            return value if step <= 1 else -(-value // step * step)
        case ArrayType():
            return [_cut(data_type.element, each) for each in value]
        case MapType():
            return [(_cut(data_type.key, k), _cut(data_type.value, v)) for k, v in value]
        case RowType():
            pairs = zip(data_type.field_types, value, strict=True)
            return tuple(_cut(each, field) for each, field in pairs)
        case _:
            return value


def _with_strings(data_type: DataType, *, inside_array: bool) -> DataType:
    match data_type:
        case CharType() if inside_array:
            return StringType(nullable=data_type.nullable)
        case ArrayType():
            return replace(data_type, element=_with_strings(data_type.element, inside_array=True))
        case MapType():
            key = _with_strings(data_type.key, inside_array=True)
            value = _with_strings(data_type.value, inside_array=True)
            return replace(data_type, key=key, value=value)
        case RowType():
            # The field of a row in an array is read as a row's field again.
            fields = (
                replace(each, data_type=_with_strings(each.data_type, inside_array=False))
                for each in data_type.fields
            )
            return replace(data_type, fields=tuple(fields))
        case _:
            return data_type
