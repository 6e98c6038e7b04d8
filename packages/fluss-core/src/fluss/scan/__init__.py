"""Scans: from options to a plan, to splits, to batches. The door for engines.

An engine names the table and the options of its user, narrows the scan to what a query needs, and
reads its splits where it likes:

    scan = open_scan("sales.orders", filter=col("id") > 5)
    narrowed = scan.narrowed(columns=["id", "price"], predicate=pc.field("price") < 9, limit=10)
    splits = narrowed.scan.splits()  # frozen, picklable, without connections and secrets
    batches = open_split(splits[0], config=narrowed.scan.source.config)  # here or on a worker
    narrowed.residual  # what the engine must still apply; None: nothing

Rule: what a scan reads, leaves out and refuses is decided in this room and nowhere else. An adapter
imports `fluss` and `fluss.scan` for reading, and no module beneath. Offsets are pinned once, when a
scan is planned, so the same splits give the same rows however often and wherever they are read.
Engines that repeat their tasks write logs by `fluss.exactly_once`.

Names are loaded when they are first used: a planner that only checks options loads no Arrow.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fluss.lake.file_decoder import FileDecoder as FileDecoder
    from fluss.model.metadata_columns import METADATA_TYPES as METADATA_TYPES
    from fluss.model.options.argument_types import Condition as Condition, Place as Place
    from fluss.model.options.bounds import (
        EARLIEST as EARLIEST,
        LATEST as LATEST,
        Bound as Bound,
        BoundKind as BoundKind,
        Cursor as Cursor,
        bound_of as bound_of,
    )
    from fluss.model.options.many_cursor import ManyCursor as ManyCursor
    from fluss.model.options.scan_arguments import (
        FollowArguments as FollowArguments,
        ScanArguments as ScanArguments,
    )
    from fluss.model.options.scan_options import (
        BUCKET as BUCKET,
        CHANGE_TYPE as CHANGE_TYPE,
        COMMIT_TIMESTAMP as COMMIT_TIMESTAMP,
        LOG_OFFSET as LOG_OFFSET,
        PARTITION as PARTITION,
        SCAN_OPTIONS as SCAN_OPTIONS,
        LakeUse as LakeUse,
        Mode as Mode,
        Order as Order,
        ScanOptions as ScanOptions,
        unknown_option as unknown_option,
    )
    from fluss.model.options.signatures import shows_options as shows_options
    from fluss.model.predicates.predicate import (
        ColumnRef as ColumnRef,
        Constant as Constant,
        Predicate as Predicate,
        col as col,
        columns_in as columns_in,
        conjoined as conjoined,
    )
    from fluss.net.cancellation import Cancellation as Cancellation
    from fluss.progress import (
        Amount as Amount,
        Progress as Progress,
        ProgressDisplay as ProgressDisplay,
    )
    from fluss.scan.dataset import FlussDataset as FlussDataset, FlussFragment as FlussFragment
    from fluss.scan.door import open_scan as open_scan, open_split as open_split
    from fluss.scan.follow import Follow as Follow
    from fluss.scan.follow_many import TableBatch as TableBatch
    from fluss.scan.query_snapshot import QuerySnapshot as QuerySnapshot
    from fluss.scan.scan import Narrowed as Narrowed, Scan as Scan
    from fluss.scan.scan_stats import ScanStats as ScanStats
    from fluss.scan.split import ScanSplit as ScanSplit
    from fluss.scan.table_source import (
        HasSource as HasSource,
        TableName as TableName,
        TableSource as TableSource,
        source_of as source_of,
        without_view as without_view,
    )

_HOMES = {
    "lake.file_decoder": ("FileDecoder",),
    "model.metadata_columns": ("METADATA_TYPES",),
    "model.options.bounds": ("EARLIEST", "LATEST", "Bound", "BoundKind", "Cursor", "bound_of"),
    "model.options.many_cursor": ("ManyCursor",),
    "model.options.argument_types": ("Condition", "Place"),
    "model.options.scan_arguments": ("FollowArguments", "ScanArguments"),
    "model.options.signatures": ("shows_options",),
    "model.options.scan_options": (
        "BUCKET",
        "CHANGE_TYPE",
        "COMMIT_TIMESTAMP",
        "LOG_OFFSET",
        "PARTITION",
        "SCAN_OPTIONS",
        "LakeUse",
        "Mode",
        "Order",
        "ScanOptions",
        "unknown_option",
    ),
    "model.predicates.predicate": (
        "ColumnRef",
        "Constant",
        "Predicate",
        "col",
        "columns_in",
        "conjoined",
    ),
    "progress": ("Amount", "Progress", "ProgressDisplay"),
    "scan.dataset": ("FlussDataset", "FlussFragment"),
    "scan.door": ("open_scan", "open_split"),
    "net.cancellation": ("Cancellation",),
    "scan.follow": ("Follow",),
    "scan.follow_many": ("TableBatch",),
    "scan.query_snapshot": ("QuerySnapshot",),
    "scan.scan": ("Narrowed", "Scan"),
    "scan.scan_stats": ("ScanStats",),
    "scan.split": ("ScanSplit",),
    "scan.table_source": ("HasSource", "TableName", "TableSource", "source_of", "without_view"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)  # noqa: PLE0605 - one list is enough


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'fluss.scan' has no attribute {name!r}")
    found = getattr(importlib.import_module(f"fluss.{home}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return list(__all__)
