"""CREATE, DROP, ALTER, LIST, EXISTS and GET_INFO of databases."""

from __future__ import annotations

import asyncio

from fluss.error_codes import ErrorCode
from fluss.errors import InvalidNameError
from fluss.model.cluster.acls import OperationType
from fluss.model.tables.database import DatabaseDescriptor
from fluss.wire import messages as pb
from fluss.wire.api import ApiKey
from fluss_server.access.request_rights import database as database_resource
from fluss_server.catalog.alteration import altered_database
from fluss_server.handlers.lake_definitions import changing_tables
from fluss_server.request_handler import Call, message_handler
from fluss_server.server_errors import request_error, with_code
from fluss_server.server_node import Node


def create_database(
    node: Node, call: Call, request: pb.CreateDatabaseRequest
) -> pb.CreateDatabaseResponse:
    """Create a database."""
    del call
    name = request.database_name
    if request.ignore_if_exists and node.catalog.has_database(name):
        return pb.CreateDatabaseResponse()
    descriptor = DatabaseDescriptor()
    if request.HasField("database_json"):
        descriptor = DatabaseDescriptor.from_json(request.database_json)
    try:
        node.catalog.create_database(name, descriptor, now_ms=node.now_ms())
    except InvalidNameError as error:
        raise with_code(error, ErrorCode.INVALID_DATABASE_EXCEPTION) from error
    return pb.CreateDatabaseResponse()


async def drop_database(
    node: Node, call: Call, request: pb.DropDatabaseRequest
) -> pb.DropDatabaseResponse:
    """Drop a database, with its tables where the request says `cascade`."""
    del call
    name = request.database_name
    async with changing_tables(node):
        if request.ignore_if_not_exists and not node.catalog.has_database(name):
            return pb.DropDatabaseResponse()
        node.catalog.database(name)
        if not request.cascade and node.catalog.tables_of(name):
            raise request_error(ErrorCode.DATABASE_NOT_EMPTY, f"Database {name} is not empty.")
        dropped = node.catalog.drop_database(name)
    await asyncio.gather(*map(node.delete_dropped, dropped))
    return pb.DropDatabaseResponse()


def alter_database(
    node: Node, call: Call, request: pb.AlterDatabaseRequest
) -> pb.AlterDatabaseResponse:
    """Change a database's comment and properties."""
    del call
    name = request.database_name
    if request.ignore_if_not_exists and not node.catalog.has_database(name):
        return pb.AlterDatabaseResponse()
    known = node.catalog.database(name).descriptor
    altered = altered_database(known, request)
    if altered != known:
        node.catalog.change_database(name, altered, now_ms=node.now_ms())
    return pb.AlterDatabaseResponse()


def list_databases(
    node: Node, call: Call, request: pb.ListDatabasesRequest
) -> pb.ListDatabasesResponse:
    """Return the names of the databases that the user may describe, or their summaries."""
    response = pb.ListDatabasesResponse()
    for database in node.catalog.databases:
        if not _is_seen(node, call, database.name):
            continue
        if request.include_summary:
            response.database_summary.add(
                database_name=database.name,
                created_time=database.created_ms,
                table_count=len(node.catalog.tables_of(database.name)),
            )
        else:
            response.database_name.append(database.name)
    return response


def database_exists(
    node: Node, call: Call, request: pb.DatabaseExistsRequest
) -> pb.DatabaseExistsResponse:
    """Return whether a database exists, and the user may describe it."""
    name = request.database_name
    return pb.DatabaseExistsResponse(
        exists=node.catalog.has_database(name) and _is_seen(node, call, name)
    )


def get_database_info(
    node: Node, call: Call, request: pb.GetDatabaseInfoRequest
) -> pb.GetDatabaseInfoResponse:
    """Return the descriptor and the times of a database."""
    del call
    found = node.catalog.database(request.database_name)
    return pb.GetDatabaseInfoResponse(
        database_json=found.descriptor.to_json().encode(),
        created_time=found.created_ms,
        modified_time=found.modified_ms,
    )


def _is_seen(node: Node, call: Call, name: str) -> bool:
    return node.access.allows(call.caller.user, OperationType.DESCRIBE, database_resource(name))


HANDLERS = (
    message_handler(ApiKey.CREATE_DATABASE, create_database),
    message_handler(ApiKey.DROP_DATABASE, drop_database),
    message_handler(ApiKey.ALTER_DATABASE, alter_database),
    message_handler(ApiKey.LIST_DATABASES, list_databases),
    message_handler(ApiKey.DATABASE_EXISTS, database_exists),
    message_handler(ApiKey.GET_DATABASE_INFO, get_database_info),
)
