"""The known `table.*` options, typed, with their defaults.

The properties themselves stay text in `TableDescriptor` and `TableInfo`; codecs and writers read
this typed view. Combinations are checked in `model.tables.table_rules`. Keys, defaults and values
are those of Fluss (Java: `ConfigOptions`, `TableConfig`).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeVar

from fluss.model.options.declaration import (
    Option,
    OptionSet,
    boolean,
    duration_ms,
    integer,
    member,
    text,
)

PREFIX = "table."
SINCE_1_0 = "1.0"

_DAY_MS = 86_400_000
_INT_MIN, _INT_MAX = -(2**31), 2**31 - 1

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

    replication_factor = Option[int | None](
        "table.replication.factor",
        None,
        integer(1, _INT_MAX),
        "How many servers keep a copy of each bucket; the cluster's default where it is not set.",
    )
    log_format = Option[LogFormat](
        "table.log.format",
        LogFormat.ARROW,
        member(LogFormat),
        "How the rows of the log are written.",
    )
    arrow_compression = Option[ArrowCompression](
        "table.log.arrow.compression.type",
        ArrowCompression.ZSTD,
        member(ArrowCompression),
        "How Arrow batches are compressed.",
    )
    zstd_level = Option[int](
        "table.log.arrow.compression.zstd.level",
        3,
        integer(1, 22),
        "How hard ZSTD tries.",
    )
    log_ttl_ms = Option[int](
        "table.log.ttl", 7 * _DAY_MS, duration_ms(unit_required=True), "How long the log is kept."
    )
    log_local_ttl_ms = Option[int | None](
        "table.log.local-ttl",
        None,
        duration_ms(unit_required=True),
        "How long the log is kept on the server's own disks; as long as the log where not set.",
        since=SINCE_1_0,
    )
    tiered_local_segments = Option[int](
        "table.log.tiered.local-segments",
        2,
        integer(1, _INT_MAX),
        "How many segments stay on the server's own disks when the log is tiered.",
    )
    kv_format = Option[KvFormat](
        "table.kv.format",
        KvFormat.COMPACTED,
        member(KvFormat),
        "How the rows of a primary key table are stored.",
    )
    kv_format_version = Option[int | None](
        "table.kv.format-version",
        None,
        integer(1, 2),
        "How keys are encoded where a lake is set; the server sets it for new tables.",
    )
    standby_replica = Option[bool | None](
        "table.kv.standby-replica.enabled",
        None,
        boolean,
        "Whether another server keeps snapshots at hand to take over quickly.",
        since=SINCE_1_0,
    )
    merge_engine = Option[MergeEngine | None](
        "table.merge-engine",
        None,
        member(MergeEngine),
        "What happens to a row whose key is there already; it is replaced where not set.",
    )
    version_column = Option[str | None](
        "table.merge-engine.versioned.ver-column",
        None,
        text,
        "The column by which the merge engine `versioned` tells old from new.",
    )
    delete_behavior = Option[DeleteBehavior | None](
        "table.delete.behavior",
        None,
        member(DeleteBehavior),
        "What happens to deletes: allow, and with a merge engine ignore, where not set.",
    )
    changelog_image = Option[ChangelogImage](
        "table.changelog.image",
        ChangelogImage.FULL,
        member(ChangelogImage),
        "Whether the changelog has the rows before their update.",
    )
    auto_increment_cache_size = Option[int](
        "table.auto-increment.cache-size",
        100_000,
        integer(-(2**63), 2**63 - 1),
        "How many numbers a bucket takes at a time for its auto-increment column.",
    )
    statistics_columns_text = Option[str | None](
        "table.statistics.columns",
        None,
        text,
        "The columns whose minimum and maximum writers put into each batch: names, or `*`.",
        since=SINCE_1_0,
    )
    auto_partition_enabled = Option[bool](
        "table.auto-partition.enabled",
        False,
        boolean,
        "Whether the server makes and drops partitions by time.",
    )
    auto_partition_key = Option[str | None](
        "table.auto-partition.key",
        None,
        text,
        "The partition column that holds the time, where there are several.",
    )
    auto_partition_unit = Option[AutoPartitionUnit](
        "table.auto-partition.time-unit",
        AutoPartitionUnit.DAY,
        member(AutoPartitionUnit),
        "How much time one partition spans.",
    )
    auto_partition_format = Option[str | None](
        "table.auto-partition.time-format",
        None,
        text,
        "How the time is written in the partition's name; by the unit where not set.",
        since=SINCE_1_0,
    )
    auto_partition_zone = Option[str | None](
        "table.auto-partition.time-zone",
        None,
        text,
        "The time zone in which partitions begin; the server's where not set.",
    )
    auto_partition_precreate = Option[int](
        "table.auto-partition.num-precreate",
        2,
        integer(_INT_MIN, _INT_MAX),
        "How many partitions are made ahead.",
    )
    auto_partition_retention = Option[int](
        "table.auto-partition.num-retention",
        7,
        integer(_INT_MIN, _INT_MAX),
        "How many past partitions are kept; all of them where negative.",
    )
    datalake_enabled = Option[bool](
        "table.datalake.enabled", False, boolean, "Whether the table is copied into a lake."
    )
    datalake_format = Option[DataLakeFormat | None](
        "table.datalake.format",
        None,
        member(DataLakeFormat),
        "The lake that keys and buckets are encoded for, even while it is not enabled.",
    )
    datalake_freshness_ms = Option[int](
        "table.datalake.freshness",
        180_000,
        duration_ms(unit_required=True),
        "How far the lake may lag behind.",
    )
    datalake_auto_compaction = Option[bool](
        "table.datalake.auto-compaction", False, boolean, "Whether the lake's files are compacted."
    )
    datalake_auto_expire_snapshot = Option[bool](
        "table.datalake.auto-expire-snapshot",
        False,
        boolean,
        "Whether old snapshots of the lake are dropped.",
    )
    datalake_historical_partition = Option[bool](
        "table.datalake.historical-partition.enabled",
        False,
        boolean,
        "Whether lookups of dropped partitions go to the lake.",
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
