"""Automatic partitions: created before they are needed, dropped when their retention ends.

The table's options and the time decide which partitions exist (Java: `AutoPartitionManager`).
Fluss delays the creation of daily partitions by a random time to spread the load of a large
cluster; this server does not.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from fluss.errors import LimitExceededError
from fluss.model.tables.auto_partition_names import auto_partition_name
from fluss.model.tables.partitions import SEPARATOR, PartitionSpec, parse_partition_name
from fluss.model.tables.table_options import TableOptions
from fluss_server.catalog.catalog import Catalog
from fluss_server.catalog.catalog_entries import PartitionEntry, TableEntry

_LOG = logging.getLogger(__name__)
INTERVAL_S: Final = 600.0  # auto-partition.check.interval


def update_partitions(catalog: Catalog, table: TableEntry, *, now_ms: int) -> list[PartitionEntry]:
    """Create the partitions that a table needs now, and drop the expired ones.

    Returns:
        The dropped partitions. The caller closes their buckets.
    """
    if not table.info.is_auto_partitioned:
        return []
    moment = datetime.fromtimestamp(now_ms / 1000, _zone(table.info.options))
    dropped = list(_drop_old(catalog, table, moment))
    _create_ahead(catalog, table, moment)
    return dropped


def _drop_old(catalog: Catalog, table: TableEntry, moment: datetime) -> Iterator[PartitionEntry]:
    options, keys = table.info.options, table.descriptor.partition_keys
    retention = options.auto_partition_retention
    if retention < 0:
        return
    oldest = auto_partition_name(options.auto_partition_unit, moment, offset=-retention)
    position = keys.index(options.auto_partition_key or keys[0]) if len(keys) > 1 else 0
    for partition in catalog.partitions_of(table):
        if partition.name.split(SEPARATOR)[position] < oldest:
            _LOG.info(
                "dropping the partition %s of %s: older than %s", partition.name, table.path, oldest
            )
            yield catalog.drop_partition(
                table, partition.name, parse_partition_name(partition.name, keys)
            )


def _create_ahead(catalog: Catalog, table: TableEntry, moment: datetime) -> None:
    options, keys = table.info.options, table.descriptor.partition_keys
    if len(keys) > 1:
        return  # the values of the other keys are not known in advance
    for offset in range(options.auto_partition_precreate):
        name = auto_partition_name(options.auto_partition_unit, moment, offset=offset)
        if catalog.find_partition(table, name) is not None:
            continue
        try:
            catalog.create_partition(table, name, PartitionSpec({keys[0]: name}))
        except LimitExceededError as error:
            _LOG.warning("the partition %s of %s was not created: %s", name, table.path, error)
            return


def _zone(options: TableOptions) -> tzinfo | None:
    """Return the table's time zone, or the machine's own where the table names none."""
    name = options.auto_partition_zone
    if not name:
        return datetime.now(UTC).astimezone().tzinfo
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        _LOG.warning(
            "the time zone %r is unknown on this machine; partitions are created in UTC", name
        )
        return UTC
