"""Checks the columns that divide a table into partitions and buckets (Java: `TableDescriptor`)."""

from __future__ import annotations

from collections.abc import Sequence

from fluss.errors import InvalidSchemaError
from fluss.model.schema.schema import Schema
from fluss.model.schema.schema_rules import check_named_once
from fluss.model.types.data_type import ArrayType, DecimalType, MapType, RowType

BUCKETS_MAX = 2**31 - 1


def physical_primary_keys(schema: Schema, partition_keys: Sequence[str]) -> tuple[str, ...]:
    """Return the primary key's columns without those that choose the partition."""
    return tuple(each for each in schema.primary_keys if each not in partition_keys)


def checked_partition_keys(schema: Schema, keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return the partition keys if this schema can be partitioned by them."""
    check_named_once(schema.column_names, keys, "The partition keys name")
    for key in keys:
        if schema.has_primary_key and key not in schema.primary_keys:
            raise InvalidSchemaError(
                f"The partition key {key!r} is not in the primary key "
                f"({', '.join(schema.primary_keys)}).",
                hint=f"add {key!r} to the primary key, or partition by one of its columns",
                column=key,
            )
        data_type = schema.column(key).data_type
        if isinstance(data_type, ArrayType | MapType | RowType | DecimalType):
            raise InvalidSchemaError(
                f"The partition key {key!r} is {data_type}; "
                "ARRAY, MAP, ROW and DECIMAL cannot name a partition.",
                hint="partition by another column",
                column=key,
            )
    return keys


def checked_bucket_count(count: object) -> int | None:
    """Return the bucket count if a table can have it."""
    if count is None:
        return None
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= BUCKETS_MAX:
        raise InvalidSchemaError(f"The bucket count is {count!r}; it is a number from 1 on.")
    return count


def checked_bucket_keys(
    schema: Schema, partition_keys: tuple[str, ...], keys: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the bucket keys if they are valid; by default those of the primary key."""
    physical = physical_primary_keys(schema, partition_keys)
    if schema.has_primary_key and not physical:
        raise InvalidSchemaError(
            f"All columns of the primary key ({', '.join(schema.primary_keys)}) are partition keys; "
            "none is left to tell rows apart.",
            hint="add a column to the primary key that is not a partition key",
        )
    check_named_once(schema.column_names, keys, "The bucket keys name")
    for key in keys:
        if key in partition_keys:
            raise InvalidSchemaError(
                f"The bucket key {key!r} is a partition key; within a partition it is always the same.",
                hint="leave it out of the bucket keys",
                column=key,
            )
        if schema.has_primary_key and key not in physical:
            raise InvalidSchemaError(
                f"The bucket key {key!r} is not in the primary key ({', '.join(physical)}).",
                hint="choose bucket keys from the primary key, or leave them out",
                column=key,
            )
        data_type = schema.column(key).data_type
        if data_type.is_nested:
            raise InvalidSchemaError(
                f"The bucket key {key!r} is {data_type}; ARRAY, MAP and ROW cannot choose a bucket.",
                column=key,
            )
    return keys or physical
