"""A table of a session: its facts, its scans, its writes and lookups, its partitions."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack

import pyarrow as pa

from fluss.admin.admin import AdminCore, admin_of, partition_spec_of
from fluss.admin.bucket_replicas import bucket_replicas
from fluss.connection.config_sources import Settings, completed
from fluss.connection.connection import TableHandle
from fluss.connection.shared_connections import connection_for
from fluss.doors import at_door
from fluss.errors import ConfigError
from fluss.hints import Door
from fluss.lookup.frame_lookups import lookup_frame, prefix_lookup_frame
from fluss.model.did_you_mean import did_you_mean
from fluss.model.options.argument_types import Condition, Place
from fluss.model.options.bounds import bound_of
from fluss.model.options.scan_arguments import FollowArguments, ScanArguments
from fluss.model.options.scan_options import (
    FOLLOW_OPTIONS,
    SCAN_OPTIONS,
    LakeUse,
    Mode,
    ScanOptions,
    scan_options,
)
from fluss.model.options.signatures import shows_options
from fluss.model.schema.schema import Schema
from fluss.model.tables.partitions import PartitionInfo, PartitionSpec
from fluss.model.tables.table_info import TableInfo
from fluss.progress import Progress
from fluss.scan.table_source import TableName, TableSource, source_of
from fluss.session.deleting import delete_where, is_condition, keys_given
from fluss.session.session_scan import Follow, Scan
from fluss.session.show import table_html, table_text
from fluss.session.typed_table import TypedTable
from fluss.write.frame_checks import check_frame
from fluss.write.frame_writer import write_frame
from fluss.write.write_tally import WriteReport

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

Row = TypeVar("Row")
T = TypeVar("T")

HEAD_ROWS = 10


@at_door(Door.SESSION)
class Table:
    """A table as it was when the session opened it. Any thread may use it.

    Args:
        core: The table on its connection.
        defaults: Options of scans that are not given to `scan`, for example a URL's.
    """

    def __init__(self, core: TableHandle, defaults: Mapping[str, Any] | None = None) -> None:
        self._core = core
        self._defaults = dict(defaults or {})

    # --- facts ---------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """`database.table`."""
        return str(self._core.info.table_path)

    def __fluss_table__(self) -> TableHandle:
        # For functions of other rooms that take a `Table`, as `fluss.exactly_once` has them.
        return self._core

    @property
    def defaults(self) -> dict[str, Any]:
        """The options that its scans have by default, for example those of a URL."""
        return dict(self._defaults)

    def to_source(self) -> TableSource:
        """The table, how to reach it, and the options of its scans; small and picklable."""
        config, path = self._core.connection.config, self._core.info.table_path
        return TableSource(path=path, config=config, options=scan_options(self._defaults))

    @property
    def info(self) -> TableInfo:
        """All facts of the table that the cluster reports."""
        return self._core.info

    @property
    def schema(self) -> pa.Schema:
        """Its columns, as Arrow sees them."""
        return self._core.info.schema.to_arrow()

    @property
    def fluss_schema(self) -> Schema:
        """Its columns and keys, as Fluss sees them."""
        return self._core.info.schema

    @property
    def primary_key(self) -> tuple[str, ...]:
        """The columns of its primary key; empty for a log table."""
        return self._core.info.primary_keys

    @property
    def partition_by(self) -> tuple[str, ...]:
        """The columns that divide it into partitions."""
        return self._core.info.partition_keys

    @property
    def buckets(self) -> int:
        """How many buckets it has; of a partitioned table, how many a new partition gets."""
        return self._core.info.num_buckets

    def refresh(self) -> None:
        """Read again what the cluster reports: added columns, changed properties."""
        path = self._core.info.table_path
        self._core = self._run(self._core.connection.table(path))

    # --- reading ------------------------------------------------------------------------------

    @shows_options()
    def scan(self, **options: Unpack[ScanArguments]) -> Scan:
        """Describe a scan; its offsets are pinned when it is first read.

        Args:
            **options: The options of the scan.

        Raises:
            ConfigError: There is no such option; the hint names the nearest.
            InvalidValueError: An option does not take its value, or two options contradict each
                other.

        Example:
            >>> table.scan(filter=col("id") > 5, tail=100).to_pandas()  # doctest: +SKIP
        """
        return Scan(self._core, self._options(options))

    @shows_options(FOLLOW_OPTIONS)
    def follow(self, *, start: Place = "latest", **options: Unpack[FollowArguments]) -> Follow:
        """Follow the log: the rows in it, and those that come later.

        The only scan without an end. Iterate it for Arrow batches, and break off or call `close`.

        Args:
            start: Where to begin; by default at the end of the log.
            **options: The options of the scan.
        """
        for name in options:
            if name not in FOLLOW_OPTIONS:
                hint = did_you_mean(name, SCAN_OPTIONS) if name not in SCAN_OPTIONS else None
                raise ConfigError(
                    f"follow() has no option {name!r}.",
                    hint=hint or "a read that ends is a scan: table.scan(...)",
                    key=name,
                )
        given: dict[str, Any] = {**options, "start": bound_of(start, "start")}
        if self._core.info.has_primary_key():
            given.setdefault("mode", Mode.CHANGELOG)
        return Follow(self._core, scan_options(given))

    def head(self, rows: int = HEAD_ROWS) -> pa.Table:
        """A few of its rows, in no particular order."""
        return self.scan(limit=rows).to_arrow()

    @shows_options()
    def count(self, **options: Unpack[ScanArguments]) -> int:
        """How many rows it has now, or a scan with these options has.

        Args:
            **options: The options of the scan.
        """
        return self.scan(**options).count()

    def to_arrow(self, *, progress: Progress = None) -> pa.Table:
        """All its rows, as they are now; `progress` as of `Scan.to_arrow`."""
        return self.scan().to_arrow(progress=progress)

    def to_pandas(self, *, progress: Progress = None) -> pd.DataFrame:
        """All its rows, as a DataFrame; `progress` as of `Scan.to_arrow`."""
        return self.scan().to_pandas(progress=progress)

    def to_polars(self, *, progress: Progress = None) -> pl.DataFrame:
        """All its rows, as a DataFrame of Polars; `progress` as of `Scan.to_arrow`."""
        return self.scan().to_polars(progress=progress)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.scan().__arrow_c_stream__(requested_schema)

    def lookup(
        self,
        keys: Any,
        *,
        columns: Sequence[str] | None = None,
        insert_if_not_exists: bool = False,
    ) -> pa.Table:
        """Look rows up by primary key: one row per key, in the order given, and `_found`.

        Args:
            keys: Anything tabular with the key's columns, a list of tuples in key order, or of
                values where the key is one column.
            columns: The columns to read; None for all.
            insert_if_not_exists: Whether the servers insert a missing key.

        Raises:
            FlussError: The table has no primary key.
            InvalidValueError: A key is NULL, or does not fit its column.
        """
        return lookup_frame(
            self._core, keys, columns=columns, insert_if_not_exists=insert_if_not_exists
        )

    def prefix_lookup(self, prefixes: Any, *, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows whose keys begin with the bucket key; see `lookup`."""
        return prefix_lookup_frame(self._core, prefixes, columns=columns)

    # --- writing ------------------------------------------------------------------------------

    def append(self, data: Any, *, progress: Progress = None) -> WriteReport:
        """Append rows to a log table, and wait until the servers have them.

        Args:
            data: Anything tabular: Arrow, pandas, Polars, a list of dicts, a dict of columns,
                anything with `__arrow_c_stream__`. Columns are matched by name and cast where no
                value changes.
            progress: Whether a bar is shown during a long write; by default in terminals and
                notebooks. Or a function of the rows acknowledged and their number.

        Returns:
            How many rows there were, and the last offset of each bucket.
        """
        return write_frame(self._core, data, mode="append", progress=progress)

    def upsert(
        self,
        data: Any,
        *,
        merge_mode: Literal["default", "overwrite"] | None = None,
        progress: Progress = None,
    ) -> WriteReport:
        """Insert rows, or replace those with the same keys.

        A frame with a column `_change_type` is applied as a changelog.

        Args:
            data: Anything tabular; see `append`.
            merge_mode: `overwrite` to replace aggregated values.
            progress: See `append`.
        """
        return write_frame(
            self._core, data, mode="upsert", merge_mode=merge_mode, progress=progress
        )

    def delete(
        self, keys: Any = None, *, where: Condition | None = None, progress: Progress = None
    ) -> WriteReport:
        """Delete rows by key, or those that fulfil a condition.

        The condition decides about the rows that there are when the call begins, and their keys are
        read before the first is deleted. Rows that other writers add meanwhile stay; one that they
        change meanwhile is deleted.

        Args:
            keys: As of `lookup`; other columns than those of the key are ignored. A key without a
                row is no error. A predicate is a condition.
            where: The condition: SQL such as `"id > 5 AND kind = 'a'"`, a predicate of `col()`, or
                an expression of pyarrow.
            progress: See `append`.

        Raises:
            UnsupportedOperationError: The table has no primary key.
            InvalidValueError: Both are given or neither, or a key or the condition does not fit
                the table.

        Example:
            >>> table.delete(where="day < DATE '2026-01-01'")  # doctest: +SKIP
        """
        if where is None and is_condition(keys):
            keys, where = None, keys
        if where is None:
            return write_frame(self._core, keys_given(keys), mode="delete", progress=progress)
        return delete_where(self._core, where, keys, progress=progress)

    def update(
        self, data: Any, *, columns: Sequence[str] | None = None, progress: Progress = None
    ) -> WriteReport:
        """Write some columns of rows by key; the others keep their values.

        Args:
            data: Anything tabular with the key's columns.
            columns: Which columns are written; those of the frame by default.
            progress: See `append`.
        """
        return write_frame(self._core, data, mode="update", columns=columns, progress=progress)

    def check(
        self,
        data: Any,
        *,
        mode: Literal["append", "upsert", "delete", "update"],
        columns: Sequence[str] | None = None,
    ) -> None:
        """Refuse what a write would refuse, and write nothing.

        Args:
            data: The rows or keys, as of the method that `mode` names.
            mode: `append`, `upsert`, `delete` or `update`.
            columns: As of `update`.

        Raises:
            FlussError: A row does not fit the table.
        """
        check_frame(self._core, data, mode=mode, columns=columns)

    def typed(self, cls: type[Row]) -> TypedTable[Row]:
        """The table with the rows of a class, which are written and read as its objects.

        Args:
            cls: A dataclass, a TypedDict, a NamedTuple, or a class of pydantic or attrs. Its fields
                are columns; it may lack some.

        Raises:
            SchemaMismatchError: A field has no column, or one of another type.

        Example:
            >>> orders = table.typed(Order)  # doctest: +SKIP
            >>> orders.upsert(Order(id=7, price=9.5))  # doctest: +SKIP
        """
        return TypedTable(self, cls)

    # --- partitions and offsets ---------------------------------------------------------------

    def partitions(self, *, include_system_partitions: bool = False) -> list[PartitionInfo]:
        """Its partitions, by name.

        Args:
            include_system_partitions: Whether to list `__historical__`, too, which stands for all
                partitions that have expired.
        """
        listed = self._run(
            self._admin.list_partition_infos(
                self._core.info.table_path, include_system_partitions=include_system_partitions
            )
        )
        return sorted(listed, key=lambda each: each.partition_name)

    def create_partition(
        self, spec: PartitionSpec | Mapping[str, object], *, ignore_if_exists: bool = False
    ) -> None:
        """Create a partition: `{"day": "2026-01-01"}`."""
        self._run(
            self._admin.create_partition(
                self._core.info.table_path,
                partition_spec_of(spec),
                ignore_if_exists=ignore_if_exists,
            )
        )

    def drop_partition(
        self, spec: PartitionSpec | Mapping[str, object], *, ignore_if_not_exists: bool = False
    ) -> None:
        """Drop a partition with all its rows."""
        self._run(
            self._admin.drop_partition(
                self._core.info.table_path,
                partition_spec_of(spec),
                ignore_if_not_exists=ignore_if_not_exists,
            )
        )

    def offsets(self) -> pa.Table:
        """Where the log of each bucket begins and ends now, as its leader reports."""
        splits = Scan(self._core, _log_options(self._core.info)).splits()
        return pa.table(
            {
                "partition": pa.array([each.partition_name for each in splits], pa.string()),
                "bucket": pa.array([each.bucket.bucket_id for each in splits], pa.int32()),
                "earliest": pa.array([each.start for each in splits], pa.int64()),
                "end": pa.array([each.stop for each in splits], pa.int64()),
            }
        )

    def replicas(self) -> pa.Table:
        """Which tablet servers hold each bucket, and which of them leads it, now.

        The leader is NULL while none is elected; `in_sync` is NULL where it is not reported.
        """
        info = self._core.info
        names = [each.partition_name for each in self.partitions()] if self.partition_by else None
        cluster = self._core.connection.cluster
        found = self._run(bucket_replicas(cluster, info.table_path, names))
        return pa.table(
            {
                "partition": pa.array([each.partition_name for each in found], pa.string()),
                "bucket": pa.array([each.bucket_id for each in found], pa.int32()),
                "leader": pa.array([each.leader for each in found], pa.int32()),
                "replicas": pa.array([each.replicas for each in found], pa.list_(pa.int32())),
                "in_sync": pa.array([each.in_sync for each in found], pa.list_(pa.int32())),
            }
        )

    # --- showing ------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return table_text(self._core)

    def _repr_html_(self) -> str:
        return table_html(self._core)

    # --- shared -------------------------------------------------------------------------------

    @property
    def _admin(self) -> AdminCore:
        return admin_of(self._core.connection)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._core.connection.engine.run(work)

    def _options(self, given: Mapping[str, Any]) -> ScanOptions:
        return scan_options({**self._defaults, **given})


def open_table(table: TableName, *, config: Settings = None) -> Table:
    """A table for an engine that writes, over a connection that is shared.

    Args:
        table: `"database.table"`, a URL with a table in it, a `Table` or a `TableSource`.
        config: How to reach the cluster; overrides a URL.

    Raises:
        TableNotFoundError: There is no such table; the hint names the nearest.
    """
    source = source_of(table, config=config)
    connection = connection_for(completed(source.config))
    return Table(connection.engine.run(connection.table(source.path)))


def _log_options(info: TableInfo) -> ScanOptions:
    mode = Mode.CHANGELOG if info.has_primary_key() else None
    return ScanOptions(mode=mode, columns=(), lake=LakeUse.OFF)
