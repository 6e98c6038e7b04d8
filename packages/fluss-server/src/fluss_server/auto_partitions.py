"""Partitions by the clock: made before they are needed, dropped when they are old.

What a table wants follows from its options and the time (Java: `AutoPartitionManager`). Fluss
puts the making of daily partitions off by a random time, to spare a large cluster; here there is
nothing to spare.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from fluss.errors import LimitExceededError
from fluss.model.tables.partitions import (
    SEPARATOR,
    PartitionSpec,
    auto_partition_name,
    parse_partition_name,
)
from fluss.model.tables.table_options import TableOptions
from fluss_server.catalog.catalog import Catalog
from fluss_server.catalog.entries import PartitionEntry, TableEntry

_LOG = logging.getLogger(__name__)
INTERVAL_S: Final = 600.0  # auto-partition.check.interval


def keep_partitions(catalog: Catalog, table: TableEntry, *, now_ms: int) -> list[PartitionEntry]:
    """Make the partitions that a table wants now, and drop those it does not want any more.

    Returns:
        The dropped ones, whose buckets have to be closed.
    """
    if not table.info.is_auto_partitioned:
        return []
    moment = datetime.fromtimestamp(now_ms / 1000, _zone(table.info.options))
    dropped = list(_drop_old(catalog, table, moment))
    _make_ahead(catalog, table, moment)
    return dropped


def _drop_old(catalog: Catalog, table: TableEntry, moment: datetime) -> Iterator[PartitionEntry]:
    options, keys = table.info.options, table.descriptor.partition_keys
    retention = options.auto_partition_retention
    if retention < 0:
        return
    oldest = auto_partition_name(options.auto_partition_unit, moment, offset=-retention)
    position = keys.index(options.auto_partition_key or keys[0]) if len(keys) > 1 else 0
    for each in catalog.partitions_of(table):
        if each.name.split(SEPARATOR)[position] < oldest:
            _LOG.info(
                "dropping the partition %s of %s: older than %s", each.name, table.path, oldest
            )
            yield catalog.drop_partition(table, each.name, parse_partition_name(each.name, keys))


def _make_ahead(catalog: Catalog, table: TableEntry, moment: datetime) -> None:
    options, keys = table.info.options, table.descriptor.partition_keys
    if len(keys) > 1:
        return  # the other keys' values are known to nobody
    for offset in range(options.auto_partition_precreate):
        name = auto_partition_name(options.auto_partition_unit, moment, offset=offset)
        if catalog.find_partition(table, name) is not None:
            continue
        try:
            catalog.create_partition(table, name, PartitionSpec({keys[0]: name}))
        except LimitExceededError as error:
            _LOG.warning("the partition %s of %s is not made: %s", name, table.path, error)
            return


def _zone(options: TableOptions) -> tzinfo | None:
    """The table's time zone; the machine's own where it names none."""
    name = options.auto_partition_zone
    if not name:
        return datetime.now(UTC).astimezone().tzinfo
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        _LOG.warning("the time zone %r is unknown here; partitions are made by UTC", name)
        return UTC
