"""Features this server does not have: remote snapshots of rows by key.

The responses are those of a cluster without snapshots.
"""

from __future__ import annotations

from typing import NoReturn

from fluss.error_codes import ErrorCode
from fluss.wire import messages as pb
from fluss.wire.api import ApiKey
from fluss.wire.table_paths import read_table_path
from fluss_server.catalog.catalog_entries import PartitionEntry, TableEntry
from fluss_server.request_handler import Call, message_handler
from fluss_server.server_errors import request_error
from fluss_server.server_node import Node

_ALTERNATIVES = "Read the rows by SCAN_KV (this package's clients do) or LIMIT_SCAN (pyfluss does)."


# --- snapshots of primary key state -------------------------------------------------------------


def get_latest_kv_snapshots(
    node: Node, call: Call, request: pb.GetLatestKvSnapshotsRequest
) -> pb.GetLatestKvSnapshotsResponse:
    """Return the buckets without snapshots, so readers take the whole log.

    Where the log no longer begins at offset 0, readers would miss rows silently; they are refused.
    """
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
        log = node.tablets.find(table.table_id, partition_id, bucket).log
        if log.start_offset > 0:
            raise request_error(
                ErrorCode.KV_SNAPSHOT_NOT_EXIST,
                f"The changelog of {log.bucket} begins at offset {log.start_offset}, and the "
                "embedded server makes no snapshots: the rows cannot be read from the log any more.",
                hint=_ALTERNATIVES,
            )
        response.latest_snapshots.add(bucket_id=bucket)
    return response


def get_kv_snapshot_metadata(
    node: Node, call: Call, request: pb.GetKvSnapshotMetadataRequest
) -> NoReturn:
    """Refuse: this server has no snapshots."""
    del node, call
    raise request_error(
        ErrorCode.KV_SNAPSHOT_NOT_EXIST,
        f"Bucket {request.bucket_id} of table {request.table_id} has no snapshot "
        f"{request.snapshot_id}; the embedded server makes none.",
        hint=_ALTERNATIVES,
    )


def list_kv_snapshots(
    node: Node, call: Call, request: pb.ListKvSnapshotsRequest
) -> pb.ListKvSnapshotsResponse:
    """Return an empty list: this server has no snapshots."""
    del call
    _check_known(node, request)
    if node.catalog.find_table_by_id(request.table_id) is None:
        raise request_error(ErrorCode.TABLE_NOT_EXIST, f"There is no table {request.table_id}.")
    return pb.ListKvSnapshotsResponse(
        table_id=request.table_id,
        partition_id=request.partition_id if request.HasField("partition_id") else None,
    )


def acquire_lease(
    node: Node, call: Call, request: pb.AcquireKvSnapshotLeaseRequest
) -> pb.AcquireKvSnapshotLeaseResponse:
    """Report all requested snapshots as unavailable."""
    del node, call
    return pb.AcquireKvSnapshotLeaseResponse(unavailable_snapshots=request.snapshots_to_lease)


def release_lease(
    node: Node, call: Call, request: pb.ReleaseKvSnapshotLeaseRequest
) -> pb.ReleaseKvSnapshotLeaseResponse:
    """Succeed: there are no leases."""
    del node, call, request
    return pb.ReleaseKvSnapshotLeaseResponse()


def drop_lease(
    node: Node, call: Call, request: pb.DropKvSnapshotLeaseRequest
) -> pb.DropKvSnapshotLeaseResponse:
    """Succeed: there are no leases."""
    del node, call, request
    return pb.DropKvSnapshotLeaseResponse()


def list_remote_manifests(
    node: Node, call: Call, request: pb.ListRemoteLogManifestsRequest
) -> pb.ListRemoteLogManifestsResponse:
    """Return an empty list: this server has no remote segments."""
    del call
    _check_known(node, request)
    return pb.ListRemoteLogManifestsResponse()


def _check_known(
    node: Node, request: pb.ListKvSnapshotsRequest | pb.ListRemoteLogManifestsRequest
) -> None:
    """Refuse a partition of another table, and a table whose rights cannot be known."""
    if node.access.is_on and node.catalog.find_table_by_id(request.table_id) is None:
        raise request_error(
            ErrorCode.UNKNOWN_TABLE_OR_BUCKET_EXCEPTION,
            f"There is no table {request.table_id}, so no user has a right to describe it.",
        )
    if not request.HasField("partition_id"):
        return
    found = node.catalog.find_partition_by_id(request.partition_id)
    if found is None or found.table_id != request.table_id:
        raise request_error(
            ErrorCode.PARTITION_NOT_EXISTS,
            f"Partition {request.partition_id} does not belong to table {request.table_id}.",
        )


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
    message_handler(ApiKey.LIST_REMOTE_LOG_MANIFESTS, list_remote_manifests),
)
