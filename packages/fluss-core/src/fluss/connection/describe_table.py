"""Asks a cluster for the facts of a table, and makes the error for one that does not exist."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fluss.errors import DatabaseNotFoundError, FlussError, TableNotFoundError
from fluss.model.did_you_mean import did_you_mean
from fluss.model.paths import TablePath
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.tables.table_info import TableInfo
from fluss.net.cluster_client import Cluster
from fluss.wire import messages
from fluss.wire.table_paths import write_table_path

NAMES_SHOWN_MAX = 8


async def table_info_of(cluster: Cluster, path: TablePath) -> TableInfo:
    """Ask for the facts of a table.

    Raises:
        TableNotFoundError: There is no such table; the hint names the nearest.
    """
    request = messages.GetTableInfoRequest(table_path=write_table_path(path))
    async with nearest_named(cluster, path):
        answer = await cluster.ask_any(request, messages.GetTableInfoResponse)
    return TableInfo.of(
        TableDescriptor.from_json(answer.table_json),
        table_path=path,
        table_id=answer.table_id,
        schema_id=answer.schema_id,
        created_time=answer.created_time,
        modified_time=answer.modified_time,
        remote_data_dir=answer.remote_data_dir if answer.HasField("remote_data_dir") else None,
        bucket_count_epoch=answer.bucket_count_epoch,
    )


async def missing_table(cluster: Cluster, path: TablePath) -> TableNotFoundError:
    """Make the error for a table that does not exist, with the nearest names as its hint."""
    try:
        tables = await list_tables(cluster, path.database_name)
    except DatabaseNotFoundError:
        databases = await list_databases(cluster)
        return TableNotFoundError(
            f"Table '{path}' does not exist: there is no database '{path.database_name}'.",
            hint=did_you_mean(path.database_name, databases) or listed("databases", databases),
            table=str(path),
        )
    except FlussError:
        tables = []
    return TableNotFoundError(
        f"Table '{path}' does not exist.",
        hint=did_you_mean(path.table_name, tables)
        or listed(f"tables of '{path.database_name}'", tables),
        table=str(path),
    )


async def list_tables(cluster: Cluster, database: str) -> list[str]:
    """The names of the tables of a database."""
    request = messages.ListTablesRequest(database_name=database)
    return list((await cluster.ask_any(request, messages.ListTablesResponse)).table_name)


async def list_databases(cluster: Cluster) -> list[str]:
    """The names of all databases."""
    request = messages.ListDatabasesRequest()
    return list((await cluster.ask_any(request, messages.ListDatabasesResponse)).database_name)


def listed(what: str, names: list[str]) -> str:
    """A sentence with the first of these names, by their order."""
    if not names:
        return f"There are no {what}."
    shown = ", ".join(sorted(names)[:NAMES_SHOWN_MAX])
    more = "" if len(names) <= NAMES_SHOWN_MAX else f" and {len(names) - NAMES_SHOWN_MAX} more"
    return f"The {what}: {shown}{more}."


@asynccontextmanager
async def nearest_named(cluster: Cluster, path: TablePath) -> AsyncIterator[None]:
    """Name the nearest tables in an error of a table that does not exist."""
    try:
        yield
    except TableNotFoundError as error:
        raise await missing_table(cluster, path) from error


@asynccontextmanager
async def nearest_database_named(cluster: Cluster, database: str) -> AsyncIterator[None]:
    """Name the nearest databases in an error of a database that does not exist."""
    try:
        yield
    except DatabaseNotFoundError as error:
        databases = await list_databases(cluster)
        there = ", ".join(sorted(databases))
        raise DatabaseNotFoundError(
            f"Database '{database}' does not exist.",
            hint=did_you_mean(database, databases) or f"There are: {there}.",
            database=database,
        ) from error
