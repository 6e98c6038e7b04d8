"""The known `table.*` options, typed, with their defaults.

The properties themselves stay text in `TableDescriptor` and `TableInfo`; codecs and writers read
this typed view. Combinations are checked in `model.tables.table_rules`. Keys, defaults and values
are those of Fluss (Java: `ConfigOptions`, `TableConfig`).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, TypeVar

from fluss.model.options.declaration import (
    Option,
    OptionSet,
    choice,
    duration,
    flag,
    member,
    whole,
    words,
)

PREFIX = "table."
SINCE_1_0 = "1.0"

_DAY_MS = 86_400_000
_INT_MIN = -(2**31)

T = TypeVar("T")


class LogFormat(StrEnum):
    """The format of rows in the log."""

    ARROW = "ARROW"
    INDEXED = "INDEXED"
    COMPACTED = "COMPACTED"


class KvFormat(StrEnum):
    """The format of the stored rows of a primary-key table."""

    COMPACTED = "COMPACTED"
    INDEXED = "INDEXED"


class ArrowCompression(StrEnum):
    """How the buffers of Arrow batches are compressed."""

    NONE = "NONE"
    LZ4_FRAME = "LZ4_FRAME"
    ZSTD = "ZSTD"


class MergeEngine(StrEnum):
    """What happens to a row with an existing key; without an engine it is replaced."""

    FIRST_ROW = "first_row"
    VERSIONED = "versioned"
    AGGREGATION = "aggregation"


class DeleteBehavior(StrEnum):
    """What happens to a delete."""

    ALLOW = "allow"
    IGNORE = "ignore"
    DISABLE = "disable"


class ChangelogImage(StrEnum):
    """How much the changelog of a primary key table contains."""

    FULL = "full"
    WAL = "wal"


class DataLakeFormat(StrEnum):
    """The lake that keys and buckets are encoded for."""

    PAIMON = "paimon"
    LANCE = "lance"
    ICEBERG = "iceberg"
    HUDI = "hudi"


class AutoPartitionUnit(StrEnum):
    """How much time one automatic partition spans."""

    YEAR = "YEAR"
    QUARTER = "QUARTER"
    MONTH = "MONTH"
    DAY = "DAY"
    HOUR = "HOUR"


class TableOptions(OptionSet):
    """The properties of one table, typed. Immutable.

    An invalid value is an error only when it is read: a newer server may know values that this
    client does not, and most callers read few of them.

    Args:
        properties: The properties, as text.
    """

    __slots__ = ()

    replication_factor = whole(
        "table.replication.factor",
        None,
        "The number of replicas of each bucket; by default that of the cluster.",
    )
    log_format = choice("table.log.format", LogFormat.ARROW, "The format of rows in the log.")
    arrow_compression = choice(
        "table.log.arrow.compression.type",
        ArrowCompression.ZSTD,
        "The compression of Arrow batches.",
    )
    zstd_level = whole(
        "table.log.arrow.compression.zstd.level", 3, "The compression level of ZSTD.", high=22
    )
    log_ttl_ms = duration(
        "table.log.ttl", 7 * _DAY_MS, "The time for which rows stay in the log.", unit_required=True
    )
    log_local_ttl_ms = duration(
        "table.log.local-ttl",
        None,
        "The time for which segments stay on the servers' disks; by default as long as in the log.",
        unit_required=True,
        since=SINCE_1_0,
    )
    tiered_local_segments = whole(
        "table.log.tiered.local-segments",
        2,
        "The number of segments that stay on the servers' disks when others are in remote storage.",
    )
    kv_format = choice(
        "table.kv.format",
        KvFormat.COMPACTED,
        "The format of the stored rows of a primary-key table.",
    )
    kv_format_version = whole(
        "table.kv.format-version",
        None,
        "The version of the key encoding of a table with a lake; the server sets it for new"
        " tables.",
        high=2,
    )
    row_ttl_ms = duration(
        "table.kv.ttl",
        None,
        "The time after which a row of a primary-key table expires; by default never.",
        unit_required=True,
        since=SINCE_1_0,
    )
    row_ttl_column = words(
        "table.kv.ttl.time-column",
        None,
        "The column with the time from which `table.kv.ttl` counts; by default the time of "
        "the last write.",
        since=SINCE_1_0,
    )
    value_layout_version = whole(
        "table.kv.value-layout-version",
        None,
        "The layout of values in KV snapshots: 2 has the time of the row; the server sets it.",
        since=SINCE_1_0,
    )
    standby_replica = flag(
        "table.kv.standby-replica.enabled",
        None,
        "Whether a standby replica keeps KV snapshots, so that it can become the leader quickly.",
        since=SINCE_1_0,
    )
    merge_engine = Option[MergeEngine | None](
        "table.merge-engine",
        None,
        member(MergeEngine),
        "What a write does to a row with the same key; by default it replaces the row.",
    )
    version_column = words(
        "table.merge-engine.versioned.ver-column",
        None,
        "The column with the version of a row for the merge engine `versioned`.",
    )
    delete_behavior = Option[DeleteBehavior | None](
        "table.delete.behavior",
        None,
        member(DeleteBehavior),
        "What happens to deletes: allow, ignore or disable; by default allow, or ignore "
        "with a merge engine.",
    )
    changelog_image = choice(
        "table.changelog.image",
        ChangelogImage.FULL,
        "The contents of the changelog: full has the rows before and after an update, wal "
        "only those after it.",
    )
    auto_increment_cache_size = whole(
        "table.auto-increment.cache-size",
        100_000,
        "The number of values that a bucket reserves at a time for its auto-increment column.",
        low=-(2**63),
        high=2**63 - 1,
    )
    statistics_columns_text = words(
        "table.statistics.columns",
        None,
        "The columns for which writers put the minimum and maximum into each batch: names, or `*`.",
        since=SINCE_1_0,
    )
    auto_partition_enabled = flag(
        "table.auto-partition.enabled",
        False,
        "Whether servers create and drop partitions by time.",
    )
    auto_partition_key = words(
        "table.auto-partition.key",
        None,
        "The partition column with the time, if the table has several partition columns.",
    )
    auto_partition_unit = choice(
        "table.auto-partition.time-unit",
        AutoPartitionUnit.DAY,
        "The time that a partition spans.",
    )
    auto_partition_format = words(
        "table.auto-partition.time-format",
        None,
        "The format of the time in names of partitions; by default it depends on the time unit.",
        since=SINCE_1_0,
    )
    auto_partition_zone = words(
        "table.auto-partition.time-zone",
        None,
        "The time zone of the times of partitions; by default that of the server.",
    )
    auto_partition_precreate = whole(
        "table.auto-partition.num-precreate",
        2,
        "The number of future partitions that servers create.",
        low=_INT_MIN,
    )
    auto_partition_retention = whole(
        "table.auto-partition.num-retention",
        7,
        "The number of past partitions that are kept; a negative number keeps all.",
        low=_INT_MIN,
    )
    datalake_enabled = flag(
        "table.datalake.enabled", False, "Whether the table is copied into a lake."
    )
    datalake_format = Option[DataLakeFormat | None](
        "table.datalake.format",
        None,
        member(DataLakeFormat),
        "The format of the lake. It decides the encoding of keys and the bucket function, "
        "even while the lake is not enabled.",
    )
    datalake_database_name = words(
        "table.datalake.database-name",
        None,
        "The database of the table in the lake (Paimon); by default that of the table.",
        since=SINCE_1_0,
    )
    datalake_table_name = words(
        "table.datalake.table-name",
        None,
        "The name of the table in the lake (Paimon); by default that of the table.",
        since=SINCE_1_0,
    )
    datalake_freshness_ms = duration(
        "table.datalake.freshness",
        180_000,
        "The maximum time by which the lake may lag behind the table.",
        unit_required=True,
    )
    datalake_auto_compaction = flag(
        "table.datalake.auto-compaction", False, "Whether tiering compacts the files of the lake."
    )
    datalake_auto_expire_snapshot = flag(
        "table.datalake.auto-expire-snapshot",
        False,
        "Whether tiering removes old snapshots of the lake.",
    )
    datalake_historical_partition = flag(
        "table.datalake.historical-partition.enabled",
        False,
        "Whether rows of expired partitions can be written, and looked up in the lake.",
        since=SINCE_1_0,
    )

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self._values.update(properties or {})

    def value_of(self, option: Option[T]) -> T:
        written = self._values.get(option.key)
        return option.default if written is None else option.read(written)

    def set_value(self, option: Option[Any], value: object) -> None:
        raise AttributeError(
            f"{option.name} cannot be set to {value!r} here; "
            f"a table is made with {option.key!r} among its properties."
        )

    @property
    def effective_delete_behavior(self) -> DeleteBehavior:
        """What happens to deletes, also where the option is not set."""
        if self.delete_behavior is not None:
            return self.delete_behavior
        return DeleteBehavior.ALLOW if self.merge_engine is None else DeleteBehavior.IGNORE

    @property
    def has_row_ttl(self) -> bool:
        """Whether rows expire: they are removed without a delete in the changelog."""
        return self.row_ttl_ms is not None

    def statistics_columns(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return the columns for which writers collect statistics, in the table's order.

        Args:
            names: The columns of the table that could have statistics.
        """
        written = self.statistics_columns_text
        if written is None:
            return ()
        requested = {each.strip() for each in written.split(",")}
        return names if requested == {"*"} else tuple(each for each in names if each in requested)


# The options that Fluss 1.0 can alter, of those above; 0.9.1 refuses some of these.
ALTERABLE: Final = frozenset(
    option.key
    for option in (
        TableOptions.log_ttl_ms,
        TableOptions.log_local_ttl_ms,
        TableOptions.tiered_local_segments,
        TableOptions.statistics_columns_text,
        TableOptions.standby_replica,
        TableOptions.datalake_database_name,
        TableOptions.datalake_table_name,
        TableOptions.auto_partition_enabled,
        TableOptions.auto_partition_retention,
        TableOptions.auto_partition_precreate,
    )
)

# Those that a cluster with a lake can alter, too.
LAKE_ALTERABLE: Final = frozenset(
    option.key
    for option in (
        TableOptions.datalake_enabled,
        TableOptions.datalake_freshness_ms,
        TableOptions.datalake_auto_compaction,
    )
)
