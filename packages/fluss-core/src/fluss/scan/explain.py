"""What a planned scan will do, in words: what is left out, where it begins and ends, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fluss.lookup.frame_lookups import FOUND
from fluss.model.options.bounds import Bound
from fluss.model.options.scan_options import Mode, ScanOptions
from fluss.model.tables.table_info import TableInfo
from fluss.scan.shape import ScanShape
from fluss.scan.split import ScanSplit

if TYPE_CHECKING:
    from fluss.scan.scan_planner import Pinned, ScanPlan

SPLITS_SHOWN_MAX = 8


def explained(plan: ScanPlan) -> str:
    """The plan of a scan, as text."""
    shape, table = plan.shape, plan.shape.table
    lines = [
        f"Scan of {table.table_path} (table id {table.table_id}, schema {table.schema_id})",
        f"  mode: {shape.mode}",
        f"  columns: {', '.join(shape.chosen or shape.output.names) or 'none'}",
        f"  filter: {'none' if shape.options.filter is None else shape.options.filter}",
        *(f"  {each}" for each in plan.reasons),
        f"  rows: at most {plan.stats.rows_max}",
        f"  splits: {len(plan.splits)}",
    ]
    lines += [f"    {_shown(each)}" for each in plan.splits[:SPLITS_SHOWN_MAX]]
    if len(plan.splits) > SPLITS_SHOWN_MAX:
        lines.append(f"    ... and {len(plan.splits) - SPLITS_SHOWN_MAX} more")
    return "\n".join(lines)


def _shown(split: ScanSplit) -> str:
    partition = "" if split.partition_name is None else f"partition {split.partition_name} "
    way = "" if split.state is None else f", {split.state.strategy}: {split.state.why}"
    return f"{partition}bucket {split.bucket.bucket_id}: [{split.start}, {split.stop}){way}"


def reasons_of(
    table: TableInfo, shape: ScanShape, pinned: Pinned, start: Bound | None, end: Bound | None
) -> tuple[str, ...]:
    """What was decided about a scan, and why, as lines of text."""
    options, filtered = shape.options, pinned.filtered
    said: list[str] = []
    said += [f"spared by the filter: {each}" for each in filtered.reasons]
    if filtered.pushed is not None:
        said.append(f"applied while reading: {filtered.pushed}")
    if filtered.metadata_residual is not None:
        said.append(f"applied behind it: {filtered.metadata_residual}")
    if pinned.partitions is not None:
        said.append(f"partitions: {pinned.partitions_kept} of {pinned.partitions}")
    if pinned.splits and pinned.splits[0].keys is not None:
        what = "prefixes" if pinned.splits[0].prefix_columns else "keys"
        said.append(
            f"lookup of {len(pinned.splits[0].keys)} {what}: the state at the moment of reading, "
            "not pinned (say as_of='latest' for a pinned one)"
        )
        return tuple(said)
    if shape.mode is Mode.STATE and (filtered.lookups or filtered.prefixes):
        said.append(
            f"no lookup, which answers the state at the moment of reading: {_why(table, options)}"
        )
    said.append(f"buckets: {len(pinned.splits)}, {pinned.buckets_pruned} more need not be read")
    if shape.mode is Mode.STATE:
        said.append(f"state as of: {end if end is not None else 'latest'}, pinned at plan time")
    else:
        said.append(f"start: {start if start is not None else 'earliest'}")
        said.append(f"end: {end if end is not None else 'latest'}, pinned at plan time")
    if options.tail is not None:
        order = "" if options.filter is None else "; the filter comes after it"
        said.append(f"tail: the last {options.tail} rows by time, bucket and offset{order}")
    if shape.order is not options.order:
        said.append("order: bucket, so that the limit cuts the same rows each time")
    return tuple(said)


def _why(table: TableInfo, options: ScanOptions) -> str:
    if FOUND in table.schema.column_names:
        return f"the table has a column {FOUND!r}, which is the name of a lookup's own"
    for name in ("as_of", "strategy", "partitions"):
        if getattr(options, name) is not None:
            return f"{name}= is given"
    return "metadata columns are wanted, which it does not know"
