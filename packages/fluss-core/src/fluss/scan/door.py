"""`describe`, `splits`, `open_split`: all that an adapter of an engine needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from fluss.connection.arguments import table_path_of
from fluss.connection.config_sources import Settings
from fluss.connection.connection import TableHandle
from fluss.connection.shared_connections import config_of, connection_for
from fluss.errors import InvalidValueError
from fluss.model.options.scan_options import Order, scan_options
from fluss.model.paths import TablePath
from fluss.model.tables.table_info import TableInfo
from fluss.net.cancellation import Cancellation
from fluss.scan.scan_planner import plan_scan, shape_of, split_schema
from fluss.scan.scan_stats import ScanStats
from fluss.scan.split import ScanSplit
from fluss.scan.split_reader import SplitReader


def describe(table: TablePath | str, *, config: Settings = None, **options: Any) -> pa.Schema:
    """The columns of a scan of a table, as Arrow sees them.

    Args:
        table: `"database.table"`.
        config: How to reach the cluster.
        **options: The scan's options; see `fluss.model.options.scan_options.SCAN_OPTIONS`.

    Raises:
        TableNotFoundError: There is no such table; the hint names the nearest.
    """
    return shape_of(table_of(table, config), scan_options(options)).schema


def splits(table: TablePath | str, *, config: Settings = None, **options: Any) -> list[ScanSplit]:
    """A scan, pinned: one split per bucket. The same splits give the same rows however often.

    Args:
        table: `"database.table"`.
        config: How to reach the cluster.
        **options: The scan's options; see `fluss.model.options.scan_options.SCAN_OPTIONS`.

    Raises:
        FlussError: What is asked for is not there; nothing has been read.
    """
    return list(plan_scan(table_of(table, config), scan_options(options)).splits)


def open_split(
    split: ScanSplit | Sequence[ScanSplit],
    *,
    config: Settings = None,
    order: Order | str = Order.NONE,
    max_parallel: int | None = None,
    cancellation: Cancellation | None = None,
    stats: ScanStats | None = None,
) -> pa.RecordBatchReader:
    """The rows of one split, or of several of one scan, as a stream.

    They are fetched ahead of the reader and in parallel, within bounds. What the scan's limit cuts
    is cut over all that are opened together.

    Args:
        split: The splits.
        config: How to reach the cluster.
        order: In which order rows come: `none`, `bucket`, `timestamp`.
        max_parallel: How many splits are read at once.
        cancellation: Ends the reading from another thread.
        stats: What to count in.

    Raises:
        TableNotFoundError: The table has been dropped, or created again, since it was split.
    """
    opened = [split] if isinstance(split, ScanSplit) else list(split)
    if not opened:
        raise InvalidValueError(
            "There is no split to open.", hint="a scan of no buckets has no rows, and is empty"
        )
    table = _table_of_splits(opened, config, cancellation)
    return SplitReader(
        table,
        opened,
        schema=split_schema(table, opened[0]),
        order=Order(order),
        max_parallel=max_parallel,
        cancellation=cancellation,
        stats=stats,
    ).reader()


def table_of(table: TablePath | str, config: Settings) -> TableHandle:
    """A table, over a connection that is shared."""
    connection = connection_for(config_of(config))
    return connection.engine.run(connection.table(table_path_of(table)))


def _table_of_splits(
    splits: Sequence[ScanSplit], config: Settings, cancellation: Cancellation | None
) -> TableHandle:
    """The table of some splits; many of them that are opened one by one ask for it once."""
    table_ids = {split.bucket.table_id for split in splits}
    schema_id = max(split.schema_id for split in splits)

    def is_as_planned(info: TableInfo) -> bool:
        return table_ids == {info.table_id} and info.schema_id >= schema_id

    connection = connection_for(config_of(config))
    asked = connection.recent_table(splits[0].table_path, is_as_planned)
    return connection.engine.run(asked, cancellation=cancellation)
