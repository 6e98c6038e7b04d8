"""KV snapshots: which there are, their files, and their leases.

Files are named by their paths, which programs on this machine can read.
"""

from __future__ import annotations

from typing import Final

from fluss.error_codes import ErrorCode
from fluss.model.cluster.acls import OperationType
from fluss.model.paths import TableBucket
from fluss.wire import messages as pb
from fluss.wire.api import ApiKey
from fluss.wire.table_paths import read_table_path
from fluss_server.catalog.catalog_entries import PartitionEntry, TableEntry
from fluss_server.handlers.bucket_answers import partition_id_of
from fluss_server.handlers.serve_unsupported import check_known
from fluss_server.request_handler import Call, message_handler
from fluss_server.server_errors import request_error
from fluss_server.server_node import Node
from fluss_server.snapshots.snapshot_files import KvSnapshot

# The layout of values that the version 0 of GET_KV_SNAPSHOT_METADATA cannot tell.
_TAGGED: Final = 2
# In a URL these have a meaning, which not all clients take out of them.
_SPECIAL: Final = frozenset("%#?")


async def get_latest_kv_snapshots(
    node: Node, call: Call, request: pb.GetLatestKvSnapshotsRequest
) -> pb.GetLatestKvSnapshotsResponse:
    """Return the newest snapshot of each bucket; a bucket without one is read from its log."""
    del call
    table = node.catalog.table(read_table_path(request.table_path))
    _check_keyed(table)
    response = pb.GetLatestKvSnapshotsResponse(table_id=table.table_id)
    partition = partition_id = None
    if request.HasField("partition_name"):
        partition = _partition(node, table, request.partition_name)
        response.partition_id = partition_id = partition.partition_id
    elif table.descriptor.is_partitioned:
        raise request_error(
            ErrorCode.PARTITION_NOT_EXISTS,
            f"Table '{table.path}' is a partitioned table, but partition name is not provided.",
        )
    for bucket in range(table.buckets_of(partition)):
        tablet = node.tablets.find(table.table_id, partition_id, bucket)
        latest = await node.snapshots.latest(tablet)
        answer = response.latest_snapshots.add(bucket_id=bucket)
        if latest is not None:
            answer.snapshot_id, answer.log_offset = latest.snapshot_id, latest.log_offset
    return response


def get_kv_snapshot_metadata(
    node: Node, call: Call, request: pb.GetKvSnapshotMetadataRequest
) -> pb.GetKvSnapshotMetadataResponse:
    """Return the files of a snapshot."""
    table = node.catalog.find_table_by_id(request.table_id)
    snapshot = None
    if table is not None and table.descriptor.has_primary_key:
        _check_layout(table, call.version)
        snapshot = _find(node, request)
    if snapshot is None:
        raise request_error(
            ErrorCode.KV_SNAPSHOT_NOT_EXIST,
            f"Bucket {request.bucket_id} of table {request.table_id} has no snapshot "
            f"{request.snapshot_id}.",
            hint="ask for the newest one; a lease keeps a snapshot that is being read",
        )
    response = pb.GetKvSnapshotMetadataResponse(log_offset=snapshot.log_offset)
    for name in snapshot.files:
        path = str(snapshot.directory.absolute() / name)
        remote = path if _SPECIAL.intersection(path) else f"file://{path}"
        response.snapshot_files.add(remote_path=remote, local_file_name=name)
    return response


def _find(node: Node, request: pb.GetKvSnapshotMetadataRequest) -> KvSnapshot | None:
    bucket = TableBucket(request.table_id, request.bucket_id, partition_id=partition_id_of(request))
    return node.snapshots.find(bucket, request.snapshot_id)


def _check_layout(table: TableEntry, version: int) -> None:
    """Refuse clients that would take the times of rows for a part of them."""
    if version == 0 and table.info.options.value_layout_version == _TAGGED:
        raise request_error(
            ErrorCode.UNSUPPORTED_VERSION,
            f"The KV snapshots of {table.path} have the layout {_TAGGED} of values, which the "
            "client does not know.",
        )


def list_kv_snapshots(
    node: Node, call: Call, request: pb.ListKvSnapshotsRequest
) -> pb.ListKvSnapshotsResponse:
    """Return all snapshots of a table or a partition."""
    del call
    check_known(node, request)
    table = node.catalog.find_table_by_id(request.table_id)
    if table is None:
        raise request_error(ErrorCode.TABLE_NOT_EXIST, f"There is no table {request.table_id}.")
    partition_id = partition_id_of(request)
    response = pb.ListKvSnapshotsResponse(table_id=table.table_id, partition_id=partition_id)
    partition = None if partition_id is None else node.catalog.find_partition_by_id(partition_id)
    is_whole = table.descriptor.is_partitioned == (partition is not None)
    if not table.descriptor.has_primary_key or not is_whole or not node.snapshots.interval_ms:
        return response
    for bucket in range(table.buckets_of(partition)):
        tablet = node.tablets.find(table.table_id, partition_id, bucket)
        for snapshot in tablet.snapshots.complete:
            response.active_snapshots.add(bucket_id=bucket, snapshot_id=snapshot.snapshot_id)
    return response


# --- leases ---------------------------------------------------------------------------------------


def acquire_lease(
    node: Node, call: Call, request: pb.AcquireKvSnapshotLeaseRequest
) -> pb.AcquireKvSnapshotLeaseResponse:
    """Keep snapshots for a time, and report those that do not exist."""
    del call
    requested = {}
    for table in request.snapshots_to_lease:
        _check_keyed_id(node, table.table_id)
        for kept in table.bucket_snapshots:
            bucket = TableBucket(table.table_id, kept.bucket_id, partition_id=partition_id_of(kept))
            requested[bucket] = kept.snapshot_id
    missing = node.snapshots.acquire(request.lease_id, request.lease_duration_ms, requested)
    response = pb.AcquireKvSnapshotLeaseResponse()
    for table_id in sorted({each.table_id for each in missing}):
        answer = response.unavailable_snapshots.add(table_id=table_id)
        for bucket in missing:
            if bucket.table_id == table_id:
                answer.bucket_snapshots.add(
                    partition_id=bucket.partition_id,
                    bucket_id=bucket.bucket_id,
                    snapshot_id=requested[bucket],
                )
    return response


def release_lease(
    node: Node, call: Call, request: pb.ReleaseKvSnapshotLeaseRequest
) -> pb.ReleaseKvSnapshotLeaseResponse:
    """Take buckets out of a lease."""
    del call
    buckets = []
    for released in request.buckets_to_release:
        _check_keyed_id(node, released.table_id)
        buckets.append(
            TableBucket(
                released.table_id, released.bucket_id, partition_id=partition_id_of(released)
            )
        )
    node.snapshots.release(request.lease_id, buckets)
    return pb.ReleaseKvSnapshotLeaseResponse()


def drop_lease(
    node: Node, call: Call, request: pb.DropKvSnapshotLeaseRequest
) -> pb.DropKvSnapshotLeaseResponse:
    """End a lease."""
    leased = node.snapshots.tables_of_lease(request.lease_id)
    node.access.check_tables(call.caller.user, OperationType.READ, leased)
    node.snapshots.drop_lease(request.lease_id)
    return pb.DropKvSnapshotLeaseResponse()


def _check_keyed_id(node: Node, table_id: int) -> None:
    table = node.catalog.find_table_by_id(table_id)
    if table is None:
        raise request_error(
            ErrorCode.UNKNOWN_TABLE_OR_BUCKET_EXCEPTION, f"There is no table {table_id}."
        )
    _check_keyed(table)


def _check_keyed(table: TableEntry) -> None:
    if not table.descriptor.has_primary_key:
        raise request_error(
            ErrorCode.NON_PRIMARY_KEY_TABLE_EXCEPTION,
            f"Table '{table.path}' is not a primary key table, so it doesn't have any kv snapshots.",
        )


def _partition(node: Node, table: TableEntry, name: str) -> PartitionEntry:
    if not table.descriptor.is_partitioned:
        raise request_error(
            ErrorCode.TABLE_NOT_PARTITIONED_EXCEPTION,
            f"Table '{table.path}' is not a partitioned table.",
        )
    found = node.catalog.find_partition(table, name)
    if found is None:
        raise request_error(
            ErrorCode.PARTITION_NOT_EXISTS,
            f"The partition '{name}' of table '{table.path}' does not exist.",
        )
    return found


HANDLERS = (
    message_handler(ApiKey.GET_LATEST_KV_SNAPSHOTS, get_latest_kv_snapshots),
    message_handler(ApiKey.GET_KV_SNAPSHOT_METADATA, get_kv_snapshot_metadata),
    message_handler(ApiKey.LIST_KV_SNAPSHOTS, list_kv_snapshots),
    message_handler(ApiKey.ACQUIRE_KV_SNAPSHOT_LEASE, acquire_lease),
    message_handler(ApiKey.RELEASE_KV_SNAPSHOT_LEASE, release_lease),
    message_handler(ApiKey.DROP_KV_SNAPSHOT_LEASE, drop_lease),
)
