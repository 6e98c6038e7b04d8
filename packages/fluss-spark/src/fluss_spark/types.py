"""Fluss's Arrow types as Spark has them, and the cast of every batch to Spark's exact schema.

Spark takes a batch only if its schema is the one it would have made itself: names, order, types,
all fields nullable. Times beyond microseconds lose their last digits here, because Spark has
none; the driver says so once.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    TimeType,
)

from fluss.errors import UnsupportedTypeError

_PLAIN: dict[pa.DataType, DataType] = {
    pa.bool_(): BooleanType(),
    pa.int8(): ByteType(),
    pa.int16(): ShortType(),
    pa.int32(): IntegerType(),
    pa.int64(): LongType(),
    pa.float32(): FloatType(),
    pa.float64(): DoubleType(),
    pa.string(): StringType(),
    pa.large_string(): StringType(),
    pa.binary(): BinaryType(),
    pa.large_binary(): BinaryType(),
    pa.date32(): DateType(),
}
_TIME_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 6}  # Spark's TIME has at most six


def spark_schema(schema: pa.Schema) -> StructType:
    """The columns as Spark has them; all may be NULL, as Spark wants of a source.

    Raises:
        UnsupportedTypeError: Spark has no such type.
    """
    return StructType([StructField(each.name, _spark_type(each.type), True) for each in schema])


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema that Spark wants to see, to the letter."""
    return to_arrow_schema(schema, timezone="UTC")


def loses_digits(schema: pa.Schema) -> list[str]:
    """The columns whose times are finer than Spark's."""
    return [each.name for each in schema if _has_nanoseconds(each.type)]


def to_spark(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch in Spark's schema; buffers are shared where the types agree."""
    arrays = []
    for array, field in zip(batch.columns, schema, strict=True):
        same = array.type.equals(field.type, check_metadata=True)
        # Unsafe only where digits beyond microseconds are cut, as was said.
        cut = _has_nanoseconds(array.type)
        arrays.append(array if same else pc.cast(array, field.type, safe=not cut))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _spark_type(arrow_type: pa.DataType) -> DataType:
    known = _PLAIN.get(arrow_type)
    if known is not None:
        return known
    types = pa.types
    if types.is_fixed_size_binary(arrow_type):
        return BinaryType()
    if types.is_decimal(arrow_type):
        return DecimalType(arrow_type.precision, arrow_type.scale)
    if types.is_timestamp(arrow_type):
        return TimestampNTZType() if arrow_type.tz is None else TimestampType()
    if types.is_time(arrow_type):
        return TimeType(_TIME_DIGITS[arrow_type.unit])
    if types.is_map(arrow_type):
        return MapType(_spark_type(arrow_type.key_type), _spark_type(arrow_type.item_type), True)
    if types.is_list(arrow_type) or types.is_large_list(arrow_type):
        return ArrayType(_spark_type(arrow_type.value_type), True)
    if types.is_struct(arrow_type):
        fields = [StructField(each.name, _spark_type(each.type), True) for each in arrow_type]
        return StructType(fields)
    raise UnsupportedTypeError(f"Spark has no type for {arrow_type}.")


def _has_nanoseconds(arrow_type: pa.DataType) -> bool:
    if pa.types.is_timestamp(arrow_type):
        return bool(arrow_type.unit == "ns")
    if pa.types.is_time64(arrow_type):
        return bool(arrow_type.unit == "ns")
    return any(
        _has_nanoseconds(arrow_type.field(each).type) for each in range(arrow_type.num_fields)
    )
