"""CREATE, DROP and LIST of partitions."""

from __future__ import annotations

from fluss.error_codes import ErrorCode
from fluss.errors import FlussError
from fluss.model.tables.partitions import (
    SEPARATOR,
    PartitionSpec,
    check_new_partition,
    parse_partition_name,
    partition_values,
)
from fluss.wire import messages as pb
from fluss.wire.api import ApiKey
from fluss.wire.table_paths import read_table_path
from fluss_server.catalog.catalog_entries import TableEntry
from fluss_server.catalog.creation import check_replication
from fluss_server.request_handler import Call, message_handler
from fluss_server.server_errors import request_error, with_code
from fluss_server.server_node import Node


def create_partition(
    node: Node, call: Call, request: pb.CreatePartitionRequest
) -> pb.CreatePartitionResponse:
    """Create a partition."""
    del call
    table = _partitioned(node, request.table_path)
    spec, name = _spec_of(table, request.partition_spec, is_new=True)
    check_replication(table.descriptor)
    # The flag is misnamed: it means that an existing partition is not an error.
    if request.ignore_if_not_exists and node.catalog.find_partition(table, name) is not None:
        return pb.CreatePartitionResponse()
    node.catalog.create_partition(table, name, spec)
    return pb.CreatePartitionResponse()


async def drop_partition(
    node: Node, call: Call, request: pb.DropPartitionRequest
) -> pb.DropPartitionResponse:
    """Drop a partition; its files are deleted in the background."""
    del call
    table = _partitioned(node, request.table_path)
    spec, name = _spec_of(table, request.partition_spec, is_new=False)
    if request.ignore_if_not_exists and node.catalog.find_partition(table, name) is None:
        return pb.DropPartitionResponse()
    await node.delete_dropped(table, node.catalog.drop_partition(table, name, spec))
    return pb.DropPartitionResponse()


def list_partition_infos(
    node: Node, call: Call, request: pb.ListPartitionInfosRequest
) -> pb.ListPartitionInfosResponse:
    """Return the partitions of a table, or those with the requested values."""
    del call
    table = _partitioned(node, request.table_path)
    keys = table.descriptor.partition_keys
    requested: dict[str, str] = {}
    if request.HasField("partial_partition_spec"):
        requested = _values_of(request.partial_partition_spec)
        for key in requested:
            if key not in keys:
                raise request_error(
                    ErrorCode.PARTITION_SPEC_INVALID_EXCEPTION,
                    f"{key!r} is not a partition key of {table.path}; those are {', '.join(keys)}.",
                )
    response = pb.ListPartitionInfosResponse()
    if request.include_system_partitions:
        response.system_partitions_included = True  # this server makes none
    for partition in node.catalog.partitions_of(table):
        values = parse_partition_name(partition.name, keys).spec_map
        if any(values[key] != value for key, value in requested.items()):
            continue
        info = response.partitions_info.add(
            partition_id=partition.partition_id, bucket_count=partition.bucket_count
        )
        for key in keys:
            info.partition_spec.partition_key_values.add(key=key, value=values[key])
    return response


def _partitioned(node: Node, path: pb.PbTablePath) -> TableEntry:
    table = node.catalog.table(read_table_path(path))
    if not table.descriptor.is_partitioned:
        raise request_error(
            ErrorCode.TABLE_NOT_PARTITIONED_EXCEPTION,
            f"Table '{table.path}' is not a partitioned table.",
        )
    return table


def _spec_of(
    table: TableEntry, message: pb.PbPartitionSpec, *, is_new: bool
) -> tuple[PartitionSpec, str]:
    try:
        spec = PartitionSpec(_values_of(message))
        values = partition_values(spec, table.descriptor.partition_keys)
        if is_new:
            check_new_partition(spec)
    except FlussError as error:
        raise with_code(error, ErrorCode.PARTITION_SPEC_INVALID_EXCEPTION) from error
    return spec, SEPARATOR.join(values)


def _values_of(message: pb.PbPartitionSpec) -> dict[str, str]:
    return {each.key: each.value for each in message.partition_key_values}


HANDLERS = (
    message_handler(ApiKey.CREATE_PARTITION, create_partition),
    message_handler(ApiKey.DROP_PARTITION, drop_partition),
    message_handler(ApiKey.LIST_PARTITION_INFOS, list_partition_infos),
)
