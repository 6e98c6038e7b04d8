"""What a cluster keeps of a table in remote storage: KV snapshots, log manifests, statistics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fluss.model.paths import TableBucket
from fluss.model.schema.schema import Schema


@dataclass(frozen=True, slots=True)
class SchemaInfo:
    """A schema of a table, and its number."""

    schema: Schema
    schema_id: int

    def __str__(self) -> str:
        return f"schema {self.schema_id}: {self.schema}"


@dataclass(frozen=True, slots=True)
class TableStats:
    """The statistics of a table.

    Attributes:
        row_count: How many rows it has; None where its servers do not count them.
    """

    row_count: int | None


@dataclass(frozen=True, slots=True)
class KvSnapshot:
    """The newest snapshot of a bucket: its number, and the offset of the log that it stands at."""

    snapshot_id: int
    log_offset: int


@dataclass(frozen=True, slots=True)
class KvSnapshots:
    """The newest snapshots of a table, or of one partition.

    Attributes:
        table_id: The table.
        partition_id: The partition; None for a table without partitions.
        snapshots: The newest snapshot of each bucket; None for a bucket that has none yet.
    """

    table_id: int
    partition_id: int | None
    snapshots: Mapping[int, KvSnapshot | None] = field(hash=False)

    @property
    def bucket_ids(self) -> list[int]:
        """The numbers of the buckets."""
        return list(self.snapshots)

    @property
    def table_buckets(self) -> list[TableBucket]:
        """The buckets."""
        return [
            TableBucket.with_partition(self.table_id, self.partition_id, each)
            for each in self.snapshots
        ]

    def get_snapshot_id(self, bucket_id: int) -> int | None:
        """The newest snapshot of a bucket; None where it has none."""
        found = self.snapshots.get(bucket_id)
        return None if found is None else found.snapshot_id

    def get_log_offset(self, bucket_id: int) -> int | None:
        """The offset that the newest snapshot of a bucket stands at; None where it has none."""
        found = self.snapshots.get(bucket_id)
        return None if found is None else found.log_offset


@dataclass(frozen=True, slots=True)
class FsPathAndFileName:
    """A file in remote storage, and its name in the snapshot."""

    path: str
    file_name: str


@dataclass(frozen=True, slots=True)
class KvSnapshotMetadata:
    """The files of a snapshot, and the offset of the log that it stands at."""

    snapshot_files: tuple[FsPathAndFileName, ...]
    log_offset: int


@dataclass(frozen=True, slots=True)
class ActiveKvSnapshots:
    """The snapshots of a table or partition that are not deleted: `{bucket: snapshot ids}`."""

    table_id: int
    partition_id: int | None
    snapshot_ids_by_bucket: Mapping[int, frozenset[int]] = field(hash=False)


@dataclass(frozen=True, slots=True)
class RemoteLogManifestInfo:
    """The list of a bucket's log segments in remote storage, and where they end."""

    table_bucket: TableBucket
    remote_log_manifest_path: str
    remote_log_end_offset: int
