"""Connections, tables and admins: the parts that both dialects share, and the documented ones."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from functools import wraps
from typing import Any, Concatenate, Generic, Literal, ParamSpec, Self, TypeVar

import pyarrow as pa

from fluss.admin.admin import AdminCore, admin_of
from fluss.connection.arguments import config_of, table_path_of
from fluss.connection.connection import ClientConnection, TableHandle
from fluss.dialects.kv_snapshot_lease import KvSnapshotLease
from fluss.dialects.lookupers import TableLookup
from fluss.dialects.table_scan import TableScan, TableScanBase
from fluss.dialects.writers import AppendWriter, TableAppend, TableUpsert
from fluss.model.options.config import Config
from fluss.model.paths import TablePath
from fluss.model.tables.table_info import TableInfo
from fluss.net.engine_thread import Engine, engine

P = ParamSpec("P")
T = TypeVar("T")


def _awaited(
    method: Callable[Concatenate[AdminCore, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[FlussAdmin, P], Awaitable[T]]:
    """Make the method that starts a method of the core on the engine.

    Its signature and docstring, which `help` and editors show, are those of the core's method.
    """

    @wraps(method, assigned=("__name__", "__doc__"))
    def start(self: FlussAdmin, /, *args: P.args, **named: P.kwargs) -> Awaitable[T]:
        return self._engine.submit(method(self._core, *args, **named))

    signature = inspect.signature(method)
    awaited = f"Awaitable[{signature.return_annotation}]"
    start.__qualname__ = f"FlussAdmin.{method.__name__}"
    start.__signature__ = signature.replace(return_annotation=awaited)  # type: ignore[attr-defined]
    return start


class FlussAdmin:
    """Administers one cluster: databases, tables, partitions, offsets, access, servers, snapshots.

    Its methods are those of Java's `Admin`. Tables are named by a `TablePath` or by
    `"database.table"`.
    """

    def __init__(self, engine: Engine, core: AdminCore) -> None:
        self._engine = engine
        self._core = core

    create_database = _awaited(AdminCore.create_database)
    drop_database = _awaited(AdminCore.drop_database)
    list_databases = _awaited(AdminCore.list_databases)
    database_exists = _awaited(AdminCore.database_exists)
    get_database_info = _awaited(AdminCore.get_database_info)
    alter_database = _awaited(AdminCore.alter_database)
    list_database_summaries = _awaited(AdminCore.list_database_summaries)

    create_table = _awaited(AdminCore.create_table)
    drop_table = _awaited(AdminCore.drop_table)
    get_table_info = get_table = _awaited(AdminCore.get_table_info)
    list_tables = _awaited(AdminCore.list_tables)
    table_exists = _awaited(AdminCore.table_exists)
    alter_table = _awaited(AdminCore.alter_table)
    get_table_schema = _awaited(AdminCore.get_table_schema)
    get_table_stats = _awaited(AdminCore.get_table_stats)

    create_partition = _awaited(AdminCore.create_partition)
    drop_partition = _awaited(AdminCore.drop_partition)
    list_partition_infos = _awaited(AdminCore.list_partition_infos)
    list_partition_infos_with_spec = list_partition_infos

    list_offsets = _awaited(AdminCore.list_offsets)
    list_partition_offsets = _awaited(AdminCore.list_partition_offsets)
    get_server_nodes = _awaited(AdminCore.get_server_nodes)

    get_latest_lake_snapshot = _awaited(AdminCore.get_latest_lake_snapshot)
    get_lake_snapshot = _awaited(AdminCore.get_lake_snapshot)
    get_readable_lake_snapshot = _awaited(AdminCore.get_readable_lake_snapshot)
    get_latest_kv_snapshots = _awaited(AdminCore.get_latest_kv_snapshots)
    get_kv_snapshot_metadata = _awaited(AdminCore.get_kv_snapshot_metadata)
    list_kv_snapshots = _awaited(AdminCore.list_kv_snapshots)
    list_remote_log_manifests = _awaited(AdminCore.list_remote_log_manifests)

    def create_kv_snapshot_lease(self, lease_id: str, lease_duration_ms: int) -> KvSnapshotLease:
        """A lease, which keeps KV snapshots from being deleted. No server is asked yet.

        Args:
            lease_id: Its name.
            lease_duration_ms: How long snapshots are kept after the last `acquire_snapshots` or
                `renew`.
        """
        core = self._core.create_kv_snapshot_lease(lease_id, lease_duration_ms)
        return KvSnapshotLease(self._engine, core)

    register_producer_offsets = _awaited(AdminCore.register_producer_offsets)
    get_producer_offsets = _awaited(AdminCore.get_producer_offsets)
    delete_producer_offsets = _awaited(AdminCore.delete_producer_offsets)

    list_acls = _awaited(AdminCore.list_acls)
    create_acls = _awaited(AdminCore.create_acls)
    drop_acls = _awaited(AdminCore.drop_acls)

    describe_cluster_configs = _awaited(AdminCore.describe_cluster_configs)
    alter_cluster_configs = _awaited(AdminCore.alter_cluster_configs)
    add_server_tag = _awaited(AdminCore.add_server_tag)
    remove_server_tag = _awaited(AdminCore.remove_server_tag)
    add_server_tag_by_rack = _awaited(AdminCore.add_server_tag_by_rack)
    remove_server_tag_by_rack = _awaited(AdminCore.remove_server_tag_by_rack)
    rebalance = _awaited(AdminCore.rebalance)
    list_rebalance_progress = _awaited(AdminCore.list_rebalance_progress)
    cancel_rebalance = _awaited(AdminCore.cancel_rebalance)
    get_cluster_health = _awaited(AdminCore.get_cluster_health)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


ScanT = TypeVar("ScanT", bound="TableScanBase[Any, Any]")


class FlussTableBase(Generic[ScanT]):
    """The part that both dialects share. Any thread and any event loop may use one."""

    _scan: type[ScanT]

    def __init__(self, core: TableHandle) -> None:
        self._core = core

    def new_scan(self) -> ScanT:
        """Begin to describe what to read."""
        return self._scan(self._core)

    def new_append(self) -> TableAppend:
        """Begin to append rows to a table without a primary key.

        Raises:
            UnsupportedOperationError: The table has a primary key.
        """
        return TableAppend(self._core)

    def new_append_writer(self) -> Awaitable[AppendWriter]:
        """A writer that appends rows; the same as `new_append().create_writer()`, awaited."""
        return self._core.connection.engine.submit(self._new_append_writer())

    async def _new_append_writer(self) -> AppendWriter:
        return self.new_append().create_writer()

    def new_upsert(self, columns: Iterable[str] | None = None) -> TableUpsert:
        """Begin to insert, replace and delete rows, of a table with a primary key.

        Args:
            columns: The columns to write, the primary key among them; the others keep their
                values. None for all.

        Raises:
            UnsupportedOperationError: The table has no primary key.
        """
        upsert = TableUpsert(self._core)
        return upsert if columns is None else upsert.partial_update_by_name(columns)

    def new_lookup(self) -> TableLookup:
        """Begin to look up rows by primary key.

        Raises:
            FlussError: The table has no primary key.
        """
        return TableLookup(self._core)

    @property
    def arrow_schema(self) -> pa.Schema:
        """The columns as an Arrow schema."""
        return self._core.info.schema.to_arrow()

    @property
    def table_path(self) -> TablePath:
        """The name of the table."""
        return self._core.info.table_path

    def get_table_path(self) -> TablePath:
        """The name of the table."""
        return self._core.info.table_path

    def get_table_info(self) -> TableInfo:
        """The facts of the table at the time of `get_table`."""
        return self._core.info

    def has_primary_key(self) -> bool:
        """Whether rows are identified by a primary key."""
        return self._core.info.has_primary_key()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(path={self._core.info.table_path})"


class FlussTable(FlussTableBase[TableScan]):
    """A table to read and write."""

    _scan = TableScan


TableT = TypeVar("TableT", bound="FlussTableBase[Any]")


class FlussConnectionBase(Generic[TableT]):
    """The part that both dialects share. Any thread and any event loop may use one."""

    _table: type[TableT]

    def __init__(self, core: ClientConnection) -> None:
        self._core = core
        self._engine = core.engine

    @classmethod
    def create(cls, config: Config | Mapping[str, Any]) -> Awaitable[Self]:
        """Connect to a cluster.

        Args:
            config: The settings, which are copied.

        Raises:
            ConfigError: Settings contradict each other.
            ConnectError: No bootstrap server can be reached.
            AuthenticationError: The server did not accept the user.
        """
        return engine().submit(cls._open(config_of(config)))

    connect = create
    new = create

    @classmethod
    async def _open(cls, config: Config) -> Self:
        return cls(await ClientConnection.open(engine(), config))

    def get_table(self, table_path: TablePath | str) -> Awaitable[TableT]:
        """A table, as it is now.

        Raises:
            TableNotFoundError: There is no such table; the hint names the nearest.
        """
        return self._engine.submit(self._get_table(table_path_of(table_path)))

    async def _get_table(self, path: TablePath) -> TableT:
        core: TableHandle = await self._core.table(path)
        return self._table(core)

    def config(self) -> Config:
        """A copy of its settings."""
        return self._core.config.copy()

    def counters(self) -> dict[str, object]:
        """Its counters: requests, bytes, batches, retries, latencies."""
        return self._core.counters()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: object = None, exc_value: object = None, traceback: object = None
    ) -> Literal[False]:
        self._engine.run(self._core.close())
        return False

    def __repr__(self) -> str:
        closed = ", closed" if self._core.is_closed else ""
        return f"{type(self).__name__}({self._core.config.bootstrap_servers}{closed})"


class FlussConnection(FlussConnectionBase[FlussTable]):
    """A connection to a cluster. Opening it and getting its admin and tables is awaited.

    Example:
        >>> with await FlussConnection.create(config) as connection:  # doctest: +SKIP
        ...     table = await connection.get_table("fluss.events")
    """

    _table = FlussTable

    def get_admin(self) -> Awaitable[FlussAdmin]:
        """The administrator of the cluster."""
        return self._engine.submit(self._get_admin())

    async def _get_admin(self) -> FlussAdmin:
        return FlussAdmin(self._engine, admin_of(self._core))

    def close(self) -> None:
        """Deliver what was written, and close the connection. Blocks the calling thread."""
        self._engine.run(self._core.close())
