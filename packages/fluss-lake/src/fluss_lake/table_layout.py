"""The columns, partitions and properties of a lake's table, as Fluss's coordinator creates them.

Java: `IcebergLakeCatalog` and `FlussDataTypeToIcebergDataType` of Fluss 0.9.1. Its servers and
workers rely on exactly this layout, so nothing here is a choice of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, Final

from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import SortDirection, SortField, SortOrder
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
)

from fluss.error_codes import ErrorCode
from fluss.errors import FlussError, error_from_code
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.types import data_type as fluss_types
from fluss_lake.file_plan import BUCKET, OFFSET, TIMESTAMP

_PARTITION_FIELDS_FROM: Final = 1000
_ICEBERG_PREFIX: Final = "iceberg."
_FLUSS_PREFIX: Final = "fluss."
_MERGE_ON_READ: Final = {
    f"write.{change}.mode": "merge-on-read" for change in ("delete", "update", "merge")
}
# Iceberg-Java adds it to each new table.
_CREATED_BY_JAVA: Final = {"write.parquet.compression-codec": "zstd"}

_SYSTEM: Final[Mapping[str, IcebergType]] = {
    BUCKET: IntegerType(),
    OFFSET: LongType(),
    TIMESTAMP: TimestamptzType(),
}
_PLAIN: Final[Mapping[type[fluss_types.DataType], IcebergType]] = {
    fluss_types.BooleanType: BooleanType(),
    fluss_types.TinyIntType: IntegerType(),
    fluss_types.SmallIntType: IntegerType(),
    fluss_types.IntType: IntegerType(),
    fluss_types.BigIntType: LongType(),
    fluss_types.FloatType: FloatType(),
    fluss_types.DoubleType: DoubleType(),
    fluss_types.CharType: StringType(),
    fluss_types.StringType: StringType(),
    fluss_types.BinaryType: BinaryType(),
    fluss_types.BytesType: BinaryType(),
    fluss_types.DateType: DateType(),
    fluss_types.TimeType: TimeType(),
    fluss_types.TimestampType: TimestampType(),
    fluss_types.TimestampLtzType: TimestamptzType(),
}


def schema_of(table: TableDescriptor) -> Schema:
    """Return the columns of a table in the lake: the table's columns, and those that Fluss adds.

    Raises:
        FlussError: A column has the name of a column that Fluss adds.
    """
    ids = count(1).__next__
    fields = []
    for column in table.schema.columns:
        if column.name in _SYSTEM:
            raise _refused(
                f"Column '{column.name}' conflicts with a reserved system column name.",
                hint="give it another name; the lake's tables have a column of this name",
            )
        fields.append(
            NestedField(
                ids(),
                column.name,
                _iceberg_type(column.data_type, ids),
                required=not column.data_type.nullable,
                doc=column.comment,
            )
        )
    fields += [NestedField(ids(), name, kind, required=True) for name, kind in _SYSTEM.items()]
    keys = set(table.schema.primary_keys)
    return Schema(
        *fields, identifier_field_ids=[each.field_id for each in fields if each.name in keys]
    )


def spec_of(table: TableDescriptor, schema: Schema) -> PartitionSpec:
    """Return the partition spec of a table: its partition keys, then its buckets.

    Raises:
        FlussError: Fluss's coordinator refuses such a spec.
    """
    if len(table.bucket_keys) > 1:
        raise _refused(
            "Only one bucket key is supported for Iceberg at the moment",
            hint="name one column as the bucket key; a primary key of several columns needs "
            "bucket_key, too",
        )
    fields = [_by_value(schema, name, is_key=True) for name in table.partition_keys]
    fields.append(
        _by_bucket(schema, table.bucket_keys[0], table.bucket_count or 1)
        if table.bucket_keys
        else _by_value(schema, BUCKET)
    )
    numbered = (
        PartitionField(source, _PARTITION_FIELDS_FROM + position, transform, name)
        for position, (source, transform, name) in enumerate(fields)
    )
    return PartitionSpec(*numbered)


def order_of(schema: Schema) -> SortOrder:
    """Return the order of rows in files: that of the log."""
    source = schema.find_field(OFFSET).field_id
    return SortOrder(
        SortField(source, transform=IdentityTransform(), direction=SortDirection.ASC), order_id=1
    )


def properties_of(table: TableDescriptor) -> dict[str, str]:
    """Return the properties of a new table in the lake."""
    given = {**table.properties, **table.custom_properties}
    return {
        **_CREATED_BY_JAVA,
        **(_MERGE_ON_READ if table.has_primary_key else {}),
        **{lake_property(key): value for key, value in given.items()},
    }


def lake_property(key: str) -> str:
    """Return the name that a property of a table has in the lake."""
    if key.startswith(_ICEBERG_PREFIX):
        return key.removeprefix(_ICEBERG_PREFIX)
    return f"{_FLUSS_PREFIX}{key}"


def check_alterable(key: str) -> None:
    """Refuse to change a property that decides how rows of the lake are deleted.

    Raises:
        FlussError: The property is such a property.
    """
    if key in _MERGE_ON_READ:
        raise _refused(f"Cannot set table property '{key}'")


# --- columns and partitions -----------------------------------------------------------------------


def _iceberg_type(given: fluss_types.DataType, ids: Callable[[], int]) -> IcebergType:
    plain = _PLAIN.get(type(given))
    if plain is not None:
        return plain
    match given:
        case fluss_types.DecimalType():
            return DecimalType(given.precision, given.scale)
        case fluss_types.ArrayType():
            element = _iceberg_type(given.element, ids)
            return ListType(ids(), element, element_required=not given.element.nullable)
        case fluss_types.MapType():
            key, value = _iceberg_type(given.key, ids), _iceberg_type(given.value, ids)
            return MapType(ids(), key, ids(), value, value_required=not given.value.nullable)
        case fluss_types.RowType():
            return StructType(*(_field(each, ids) for each in given.fields))
        case _:
            raise _refused(f"The lake has no type for {given}.")


def _field(given: fluss_types.DataField, ids: Callable[[], int]) -> NestedField:
    kind = _iceberg_type(given.data_type, ids)
    required = not given.data_type.nullable
    return NestedField(ids(), given.name, kind, required=required, doc=given.description)


_Field = tuple[int, IdentityTransform[Any] | BucketTransform[Any], str]


def _by_value(schema: Schema, name: str, *, is_key: bool = False) -> _Field:
    field = schema.find_field(name)
    if is_key and not isinstance(field.field_type, StringType):
        raise error_from_code(
            int(ErrorCode.INVALID_TABLE_EXCEPTION),
            "Partition key only support string type for iceberg currently. "
            f"Column `{name}` is not string type.",
        )
    return field.field_id, IdentityTransform(), name


def _by_bucket(schema: Schema, name: str, buckets: int) -> _Field:
    field = schema.find_field(name)
    transform: BucketTransform[Any] = BucketTransform(buckets)
    if not transform.can_transform(field.field_type):
        raise _refused(f"Invalid source type {field.field_type} for transform: {transform}")
    partition = f"{name}_bucket"
    if partition in schema.column_names:
        raise _refused(f"Cannot create partition from name that exists in schema: {partition}")
    return field.field_id, transform, partition


def _refused(message: str, *, hint: str | None = None) -> FlussError:
    """The error of a refusal for which Fluss's coordinator has no specific code."""
    return error_from_code(int(ErrorCode.UNKNOWN_SERVER_ERROR), message, hint=hint)
