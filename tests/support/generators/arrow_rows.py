"""Converts rows of physical values to Arrow batches and back, without our own conversions.

pyarrow builds and decodes the arrays, so that a test of `fluss.records` does not depend on the code
under test for its input.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa

from fluss.model.types.data_type import (
    ArrayType,
    CharType,
    DataType,
    DateType,
    DecimalType,
    MapType,
    RowType,
    StringType,
    TimestampLtzType,
    TimestampType,
    TimeType,
)

_EXACTLY = Context(prec=40)


def batch_of(
    schema: pa.Schema, types: Sequence[DataType], rows: Sequence[Sequence[Any]]
) -> pa.RecordBatch:
    """Return a batch of this schema; the types describe the physical values."""
    arrays = [
        pa.array([_to_arrow(each, row[index]) for row in rows], schema.field(index).type)
        for index, each in enumerate(types)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def rows_of(batch: pa.RecordBatch, types: Sequence[DataType]) -> list[tuple[Any, ...]]:
    """Return the rows of a batch as physical values."""
    columns = [_from_arrow(array, each) for array, each in zip(batch.columns, types, strict=True)]
    return [tuple(column[index] for column in columns) for index in range(batch.num_rows)]


def _to_arrow(data_type: DataType, value: Any) -> Any:
    if value is None:
        return None
    match data_type:
        case DecimalType():
            return Decimal(value).scaleb(-data_type.scale, _EXACTLY)
        case ArrayType():
            return [_to_arrow(data_type.element, each) for each in value]
        case MapType():
            return [(_to_arrow(data_type.key, k), _to_arrow(data_type.value, v)) for k, v in value]
        case RowType():
            pairs = zip(data_type.fields, value, strict=True)
            return {field.name: _to_arrow(field.data_type, each) for field, each in pairs}
        case _:
            return value


def _from_arrow(array: pa.Array, data_type: DataType) -> list[Any]:
    match data_type:
        case DateType() | TimeType() | TimestampType() | TimestampLtzType():
            width = pa.int32() if array.type.bit_width == 32 else pa.int64()
            return list(array.cast(width).to_pylist())
        case DecimalType():
            scale = data_type.scale
            return [
                _masked(each, lambda e: int(e.scaleb(scale, _EXACTLY)))
                for each in array.to_pylist()
            ]
        case ArrayType():
            elements = _from_arrow(array.values, data_type.element)
            return _cut(array, elements)
        case MapType():
            keys = _from_arrow(array.keys, data_type.key)
            items = _from_arrow(array.items, data_type.value)
            return _cut(array, list(zip(keys, items, strict=True)))
        case RowType():
            children = [
                _from_arrow(array.field(index), each)
                for index, each in enumerate(data_type.field_types)
            ]
            valid = array.is_valid().to_pylist()
            return [
                row if here else None
                for row, here in zip(zip(*children, strict=True), valid, strict=True)
            ]
        case CharType() | StringType():
            array.validate(full=True)
            return list(array.to_pylist())
        case _:
            return list(array.to_pylist())


def _masked(value: Any, convert: Any) -> Any:
    return None if value is None else convert(value)


def _cut(array: Any, elements: list[Any]) -> list[Any]:
    """Split the elements into lists; a NULL list has none."""
    ends = array.offsets.to_pylist()
    valid = array.is_valid().to_pylist()
    return [
        elements[start:end] if here else None
        for start, end, here in zip(ends[:-1], ends[1:], valid, strict=True)
    ]
