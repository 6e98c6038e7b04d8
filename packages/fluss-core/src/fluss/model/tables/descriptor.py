"""`TableDescriptor`: the descriptor of a table, and its form in Fluss's JSON.

A descriptor checks when it is made that keys are columns and that buckets and partitions fit the
primary key. Properties stay text (`model.tables.table_options` interprets them) and are checked
when a table is created (`model.tables.table_rules`), because a newer server may know more of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from fluss.doors import names_arguments
from fluss.errors import InvalidSchemaError
from fluss.model.json_values import (
    Json,
    as_integer,
    as_object,
    as_text,
    as_text_map,
    as_texts,
    json_text,
    parse_json,
)
from fluss.model.names import check_text
from fluss.model.schema.schema import Schema
from fluss.model.schema.schema_rules import names_of
from fluss.model.string_map import StringMap
from fluss.model.tables.table_keys import (
    checked_bucket_count,
    checked_bucket_keys,
    checked_partition_keys,
    physical_primary_keys,
)
from fluss.model.tables.table_options import KvFormat, LogFormat, TableOptions

if TYPE_CHECKING:
    from fluss.model.tables.descriptor_builder import TableDescriptorBuilder

TABLE_VERSION = 1


@names_arguments
@dataclass(frozen=True, slots=True, init=False)
class TableDescriptor:
    """The descriptor of a table.

    Args:
        schema: The columns and the primary key.
        partition_keys: The columns whose values divide the table into partitions.
        bucket_count: How many buckets the table, or each partition, has; the server's default
            where not given.
        bucket_keys: The columns whose values choose the bucket. A table with a primary key has
            the primary key without the partition keys where not given.
        comment: A description for users.
        log_format: `"ARROW"`, `"INDEXED"` or `"COMPACTED"`; the same as the property
            `table.log.format`.
        kv_format: `"COMPACTED"` or `"INDEXED"`; the same as the property `table.kv.format`.
        properties: Fluss's own properties, `table.…`.
        custom_properties: The user's own properties, stored unchanged.

    Raises:
        InvalidSchemaError: When keys are no columns, or contradict each other.
    """

    schema: Schema
    partition_keys: tuple[str, ...]
    bucket_count: int | None
    bucket_keys: tuple[str, ...]
    comment: str | None
    properties: StringMap
    custom_properties: StringMap

    def __init__(
        self,
        schema: Schema,
        *,
        partition_keys: Sequence[str] | None = None,
        bucket_count: int | None = None,
        bucket_keys: Sequence[str] | None = None,
        comment: str | None = None,
        log_format: LogFormat | str | None = None,
        kv_format: KvFormat | str | None = None,
        properties: Mapping[str, Any] | None = None,
        custom_properties: Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(schema, Schema):
            raise InvalidSchemaError(
                f"A table is described by a Schema, not by {type(schema).__name__}.",
                hint="wrap it: fluss.Schema(pyarrow_schema)",
            )
        partitions = names_of(partition_keys, "list of partition keys")
        buckets = names_of(bucket_keys, "list of bucket keys")
        fill = object.__setattr__
        fill(self, "schema", schema)
        fill(self, "partition_keys", checked_partition_keys(schema, partitions))
        fill(self, "bucket_count", checked_bucket_count(bucket_count))
        fill(self, "bucket_keys", checked_bucket_keys(schema, partitions, buckets))
        fill(self, "comment", None if comment is None else check_text("table comment", comment))
        fill(self, "properties", _with_formats(properties, log_format, kv_format))
        fill(self, "custom_properties", StringMap(custom_properties, what="custom properties"))

    @staticmethod
    def builder() -> TableDescriptorBuilder:
        """Return a builder: `.schema(s).partitioned_by([...]).distributed_by(4, [...]).build()`."""
        from fluss.model.tables.descriptor_builder import TableDescriptorBuilder

        return TableDescriptorBuilder()

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Return the table that Fluss's JSON describes.

        Raises:
            CorruptDataError: When the text is not what Fluss writes.
            InvalidSchemaError: When the descriptor contradicts itself.
        """
        node = parse_json(text, "table")
        schema = Schema.from_json_object(as_object(node.get("schema"), "schema"))
        count = node.get("bucket_count")
        return cls(
            schema,
            partition_keys=as_texts(node, "partition_key", "table"),
            bucket_count=None if count is None else as_integer(node, "bucket_count", "table"),
            bucket_keys=as_texts(node, "bucket_key", "table"),
            comment=None if node.get("comment") is None else as_text(node, "comment", "table"),
            properties=as_text_map(node, "properties", "table"),
            custom_properties=as_text_map(node, "custom_properties", "table"),
        )

    def to_json(self) -> str:
        """Return the table in Fluss's JSON."""
        return json_text(self.to_json_object())

    def to_json_object(self) -> Json:
        """Return the table as the JSON object that Fluss writes."""
        written: Json = {"version": TABLE_VERSION, "schema": self.schema.to_json_object()}
        if self.comment is not None:
            written["comment"] = self.comment
        written["partition_key"] = list(self.partition_keys)
        # Fluss reads a bucket count only with bucket keys; without both, the server decides.
        if self.bucket_keys or self.bucket_count is not None:
            written["bucket_key"] = list(self.bucket_keys)
        if self.bucket_count is not None:
            written["bucket_count"] = self.bucket_count
        written["properties"] = dict(self.properties)
        written["custom_properties"] = dict(self.custom_properties)
        return written

    @property
    def options(self) -> TableOptions:
        """The properties, typed."""
        return TableOptions(self.properties)

    @property
    def has_primary_key(self) -> bool:
        """Whether rows are identified by a primary key."""
        return self.schema.has_primary_key

    @property
    def is_partitioned(self) -> bool:
        """Whether the table is divided into partitions."""
        return bool(self.partition_keys)

    @property
    def physical_primary_keys(self) -> tuple[str, ...]:
        """The primary key without the partition keys: what identifies a row in its partition."""
        return physical_primary_keys(self.schema, self.partition_keys)

    def with_bucket_count(self, bucket_count: int) -> Self:
        """Return the same table with this many buckets."""
        return replace(self, bucket_count=bucket_count)

    def with_properties(self, properties: Mapping[str, Any]) -> Self:
        """Return the same descriptor with these properties added or replaced."""
        return replace(self, properties=self.properties.with_items(properties))

    def get_schema(self) -> Schema:
        """Return the columns and the primary key."""
        return self.schema


def _with_formats(
    properties: Mapping[str, Any] | None,
    log_format: LogFormat | str | None,
    kv_format: KvFormat | str | None,
) -> StringMap:
    known = StringMap(properties, what="properties")
    for option, given in (
        (TableOptions.log_format, log_format),
        (TableOptions.kv_format, kv_format),
    ):
        if given is None:
            continue
        written = option.read(given).value
        if option.key in known and known[option.key].upper() != written:
            raise InvalidSchemaError(
                f"The table is to be {written} by argument and {known[option.key]!r} by the "
                f"property {option.key!r}.",
                hint="leave one of them out",
            )
        known = known.with_items({option.key: written})
    return known
