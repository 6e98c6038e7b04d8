"""The door for engines: `open_scan` describes a scan, `open_split` reads pieces of one elsewhere.

`open_scan` is for the process that plans; everything else is a method of the `Scan` that it gives.
`open_split` is for workers, which have nothing but splits and the settings to connect with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import pyarrow as pa

from fluss.connection.config_sources import Settings, completed
from fluss.connection.connection import TableHandle
from fluss.connection.shared_connections import config_of, connection_for
from fluss.errors import InvalidValueError
from fluss.lake.file_decoder import FileDecoder
from fluss.model.options.scan_arguments import ScanArguments
from fluss.model.options.scan_options import Order
from fluss.model.options.signatures import shows_options
from fluss.model.tables.table_info import TableInfo
from fluss.net.cancellation import Cancellation
from fluss.scan.scan import Scan
from fluss.scan.scan_stats import ScanStats
from fluss.scan.split import ScanSplit
from fluss.scan.split_reader import SplitReader
from fluss.scan.table_source import TableName, source_of


@shows_options()
def open_scan(
    table: TableName | Scan, *, config: Settings = None, **options: Unpack[ScanArguments]
) -> Scan:
    """Open the scan of a table as it is now. Offsets are pinned when the scan is first read.

    Args:
        table: `"database.table"`, with `$changelog` or `$binlog` after it for its changes, or
            `$lake` for what its lake has, a
            `fluss://` URL with a table in it, a `Table` or a `TableSource`. A `Scan` is returned as
            it is, and stays at its offsets.
        config: How to reach the cluster; the URL, the active session, the environment or the
            profile otherwise.
        **options: The options of the scan.

    Raises:
        TableNotFoundError: There is no such table; the hint names the nearest.
        ConfigError: There is no option of a name; the hint names the nearest.
        InvalidValueError: A value is not one its option takes, or two contradict each other.
        FlussError: The table has no such columns, or no such rows.
    """
    if isinstance(table, Scan):
        _refuse_late_options({**options, "config": config})
        return table
    return source_of(table, options, config=config).scan()


def _refuse_late_options(given: Mapping[str, Any]) -> None:
    late = [name for name, value in given.items() if value is not None]
    if late:
        raise InvalidValueError(
            f"A Scan has its options already; {', '.join(late)} cannot be added.",
            hint="give the options where the scan is created",
        )


def open_split(
    split: ScanSplit | Sequence[ScanSplit],
    *,
    config: Settings = None,
    order: Order | str = Order.NONE,
    max_parallel: int | None = None,
    cancellation: Cancellation | None = None,
    stats: ScanStats | None = None,
    as_views: bool = False,
    decoder: FileDecoder | None = None,
) -> pa.RecordBatchReader:
    """Read one split, or several of one scan, as a stream.

    They are fetched ahead of the reader and in parallel, within bounds. The scan's limit counts
    over all that are opened together.

    Args:
        split: The splits.
        config: How to reach the cluster.
        order: In which order rows come: `none`, `bucket`, `timestamp`.
        max_parallel: How many splits are read concurrently.
        cancellation: Ends the reading from another thread.
        stats: Counts what is read.
        as_views: Whether strings and bytes are views (`string_view`, `binary_view`), for engines
            that store them so. It saves a copy.
        decoder: Decodes files of a lake in place of pyarrow, for engines that do it faster. It is
            used with `as_views`, and for the files and columns for which it cannot change a value.

    Raises:
        TableNotFoundError: The table has been dropped, or created again, since it was split.
    """
    opened = [split] if isinstance(split, ScanSplit) else list(split)
    if not opened:
        raise InvalidValueError(
            "There is no split to open.", hint="a scan of no buckets has no rows, and is empty"
        )
    table = _table_of_splits(opened, config, cancellation)
    return read_splits(
        table,
        opened,
        order=Order(order),
        max_parallel=max_parallel,
        cancellation=cancellation,
        stats=stats,
        as_views=as_views,
        decoder=decoder,
    )


def read_splits(
    table: TableHandle, splits: Sequence[ScanSplit], **how: Any
) -> pa.RecordBatchReader:
    """Read some splits of one scan of a table that is open; `SplitReader` has the options."""
    return SplitReader(table, splits, **how).reader()


def _table_of_splits(
    splits: Sequence[ScanSplit], config: Settings, cancellation: Cancellation | None
) -> TableHandle:
    """The table of some splits; many of them that are opened one by one ask for it once."""
    table_ids = {split.bucket.table_id for split in splits}
    schema_id = max(split.schema_id for split in splits)

    def is_as_planned(info: TableInfo) -> bool:
        return table_ids == {info.table_id} and info.schema_id >= schema_id

    # A configuration that was pickled has lost its password.
    connection = connection_for(completed(config_of(config)))
    asked = connection.recent_table(splits[0].table_path, is_as_planned)
    return connection.engine.run(asked, cancellation=cancellation)
