"""A feature this server does not have: remote segments of logs.

The response is that of a cluster without them.
"""

from __future__ import annotations

from fluss.error_codes import ErrorCode
from fluss.wire import messages as pb
from fluss.wire.api import ApiKey
from fluss_server.request_handler import Call, message_handler
from fluss_server.server_errors import request_error
from fluss_server.server_node import Node


def list_remote_manifests(
    node: Node, call: Call, request: pb.ListRemoteLogManifestsRequest
) -> pb.ListRemoteLogManifestsResponse:
    """Return an empty list: this server has no remote segments."""
    del call
    check_known(node, request)
    return pb.ListRemoteLogManifestsResponse()


def check_known(
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


HANDLERS = (message_handler(ApiKey.LIST_REMOTE_LOG_MANIFESTS, list_remote_manifests),)
