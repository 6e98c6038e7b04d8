"""The table that a class of rows describes: its columns, keys and partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluss.errors import InvalidSchemaError
from fluss.model.options.argument_types import Names
from fluss.model.schema.aggregation import AggFunction
from fluss.model.schema.column import Column
from fluss.model.schema.schema import Schema
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.tables.table_options import PREFIX
from fluss.model.types.data_type import DataType
from fluss.typed.field_types import RowClass, RowField, data_type, row_class_of
from fluss.typed.markers import (
    AutoIncrement,
    BucketKey,
    Key,
    Partition,
    TableOptions,
    table_options_of,
)


def schema_of(cls: type) -> Schema:
    """Return the columns and the primary key of a class of rows.

    Raises:
        InvalidSchemaError: It is no class of rows, or a field has a type of which there are no
            columns.

    Example:
        >>> from typing import Annotated, NamedTuple
        >>> class Order(NamedTuple):
        ...     id: Annotated[int, Key]
        ...     price: Annotated[float | None, "FLOAT"]
        >>> schema_of(Order)
        Schema(id BIGINT NOT NULL, price FLOAT, PRIMARY KEY (id))
    """
    return descriptor_of(cls).schema


def descriptor_of(
    cls: type,
    *,
    primary_key: Names | None = None,
    partition_by: Names | None = None,
    bucket_key: Names | None = None,
    buckets: int | None = None,
    auto_increment: str | None = None,
    comment: str | None = None,
    properties: Any = None,
    custom_properties: Any = None,
) -> TableDescriptor:
    """Return the descriptor of the table of a class; arguments complete what the class says.

    Raises:
        InvalidSchemaError: The class contradicts itself or an argument, or Fluss's rules.
    """
    row, declared = row_class_of(cls), table_options_of(cls)
    keys = _names(row, Key, "primary_key", primary_key, declared)
    partitions = _names(row, Partition, "partition_by", partition_by, declared)
    bucket_keys = _names(row, BucketKey, "bucket_key", bucket_key, declared)
    counted = _names(row, AutoIncrement, "auto_increment", auto_increment, None)
    if counted is not None and len(counted) > 1:
        raise InvalidSchemaError(
            f"{row.name} has {len(counted)} fields that are AutoIncrement, a table has one.",
            column=counted[1],
        )
    given = {**(declared.properties or {}), **(properties or {})}
    custom = {key: value for key, value in given.items() if not key.startswith(PREFIX)}
    return TableDescriptor(
        Schema(_columns(row), keys, counted[0] if counted else None),
        partition_keys=partitions,
        bucket_count=declared.buckets if buckets is None else buckets,
        bucket_keys=bucket_keys,
        comment=declared.comment if comment is None else comment,
        properties={key: value for key, value in given.items() if key not in custom},
        custom_properties={**custom, **(custom_properties or {})},
    )


def _columns(row: RowClass) -> list[Column]:
    return [
        Column(
            each.column,
            _type_of(each, row),
            each.comment,
            aggregation=each.type.first(AggFunction),
        )
        for each in row.fields
    ]


def _type_of(field: RowField, row: RowClass) -> DataType:
    """Return the type of a column, which may be NULL where the field has a value for NULL.

    A field with a default is one: columns that are added later may always be NULL, and so is the
    column from the start. It also makes partial updates possible, which write rows without it.
    """
    found = data_type(field.type, f"{row.name}.{field.name}")
    return found.as_nullable() if field.takes_null else found


def _names(
    row: RowClass, marker: type, option: str, given: Names | None, declared: TableOptions | None
) -> Sequence[str] | None:
    """Return the columns of a key, which may be named by fields, the decorator and the call."""
    marked = [each.column for each in row.fields if each.type.has(marker)]
    found: Sequence[str] | None = marked or None
    for names in (None if declared is None else getattr(declared, option), given):
        listed = [names] if isinstance(names, str) else names
        if listed is None:
            continue
        if found is not None and set(found) != set(listed):
            raise InvalidSchemaError(
                f"The {option} is ({', '.join(listed)}), and {row.name} has ({', '.join(found)}).",
                hint="Leave one of them out.",
                option=option,
            )
        found = listed  # in its order
    return found
