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
    """How the rows of the log are written."""

    ARROW = "ARROW"
    INDEXED = "INDEXED"
    COMPACTED = "COMPACTED"


class KvFormat(StrEnum):
    """How the rows of a primary key table are stored."""

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
        "How many servers keep a copy of each bucket; the cluster's default where it is not set.",
    )
    log_format = choice("table.log.format", LogFormat.ARROW, "How the rows of the log are written.")
    arrow_compression = choice(
        "table.log.arrow.compression.type",
        ArrowCompression.ZSTD,
        "How Arrow batches are compressed.",
    )
    zstd_level = whole("table.log.arrow.compression.zstd.level", 3, "How hard ZSTD tries.", high=22)
    log_ttl_ms = duration(
        "table.log.ttl", 7 * _DAY_MS, "How long the log is kept.", unit_required=True
    )
    log_local_ttl_ms = duration(
        "table.log.local-ttl",
        None,
        "How long the log is kept on the server's own disks; as long as the log where not set.",
        unit_required=True,
        since=SINCE_1_0,
    )
    tiered_local_segments = whole(
        "table.log.tiered.local-segments",
        2,
        "How many segments stay on the server's own disks when the log is tiered.",
    )
    kv_format = choice(
        "table.kv.format", KvFormat.COMPACTED, "How the rows of a primary key table are stored."
    )
    kv_format_version = whole(
        "table.kv.format-version",
        None,
        "How keys are encoded where a lake is set; the server sets it for new tables.",
        high=2,
    )
    row_ttl_ms = duration(
        "table.kv.ttl",
        None,
        "How long a row of a primary key table is kept after its time; for ever where not set.",
        unit_required=True,
        since=SINCE_1_0,
    )
    row_ttl_column = words(
        "table.kv.ttl.time-column",
        None,
        "The column with the time of a row for `table.kv.ttl`; when it was written, where not set.",
        since=SINCE_1_0,
    )
    value_layout_version = whole(
        "table.kv.value-layout-version",
        None,
        "How KV snapshots hold values: 2 with the time of the row; the server sets it.",
        since=SINCE_1_0,
    )
    standby_replica = flag(
        "table.kv.standby-replica.enabled",
        None,
        "Whether another server keeps snapshots at hand to take over quickly.",
        since=SINCE_1_0,
    )
    merge_engine = Option[MergeEngine | None](
        "table.merge-engine",
        None,
        member(MergeEngine),
        "What happens to a row whose key is there already; it is replaced where not set.",
    )
    version_column = words(
        "table.merge-engine.versioned.ver-column",
        None,
        "The column by which the merge engine `versioned` tells old from new.",
    )
    delete_behavior = Option[DeleteBehavior | None](
        "table.delete.behavior",
        None,
        member(DeleteBehavior),
        "What happens to deletes: allow, and with a merge engine ignore, where not set.",
    )
    changelog_image = choice(
        "table.changelog.image",
        ChangelogImage.FULL,
        "Whether the changelog has the rows before their update.",
    )
    auto_increment_cache_size = whole(
        "table.auto-increment.cache-size",
        100_000,
        "How many numbers a bucket takes at a time for its auto-increment column.",
        low=-(2**63),
        high=2**63 - 1,
    )
    statistics_columns_text = words(
        "table.statistics.columns",
        None,
        "The columns whose minimum and maximum writers put into each batch: names, or `*`.",
        since=SINCE_1_0,
    )
    auto_partition_enabled = flag(
        "table.auto-partition.enabled",
        False,
        "Whether the server makes and drops partitions by time.",
    )
    auto_partition_key = words(
        "table.auto-partition.key",
        None,
        "The partition column that holds the time, where there are several.",
    )
    auto_partition_unit = choice(
        "table.auto-partition.time-unit",
        AutoPartitionUnit.DAY,
        "How much time one partition spans.",
    )
    auto_partition_format = words(
        "table.auto-partition.time-format",
        None,
        "How the time is written in the partition's name; by the unit where not set.",
        since=SINCE_1_0,
    )
    auto_partition_zone = words(
        "table.auto-partition.time-zone",
        None,
        "The time zone in which partitions begin; the server's where not set.",
    )
    auto_partition_precreate = whole(
        "table.auto-partition.num-precreate", 2, "How many partitions are made ahead.", low=_INT_MIN
    )
    auto_partition_retention = whole(
        "table.auto-partition.num-retention",
        7,
        "How many past partitions are kept; all of them where negative.",
        low=_INT_MIN,
    )
    datalake_enabled = flag(
        "table.datalake.enabled", False, "Whether the table is copied into a lake."
    )
    datalake_format = Option[DataLakeFormat | None](
        "table.datalake.format",
        None,
        member(DataLakeFormat),
        "The lake that keys and buckets are encoded for, even while it is not enabled.",
    )
    datalake_database_name = words(
        "table.datalake.database-name",
        None,
        "The database of the table in the lake (Paimon); that of the table where not set.",
        since=SINCE_1_0,
    )
    datalake_table_name = words(
        "table.datalake.table-name",
        None,
        "The name of the table in the lake (Paimon); its own where not set.",
        since=SINCE_1_0,
    )
    datalake_freshness_ms = duration(
        "table.datalake.freshness", 180_000, "How far the lake may lag behind.", unit_required=True
    )
    datalake_auto_compaction = flag(
        "table.datalake.auto-compaction", False, "Whether the lake's files are compacted."
    )
    datalake_auto_expire_snapshot = flag(
        "table.datalake.auto-expire-snapshot",
        False,
        "Whether old snapshots of the lake are dropped.",
    )
    datalake_historical_partition = flag(
        "table.datalake.historical-partition.enabled",
        False,
        "Whether rows of expired partitions are written and looked up, by way of the lake.",
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
