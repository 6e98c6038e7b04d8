"""`TableInfo`: the facts of an existing table.

Readers and writers depend on these facts: keys, formats, schema id. The leaders of buckets are not
among them, because they change.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

from fluss.errors import FlussError, InvalidSchemaError
from fluss.model.paths import TablePath
from fluss.model.schema.schema import Schema
from fluss.model.string_map import StringMap
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.tables.partitions import PartitionInfo
from fluss.model.tables.table_keys import physical_primary_keys
from fluss.model.tables.table_options import KvFormat, LogFormat, TableOptions
from fluss.model.types.data_type import RowType
from fluss.model.values.limits import ValueLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class TableInfo:
    """An existing table; immutable, so fetch it again to see changes.

    Times are milliseconds since 1970. `options` is the properties, typed. `num_buckets` is the
    bucket count of the table, or of the partitions that are created now; earlier ones may have
    another count, if `bucket_count_epoch` (how often the count has been changed) is not 0.
    """

    table_path: TablePath
    table_id: int
    schema_id: int
    schema: Schema
    bucket_keys: tuple[str, ...]
    partition_keys: tuple[str, ...]
    num_buckets: int
    properties: StringMap
    custom_properties: StringMap
    comment: str | None = None
    created_time: int = 0
    modified_time: int = 0
    remote_data_dir: str | None = None
    bucket_count_epoch: int = 0
    options: TableOptions = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", TableOptions(self.properties))

    @classmethod
    def of(
        cls,
        descriptor: TableDescriptor,
        *,
        table_path: TablePath,
        table_id: int,
        schema_id: int,
        created_time: int = 0,
        modified_time: int = 0,
        remote_data_dir: str | None = None,
        bucket_count_epoch: int = 0,
    ) -> Self:
        """Return the facts of a table with this descriptor.

        Raises:
            InvalidSchemaError: When the descriptor has no bucket count.
        """
        if descriptor.bucket_count is None:
            raise InvalidSchemaError(
                f"The table {table_path} does not say how many buckets it has."
            )
        return cls(
            table_path=table_path,
            table_id=table_id,
            schema_id=schema_id,
            schema=descriptor.schema,
            bucket_keys=descriptor.bucket_keys,
            partition_keys=descriptor.partition_keys,
            num_buckets=descriptor.bucket_count,
            properties=descriptor.properties,
            custom_properties=descriptor.custom_properties,
            comment=descriptor.comment,
            created_time=created_time,
            modified_time=modified_time,
            remote_data_dir=remote_data_dir,
            bucket_count_epoch=bucket_count_epoch,
        )

    def bucket_count_of(self, partition: PartitionInfo | None) -> int:
        """How many buckets a partition has; of None, the table itself.

        Raises:
            FlussError: The table was rescaled, and its server does not report the count.
        """
        if partition is None:
            return self.num_buckets
        if partition.bucket_count is not None:
            return partition.bucket_count
        if self.bucket_count_epoch:
            raise FlussError(
                f"The bucket count of the partition {partition.partition_name!r} of "
                f"{self.table_path} is not known: the table was rescaled, and the server does not "
                "report the counts of its partitions.",
                hint="Are all servers of the cluster of the same release?",
                table=str(self.table_path),
                partition=partition.partition_name,
            )
        return self.num_buckets

    @property
    def primary_keys(self) -> tuple[str, ...]:
        """The primary key's columns; empty for a log table."""
        return self.schema.primary_keys

    @property
    def physical_primary_keys(self) -> tuple[str, ...]:
        """The primary key without the partition keys: what identifies a row in its partition."""
        return physical_primary_keys(self.schema, self.partition_keys)

    @property
    def has_bucket_key(self) -> bool:
        """Whether the bucket of a row follows from its values."""
        return bool(self.bucket_keys)

    @property
    def is_default_bucket_key(self) -> bool:
        """Whether the bucket keys are the default ones."""
        expected = self.physical_primary_keys if self.has_primary_key() else ()
        return self.bucket_keys == expected

    @property
    def keeps_millis(self) -> bool:
        """Whether a TIME is kept in milliseconds, whatever its precision, as encoded rows have it.

        Only logs in ARROW format, which are written by column, keep finer ones.
        """
        return self.has_primary_key() or self.options.log_format is not LogFormat.ARROW

    @property
    def value_limits(self) -> ValueLimits:
        """The limits that the row formats add to those of the types."""
        options = self.options
        is_indexed = (
            options.kv_format is KvFormat.INDEXED
            if self.has_primary_key()
            else options.log_format is LogFormat.INDEXED
        )
        return ValueLimits(keeps_millis=self.keeps_millis, counts_char_bytes=is_indexed)

    @property
    def is_auto_partitioned(self) -> bool:
        """Whether the server creates and drops partitions by time."""
        return self.is_partitioned() and self.options.auto_partition_enabled

    @property
    def row_type(self) -> RowType:
        """A row of the table, as one type."""
        return self.schema.row_type

    # --- names of the documented API -------------------------------------------------------------

    def has_primary_key(self) -> bool:
        """Return whether rows are identified by a primary key."""
        return self.schema.has_primary_key

    def is_partitioned(self) -> bool:
        """Return whether the table is divided into partitions."""
        return bool(self.partition_keys)

    def get_schema(self) -> Schema:
        """Return the columns and the primary key."""
        return self.schema

    def get_primary_keys(self) -> list[str]:
        """Return the primary key's columns; empty for a log table."""
        return list(self.primary_keys)

    def get_partition_keys(self) -> list[str]:
        """Return the columns that divide the table into partitions."""
        return list(self.partition_keys)

    def get_bucket_keys(self) -> list[str]:
        """Return the columns that choose the bucket."""
        return list(self.bucket_keys)

    def get_column_names(self) -> list[str]:
        """Return the names of the columns, in order."""
        return self.schema.get_column_names()

    def get_column_count(self) -> int:
        """Return how many columns there are."""
        return len(self.schema.columns)

    def get_properties(self) -> dict[str, str]:
        """Fluss's own properties."""
        return dict(self.properties)

    def get_custom_properties(self) -> dict[str, str]:
        """Return the user's own properties."""
        return dict(self.custom_properties)
