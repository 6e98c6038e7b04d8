"""Converts physical values to the numpy columns of `fluss.rows.buffers.columns`, and back.

The layout uses everything that Arrow allows: garbage under a NULL, offsets that begin above zero, a
mask although every row is valid. So a codec that reads what it should not is detected.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from fluss.model.types.data_type import (
    ArrayType,
    BigIntType,
    BinaryType,
    BooleanType,
    BytesType,
    CharType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntType,
    MapType,
    RowType,
    SmallIntType,
    StringType,
    TimestampLtzType,
    TimestampType,
    TimeType,
    TinyIntType,
)
from fluss.rows.buffers.columns import BoolArray, Column, Int32Array

_RUBBISH_BYTES = b"\xee\xee\xee"
_WORD = 2**64


def columns_of(
    types: Sequence[DataType], rows: Sequence[Sequence[Any]], *, rubbish: bool = True
) -> tuple[Column, ...]:
    """Return one column per type; `rubbish=False` uses the layout of a careful writer."""
    return tuple(
        column_of(each, [row[index] for row in rows], rubbish=rubbish)
        for index, each in enumerate(types)
    )


def rows_in(columns: Sequence[Column], *, length: int) -> list[tuple[Any, ...]]:
    """Return the rows of columns with `length` rows."""
    for column in columns:
        assert column.length == length, f"{column.type}: {column.length} rows, not {length}"
    lists = [values_in(column) for column in columns]
    return [tuple(each[index] for each in lists) for index in range(length)]


def column_of(data_type: DataType, values: Sequence[Any], *, rubbish: bool = True) -> Column:
    """Return the physical values of one type as a column."""
    nulls = any(value is None for value in values)
    masked = nulls or (rubbish and data_type.nullable and len(values) % 2 == 1)
    valid = np.array([value is not None for value in values], dtype=np.bool_) if masked else None
    rows = len(values)
    match data_type:
        case ArrayType():
            flat, offsets = _flattened(values, filler=_filler_elements(data_type.element, rubbish))
            child = column_of(data_type.element, flat, rubbish=rubbish)
            return _nested(data_type, rows, valid, offsets, (child,))
        case MapType():
            entry = _filler_elements(data_type.key, rubbish)
            flat, offsets = _flattened(values, filler=[(each, None) for each in entry])
            keys = column_of(data_type.key, [pair[0] for pair in flat], rubbish=rubbish)
            filled = [_filled(data_type.value, pair[1]) for pair in flat]
            items = column_of(data_type.value, filled, rubbish=rubbish)
            return _nested(data_type, rows, valid, offsets, (keys, items))
        case RowType():
            children = tuple(
                column_of(
                    each,
                    [_filled(each, None if row is None else row[index]) for row in values],
                    rubbish=rubbish,
                )
                for index, each in enumerate(data_type.field_types)
            )
            return _nested(data_type, rows, valid, None, children)
        case CharType() | StringType():
            encoded = [None if value is None else value.encode() for value in values]
            return _variable(data_type, encoded, valid, rubbish=rubbish)
        case BytesType():
            return _variable(data_type, values, valid, rubbish=rubbish)
        case _:
            return Column(
                type=data_type, length=rows, valid=valid, values=_fixed(data_type, values, rubbish)
            )


def values_in(column: Column) -> list[Any]:
    """Return the physical values of a column; None for NULL."""
    found: list[Any]
    match column.type:
        case ArrayType():
            elements = values_in(column.children[0])
            found = [elements[start:end] for start, end in _ranges(column)]
        case MapType():
            keys, items = (values_in(each) for each in column.children)
            found = [
                list(zip(keys[start:end], items[start:end], strict=True))
                for start, end in _ranges(column)
            ]
        case RowType():
            for child in column.children:
                assert child.length == column.length, "a ROW's children are as long as itself"
            found = list(zip(*(values_in(each) for each in column.children), strict=True))
        case CharType() | StringType():
            found = [None if each is None else each.decode() for each in _byte_strings(column)]
        case BytesType():
            found = _byte_strings(column)
        case BinaryType():
            assert column.values is not None
            assert column.values.shape == (column.length, column.type.length)
            found = [each.tobytes() for each in column.values]
        case DecimalType():
            assert column.values is not None
            assert column.values.shape == (column.length, 2)
            found = [high * _WORD + low % _WORD for low, high in column.values.tolist()]
        case _:
            assert column.values is not None
            assert column.values.dtype == _dtype(column.type), f"{column.type} in the wrong width"
            found = column.values.tolist()
    assert len(found) == column.length
    if column.valid is None:
        return found
    assert column.valid.dtype == np.bool_
    assert len(column.valid) == column.length
    return [each if here else None for each, here in zip(found, column.valid, strict=True)]


def _nested(
    data_type: DataType,
    length: int,
    valid: BoolArray | None,
    offsets: Int32Array | None,
    children: tuple[Column, ...],
) -> Column:
    return Column(type=data_type, length=length, valid=valid, offsets=offsets, children=children)


def _flattened(values: Sequence[Any], *, filler: list[Any]) -> tuple[list[Any], Int32Array]:
    flat = list(filler)
    offsets = [len(flat)]
    for value in values:
        flat.extend(filler if value is None else value)
        offsets.append(len(flat))
    return flat, np.array(offsets, dtype=np.int32)


def _filler_elements(element: DataType, rubbish: bool) -> list[Any]:
    return [_filler(element)] if rubbish else []


def _filler(data_type: DataType) -> Any:
    """Return an arbitrary value of the type that no reader should return."""
    match data_type:
        case ArrayType():
            return [_filler(data_type.element)]
        case MapType():
            return [(_filler(data_type.key), _filler(data_type.value))]
        case RowType():
            return tuple(_filler(each) for each in data_type.field_types)
        case BinaryType():
            return b"\xee" * data_type.length
        case BytesType():
            return b"\xee"
        case CharType() | StringType():
            return "?"
        case BooleanType():
            return True
        case FloatType() | DoubleType():
            return 85.5
        case _:
            return 5


def _filled(data_type: DataType, value: Any) -> Any:
    # Under a NULL parent, a NOT NULL child still needs a value.
    return _filler(data_type) if value is None and not data_type.nullable else value


def _variable(
    data_type: DataType, values: Sequence[bytes | None], valid: BoolArray | None, *, rubbish: bool
) -> Column:
    filler = _RUBBISH_BYTES if rubbish else b""
    data = bytearray(filler)
    offsets = [len(data)]
    for value in values:
        data += filler if value is None else value
        offsets.append(len(data))
    return Column(
        type=data_type,
        length=len(values),
        valid=valid,
        values=np.frombuffer(bytes(data), dtype=np.uint8),
        offsets=np.array(offsets, dtype=np.int32),
    )


def _fixed(data_type: DataType, values: Sequence[Any], rubbish: bool) -> np.ndarray[Any, Any]:
    filler = _filler(data_type) if rubbish else None
    match data_type:
        case DecimalType():
            pairs = [_words(_or_zero(each, filler)) for each in values]
            return np.array(pairs, dtype=np.int64).reshape(len(values), 2)
        case BinaryType():
            size = data_type.length
            data = b"".join(bytes(_or_zero(each, filler) or size) for each in values)
            return np.frombuffer(data, dtype=np.uint8).reshape(len(values), size)
        case _:
            return np.array([_or_zero(each, filler) for each in values], dtype=_dtype(data_type))


def _or_zero(value: Any, filler: Any) -> Any:
    return (filler or 0) if value is None else value


def _words(unscaled: int) -> tuple[int, int]:
    low = unscaled % _WORD
    return (low - _WORD if low >= _WORD // 2 else low), unscaled // _WORD


def _dtype(data_type: DataType) -> np.dtype[Any]:
    match data_type:
        case BooleanType():
            return np.dtype(np.bool_)
        case TinyIntType():
            return np.dtype(np.int8)
        case SmallIntType():
            return np.dtype(np.int16)
        case IntType() | DateType():
            return np.dtype(np.int32)
        case TimeType():
            return np.dtype(np.int32 if data_type.precision <= 3 else np.int64)
        case BigIntType() | TimestampType() | TimestampLtzType():
            return np.dtype(np.int64)
        case FloatType():
            return np.dtype(np.float32)
        case DoubleType():
            return np.dtype(np.float64)
        case _:
            raise AssertionError(f"{data_type} has no numpy type of its own")


def _ranges(column: Column) -> list[tuple[int, int]]:
    assert column.offsets is not None
    assert column.offsets.dtype == np.int32
    assert len(column.offsets) == column.length + 1
    ends = column.offsets.tolist()
    return list(pairwise(ends))


def _byte_strings(column: Column) -> list[Any]:
    assert column.values is not None
    data = column.values.tobytes()
    found: list[Any] = [data[start:end] for start, end in _ranges(column)]
    if column.valid is not None:  # garbage under a NULL need not be UTF-8
        found = [each if here else None for each, here in zip(found, column.valid, strict=True)]
    return found
