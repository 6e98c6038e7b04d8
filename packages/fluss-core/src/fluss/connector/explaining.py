"""What a planned scan will do, in words: what is left out, where it begins and ends, and why."""

from __future__ import annotations

from fluss.connector.planning import ScanPlan
from fluss.connector.split import ScanSplit
from fluss.model.table_info import TableInfo

SPLITS_SHOWN_MAX = 8


def explained(table: TableInfo, plan: ScanPlan) -> str:
    """The plan of a scan, as text."""
    shape = plan.shape
    lines = [
        f"Scan of {table.table_path} (table id {table.table_id}, schema {table.schema_id})",
        f"  mode: {shape.mode}",
        f"  columns: {', '.join(shape.output.names) or 'none'}",
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
