"""Tables for the tests of the lake's rules."""

from __future__ import annotations

from fluss.model.paths import TablePath
from fluss.model.schema.schema import Schema
from fluss.model.string_map import StringMap
from fluss.model.tables.table_info import TableInfo
from fluss.model.types.type_text import parse_type


def schema_of(**columns: str) -> Schema:
    """A schema of columns by name and type."""
    builder = Schema.builder()
    for name, text in columns.items():
        builder = builder.column(name, parse_type(text))
    return builder.build()


def table_of(
    schema: Schema,
    partition_by: tuple[str, ...] = (),
    properties: dict[str, str] | None = None,
) -> TableInfo:
    """A table with this schema."""
    return TableInfo(
        table_path=TablePath("db", "t"),
        table_id=1,
        schema_id=1,
        schema=schema,
        bucket_keys=(),
        partition_keys=partition_by,
        num_buckets=2,
        properties=StringMap(properties or {}, what="properties"),
        custom_properties=StringMap({}, what="custom properties"),
    )
