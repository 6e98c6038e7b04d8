"""Builds a table descriptor: `TableDescriptor.builder().schema(...).comment(...).build()`.

It only collects; the descriptor checks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from fluss.errors import InvalidSchemaError
from fluss.model.schema.schema import Schema
from fluss.model.tables.database import CommentedBuilder
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.tables.table_options import KvFormat, LogFormat


class TableDescriptorBuilder(CommentedBuilder):
    """Collects the facts about a table; nothing is checked before `build`."""

    def __init__(self) -> None:
        super().__init__()
        self._schema: Schema | None = None
        self._facts: dict[str, Any] = {}
        self._properties: dict[str, Any] = {}

    def schema(self, schema: Schema) -> Self:
        """Set the columns and the primary key."""
        self._schema = schema
        return self

    def log_format(self, log_format: LogFormat | str) -> Self:
        """Set how the rows of the log are written."""
        self._facts["log_format"] = log_format
        return self

    def kv_format(self, kv_format: KvFormat | str) -> Self:
        """Set how the rows of a primary key table are stored."""
        self._facts["kv_format"] = kv_format
        return self

    def property(self, key: str, value: Any) -> Self:
        """Set one of Fluss's properties."""
        self._properties[key] = value
        return self

    def properties(self, properties: Mapping[str, Any]) -> Self:
        """Set several of Fluss's properties."""
        self._properties.update(properties)
        return self

    def partitioned_by(self, keys: Sequence[str]) -> Self:
        """Return name the columns that divide the table into partitions."""
        self._facts["partition_keys"] = keys
        return self

    def distributed_by(
        self, bucket_count: int | None = None, bucket_keys: Sequence[str] | None = None
    ) -> Self:
        """Set how many buckets there are, and the columns that choose among them."""
        self._facts["bucket_count"] = bucket_count
        self._facts["bucket_keys"] = bucket_keys
        return self

    def build(self) -> TableDescriptor:
        """Return the table.

        Raises:
            InvalidSchemaError: When there is no schema, or keys contradict each other.
        """
        if self._schema is None:
            raise InvalidSchemaError("The table has no schema.", hint="call schema(...) first")
        return TableDescriptor(
            self._schema,
            comment=self._comment,
            properties=self._properties,
            custom_properties=self._custom_properties,
            **self._facts,
        )
