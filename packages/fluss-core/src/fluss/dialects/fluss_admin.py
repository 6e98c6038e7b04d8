"""The administrator as users hold it, the same in both dialects: each call is awaited.

A call has started when it returns, and goes on if nobody awaits it.
"""

# ruff: noqa: FBT001, FBT002 - the documented signatures take flags by position

from __future__ import annotations

from collections.abc import Awaitable, Coroutine, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias, TypeVar

from fluss.admin.admin import AdminCore, partition_spec_of
from fluss.connection.arguments import table_path_of
from fluss.model import offsets
from fluss.model.paths import TablePath
from fluss.model.servers import LakeSnapshot, ServerNode
from fluss.model.tables.database import DatabaseDescriptor, DatabaseInfo
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.tables.partitions import PartitionInfo, PartitionSpec
from fluss.model.tables.table_info import TableInfo
from fluss.net.engine_thread import Engine

T = TypeVar("T")

Path: TypeAlias = TablePath | str
Spec: TypeAlias = PartitionSpec | Mapping[str, object]
Offset: TypeAlias = offsets.OffsetSpec | offsets.OffsetType | str | int | datetime


class FlussAdmin:
    """Databases, tables, partitions, offsets and servers of one cluster.

    Tables are named by a `TablePath` or by `"database.table"`.
    """

    def __init__(self, engine: Engine, core: AdminCore) -> None:
        self._engine = engine
        self._core = core

    # --- databases ----------------------------------------------------------------------------

    def create_database(
        self,
        database_name: str,
        database_descriptor: DatabaseDescriptor | None = None,
        ignore_if_exists: bool | None = False,
    ) -> Awaitable[None]:
        """Create a database.

        Raises:
            DatabaseAlreadyExistsError: There is one of this name, and that is not ignored.
        """
        return self._start(
            self._core.create_database(
                database_name, database_descriptor, ignore_if_exists=bool(ignore_if_exists)
            )
        )

    def drop_database(
        self,
        database_name: str,
        ignore_if_not_exists: bool | None = False,
        cascade: bool | None = True,
    ) -> Awaitable[None]:
        """Drop a database, with its tables where `cascade` says so.

        Raises:
            DatabaseNotFoundError: There is none of this name, and that is not ignored.
            DatabaseNotEmptyError: It has tables, and they are not to be dropped.
        """
        return self._start(
            self._core.drop_database(
                database_name,
                ignore_if_not_exists=bool(ignore_if_not_exists),
                cascade=bool(cascade),
            )
        )

    def list_databases(self) -> Awaitable[list[str]]:
        """The names of all databases."""
        return self._start(self._core.list_databases())

    def database_exists(self, database_name: str) -> Awaitable[bool]:
        """Whether there is a database of this name."""
        return self._start(self._core.database_exists(database_name))

    def get_database_info(self, database_name: str) -> Awaitable[DatabaseInfo]:
        """The facts of a database.

        Raises:
            DatabaseNotFoundError: There is none of this name.
        """
        return self._start(self._core.get_database_info(database_name))

    # --- tables -------------------------------------------------------------------------------

    def create_table(
        self,
        table_path: Path,
        table_descriptor: TableDescriptor,
        ignore_if_exists: bool | None = False,
    ) -> Awaitable[None]:
        """Create a table.

        Raises:
            TableAlreadyExistsError: There is one of this name, and that is not ignored.
            InvalidSchemaError: The descriptor contradicts itself or Fluss's rules.
        """
        return self._start(
            self._core.create_table(
                table_path_of(table_path),
                table_descriptor,
                ignore_if_exists=bool(ignore_if_exists),
            )
        )

    def drop_table(
        self, table_path: Path, ignore_if_not_exists: bool | None = False
    ) -> Awaitable[None]:
        """Drop a table with all its rows.

        Raises:
            TableNotFoundError: There is none of this name, and that is not ignored.
        """
        return self._start(
            self._core.drop_table(
                table_path_of(table_path), ignore_if_not_exists=bool(ignore_if_not_exists)
            )
        )

    def get_table_info(self, table_path: Path) -> Awaitable[TableInfo]:
        """The facts of a table.

        Raises:
            TableNotFoundError: There is none of this name; the hint names the nearest.
        """
        return self._start(self._core.get_table_info(table_path_of(table_path)))

    get_table = get_table_info

    def list_tables(self, database_name: str) -> Awaitable[list[str]]:
        """The names of the tables of a database."""
        return self._start(self._core.list_tables(database_name))

    def table_exists(self, table_path: Path) -> Awaitable[bool]:
        """Whether there is a table of this name."""
        return self._start(self._core.table_exists(table_path_of(table_path)))

    # --- partitions ---------------------------------------------------------------------------

    def create_partition(
        self, table_path: Path, partition_spec: Spec, ignore_if_exists: bool | None = False
    ) -> Awaitable[None]:
        """Create a partition: `{partition column: value}`, one value per partition column.

        Raises:
            PartitionAlreadyExistsError: There is such a one, and that is not ignored.
            InvalidPartitionError: The columns are not the table's partition columns.
        """
        return self._start(
            self._core.create_partition(
                table_path_of(table_path),
                partition_spec_of(partition_spec),
                ignore_if_exists=bool(ignore_if_exists),
            )
        )

    def drop_partition(
        self, table_path: Path, partition_spec: Spec, ignore_if_not_exists: bool | None = False
    ) -> Awaitable[None]:
        """Drop a partition with all its rows.

        Raises:
            PartitionNotFoundError: There is no such one, and that is not ignored.
        """
        return self._start(
            self._core.drop_partition(
                table_path_of(table_path),
                partition_spec_of(partition_spec),
                ignore_if_not_exists=bool(ignore_if_not_exists),
            )
        )

    def list_partition_infos(
        self, table_path: Path, partition_spec: Spec | None = None
    ) -> Awaitable[list[PartitionInfo]]:
        """The partitions of a table; with some columns' values, those that have them."""
        spec = None if partition_spec is None else partition_spec_of(partition_spec)
        return self._start(self._core.list_partition_infos(table_path_of(table_path), spec))

    list_partition_infos_with_spec = list_partition_infos

    # --- offsets, snapshots, servers ----------------------------------------------------------

    def list_offsets(
        self,
        table_path: Path,
        bucket_ids: Sequence[int],
        offset_spec: Offset | None = None,
        *,
        offset_type: offsets.OffsetType | str | None = None,
        timestamp: int | datetime | None = None,
    ) -> Awaitable[dict[int, int]]:
        """The offsets of buckets: `{bucket: offset}`.

        Args:
            table_path: A table without partitions.
            bucket_ids: The buckets.
            offset_spec: `OffsetSpec.latest()`, `OffsetType.LATEST`, `"latest"`, or a time.
            offset_type: The same as a keyword: `"earliest"`, `"latest"` or `"timestamp"`.
            timestamp: The time that belongs to `"timestamp"`, in milliseconds since 1970.
        """
        spec = offsets.offset_spec(offset_spec, offset_type=offset_type, timestamp=timestamp)
        return self._start(
            self._core.list_offsets(table_path_of(table_path), list(bucket_ids), spec)
        )

    def list_partition_offsets(
        self,
        table_path: Path,
        partition_name: str,
        bucket_ids: Sequence[int],
        offset_spec: Offset | None = None,
        *,
        offset_type: offsets.OffsetType | str | None = None,
        timestamp: int | datetime | None = None,
    ) -> Awaitable[dict[int, int]]:
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
        return self._start(
            self._core.list_partition_offsets(
                table_path_of(table_path), partition_name, list(bucket_ids), spec
            )
        )

    def get_latest_lake_snapshot(self, table_path: Path) -> Awaitable[LakeSnapshot]:
        """How far the lake has a copy of the table.

        Raises:
            SnapshotNotFoundError: It has none.
        """
        return self._start(self._core.get_latest_lake_snapshot(table_path_of(table_path)))

    def get_server_nodes(self) -> Awaitable[list[ServerNode]]:
        """The servers that are alive."""
        return self._start(self._core.get_server_nodes())

    def _start(self, work: Coroutine[Any, Any, T]) -> Awaitable[T]:
        return self._engine.submit(work)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"
