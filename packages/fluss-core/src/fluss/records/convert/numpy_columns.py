"""Arrow arrays as the numpy columns of `fluss.rows.buffers.columns`, and back, without copying.

Both sides have Arrow's layout, so offsets, values and bytes are shared. Only validity and the
values of BOOLEAN are copied, from one bit to one byte per row. The arrays are expected
in wire form (`BatchLayout.wire_schema`, with or without a zone); `records.convert.cast`
converts them, and `records.arrow.array_checks` validates arrays made of received bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from fluss.model.types.data_type import DataType
from fluss.model.types.type_facts import ArrowLayout
from fluss.rows.buffers.columns import BoolArray, ByteArray, Column, Int32Array, Values


def to_columns(batch: pa.RecordBatch, types: Sequence[DataType]) -> list[Column]:
    """Return the columns of a batch in wire form."""
    return [to_column(array, each) for array, each in zip(batch.columns, types, strict=True)]


def to_column(array: pa.Array, data_type: DataType) -> Column:
    """One array in wire form as a column over the same memory."""
    length, valid = len(array), _valid(array)
    match data_type.layout:
        case ArrowLayout.BITS | ArrowLayout.FIXED:
            values = _values(array, data_type)
            return Column(type=data_type, length=length, valid=valid, values=values)
        case ArrowLayout.VARIABLE:
            values = _numbers(array.buffers()[2], np.uint8)
            offsets = _offsets(array)
            return Column(
                type=data_type, length=length, valid=valid, values=values, offsets=offsets
            )
        case ArrowLayout.LIST:
            return _list_column(array, data_type, valid, (array.values,))
        case ArrowLayout.MAP:
            entries = array.values
            return _list_column(array, data_type, valid, (entries.field(0), entries.field(1)))
        case ArrowLayout.STRUCT:
            children = tuple(
                to_column(array.field(index), each)
                for index, each in enumerate(data_type.children())
            )
            return Column(type=data_type, length=length, valid=valid, children=children)


def _list_column(
    array: pa.Array,
    data_type: DataType,
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


def _values(array: pa.Array, data_type: DataType) -> Values:
    buffer, start, count = array.buffers()[1], array.offset, len(array)
    if data_type.layout is ArrowLayout.BITS:
        return _bits(buffer, start, count)
    per_row = data_type.values_per_row
    if per_row is None:
        return _numbers(buffer, data_type.dtype, start=start, count=count)
    values = _numbers(buffer, data_type.dtype, start=start * per_row, count=count * per_row)
    return values.reshape(count, per_row)


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


def to_batch(columns: Sequence[Column], schema: pa.Schema) -> pa.RecordBatch:
    """Columns as a batch of this schema, which has their types in wire form or users' form."""
    arrays = [to_array(each, field.type) for each, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def to_array(column: Column, arrow_type: pa.DataType) -> pa.Array:
    """One column as an array over the same memory."""
    validity, null_count = _validity(column.valid, column.length)
    buffers, children = [validity], []
    match column.type.layout:
        case ArrowLayout.BITS:
            buffers.append(_packed(_given(column.values)))
        case ArrowLayout.FIXED:
            buffers.append(_buffer(_given(column.values)))
        case ArrowLayout.VARIABLE:
            buffers += (_buffer(_given(column.offsets)), _buffer(_given(column.values)))
        case ArrowLayout.LIST:
            buffers.append(_buffer(_given(column.offsets)))
            children.append(to_array(column.children[0], arrow_type.value_type))
        case ArrowLayout.MAP:
            buffers.append(_buffer(_given(column.offsets)))
            children.append(_entries(column, arrow_type))
        case ArrowLayout.STRUCT:
            pairs = zip(column.children, arrow_type, strict=True)
            children += (to_array(each, field.type) for each, field in pairs)
    return pa.Array.from_buffers(arrow_type, column.length, buffers, null_count, 0, children)


def _entries(column: Column, arrow_type: pa.MapType) -> pa.Array:
    keys, items = column.children
    pairs = pa.struct([arrow_type.key_field, arrow_type.item_field])
    children = [to_array(keys, arrow_type.key_type), to_array(items, arrow_type.item_type)]
    return pa.Array.from_buffers(pairs, keys.length, [None], 0, 0, children)


def validity_buffer(array: pa.Array) -> pa.Buffer | None:
    """Return the validity of an array from bit 0 on; None where all rows are valid."""
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
