"""Describes a planned scan as text: what is left out, where it begins and ends, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fluss.lake.lake_format import LakePart
from fluss.lookup.frame_lookups import FOUND
from fluss.model.options.bounds import Bound
from fluss.model.options.scan_options import Mode, ScanOptions
from fluss.model.tables.table_info import TableInfo
from fluss.scan.shape import ScanShape
from fluss.scan.split import ScanSplit, files_of

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
    how = "" if split.state is None else f", {split.state.strategy}: {split.state.why}"
    part = files_of(split)
    if part is not None:
        how += f", lake: {_files_text(part)}"
    return f"{partition}bucket {split.bucket.bucket_id}: [{split.start}, {split.stop}){how}"


def _files_text(part: LakePart) -> str:
    files = f"{len(part.files)} of {len(part.files) + part.files_left_out} files"
    text = f"{files}, {part.rows_max} rows, {part.size_bytes} bytes"
    if not part.files_left_out:
        return text
    return (
        f"{text}; left out by their bounds: {part.rows_left_out} rows, {part.size_bytes_left_out} "
        "bytes"
    )


def _lake_text(splits: Sequence[ScanSplit]) -> str:
    """Both halves in numbers, of all splits."""
    parts = [part for part in map(files_of, splits) if part is not None]
    files, left_out = (
        sum(len(each.files) for each in parts),
        sum(each.files_left_out for each in parts),
    )
    rows = sum(each.rows_max for each in parts)
    size_bytes = sum(each.size_bytes for each in parts)
    tail = sum(
        max(0, each.stop - (each.start if each.state is None else each.state.lake_end))
        for each in splits
        if each.lake is None and (each.state is None or each.state.strategy == "lake")
    )
    return (
        f"from the lake: {files} of {files + left_out} files, {rows} rows, {size_bytes} bytes; from the "
        f"log: at most {tail} rows"
    )


def reasons_of(
    table: TableInfo, shape: ScanShape, pinned: Pinned, start: Bound | None, end: Bound | None
) -> tuple[str, ...]:
    """The decisions about a scan and their reasons, as lines of text."""
    options, filtered = shape.options, pinned.filtered
    lines: list[str] = []
    lines += [f"left out by the filter: {reason}" for reason in filtered.reasons]
    if filtered.pushed is not None:
        lines.append(f"applied while reading: {filtered.pushed}")
    if filtered.metadata_residual is not None:
        lines.append(f"applied after reading: {filtered.metadata_residual}")
    if pinned.partitions is not None:
        lines.append(f"partitions: {pinned.partitions_kept} of {pinned.partitions}")
    if pinned.splits and pinned.splits[0].keys is not None:
        what = "prefixes" if pinned.splits[0].prefix_columns else "keys"
        lines.append(
            f"lookup of {len(pinned.splits[0].keys)} {what}: the state at the moment of reading, "
            "not pinned (as_of='latest' gives a pinned one)"
        )
        return tuple(lines)
    if shape.mode is Mode.STATE and (filtered.lookups or filtered.prefixes):
        lines.append(
            f"no lookup, which gives the state at the moment of reading: {_why(table, options)}"
        )
    buckets = len({(each.partition_name, each.bucket.bucket_id) for each in pinned.splits})
    lines.append(f"buckets: {buckets}, {pinned.buckets_pruned} more are left out")
    if pinned.lake.reason:
        lines.append(pinned.lake.reason)
    if pinned.lake.contents is not None and pinned.splits:
        lines.append(_lake_text(pinned.splits))
    if shape.mode is Mode.STATE:
        lines.append(f"state as of: {end if end is not None else 'latest'}, pinned at plan time")
    else:
        lines.append(f"start: {start if start is not None else 'earliest'}")
        lines.append(f"end: {end if end is not None else 'latest'}, pinned at plan time")
    if shape.mode is Mode.CHANGELOG and table.options.has_row_ttl:
        lines.append("rows that expire (table.kv.ttl) leave no change")
    if options.tail is not None:
        order = "" if options.filter is None else "; the filter comes after it"
        lines.append(f"tail: the last {options.tail} rows by time, bucket and offset{order}")
    if shape.order is not options.order:
        lines.append("order: bucket, so that the limit cuts the same rows each time")
    return tuple(lines)


def _why(table: TableInfo, options: ScanOptions) -> str:
    if FOUND in table.schema.column_names:
        return f"the table has a column {FOUND!r}, which a lookup adds itself"
    for name in ("as_of", "strategy", "partitions"):
        if getattr(options, name) is not None:
            return f"{name}= is given"
    return "metadata columns are requested, which a lookup does not know"
