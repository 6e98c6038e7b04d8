"""CREATE, DROP, ALTER, LIST, EXISTS and GET_INFO of databases."""

from __future__ import annotations

import asyncio

from fluss.error_codes import ErrorCode
from fluss.errors import InvalidNameError
from fluss.model.tables.database import DatabaseDescriptor
from fluss.wire import messages as pb
from fluss.wire.api import ApiKey
from fluss_server.catalog.alteration import altered_database
from fluss_server.request import Call, plain
from fluss_server.server_errors import refuse, with_code
from fluss_server.server_node import Node


def create_database(
    node: Node, call: Call, request: pb.CreateDatabaseRequest
) -> pb.CreateDatabaseResponse:
    """Make a database."""
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
    """Drop a database, with its tables where that is asked for."""
    del call
    name = request.database_name
    if request.ignore_if_not_exists and not node.catalog.has_database(name):
        return pb.DropDatabaseResponse()
    node.catalog.database(name)
    if not request.cascade and node.catalog.tables_of(name):
        raise refuse(ErrorCode.DATABASE_NOT_EMPTY, f"Database {name} is not empty.")
    await asyncio.gather(*map(node.bury, node.catalog.drop_database(name)))
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
    """The names of all databases, or what there is to know of each."""
    del call
    response = pb.ListDatabasesResponse()
    for each in node.catalog.databases:
        if request.include_summary:
            response.database_summary.add(
                database_name=each.name,
                created_time=each.created_ms,
                table_count=len(node.catalog.tables_of(each.name)),
            )
        else:
            response.database_name.append(each.name)
    return response


def database_exists(
    node: Node, call: Call, request: pb.DatabaseExistsRequest
) -> pb.DatabaseExistsResponse:
    """Whether there is such a database."""
    del call
    return pb.DatabaseExistsResponse(exists=node.catalog.has_database(request.database_name))


def get_database_info(
    node: Node, call: Call, request: pb.GetDatabaseInfoRequest
) -> pb.GetDatabaseInfoResponse:
    """What there is to know of a database."""
    del call
    found = node.catalog.database(request.database_name)
    return pb.GetDatabaseInfoResponse(
        database_json=found.descriptor.to_json().encode(),
        created_time=found.created_ms,
        modified_time=found.modified_ms,
    )


HANDLERS = (
    plain(ApiKey.CREATE_DATABASE, create_database),
    plain(ApiKey.DROP_DATABASE, drop_database),
    plain(ApiKey.ALTER_DATABASE, alter_database),
    plain(ApiKey.LIST_DATABASES, list_databases),
    plain(ApiKey.DATABASE_EXISTS, database_exists),
    plain(ApiKey.GET_DATABASE_INFO, get_database_info),
)
