"""The immutable entries of the catalog: databases, tables, partitions, producer offsets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

from fluss.model.paths import TablePath
from fluss.model.schema.schema import Schema
from fluss.model.tables.database import DatabaseDescriptor
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.tables.table_info import TableInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseEntry:
    """A database that exists."""

    name: str
    descriptor: DatabaseDescriptor
    created_ms: int
    modified_ms: int


@dataclass(frozen=True, kw_only=True)
class TableEntry:
    """A table that exists; `descriptor` has its newest schema."""

    path: TablePath
    table_id: int
    schema_id: int
    descriptor: TableDescriptor
    schemas: Mapping[int, Schema]
    created_ms: int
    modified_ms: int
    # How often the bucket count of new partitions has been changed.
    bucket_count_epoch: int = 0

    @cached_property
    def info(self) -> TableInfo:
        """The table in the form that codecs and readers take."""
        return TableInfo.of(
            self.descriptor,
            table_path=self.path,
            table_id=self.table_id,
            schema_id=self.schema_id,
            created_time=self.created_ms,
            modified_time=self.modified_ms,
        )

    @cached_property
    def json(self) -> bytes:
        """The descriptor in the form that clients receive."""
        return self.descriptor.to_json().encode()

    @property
    def bucket_count(self) -> int:
        """How many buckets the table, or each new partition of it, has."""
        return self.info.num_buckets

    def buckets_of(self, partition: PartitionEntry | None) -> int:
        """Return how many buckets one of its partitions has; of None, the table itself."""
        return self.bucket_count if partition is None else partition.bucket_count


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionEntry:
    """A partition that exists."""

    partition_id: int
    table_id: int
    name: str
    bucket_count: int  # never changes


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerOffsets:
    """The offsets that a producer registered; the body is the message of the request."""

    producer_id: str
    expires_ms: int
    body: bytes


def read_only(schemas: Mapping[int, Schema]) -> Mapping[int, Schema]:
    """Return an immutable copy of the mapping."""
    return MappingProxyType(dict(schemas))
