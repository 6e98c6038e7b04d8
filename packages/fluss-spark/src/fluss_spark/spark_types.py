"""Maps Fluss's Arrow types to Spark's, and casts every batch to Spark's exact schema.

Spark accepts a batch only if its schema is the one it would have made itself: names, order, types,
all fields nullable. Spark's times have microseconds: finer ones are cut, which the driver logs, or
become whole numbers of nanoseconds since 1970 if the option `nanoseconds` requests that.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
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
    VariantType,
)

from fluss.errors import InvalidValueError, SchemaMismatchError, UnsupportedTypeError
from fluss.model.types.type_to_arrow import with_leaves
from fluss_spark.column_names import match_names

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
CUT, LONG = "cut", "long"
_TIME_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 6}  # Spark's TIME has at most six


def spark_schema(schema: pa.Schema, *, nanoseconds: str = CUT) -> StructType:
    """Return the columns as Spark has them; all may be NULL, as Spark requires of a source.

    Args:
        schema: The columns of a scan.
        nanoseconds: How times with nanoseconds are converted: `cut`, or `long`.

    Raises:
        UnsupportedTypeError: Spark has no such type.
    """
    if nanoseconds == LONG:
        schema = pa.schema([each.with_type(_with_longs(each.type)) for each in schema])
    return StructType([StructField(each.name, spark_type(each.type), True) for each in schema])


def check_declared(declared: StructType, schema: pa.Schema, table: str) -> None:
    """Refuse a schema of the user's that does not fit the table.

    Raises:
        SchemaMismatchError: A column has another type, or may be NULL; the message names it.
    """
    names = match_names(declared.names, schema.names)
    for field, name in zip(declared, names, strict=True):
        kind = schema.field(name).type
        if not field.nullable and schema.field(name).nullable:
            raise SchemaMismatchError(
                f"The column {field.name!r} of {table} may be NULL, and the given schema has NOT "
                "NULL, which Spark would trust without a check.",
                hint="give it as nullable",
                column=field.name,
            )
        offered = [spark_type(each).simpleString() for each in (kind, _with_longs(kind))]
        if field.dataType.simpleString() not in offered:
            raise SchemaMismatchError(
                f"The column {field.name!r} of {table} is {kind}, which is {offered[0]} in Spark, "
                f"and {field.dataType.simpleString()} in the given schema.",
                hint=f"give it as {offered[0]}, and cast it afterwards",
                column=field.name,
            )


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the exact Arrow schema that Spark expects.

    Raises:
        UnsupportedTypeError: A column is VARIANT, whose bytes only Spark can read, or of a type
            that Spark itself does not pass to Python.
    """
    for field in schema:
        if _has_variant(field.dataType):
            raise UnsupportedTypeError(
                f"The column {field.name!r} is {field.dataType.simpleString()}, and Fluss has no "
                "VARIANT.",
                hint=f"write it as text: .withColumn({field.name!r}, to_json({field.name!r}))",
                column=field.name,
            )
    try:
        return to_arrow_schema(schema, timezone="UTC")
    except (ValueError, PySparkException):
        for field in schema:
            _check_handed_over(field)
        raise


def _check_handed_over(column: StructField) -> None:
    try:
        to_arrow_schema(StructType([column]), timezone="UTC")
    except (ValueError, PySparkException) as error:
        kind = column.dataType.simpleString()
        raise UnsupportedTypeError(
            f"The column {column.name!r} is {kind}, which Spark does not pass to Python.",
            hint="give its elements a type: "
            f".withColumn({column.name!r}, col({column.name!r}).cast('array<int>'))"
            if "void" in kind
            else "cast it, to string or to a number",
            column=column.name,
        ) from error


def columns_losing_digits(schema: pa.Schema, target: pa.Schema) -> list[str]:
    """Return the columns whose times are finer than those that Spark gets."""
    names = match_names(target.names, schema.names)
    return [
        name
        for name, to in zip(names, target.types, strict=True)
        if name in schema.names
        and _has_nanoseconds(schema.field(name).type)
        and to != _with_longs(schema.field(name).type)
    ]


def to_spark(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Cast a batch to Spark's schema; buffers are shared where the types agree."""
    arrays = []
    for array, field in zip(batch.columns, schema, strict=True):
        same = array.type.equals(field.type, check_metadata=True)
        try:
            arrays.append(array if same else _cast(array, field.type))
        except pa.ArrowInvalid as error:
            raise InvalidValueError(
                f"The column {field.name!r} is {field.type} in Spark, and has a value that this type "
                f"cannot hold: {error}.",
                hint="leave the column out, with columns=...",
                column=field.name,
            ) from error
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Cast a column to Spark's type; digits beyond microseconds are cut."""
    if _has_nanoseconds(array.type) and _with_longs(array.type) != kind:
        array = _floored(array)
    return pc.cast(array, kind)


def _floored(array: pa.Array) -> pa.Array:
    """Round nanoseconds down to microseconds; Arrow's cast rounds times before 1970 up."""
    kind = array.type
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        mask = np.asarray(array.is_null())
        nanos = np.asarray(pc.fill_null(array.view(pa.int64()), 0))
        micros = pa.array(nanos // 1_000, pa.int64(), mask=mask)
        return micros.view(pa.timestamp("us", kind.tz))
    if not _has_nanoseconds(kind):
        return array
    if array.offset:
        array = array.take(pa.array(range(len(array))))  # none of the following takes a slice
    mask = array.is_null()
    if pa.types.is_map(kind):
        keys, items = _floored(array.keys), _floored(array.items)
        return pa.MapArray.from_arrays(array.offsets, keys, items, mask=mask)
    if pa.types.is_list(kind):
        return pa.ListArray.from_arrays(array.offsets, _floored(array.values), mask=mask)
    fields = [_floored(each) for each in array.flatten()]
    return pa.StructArray.from_arrays(fields, [each.name for each in kind], mask=mask)


def spark_type(arrow_type: pa.DataType) -> DataType:
    """Return the type that a column has in Spark.

    Raises:
        UnsupportedTypeError: Spark has no such type.
    """
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
        return MapType(spark_type(arrow_type.key_type), spark_type(arrow_type.item_type), True)
    if types.is_list(arrow_type) or types.is_large_list(arrow_type):
        return ArrayType(spark_type(arrow_type.value_type), True)
    if types.is_struct(arrow_type):
        fields = [StructField(each.name, spark_type(each.type), True) for each in arrow_type]
        return StructType(fields)
    raise UnsupportedTypeError(f"Spark has no type for {arrow_type}.")


def type_of_new_column(kind: DataType, arrow_type: pa.DataType) -> pa.DataType:
    """Return the type of a new column for one of a frame; its times are no finer than Spark's.

    Args:
        kind: The column's type in Spark.
        arrow_type: The type in which Spark passes it, where TIME always has nanoseconds.
    """
    match kind:
        case TimeType() if pa.types.is_time(arrow_type):
            units = {0: pa.time32("s"), 3: pa.time32("ms"), 6: pa.time64("us")}
            return next(unit for most, unit in units.items() if kind.precision <= most)
        case ArrayType() if pa.types.is_list(arrow_type):
            element = type_of_new_column(kind.elementType, arrow_type.value_type)
            return pa.list_(arrow_type.value_field.with_type(element))
        case MapType() if pa.types.is_map(arrow_type):
            key, value = arrow_type.key_type, arrow_type.item_type
            return pa.map_(
                type_of_new_column(kind.keyType, key), type_of_new_column(kind.valueType, value)
            )
        case StructType() if pa.types.is_struct(arrow_type):
            fields = zip(kind, arrow_type, strict=True)
            return pa.struct(
                [each.with_type(type_of_new_column(of.dataType, each.type)) for of, each in fields]
            )
        case _:
            return arrow_type


def _has_variant(kind: DataType) -> bool:
    match kind:
        case ArrayType():
            return _has_variant(kind.elementType)
        case MapType():
            return _has_variant(kind.keyType) or _has_variant(kind.valueType)
        case StructType():
            return any(_has_variant(each.dataType) for each in kind)
        case _:
            return isinstance(kind, VariantType)


def _with_longs(kind: pa.DataType) -> pa.DataType:
    """Return the type with whole numbers in place of times that have nanoseconds."""

    def long_of(leaf: pa.DataType) -> pa.DataType:
        return pa.int64() if pa.types.is_timestamp(leaf) and leaf.unit == "ns" else leaf

    return with_leaves(kind, long_of)


def _has_nanoseconds(kind: pa.DataType) -> bool:
    if pa.types.is_timestamp(kind):
        return bool(kind.unit == "ns")
    return any(_has_nanoseconds(kind.field(each).type) for each in range(kind.num_fields))
