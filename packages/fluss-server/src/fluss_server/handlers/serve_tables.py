"""CREATE, DROP, ALTER, LIST, EXISTS and GET of tables and their schemas."""

from __future__ import annotations

from typing import Any

from fluss.error_codes import ErrorCode
from fluss.errors import InvalidNameError
from fluss.model.cluster.acls import OperationType
from fluss.model.paths import TablePath
from fluss.model.tables.descriptor import TableDescriptor
from fluss.wire import messages as pb
from fluss.wire.api import ApiKey
from fluss.wire.table_paths import read_table_path
from fluss_server.access.request_rights import table as table_resource
from fluss_server.catalog.alteration import altered_table, changes_nothing
from fluss_server.catalog.catalog_entries import TableEntry
from fluss_server.catalog.creation import (
    check_replication,
    check_table,
    read_descriptor,
    with_defaults,
    with_properties,
)
from fluss_server.handlers.lake_definitions import alter_in_lake, changing_tables, create_in_lake
from fluss_server.lake.server_lake import ServerLake
from fluss_server.request_handler import Call, message_handler
from fluss_server.server_errors import request_error, with_code
from fluss_server.server_node import Node


def create_table(node: Node, call: Call, request: pb.CreateTableRequest) -> Any:
    """Create a table."""
    del call
    path = read_table_path(request.table_path)
    _check_name(path)
    lake_format = None if node.lake is None else node.lake.format
    descriptor = with_defaults(read_descriptor(request.table_json), lake_format=lake_format)
    if not descriptor.is_partitioned:
        check_replication(descriptor)
    check_table(descriptor, lake_format=lake_format)
    node.catalog.database(path.database_name)
    if node.lake is None:
        return _create(node, path, descriptor, request)
    return _create_beside_lake(node, node.lake, path, descriptor, request)


def _create(
    node: Node, path: TablePath, descriptor: TableDescriptor, request: pb.CreateTableRequest
) -> pb.CreateTableResponse:
    if not (request.ignore_if_exists and node.catalog.find_table(path) is not None):
        table = node.catalog.create_table(path, descriptor, now_ms=node.now_ms())
        node.update_partitions(table)
        if node.lake is not None:
            node.lake.watch(table, tiered_ms=node.now_ms())
    return pb.CreateTableResponse()


async def _create_beside_lake(
    node: Node,
    lake: ServerLake,
    path: TablePath,
    descriptor: TableDescriptor,
    request: pb.CreateTableRequest,
) -> pb.CreateTableResponse:
    async with lake.ddl:
        node.catalog.database(path.database_name)
        if descriptor.options.datalake_enabled:
            known = node.catalog.find_table(path)
            if known is None:
                await create_in_lake(node, lake, path, descriptor)
            elif known.descriptor.options.datalake_enabled and not request.ignore_if_exists:
                # Fluss asks its lake first, so a table that exists gets the lake's code.
                raise request_error(
                    ErrorCode.LAKE_TABLE_ALREADY_EXIST, f"Table {path} already exists."
                )
        return _create(node, path, descriptor, request)


def _check_name(path: TablePath) -> None:
    try:
        path.check_new()
    except InvalidNameError as error:
        raise with_code(error, ErrorCode.INVALID_TABLE_EXCEPTION) from error


async def alter_table(
    node: Node, call: Call, request: pb.AlterTableRequest
) -> pb.AlterTableResponse:
    """Change a table's properties or the bucket count of its new partitions, or add columns."""
    del call
    path = read_table_path(request.table_path)
    async with changing_tables(node):
        # Fluss does not look for a table that it has nothing to change of.
        may_be_missing = request.ignore_if_not_exists or changes_nothing(request)
        if may_be_missing and node.catalog.find_table(path) is None:
            return pb.AlterTableResponse()
        known = node.catalog.table(path)
        lake_format = None if node.lake is None else node.lake.format
        altered = altered_table(known.descriptor, request, lake_format=lake_format)
        if altered is not known.descriptor:
            if node.lake is not None:
                await alter_in_lake(node, node.lake, known, altered, request.config_changes)
            table = node.catalog.change_table(path, altered, now_ms=node.now_ms())
            if node.lake is not None:
                node.lake.watch(table, tiered_ms=node.now_ms())
            await node.tablets.change_table(table)
            node.update_partitions(table)
    return pb.AlterTableResponse()


async def drop_table(node: Node, call: Call, request: pb.DropTableRequest) -> pb.DropTableResponse:
    """Drop a table; its files are deleted in the background. The lake keeps what it has of it."""
    del call
    path = read_table_path(request.table_path)
    async with changing_tables(node):
        if request.ignore_if_not_exists and node.catalog.find_table(path) is None:
            return pb.DropTableResponse()
        dropped = node.catalog.drop_table(path)
    await node.delete_dropped(dropped)
    return pb.DropTableResponse()


def list_tables(node: Node, call: Call, request: pb.ListTablesRequest) -> pb.ListTablesResponse:
    """Return the names of a database's tables that the user may describe."""
    node.catalog.database(request.database_name)
    tables = node.catalog.tables_of(request.database_name)
    return pb.ListTablesResponse(
        table_name=[each.path.table_name for each in tables if _is_seen(node, call, each.path)]
    )


def table_exists(node: Node, call: Call, request: pb.TableExistsRequest) -> pb.TableExistsResponse:
    """Return whether a table exists, and the user may describe it."""
    path = read_table_path(request.table_path)
    exists = node.catalog.find_table(path) is not None and _is_seen(node, call, path)
    return pb.TableExistsResponse(exists=exists)


def _is_seen(node: Node, call: Call, path: TablePath) -> bool:
    return node.access.allows(call.caller.user, OperationType.DESCRIBE, table_resource(path))


def get_table_info(
    node: Node, call: Call, request: pb.GetTableInfoRequest
) -> pb.GetTableInfoResponse:
    """Return the descriptor, the ids and the times of a table."""
    del call
    table = node.catalog.table(read_table_path(request.table_path))
    return pb.GetTableInfoResponse(
        table_id=table.table_id,
        schema_id=table.schema_id,
        table_json=_json_of(node, table),
        created_time=table.created_ms,
        modified_time=table.modified_ms,
        bucket_count_epoch=table.bucket_count_epoch,
    )


def _json_of(node: Node, table: TableEntry) -> bytes:
    """Return the descriptor; of a table with a lake, with the settings by which clients open it."""
    if node.lake is None or not table.descriptor.options.datalake_enabled:
        return table.json
    properties = {**table.descriptor.properties, **node.lake.table_settings}
    return with_properties(table.descriptor, properties=properties).to_json().encode()


def get_table_schema(
    node: Node, call: Call, request: pb.GetTableSchemaRequest
) -> pb.GetTableSchemaResponse:
    """Return one of a table's schemas; the newest where the request names none."""
    del call
    path = read_table_path(request.table_path)
    table = node.catalog.find_table(path)
    schema_id = 0 if table is None else table.schema_id
    if request.HasField("schema_id"):
        schema_id = request.schema_id
    schema = None if table is None else table.schemas.get(schema_id)
    if schema is None:
        # The same error where the table does not exist: Fluss looks for the schema alone.
        raise request_error(
            ErrorCode.SCHEMA_NOT_EXIST,
            f"Schema for table {path} with schema id {schema_id} does not exist.",
        )
    return pb.GetTableSchemaResponse(schema_id=schema_id, schema_json=schema.to_json().encode())


HANDLERS = (
    message_handler(ApiKey.CREATE_TABLE, create_table),
    message_handler(ApiKey.ALTER_TABLE, alter_table),
    message_handler(ApiKey.DROP_TABLE, drop_table),
    message_handler(ApiKey.LIST_TABLES, list_tables),
    message_handler(ApiKey.TABLE_EXISTS, table_exists),
    message_handler(ApiKey.GET_TABLE_INFO, get_table_info),
    message_handler(ApiKey.GET_TABLE_SCHEMA, get_table_schema),
)
