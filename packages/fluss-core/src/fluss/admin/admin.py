"""The administrator of a cluster: databases, tables, partitions, offsets, servers.

Its methods are written here once, with the documented names and signatures; `FlussAdmin` starts
them for callers that await, and sessions run them. Each method is one request, and one error that
lists what exists instead. Questions may go to any server and be retried. Changes go to the
coordinator, and are retried only where it has certainly not received them.
"""

# ruff: noqa: FBT001, FBT002 - the documented signatures take flags by position

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TypeAlias

from fluss.admin.access_admin import AccessAdmin
from fluss.admin.bucket_replicas import bucket_replicas
from fluss.admin.cluster_admin import ClusterAdmin
from fluss.admin.definition_admin import DefinitionAdmin
from fluss.admin.producer_admin import ProducerAdmin
from fluss.admin.row_counts import leaders_row_counts
from fluss.admin.snapshot_admin import SnapshotAdmin
from fluss.connection.arguments import check_bucket_id, check_partitioned, table_path_of
from fluss.connection.connection import ClientConnection
from fluss.connection.describe_table import (
    list_databases,
    list_tables,
    listed,
    nearest_database_named,
    nearest_named,
    table_info_of,
)
from fluss.errors import InvalidValueError, PartitionNotFoundError
from fluss.model import offsets
from fluss.model.did_you_mean import did_you_mean
from fluss.model.paths import PhysicalTablePath, TableBucket, TablePath
from fluss.model.servers import ServerNode, ServerType
from fluss.model.tables.auto_partition_names import (
    HISTORICAL_PARTITION,
    historical_path,
    keeps_history,
)
from fluss.model.tables.database import DatabaseDescriptor, DatabaseInfo
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.tables.partitions import (
    PartitionInfo,
    PartitionSpec,
    check_new_partition,
    partition_name,
)
from fluss.model.tables.snapshots import TableStats
from fluss.model.tables.table_info import TableInfo
from fluss.model.tables.table_rules import check_new_table
from fluss.net.leader_requests import find_partition_id
from fluss.net.list_offsets import list_offsets
from fluss.wire import messages
from fluss.wire.table_paths import write_partition_spec, write_table_path

Path: TypeAlias = TablePath | str
Spec: TypeAlias = PartitionSpec | Mapping[str, object]
Offset: TypeAlias = offsets.OffsetSpec | offsets.OffsetType | str | int | datetime


class AdminCore(DefinitionAdmin, AccessAdmin, ClusterAdmin, SnapshotAdmin, ProducerAdmin):
    """Administers one cluster. Coroutines run on the engine's loop.

    Tables are named by a `TablePath` or by `"database.table"`.

    Args:
        cluster: Reaches the servers.
        keeper: An object that must live as long as this: an unreferenced connection is closed.
    """

    # --- databases ----------------------------------------------------------------------------

    async def create_database(
        self,
        database_name: str,
        database_descriptor: DatabaseDescriptor | None = None,
        ignore_if_exists: bool | None = False,
    ) -> None:
        """Create a database.

        Raises:
            DatabaseAlreadyExistsError: There is one of this name, and that is not ignored.
        """
        request = messages.CreateDatabaseRequest(
            database_name=database_name, ignore_if_exists=bool(ignore_if_exists)
        )
        if database_descriptor is not None:
            request.database_json = database_descriptor.to_json().encode()
        await self._change(request)
        self._cluster.ddl_pacing.created(database_name)

    async def drop_database(
        self,
        database_name: str,
        ignore_if_not_exists: bool | None = False,
        cascade: bool | None = True,
    ) -> None:
        """Drop a database, with its tables if `cascade` is set.

        Raises:
            DatabaseNotFoundError: There is none of this name, and that is not ignored.
            DatabaseNotEmptyError: It has tables, and `cascade` is not set.
        """
        request = messages.DropDatabaseRequest(
            database_name=database_name,
            ignore_if_not_exists=bool(ignore_if_not_exists),
            cascade=bool(cascade),
        )
        async with nearest_database_named(self._cluster, database_name):
            await self._change(request)

    async def list_databases(self) -> list[str]:
        """The names of all databases."""
        return await list_databases(self._cluster)

    async def database_exists(self, database_name: str) -> bool:
        """Whether there is a database of this name."""
        answer = await self._cluster.ask_any(
            messages.DatabaseExistsRequest(database_name=database_name),
            messages.DatabaseExistsResponse,
        )
        return answer.exists

    async def get_database_info(self, database_name: str) -> DatabaseInfo:
        """The facts of a database.

        Raises:
            DatabaseNotFoundError: There is none of this name.
        """
        async with nearest_database_named(self._cluster, database_name):
            answer = await self._cluster.ask_any(
                messages.GetDatabaseInfoRequest(database_name=database_name),
                messages.GetDatabaseInfoResponse,
            )
        return DatabaseInfo(
            database_name=database_name,
            database_descriptor=DatabaseDescriptor.from_json(answer.database_json),
            created_time=answer.created_time,
            modified_time=answer.modified_time,
        )

    # --- tables -------------------------------------------------------------------------------

    async def create_table(
        self,
        table_path: Path,
        table_descriptor: TableDescriptor,
        ignore_if_exists: bool | None = False,
    ) -> None:
        """Create a table.

        Raises:
            TableAlreadyExistsError: There is one of this name, and that is not ignored.
            InvalidSchemaError: The descriptor contradicts itself or Fluss's rules; nothing was
                sent.
        """
        path = table_path_of(table_path)
        path.check_new()
        check_new_table(table_descriptor)
        request = messages.CreateTableRequest(
            table_path=write_table_path(path),
            table_json=table_descriptor.to_json().encode(),
            ignore_if_exists=bool(ignore_if_exists),
        )
        await self._cluster.ddl_pacing.wait_until_settled(path.database_name)
        async with nearest_database_named(self._cluster, path.database_name):
            await self._change(request)
            self._cluster.ddl_pacing.created(path)

    async def drop_table(self, table_path: Path, ignore_if_not_exists: bool | None = False) -> None:
        """Drop a table with all its rows.

        Raises:
            TableNotFoundError: There is none of this name, and that is not ignored.
        """
        path = table_path_of(table_path)
        request = messages.DropTableRequest(
            table_path=write_table_path(path), ignore_if_not_exists=bool(ignore_if_not_exists)
        )
        async with nearest_named(self._cluster, path):
            await self._change(request)
        self._cluster.view.forget_table(path)
        self._cluster.ddl_pacing.forget(path)

    async def get_table_info(self, table_path: Path) -> TableInfo:
        """The facts of a table.

        Raises:
            TableNotFoundError: There is none of this name; the hint names the nearest.
        """
        return await table_info_of(self._cluster, table_path_of(table_path))

    async def list_tables(self, database_name: str) -> list[str]:
        """The names of the tables of a database.

        Raises:
            DatabaseNotFoundError: There is no such database; the hint names the nearest.
        """
        async with nearest_database_named(self._cluster, database_name):
            return await list_tables(self._cluster, database_name)

    async def table_exists(self, table_path: Path) -> bool:
        """Whether there is a table of this name."""
        path = table_path_of(table_path)
        request = messages.TableExistsRequest(table_path=write_table_path(path))
        answer = await self._cluster.ask_any(request, messages.TableExistsResponse)
        return answer.exists

    async def get_table_stats(self, table_path: Path) -> TableStats:
        """How many rows a table has, as the leaders of its buckets count them.

        Raises:
            TableNotFoundError: There is no such table; the hint names the nearest.
        """
        table = await table_info_of(self._cluster, table_path_of(table_path))
        path, names, ids = table.table_path, None, {}
        if table.is_partitioned():
            infos = await self.list_partition_infos(path)
            ids = {each.partition_name: each.partition_id for each in infos}
            names = list(ids)
        places = {}
        for replicas in await bucket_replicas(self._cluster, path, names):
            partition_id = None if replicas.partition_name is None else ids[replicas.partition_name]
            bucket = TableBucket.with_partition(table.table_id, partition_id, replicas.bucket_id)
            places[bucket] = PhysicalTablePath(path, replicas.partition_name)
        counts = (await leaders_row_counts(self._cluster, places)).values()
        known = [count for count in counts if count is not None]
        return TableStats(sum(known) if len(known) == len(places) else None)

    # --- partitions ---------------------------------------------------------------------------

    async def create_partition(
        self, table_path: Path, partition_spec: Spec, ignore_if_exists: bool | None = False
    ) -> None:
        """Create a partition: `{partition column: value}`, one value per partition column.

        Raises:
            PartitionAlreadyExistsError: It exists, and that is not ignored.
            InvalidPartitionError: The columns are not the table's partition columns.
        """
        path, spec = table_path_of(table_path), partition_spec_of(partition_spec)
        check_new_partition(spec)
        request = messages.CreatePartitionRequest(
            table_path=write_table_path(path),
            partition_spec=write_partition_spec(spec),
            # The name of the flag in the protocol is the opposite of its meaning.
            ignore_if_not_exists=bool(ignore_if_exists),
        )
        await self._cluster.ddl_pacing.wait_until_table_settled(self._cluster, path)
        await self._change_table(path, request)

    async def drop_partition(
        self, table_path: Path, partition_spec: Spec, ignore_if_not_exists: bool | None = False
    ) -> None:
        """Drop a partition with all its rows.

        Raises:
            PartitionNotFoundError: It does not exist, and that is not ignored.
        """
        path, spec = table_path_of(table_path), partition_spec_of(partition_spec)
        request = messages.DropPartitionRequest(
            table_path=write_table_path(path),
            partition_spec=write_partition_spec(spec),
            ignore_if_not_exists=bool(ignore_if_not_exists),
        )
        try:
            await self._change_table(path, request)
        except PartitionNotFoundError as error:
            raise await self._with_partitions(error, path, str(spec)) from error
        self._cluster.view.forget_table(path)

    async def list_partition_infos(
        self,
        table_path: Path,
        partition_spec: Spec | None = None,
        *,
        include_system_partitions: bool = False,
    ) -> list[PartitionInfo]:
        """The partitions of a table; with a spec, those that have its values.

        Args:
            table_path: The table.
            partition_spec: Values that the partitions have; None for all.
            include_system_partitions: Whether to list `__historical__`, too, which stands for all
                partitions that have expired.

        Raises:
            InvalidValueError: A spec, and the partitions of the system, are asked for.
        """
        path = table_path_of(table_path)
        spec = None if partition_spec is None else partition_spec_of(partition_spec)
        if spec is not None and include_system_partitions:
            raise InvalidValueError(
                "Partitions of the system have no values, so no spec selects them.",
                hint="Leave partition_spec or include_system_partitions out.",
            )
        table = await table_info_of(self._cluster, path)
        request = messages.ListPartitionInfosRequest(
            table_path=write_table_path(path),
            partial_partition_spec=None if spec is None else write_partition_spec(spec),
        )
        if include_system_partitions:
            request.include_system_partitions = True
        answer = await self._cluster.ask_any(request, messages.ListPartitionInfosResponse)
        found = [_partition_info(each, table.partition_keys) for each in answer.partitions_info]
        if include_system_partitions and not answer.system_partitions_included:
            found += await self._historical_partition(table)
        return found

    async def _historical_partition(self, table: TableInfo) -> list[PartitionInfo]:
        """The partition of history; older servers list it by no request."""
        if not keeps_history(table):
            return []
        path = historical_path(PhysicalTablePath(table.table_path))
        try:
            partition_id = await find_partition_id(self._cluster, path)
        except PartitionNotFoundError:
            return []
        (key,) = table.partition_keys
        listed = messages.PbPartitionInfo(
            partition_id=partition_id or 0, bucket_count=table.num_buckets
        )
        listed.partition_spec.partition_key_values.add(key=key, value=HISTORICAL_PARTITION)
        return [_partition_info(listed, table.partition_keys)]

    # --- offsets, snapshots, servers ----------------------------------------------------------

    async def list_offsets(
        self,
        table_path: Path,
        bucket_ids: Sequence[int],
        offset_spec: Offset | None = None,
        *,
        offset_type: offsets.OffsetType | str | None = None,
        timestamp: int | datetime | None = None,
    ) -> dict[int, int]:
        """The offsets of buckets: `{bucket: offset}`.

        Args:
            table_path: A table without partitions.
            bucket_ids: The buckets.
            offset_spec: `OffsetSpec.latest()`, `OffsetType.LATEST`, `"latest"`, or a time.
            offset_type: The same as a keyword: `"earliest"`, `"latest"` or `"timestamp"`.
            timestamp: The time that belongs to `"timestamp"`, in milliseconds since 1970.
        """
        spec = offsets.offset_spec(offset_spec, offset_type=offset_type, timestamp=timestamp)
        path = table_path_of(table_path)
        table = await table_info_of(self._cluster, path)
        hint = "Use list_partition_offsets(path, partition_name, bucket_ids, offset_spec)."
        check_partitioned(table, expected=False, hint=hint)
        return await self._list_offsets(table, PhysicalTablePath(path), None, bucket_ids, spec)

    async def list_partition_offsets(
        self,
        table_path: Path,
        partition_name: str,
        bucket_ids: Sequence[int],
        offset_spec: Offset | None = None,
        *,
        offset_type: offsets.OffsetType | str | None = None,
        timestamp: int | datetime | None = None,
    ) -> dict[int, int]:
        """The offsets of a partition's buckets; see `list_offsets`.

        Args:
            table_path: A partitioned table.
            partition_name: The value of its partition column; several are joined by `$`.
            bucket_ids: The buckets.
            offset_spec: As for `list_offsets`.
            offset_type: As for `list_offsets`.
            timestamp: As for `list_offsets`.

        Raises:
            PartitionNotFoundError: There is no such partition; the hint names the nearest.
        """
        spec = offsets.offset_spec(offset_spec, offset_type=offset_type, timestamp=timestamp)
        path = table_path_of(table_path)
        table = await table_info_of(self._cluster, path)
        hint = "Use list_offsets(path, bucket_ids, offset_spec)."
        check_partitioned(table, expected=True, hint=hint)
        partition = PhysicalTablePath(path, partition_name)
        try:
            partition_id = await find_partition_id(self._cluster, partition)
        except PartitionNotFoundError as error:
            raise await self._with_partitions(error, path, partition_name) from error
        return await self._list_offsets(table, partition, partition_id, bucket_ids, spec)

    async def _list_offsets(
        self,
        table: TableInfo,
        path: PhysicalTablePath,
        partition_id: int | None,
        bucket_ids: Sequence[int],
        spec: offsets.OffsetSpec,
    ) -> dict[int, int]:
        for bucket_id in bucket_ids:
            count = self._cluster.view.bucket_count(path)
            check_bucket_id(table, bucket_id, count=count, partition=path.partition_name)
        buckets = [
            TableBucket.with_partition(table.table_id, partition_id, each) for each in bucket_ids
        ]
        found = await list_offsets(self._cluster, dict.fromkeys(buckets, path), spec)
        return {bucket.bucket_id: offset for bucket, offset in found.items()}

    async def get_server_nodes(self) -> list[ServerNode]:
        """The live servers: the coordinator first, then the tablet servers by id."""
        answer = await self._cluster.ask_any(messages.MetadataRequest(), messages.MetadataResponse)
        nodes = []
        if answer.HasField("coordinator_server"):
            nodes.append(_node(answer.coordinator_server, ServerType.COORDINATOR))
        tablets = sorted(answer.tablet_servers, key=lambda each: each.node_id)
        return nodes + [_node(each, ServerType.TABLET_SERVER) for each in tablets]

    # --- shared -------------------------------------------------------------------------------

    async def _with_partitions(
        self, error: PartitionNotFoundError, path: TablePath, partition: str
    ) -> PartitionNotFoundError:
        """Return the error with the nearest partitions, or those that there are."""
        infos = await self.list_partition_infos(path)
        names = [str(each.partition_spec if "=" in partition else each) for each in infos]
        near = did_you_mean(partition, names) or listed(f"partitions of {path}", names)
        return error.with_context(hint=near)


def partition_spec_of(spec: PartitionSpec | Mapping[str, object]) -> PartitionSpec:
    """The partition that users give as a spec, or as a dict of values."""
    if isinstance(spec, PartitionSpec):
        return spec
    return PartitionSpec(
        {key: value if isinstance(value, str) else str(value) for key, value in spec.items()}
    )


def _partition_info(info: messages.PbPartitionInfo, partition_keys: Sequence[str]) -> PartitionInfo:
    spec = PartitionSpec(
        {each.key: each.value for each in info.partition_spec.partition_key_values}
    )
    return PartitionInfo(
        info.partition_id,
        partition_name(spec, partition_keys),
        partition_spec=spec,
        remote_data_dir=info.remote_data_dir if info.HasField("remote_data_dir") else None,
        bucket_count=info.bucket_count if info.bucket_count > 0 else None,
    )


def _node(node: messages.PbServerNode, server_type: ServerType) -> ServerNode:
    return ServerNode(
        node.node_id,
        node.host,
        node.port,
        server_type,
        rack=node.rack if node.HasField("rack") else None,
    )


def admin_of(connection: ClientConnection) -> AdminCore:
    """The administrator of a connection; keeps the connection alive."""
    return AdminCore(connection.cluster, keeper=connection)
