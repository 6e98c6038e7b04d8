"""How much a table holds now, for people: partitions, rows, changes and bytes.

A leader knows the rows of a primary-key table where it keeps count of them (GET_TABLE_STATS), and
those of a log by its offsets. It is asked once: a display does not wait for a failover.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fluss.admin.row_counts import row_counts
from fluss.connection.connection import TableHandle
from fluss.errors import FlussError
from fluss.model.options.scan_options import LakeUse, Mode, ScanOptions
from fluss.model.paths import PhysicalTablePath
from fluss.scan.batch_headers import bytes_stored
from fluss.scan.scan_planner import plan_scan
from fluss.scan.shape import shape_of
from fluss.scan.split import ScanSplit


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSize:
    """The amounts of a table.

    Attributes:
        partitions: How many partitions it has; None where it is not partitioned.
        changes_max: An upper bound of the rows of its log: offsets without rows count as well.
        rows: The rows of a primary-key table; None where they are not known, and of a log.
        log_bytes: About how large the log is; None where that is not known.
    """

    partitions: int | None
    changes_max: int
    rows: int | None
    log_bytes: int | None


def table_size(table: TableHandle) -> TableSize:
    """Ask the leaders how much a table holds.

    Raises:
        FlussError: They do not answer where the log of a bucket begins and ends.
    """
    options = ScanOptions(mode=Mode.CHANGELOG, columns=(), lake=LakeUse.OFF)
    plan = plan_scan(table, shape_of(table.info, options))
    try:
        log_bytes = bytes_stored(table, plan.splits)
    except FlussError:
        log_bytes = None
    return TableSize(
        partitions=plan.partitions,
        changes_max=plan.stats.rows_max,
        rows=_row_count(table, plan.splits) if table.info.has_primary_key() else None,
        log_bytes=log_bytes,
    )


def _row_count(table: TableHandle, splits: Sequence[ScanSplit]) -> int | None:
    connection, path = table.connection, table.info.table_path
    places = {split.bucket: PhysicalTablePath(path, split.partition_name) for split in splits}
    try:
        counts = connection.engine.run(row_counts(connection.cluster, places)).values()
    except FlussError:
        return None
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(places) else None
