"""The tables of a cluster that have a lake, and how far each has been copied."""

from __future__ import annotations

from dataclasses import dataclass

from fluss.admin.admin import admin_of
from fluss.connection.connection import ClientConnection, TableHandle
from fluss.errors import FlussError, TableNotFoundError
from fluss.log.extents import fetch_extents
from fluss.model.paths import PhysicalTablePath, TableBucket, TablePath
from fluss.net.leader_requests import Places
from fluss_lake.tiering.cluster_calls import known_snapshot
from fluss_lake.tiering.plan_round import Known


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedTable:
    """How far a table has been copied.

    Attributes:
        known: The snapshot of its lake that the cluster knows; None if it knows none.
        lag: How many offsets of its log the lake does not have; None if that is unknown.
        error: Why it is unknown.
    """

    known: Known | None
    lag: int | None
    error: FlussError | None = None


async def lake_tables(connection: ClientConnection) -> list[TableHandle]:
    """The tables that are copied into a lake."""
    admin = admin_of(connection)
    found = []
    for database in await admin.list_databases():
        for name in await admin.list_tables(database):
            try:
                table = await connection.table(TablePath(database, name))
            except TableNotFoundError:
                continue  # dropped meanwhile
            if table.info.options.datalake_enabled:
                found.append(table)
    return found


async def places_of(table: TableHandle) -> Places:
    """All buckets of a table, of all its partitions."""
    info = table.info
    if not info.is_partitioned():
        path = PhysicalTablePath(info.table_path)
        return {TableBucket(info.table_id, bucket): path for bucket in range(info.num_buckets)}
    places: dict[TableBucket, PhysicalTablePath] = {}
    for partition in await admin_of(table.connection).list_partition_infos(info.table_path):
        path = PhysicalTablePath(info.table_path, partition.partition_name)
        for bucket_id in range(info.bucket_count_of(partition)):
            bucket = TableBucket.with_partition(info.table_id, partition.partition_id, bucket_id)
            places[bucket] = path
    return places


async def how_far(table: TableHandle) -> CopiedTable:
    """How far a table has been copied. An error is part of the result, and is not raised."""
    connection = table.connection
    try:
        known = await known_snapshot(connection, table.info.table_path)
        places = await places_of(table)
        extents = await fetch_extents(connection.cluster, places)
    except FlussError as error:
        return CopiedTable(known=None, lag=None, error=error)
    copied = {} if known is None else known.ends
    lag = sum(
        max(0, extent.end - copied.get(bucket, extent.earliest))
        for bucket, extent in extents.items()
    )
    return CopiedTable(known=known, lag=lag)
