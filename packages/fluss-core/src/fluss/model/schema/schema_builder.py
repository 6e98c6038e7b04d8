"""Builds a schema column by column: `Schema.builder().column(...).primary_key([...]).build()`.

It only collects; the schema checks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from fluss.model.schema.aggregation import AggFunction
from fluss.model.schema.column import Column
from fluss.model.schema.schema import Schema
from fluss.model.schema.schema_rules import names_of
from fluss.model.types.data_type import DataType


class SchemaBuilder:
    """Collects columns and keys; nothing is checked before `build`."""

    def __init__(self) -> None:
        self._columns: list[Column] = []
        self._primary_keys: tuple[str, ...] = ()

    def column(
        self,
        name: str,
        data_type: DataType | Any,
        comment: str | None = None,
        *,
        aggregation: AggFunction | str | None = None,
    ) -> Self:
        """Add a column after the existing ones; its type may be a text, such as `"INT"`."""
        if isinstance(aggregation, str):
            aggregation = AggFunction.of(aggregation)
        self._columns.append(Column(name, data_type, comment, aggregation=aggregation))
        return self

    def primary_key(self, keys: Sequence[str]) -> Self:
        """Return name the columns that identify a row."""
        self._primary_keys = names_of(keys, "primary key")
        return self

    def build(self) -> Schema:
        """Return the schema.

        Raises:
            InvalidSchemaError: When columns and keys contradict each other.
        """
        return Schema(self._columns, self._primary_keys)
