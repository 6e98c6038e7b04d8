"""The table that `fluss import --create` makes, if it does not exist, from the first file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from fluss.errors import InvalidSchemaError
from fluss.model.schema.column import Column
from fluss.model.types.data_type import DataType
from fluss.model.types.type_to_arrow import to_arrow_field
from fluss.session import Session, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTable:
    """How a missing table is created; None leaves a choice to the session.

    Args:
        may_create: Whether a missing table is created at all.
        primary_key: The columns of its key.
        partition_by: The columns that divide it.
        buckets: How many buckets it has.
        types: The types of single columns.
    """

    may_create: bool
    primary_key: list[str] | None
    partition_by: list[str] | None
    buckets: int | None
    types: Mapping[str, DataType]

    def fields(self) -> dict[str, pa.Field]:
        """The columns whose type is given."""
        return {
            name: to_arrow_field(Column(name, data_type)) for name, data_type in self.types.items()
        }

    def make(self, session: Session, name: str, schema: pa.Schema, rows: pa.Table | None) -> Table:
        """Create the table with these columns, if it can take the first rows."""
        return session.ensure_table(
            name,
            schema,
            rows=rows,
            primary_key=self.primary_key,
            partition_by=self.partition_by,
            buckets=self.buckets,
        )

    def check(self, table: Table) -> None:
        """Refuse an existing table that differs from this description.

        Raises:
            InvalidSchemaError: Its key, partitions, types or number of buckets differ.
        """
        found = {column.name: column.data_type for column in table.fluss_schema.columns}
        pairs: list[tuple[str, object, object]] = [
            ("--primary-key", self.primary_key, list(table.primary_key)),
            ("--partition-by", self.partition_by, list(table.partition_by)),
            ("--buckets", self.buckets, table.buckets),
            *((f"--type of {name!r}", kind, found.get(name)) for name, kind in self.types.items()),
        ]
        for option, requested, existing in pairs:
            if requested is not None and requested != existing:
                shown = ", ".join(existing) if isinstance(existing, list) else existing
                raise InvalidSchemaError(
                    f"{table.name} exists already, and its {option} is {shown or 'none'}.",
                    hint="leave the option out, or import into another table",
                    table=table.name,
                )
