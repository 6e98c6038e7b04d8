"""Requests about the cluster: versions, login, metadata, writer ids, health."""

from __future__ import annotations

from typing import Any

from fluss.error_codes import ErrorCode
from fluss.model.cluster.acls import OperationType
from fluss.wire import messages as pb
from fluss.wire.api import ApiKey, ServerApis
from fluss.wire.table_paths import read_table_path, write_table_path
from fluss_server.access.request_rights import table as table_resource
from fluss_server.catalog.catalog_entries import PartitionEntry, TableEntry
from fluss_server.request_handler import Call, message_handler
from fluss_server.server_errors import request_error
from fluss_server.server_node import NODE_ID, Node

_EPOCH = 0


def authenticate(
    node: Node, call: Call, request: pb.AuthenticateRequest
) -> pb.AuthenticateResponse:
    """Authenticate the connection."""
    del node
    return call.caller.auth.respond(request)


def versions_of(keys: list[ApiKey]) -> pb.ApiVersionsResponse:
    """Return the response to API_VERSIONS of a server with these handlers.

    It names no role: a client that receives one refuses to use this port for the other role.
    """
    return ServerApis.of(sorted(keys)).to_response()


def init_writer(node: Node, call: Call, request: pb.InitWriterRequest) -> pb.InitWriterResponse:
    """Return an id for an idempotent writer, who may write one of the tables it names."""
    named = [table_resource(each) for each in request.table_path]
    user = call.caller.user
    if named and not any(node.access.allows(user, OperationType.WRITE, each) for each in named):
        node.access.check(user, OperationType.WRITE, named[0])
    return pb.InitWriterResponse(writer_id=node.catalog.next_writer_id())


# --- metadata -------------------------------------------------------------------------------------


def get_metadata(node: Node, call: Call, request: pb.MetadataRequest) -> pb.MetadataResponse:
    """Return one node for all roles and buckets, at the address that the client connected to."""
    host, port = call.caller.address
    response = pb.MetadataResponse()
    response.coordinator_server.node_id = NODE_ID
    response.coordinator_server.host = host
    response.coordinator_server.port = port
    response.tablet_servers.add(node_id=NODE_ID, host=host, port=port)
    named: list[TableEntry] = []
    for path in request.table_path:
        found = node.catalog.table(read_table_path(path))
        if node.access.allows(call.caller.user, OperationType.DESCRIBE, table_resource(found.path)):
            named.append(found)
            _add_table(response, found)
    for entry, partition in _asked_partitions(node, request, named).values():
        if not node.access.allows(
            call.caller.user, OperationType.DESCRIBE, table_resource(entry.path)
        ):
            continue
        added = response.partition_metadata.add(
            table_id=entry.table_id,
            partition_name=partition.name,
            partition_id=partition.partition_id,
            bucket_count=partition.bucket_count,
        )
        _add_buckets(added.bucket_metadata, partition.bucket_count)
    return response


def _add_table(response: pb.MetadataResponse, table: TableEntry) -> None:
    added = response.table_metadata.add(
        table_id=table.table_id,
        schema_id=table.schema_id,
        table_json=table.json,
        created_time=table.created_ms,
        modified_time=table.modified_ms,
        table_path=write_table_path(table.path),
        bucket_count_epoch=table.bucket_count_epoch,
    )
    if not table.descriptor.is_partitioned:
        _add_buckets(added.bucket_metadata, table.bucket_count)


def _add_buckets(buckets: Any, count: int) -> None:
    for bucket in range(count):
        buckets.add(bucket_id=bucket, leader_id=NODE_ID, replica_id=[NODE_ID], leader_epoch=_EPOCH)


def _asked_partitions(
    node: Node, request: pb.MetadataRequest, named: list[TableEntry]
) -> dict[int, tuple[TableEntry, PartitionEntry]]:
    found: dict[int, tuple[TableEntry, PartitionEntry]] = {}
    for path in request.partitions_path:
        table = node.catalog.find_table(read_table_path(path))
        partition = (
            None if table is None else node.catalog.find_partition(table, path.partition_name)
        )
        if table is None or partition is None:
            raise request_error(
                ErrorCode.PARTITION_NOT_EXISTS,
                f"The partition '{path.partition_name}' of table "
                f"'{path.database_name}.{path.table_name}' does not exist.",
            )
        found[partition.partition_id] = (table, partition)
    by_id = {each.table_id: each for each in named}
    for partition_id in request.partitions_id:
        partition = node.catalog.find_partition_by_id(partition_id)
        table = None if partition is None else node.catalog.find_table_by_id(partition.table_id)
        if partition is None or table is None or (by_id and table.table_id not in by_id):
            raise request_error(
                ErrorCode.PARTITION_NOT_EXISTS,
                f"The partition id '{partition_id}' does not exist or you don't have permission to "
                "access it.",
            )
        found[partition_id] = (table, partition)
    return found


# --- the rest -------------------------------------------------------------------------------------


def get_security_token(
    node: Node, call: Call, request: pb.GetFileSystemSecurityTokenRequest
) -> pb.GetFileSystemSecurityTokenResponse:
    """Return an empty token: this server has no remote store."""
    del node, call, request
    return pb.GetFileSystemSecurityTokenResponse(schema="file", token=b"")


def get_health(
    node: Node, call: Call, request: pb.GetClusterHealthRequest
) -> pb.GetClusterHealthResponse:
    """Return green: a server of one node that responds is healthy."""
    del call, request
    count = 0
    for table in node.catalog.tables:
        if table.descriptor.is_partitioned:
            count += sum(each.bucket_count for each in node.catalog.partitions_of(table))
        else:
            count += table.bucket_count
    return pb.GetClusterHealthResponse(
        num_replicas=count,
        in_sync_replicas=count,
        num_leader_replicas=count,
        active_leader_replicas=count,
        status=0,
    )


HANDLERS = (
    message_handler(ApiKey.AUTHENTICATE, authenticate),
    message_handler(ApiKey.INIT_WRITER, init_writer),
    message_handler(ApiKey.GET_METADATA, get_metadata),
    message_handler(ApiKey.GET_FILESYSTEM_SECURITY_TOKEN, get_security_token),
    message_handler(ApiKey.GET_CLUSTER_HEALTH, get_health),
)
