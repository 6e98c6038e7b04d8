"""Arrow arrays as the numpy columns of `fluss.rows.buffers.columns`, and back, without copying.

Both sides have Arrow's layout, so offsets, values and bytes are shared. What is made anew is one
byte per row where Arrow has one bit: validity, and the values of BOOLEAN. The arrays are expected
in wire form (`BatchLayout.wire_schema`, with or without a zone); making them so is
`records.convert.cast`'s part, and judging arrays that came out of foreign bytes is
`records.arrow.array_checks`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

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
from fluss.rows.buffers.columns import BoolArray, ByteArray, Column, Int32Array, Values

_TIME_PRECISION_MAX_INT32 = 3
_WORDS_PER_DECIMAL = 2


def to_columns(batch: pa.RecordBatch, types: Sequence[DataType]) -> list[Column]:
    """The columns of a batch in wire form."""
    return [to_column(array, each) for array, each in zip(batch.columns, types, strict=True)]


def to_column(array: pa.Array, data_type: DataType) -> Column:
    """One array in wire form as a column over the same memory."""
    length, valid = len(array), _valid(array)
    match data_type:
        case BooleanType():
            values = _bits(array.buffers()[1], array.offset, length)
            return Column(type=data_type, length=length, valid=valid, values=values)
        case CharType() | StringType() | BytesType():
            return Column(
                type=data_type,
                length=length,
                valid=valid,
                values=_numbers(array.buffers()[2], np.uint8),
                offsets=_offsets(array),
            )
        case ArrayType():
            return _list_column(array, data_type, valid, (array.values,))
        case MapType():
            entries = array.values
            return _list_column(array, data_type, valid, (entries.field(0), entries.field(1)))
        case RowType():
            children = tuple(
                to_column(array.field(index), each)
                for index, each in enumerate(data_type.children())
            )
            return Column(type=data_type, length=length, valid=valid, children=children)
        case _:
            values = _fixed_values(array, data_type)
            return Column(type=data_type, length=length, valid=valid, values=values)


def _list_column(
    array: pa.Array,
    data_type: ArrayType | MapType,
    valid: BoolArray | None,
    elements: tuple[pa.Array, ...],
) -> Column:
    """ARRAY or MAP; of the elements only those are taken that the offsets of this slice reach."""
    offsets = _offsets(array)
    first, last = int(offsets[0]), int(offsets[-1])
    children = zip(elements, data_type.children(), strict=True)
    return Column(
        type=data_type,
        length=len(array),
        valid=valid,
        offsets=offsets - first if first else offsets,
        children=tuple(
            to_column(each.slice(first, last - first), child) for each, child in children
        ),
    )


def _fixed_values(array: pa.Array, data_type: DataType) -> Values:
    buffer, start, count = array.buffers()[1], array.offset, len(array)
    match data_type:
        case BinaryType(length=width):
            flat = _numbers(buffer, np.uint8, start=start * width, count=count * width)
            return flat.reshape(count, width)
        case DecimalType():
            words = _WORDS_PER_DECIMAL
            flat = _numbers(buffer, np.int64, start=start * words, count=count * words)
            return flat.reshape(count, words)
        case _:
            return _numbers(buffer, values_dtype(data_type), start=start, count=count)


def _offsets(array: pa.Array) -> Int32Array:
    buffer = array.buffers()[1]
    if buffer is None or buffer.size == 0:  # Arrow allows an empty array to have no offsets
        return np.zeros(1, dtype=np.int32)
    return _numbers(buffer, np.int32, start=array.offset, count=len(array) + 1)


def _numbers(
    buffer: pa.Buffer | None, dtype: Any, *, start: int = 0, count: int | None = None
) -> Values:
    if buffer is None or count == 0:
        return np.zeros(0, dtype=dtype)
    size = np.dtype(dtype).itemsize
    return np.frombuffer(
        buffer, dtype=dtype, count=-1 if count is None else count, offset=start * size
    )


def _valid(array: pa.Array) -> BoolArray | None:
    return _bits(array.buffers()[0], array.offset, len(array)) if array.null_count else None


def _bits(buffer: pa.Buffer | None, start: int, count: int) -> BoolArray:
    if buffer is None or not count:
        return np.zeros(count, dtype=np.bool_)
    packed = np.frombuffer(buffer, dtype=np.uint8)[start >> 3 : (start + count + 7) >> 3]
    bits = np.unpackbits(packed, bitorder="little")
    return bits[start & 7 : (start & 7) + count].view(np.bool_)


def values_dtype(data_type: DataType) -> np.dtype[Any]:
    """The numpy type of `Column.values` where a row has one number."""
    match data_type:
        case BooleanType():
            return np.dtype(np.bool_)
        case TinyIntType():
            return np.dtype(np.int8)
        case SmallIntType():
            return np.dtype(np.int16)
        case IntType() | DateType():
            return np.dtype(np.int32)
        case TimeType(precision=precision):
            return np.dtype(np.int32 if precision <= _TIME_PRECISION_MAX_INT32 else np.int64)
        case FloatType():
            return np.dtype(np.float32)
        case DoubleType():
            return np.dtype(np.float64)
        case BigIntType() | TimestampType() | TimestampLtzType():
            return np.dtype(np.int64)
        case _:
            raise AssertionError(f"{data_type} is not one number per row")


def to_batch(columns: Sequence[Column], schema: pa.Schema) -> pa.RecordBatch:
    """Columns as a batch of this schema, which has their types in wire form or users' form."""
    arrays = [to_array(each, field.type) for each, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def to_array(column: Column, arrow_type: pa.DataType) -> pa.Array:
    """One column as an array over the same memory."""
    length = column.length
    validity, null_count = _validity(column.valid, length)
    match column.type:
        case ArrayType():
            child = to_array(column.children[0], arrow_type.value_type)
            buffers = [validity, _buffer(_given(column.offsets))]
            return pa.Array.from_buffers(arrow_type, length, buffers, null_count, 0, [child])
        case MapType():
            buffers = [validity, _buffer(_given(column.offsets))]
            entries = _entries(column, arrow_type)
            return pa.Array.from_buffers(arrow_type, length, buffers, null_count, 0, [entries])
        case RowType():
            children = [
                to_array(each, arrow_type.field(index).type)
                for index, each in enumerate(column.children)
            ]
            return pa.Array.from_buffers(arrow_type, length, [validity], null_count, 0, children)
        case CharType() | StringType() | BytesType():
            data = [_buffer(_given(column.offsets)), _buffer(_given(column.values))]
        case BooleanType():
            data = [_packed(_given(column.values))]
        case _:
            data = [_buffer(_given(column.values))]
    return pa.Array.from_buffers(arrow_type, length, [validity, *data], null_count)


def _entries(column: Column, arrow_type: pa.MapType) -> pa.Array:
    keys, items = column.children
    pairs = pa.struct([arrow_type.key_field, arrow_type.item_field])
    children = [to_array(keys, arrow_type.key_type), to_array(items, arrow_type.item_type)]
    return pa.Array.from_buffers(pairs, keys.length, [None], 0, 0, children)


def validity_buffer(array: pa.Array) -> pa.Buffer | None:
    """Which rows of an array are valid, from bit 0 on whatever its offset; None where all are."""
    return _validity(_valid(array), len(array))[0]


def _validity(valid: BoolArray | None, length: int) -> tuple[pa.Buffer | None, int]:
    if valid is None:
        return None, 0
    null_count = length - int(np.count_nonzero(valid))
    return (_packed(valid), null_count) if null_count else (None, 0)


def _packed(flags: BoolArray) -> pa.Buffer:
    return _buffer(np.packbits(flags, bitorder="little"))


def _buffer(values: Values | ByteArray) -> pa.Buffer:
    return pa.py_buffer(np.ascontiguousarray(values))


def _given(values: Values | None) -> Values:
    if values is None:
        raise ValueError("A column of this type has values and, if their lengths vary, offsets.")
    return values
