"""Descriptors of tables for the rows of a frame.

Only the names and types of the columns are used; no row of a stream is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from fluss.errors import InvalidSchemaError, SchemaMismatchError
from fluss.model.options.scan_options import CHANGE_TYPE, METADATA_COLUMNS
from fluss.model.paths import TablePath
from fluss.model.schema.field_ids import without_field_ids
from fluss.model.schema.schema import Schema
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.tables.table_info import TableInfo
from fluss.model.types.arrow_to_type import from_arrow_schema
from fluss.model.types.given_types import columns_if_given, is_type
from fluss.typed.class_fields import kind_of
from fluss.typed.class_schema import descriptor_of
from fluss.write.class_frames import ClassFrame
from fluss.write.tabular import frame_of
from fluss.write.write_targets import NO_TABLE_YET


def schema_of_frame(
    data: Any,
    *,
    primary_key: Sequence[str] | str | None = None,
    partition_by: Sequence[str] | str | None = None,
    buckets: int | None = None,
    bucket_key: Sequence[str] | str | None = None,
    auto_increment: str | None = None,
    comment: str | None = None,
    properties: Mapping[str, Any] | None = None,
    custom_properties: Mapping[str, Any] | None = None,
) -> TableDescriptor:
    """The descriptor of a table for the rows of a frame.

    Types that Fluss does not have become the next larger ones. Of a changelog, the columns that the
    scan added (`_change_type`, `_log_offset` and others) are left out if the table has a key, so
    that changes can be applied; otherwise they are refused.

    Args:
        data: Columns (`model.types.given_types`), anything tabular, or a complete
            `TableDescriptor`; or a class of rows (`fluss.typed`).
        primary_key: The columns that identify a row; they become NOT NULL.
        partition_by: The columns whose values divide the table into partitions.
        buckets: How many buckets the table, or each partition, has; the server's default if
            None.
        bucket_key: The columns that choose the bucket.
        auto_increment: A column of the frame that the server shall count up.
        comment: What the table holds, for people.
        properties: Fluss's own properties, `table.…`.
        custom_properties: Properties of users.

    Raises:
        UnsupportedTypeError: Fluss has no type for a column.
        InvalidSchemaError: Keys are not columns, or contradict each other.
    """
    facts = (primary_key, partition_by, buckets, bucket_key, auto_increment, comment)
    if isinstance(data, TableDescriptor):
        if any(each is not None for each in (*facts, properties, custom_properties)):
            raise InvalidSchemaError(
                "A TableDescriptor is a complete description of a table.",
                hint="Leave out the other arguments, or give a Schema instead.",
            )
        return data
    cls = data.row_class.cls if isinstance(data, ClassFrame) else data
    if kind_of(cls) is not None:
        return descriptor_of(
            cls,
            primary_key=primary_key,
            partition_by=partition_by,
            bucket_key=bucket_key,
            buckets=buckets,
            auto_increment=auto_increment,
            comment=comment,
            properties=properties,
            custom_properties=custom_properties,
        )
    return TableDescriptor(
        _schema(data, _listed(primary_key), auto_increment),
        partition_keys=_listed(partition_by),
        bucket_count=buckets,
        bucket_keys=_listed(bucket_key),
        comment=comment,
        properties=properties,
        custom_properties=custom_properties,
    )


def check_existing(
    table: TableInfo,
    *,
    primary_key: Sequence[str] | str | None = None,
    partition_by: Sequence[str] | str | None = None,
    buckets: int | None = None,
    bucket_key: Sequence[str] | str | None = None,
    auto_increment: str | None = None,
    **others: Any,
) -> None:
    """Refuse an existing table that differs from the one described.

    Only given arguments are compared; a key is the same in any order. Comments and properties may
    change, and are not compared.

    Raises:
        SchemaMismatchError: It has another key, other partitions or buckets.
        TypeError: There is no such argument.
    """
    unknown = others.keys() - {"comment", "properties", "custom_properties"}
    if unknown:
        raise TypeError(f"A table is not created with {', '.join(sorted(unknown))}.")
    keys = (
        ("primary_key", primary_key, table.primary_keys),
        ("partition_by", partition_by, table.partition_keys),
        ("bucket_key", bucket_key, table.bucket_keys),
        ("auto_increment", auto_increment, table.schema.auto_increment_columns),
    )
    for name, given, found in keys:
        if given is not None and set(_listed(given) or ()) != set(found):
            raise _differs(table, name, _names_text(_listed(given)), _names_text(found))
    if buckets is not None and buckets != table.num_buckets:
        raise _differs(table, "buckets", str(buckets), str(table.num_buckets))


def _differs(table: TableInfo, name: str, given: str, found: str) -> SchemaMismatchError:
    return SchemaMismatchError(
        f"{table.table_path} exists, and its {name} is {found}, not {given}.",
        hint=f"Leave {name} out to write to the table as it is, or name another table.",
        table=str(table.table_path),
        option=name,
    )


def _names_text(names: Sequence[str] | None) -> str:
    return f"({', '.join(names)})" if names else "none"


def info_of(descriptor: TableDescriptor, path: TablePath) -> TableInfo:
    """The facts of a table before it is created, as far as writers need them."""
    return TableInfo(
        table_path=path,
        table_id=NO_TABLE_YET,
        schema_id=-1,
        schema=descriptor.schema,
        bucket_keys=descriptor.bucket_keys,
        partition_keys=descriptor.partition_keys,
        num_buckets=descriptor.bucket_count or 1,
        properties=descriptor.properties,
        custom_properties=descriptor.custom_properties,
    )


def _schema(data: Any, primary_key: Sequence[str] | None, auto_increment: str | None) -> Schema:
    if isinstance(data, Schema):
        if primary_key is None and auto_increment is None:
            return data
        columns = data.columns
        primary_key = data.primary_keys if primary_key is None else primary_key
        return Schema(columns, primary_key, auto_increment)
    given = columns_if_given(data)
    if given is not None:
        return Schema(given, primary_key, auto_increment)
    arrow = pa.schema(data) if _is_schema(data) else frame_of(data).schema
    kept = _without_added(arrow, is_keyed=bool(primary_key))
    if not len(kept):
        raise InvalidSchemaError(
            "A table cannot be created from a frame without columns.",
            hint="Give a frame that has columns, or a schema.",
        )
    # The ids in a scanned frame are those of another table's columns.
    return Schema(without_field_ids(from_arrow_schema(kept)), primary_key, auto_increment)


def _without_added(schema: pa.Schema, *, is_keyed: bool) -> pa.Schema:
    added = [each for each in schema.names if each in METADATA_COLUMNS]
    if added and not (is_keyed and CHANGE_TYPE in added):
        raise InvalidSchemaError(
            f"The frame has the column {added[0]!r}, which a scan adds to the rows of a table.",
            hint="Leave such columns out of the frame, or rename them to keep them: a table has "
            f"none of {', '.join(METADATA_COLUMNS)}.",
            column=added[0],
        )
    return pa.schema([each for each in schema if each.name not in added])


def _is_schema(data: Any) -> bool:
    """Whether this is a schema without data."""
    return hasattr(data, "__arrow_c_schema__") and is_type(data)


def _listed(names: Sequence[str] | str | None) -> Sequence[str] | None:
    return [names] if isinstance(names, str) else names
