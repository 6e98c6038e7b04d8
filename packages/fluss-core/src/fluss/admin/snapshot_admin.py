"""What the cluster keeps in remote storage and in a lake: snapshots, leases, log manifests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fluss.admin.requests import AdminRequests
from fluss.connection.arguments import table_path_of
from fluss.connection.describe_table import nearest_named
from fluss.errors import InvalidValueError
from fluss.model.paths import TableBucket, TablePath
from fluss.model.servers import LakeSnapshot
from fluss.model.tables.snapshots import (
    ActiveKvSnapshots,
    FsPathAndFileName,
    KvSnapshot,
    KvSnapshotMetadata,
    KvSnapshots,
    RemoteLogManifestInfo,
)
from fluss.net.cluster_client import Cluster
from fluss.wire import messages
from fluss.wire.table_paths import read_bucket, write_table_path

LEASE_ID_CHARS_MAX = 200


class SnapshotAdmin(AdminRequests):
    """Snapshots of rows by key, of lakes, and lists of remote log segments."""

    # --- KV snapshots -------------------------------------------------------------------------

    async def get_latest_kv_snapshots(
        self, table_path: TablePath | str, partition_name: str | None = None
    ) -> KvSnapshots:
        """The newest snapshot of each bucket of a primary-key table, or of one partition of it.

        Raises:
            UnsupportedOperationError: The table has no primary key.
            PartitionNotFoundError: The table has partitions, and this is none of them.
        """
        path = table_path_of(table_path)
        request = messages.GetLatestKvSnapshotsRequest(
            table_path=write_table_path(path), partition_name=partition_name
        )
        async with nearest_named(self._cluster, path):
            answer = await self._cluster.ask_any(request, messages.GetLatestKvSnapshotsResponse)
        return KvSnapshots(
            answer.table_id,
            answer.partition_id if answer.HasField("partition_id") else None,
            {each.bucket_id: _kv_snapshot(each) for each in answer.latest_snapshots},
        )

    async def get_kv_snapshot_metadata(
        self, bucket: TableBucket, snapshot_id: int
    ) -> KvSnapshotMetadata:
        """The files of a snapshot.

        Raises:
            SnapshotNotFoundError: The bucket has no such snapshot, or no longer.
        """
        request = messages.GetKvSnapshotMetadataRequest(
            table_id=bucket.table_id,
            partition_id=bucket.partition_id,
            bucket_id=bucket.bucket_id,
            snapshot_id=snapshot_id,
        )
        answer = await self._cluster.ask_any(request, messages.GetKvSnapshotMetadataResponse)
        files = (
            FsPathAndFileName(each.remote_path, each.local_file_name)
            for each in answer.snapshot_files
        )
        return KvSnapshotMetadata(tuple(files), answer.log_offset)

    async def list_kv_snapshots(
        self, table_id: int, partition_id: int | None = None
    ) -> ActiveKvSnapshots:
        """The snapshots of a table or partition that are not deleted; needs Fluss 1.0.

        Raises:
            TableNotFoundError: There is no table of this id.
            UnsupportedVersionError: The coordinator is older.
        """
        answer = await self._cluster.ask_coordinator(
            messages.ListKvSnapshotsRequest(table_id=table_id, partition_id=partition_id),
            messages.ListKvSnapshotsResponse,
        )
        found: dict[int, set[int]] = {}
        for snapshot in answer.active_snapshots:
            if snapshot.HasField("snapshot_id"):
                found.setdefault(snapshot.bucket_id, set()).add(snapshot.snapshot_id)
        return ActiveKvSnapshots(
            answer.table_id,
            answer.partition_id if answer.HasField("partition_id") else None,
            {bucket: frozenset(ids) for bucket, ids in sorted(found.items())},
        )

    def create_kv_snapshot_lease(
        self, lease_id: str, lease_duration_ms: int
    ) -> KvSnapshotLeaseCore:
        """A lease, which keeps snapshots from being deleted. No server is asked yet."""
        return KvSnapshotLeaseCore(self._cluster, lease_id, lease_duration_ms, keeper=self._keeper)

    # --- logs and lakes -----------------------------------------------------------------------

    async def list_remote_log_manifests(
        self, table_id: int, partition_id: int | None = None
    ) -> list[RemoteLogManifestInfo]:
        """The lists of log segments in remote storage, by bucket; needs Fluss 1.0.

        Raises:
            UnsupportedVersionError: The coordinator is older.
        """
        answer = await self._cluster.ask_coordinator(
            messages.ListRemoteLogManifestsRequest(table_id=table_id, partition_id=partition_id),
            messages.ListRemoteLogManifestsResponse,
        )
        return [
            RemoteLogManifestInfo(
                read_bucket(each.table_bucket.table_id, each.table_bucket),
                each.remote_log_manifest_path,
                each.remote_log_end_offset,
            )
            for each in answer.manifests
        ]

    async def get_latest_lake_snapshot(self, table_path: TablePath | str) -> LakeSnapshot:
        """How far the data lake has a copy of the table.

        Raises:
            SnapshotNotFoundError: It has none.
        """
        return await self._lake_snapshot(table_path)

    async def get_lake_snapshot(
        self, table_path: TablePath | str, snapshot_id: int
    ) -> LakeSnapshot:
        """How far the data lake had a copy of the table in this snapshot.

        Raises:
            SnapshotNotFoundError: The lake has no such snapshot.
        """
        return await self._lake_snapshot(table_path, snapshot_id=snapshot_id)

    async def get_readable_lake_snapshot(self, table_path: TablePath | str) -> LakeSnapshot:
        """The newest snapshot in the data lake that can be read together with the log.

        Raises:
            SnapshotNotFoundError: It has none.
        """
        return await self._lake_snapshot(table_path, readable=True)

    async def _lake_snapshot(
        self,
        table_path: TablePath | str,
        *,
        snapshot_id: int | None = None,
        readable: bool = False,
    ) -> LakeSnapshot:
        path = table_path_of(table_path)
        request = messages.GetLakeSnapshotRequest(
            table_path=write_table_path(path), snapshot_id=snapshot_id
        )
        if readable:
            request.readable = True
        async with nearest_named(self._cluster, path):
            answer = await self._cluster.ask_any(request, messages.GetLakeSnapshotResponse)
        return LakeSnapshot(
            answer.snapshotId,
            {
                read_bucket(answer.table_id, each): each.log_offset
                for each in answer.bucket_snapshots
                if each.HasField("log_offset")
            },
        )


class KvSnapshotLeaseCore:
    """Keeps snapshots from being deleted, for a time. No server knows it before it is used.

    Args:
        cluster: Reaches the servers.
        lease_id: The name of the lease.
        lease_duration_ms: How long the snapshots are kept after the last `acquire` or `renew`.
        keeper: As of `AdminRequests`.
    """

    def __init__(
        self, cluster: Cluster, lease_id: str, lease_duration_ms: int, *, keeper: object = None
    ) -> None:
        if not lease_id.strip() or len(lease_id) > LEASE_ID_CHARS_MAX:
            raise InvalidValueError(
                f"The name of a lease has 1 to {LEASE_ID_CHARS_MAX} characters, not {lease_id!r}."
            )
        if lease_duration_ms < 1:
            raise InvalidValueError(
                f"A lease lasts at least 1 millisecond, not {lease_duration_ms}."
            )
        self.lease_id = lease_id
        self.lease_duration_ms = lease_duration_ms
        self._cluster = cluster
        self._keeper = keeper

    async def acquire_snapshots(self, snapshots: Mapping[TableBucket, int]) -> set[TableBucket]:
        """Keep snapshots: `{bucket: snapshot id}`; returns the buckets whose snapshot is missing.

        Servers of 0.9.1 report a missing snapshot as kept.
        """
        if not snapshots:
            raise InvalidValueError(
                "No snapshots are named.", hint="To prolong the lease, renew it."
            )
        return await self._acquire(snapshots)

    async def renew(self) -> None:
        """Keep what the lease keeps for another `lease_duration_ms`."""
        await self._acquire({})

    async def release_snapshots(self, buckets: Iterable[TableBucket]) -> None:
        """Keep the snapshots of these buckets no longer."""
        request = messages.ReleaseKvSnapshotLeaseRequest(lease_id=self.lease_id)
        for bucket in buckets:
            request.buckets_to_release.add(
                table_id=bucket.table_id,
                partition_id=bucket.partition_id,
                bucket_id=bucket.bucket_id,
            )
        await self._cluster.ask_coordinator(request, messages.ReleaseKvSnapshotLeaseResponse)

    async def drop_lease(self) -> None:
        """End the lease; one that has ended is no error."""
        await self._cluster.ask_coordinator(
            messages.DropKvSnapshotLeaseRequest(lease_id=self.lease_id),
            messages.DropKvSnapshotLeaseResponse,
        )

    async def _acquire(self, snapshots: Mapping[TableBucket, int]) -> set[TableBucket]:
        request = messages.AcquireKvSnapshotLeaseRequest(
            lease_id=self.lease_id, lease_duration_ms=self.lease_duration_ms
        )
        by_table: dict[int, messages.PbKvSnapshotLeaseForTable] = {}
        for bucket, snapshot_id in snapshots.items():
            table = by_table.get(bucket.table_id)
            if table is None:
                table = request.snapshots_to_lease.add(table_id=bucket.table_id)
                by_table[bucket.table_id] = table
            table.bucket_snapshots.add(
                partition_id=bucket.partition_id,
                bucket_id=bucket.bucket_id,
                snapshot_id=snapshot_id,
            )
        answer = await self._cluster.ask_coordinator(
            request, messages.AcquireKvSnapshotLeaseResponse
        )
        return {
            read_bucket(table.table_id, each)
            for table in answer.unavailable_snapshots
            for each in table.bucket_snapshots
        }


def _kv_snapshot(snapshot: messages.PbKvSnapshot) -> KvSnapshot | None:
    if not snapshot.HasField("snapshot_id") or not snapshot.HasField("log_offset"):
        return None
    return KvSnapshot(snapshot.snapshot_id, snapshot.log_offset)
