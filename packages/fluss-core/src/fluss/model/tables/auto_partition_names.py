"""The names of automatic partitions, and which of them belong to the past.

A table that keeps its history (`table.datalake.historical-partition.enabled`) has one partition of
the system, which stands for all that have expired: their rows are in the lake, and are written and
looked up through it. Java's client 1.0.0 has the same rules. Whether such a partition exists, only
the servers know.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from fluss.model.paths import PhysicalTablePath
from fluss.model.tables.table_info import TableInfo
from fluss.model.tables.table_options import AutoPartitionUnit

HISTORICAL_PARTITION: Final = "__historical__"
_MONTHS_PER_YEAR: Final = 12
_MONTHS_PER_QUARTER: Final = 3


def keeps_history(table: TableInfo) -> bool:
    """Whether expired partitions of a table can be written and looked up."""
    options = table.options
    return (
        options.datalake_historical_partition
        and table.is_auto_partitioned
        and len(table.partition_keys) == 1
    )


def historical_path(path: PhysicalTablePath) -> PhysicalTablePath:
    """The partition of history of a partition's table."""
    return PhysicalTablePath(path.table_path, HISTORICAL_PARTITION)


def is_past(table: TableInfo, name: str, now: datetime) -> bool:
    """Whether a name is that of a partition before the present one.

    Where names have a format of their own, every name may be one.
    """
    options = table.options
    if options.auto_partition_format is not None:
        return True
    present = auto_partition_name(options.auto_partition_unit, _in_zone(table, now))
    return len(name) == len(present) and name.isdecimal() and name < present


def is_expired(table: TableInfo, name: str, now: datetime) -> bool:
    """Whether a partition of this name is older than those that the table retains."""
    options = table.options
    retention = options.auto_partition_retention
    if retention < 0 or options.auto_partition_format is not None:
        return False
    moment = _in_zone(table, now)
    return name < auto_partition_name(options.auto_partition_unit, moment, offset=-retention)


def _in_zone(table: TableInfo, now: datetime) -> datetime:
    zone = table.options.auto_partition_zone
    try:
        return now.astimezone(ZoneInfo(zone) if zone else None)
    except (ZoneInfoNotFoundError, ValueError):
        return now.astimezone(UTC)


def auto_partition_name(unit: AutoPartitionUnit, moment: date, *, offset: int = 0) -> str:
    """Return the name of the partition of a time, or of one before or after it.

    Args:
        unit: How much time a partition spans.
        moment: A day, or a time of it in the table's zone. Hours are counted on the clock of a
            `datetime` without a zone, and as hours really pass in one with a zone.
        offset: How many partitions later; earlier where negative.
    """
    match unit:
        case AutoPartitionUnit.YEAR:
            return f"{moment.year + offset:04d}"
        case AutoPartitionUnit.QUARTER:
            year, month = _plus_months(moment, offset * _MONTHS_PER_QUARTER)
            return f"{year:04d}{(month - 1) // _MONTHS_PER_QUARTER + 1}"
        case AutoPartitionUnit.MONTH:
            year, month = _plus_months(moment, offset)
            return f"{year:04d}{month:02d}"
        case AutoPartitionUnit.DAY:
            return _digits(moment + timedelta(days=offset))
        case AutoPartitionUnit.HOUR:
            hour = _plus_hours(moment, offset)
            return f"{_digits(hour)}{hour.hour:02d}"


def _plus_months(moment: date, months: int) -> tuple[int, int]:
    year, month = divmod(
        moment.year * _MONTHS_PER_YEAR + moment.month - 1 + months, _MONTHS_PER_YEAR
    )
    return year, month + 1


def _plus_hours(moment: date, hours: int) -> datetime:
    if not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day)  # noqa: DTZ001 - a day has no zone
    if moment.tzinfo is None:
        return moment + timedelta(hours=hours)
    return (moment.astimezone(UTC) + timedelta(hours=hours)).astimezone(moment.tzinfo)


def _digits(day: date) -> str:
    # Not strftime, whose %Y drops the zeros of early years on some systems.
    return f"{day.year:04d}{day.month:02d}{day.day:02d}"
