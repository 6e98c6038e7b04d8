"""Offsets that the scans of one query share, so that a table joined with itself is one table.

Each scan pins its offsets when it is planned. Two scans of one query are planned one after the
other, and rows written in between would be in the second alone; here the second is held to the
offsets of the first. Lookups by key are never pinned.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from fluss.connection.connection import TableHandle
from fluss.model.options.bounds import Bound, BoundKind
from fluss.model.options.scan_options import Mode, ScanOptions
from fluss.model.paths import TableBucket
from fluss.model.predicates.predicate import columns_in
from fluss.net.cancellation import Cancellation
from fluss.scan.scan_planner import ScanPlan, plan_scan
from fluss.scan.shape import ScanShape
from fluss.scan.split import ScanSplit
from fluss.waiting import InterruptibleLock

OFFSET_MAX: Final = 2**63 - 1


@dataclass(slots=True, kw_only=True)
class _Seen:
    """The offsets that the scans of one table are held to."""

    ranges: dict[TableBucket, tuple[int, int]] = field(default_factory=dict)
    is_complete: bool = False  # whether all other buckets are new ones


class QuerySnapshot:
    """The offsets of one query, given to all its scans (`Scan.at`). Any thread may use it."""

    def __init__(self) -> None:
        self._lock = InterruptibleLock()
        self._seen: dict[Hashable, _Seen] = {}

    def plan(
        self, table: TableHandle, shape: ScanShape, *, cancellation: Cancellation | None = None
    ) -> ScanPlan:
        """Plan a scan that sees no more than the scans before it."""
        options = shape.options
        with self._lock:
            plan = plan_scan(table, shape, cancellation=cancellation)
            key = _key(table, plan)
            seen = self._seen.setdefault(key, _Seen())
            if plan.shape.mode is Mode.STATE:
                plan = _held_state(table, plan, seen, cancellation)
            else:
                kept = [each for each in plan.splits if _is_known(each, seen)]
                ends = {each.bucket: each.stop for each in kept if each.lake is not None}
                plan = replace(
                    plan, splits=tuple(_held(each, seen, options, ends) for each in kept)
                )
            _remember(plan, seen)
            return plan


def _key(table: TableHandle, plan: ScanPlan) -> Hashable:
    """The key of scans that share their offsets: with a tail, only those that cut the same rows."""
    options = plan.shape.options
    shared = (table.info.table_id, plan.shape.mode, options.end, options.as_of)
    if options.tail is None:
        return shared
    return (*shared, options.tail, options.start, options.partitions)


def _is_known(split: ScanSplit, seen: _Seen) -> bool:
    return not seen.is_complete or split.bucket in seen.ranges


def _held(
    split: ScanSplit, seen: _Seen, options: ScanOptions, lake_ends: Mapping[TableBucket, int]
) -> ScanSplit:
    is_in_lake = split.lake is not None
    lake_end = lake_ends.get(split.bucket, 0)
    lowest, highest = (0, lake_end) if is_in_lake else (lake_end, OFFSET_MAX)
    if split.bucket not in seen.ranges:
        return split
    start, stop = seen.ranges[split.bucket]
    if options.tail is not None:
        start, stop = max(start, lowest), min(stop, highest)
        return replace(split, start=min(start, stop), stop=stop)
    stop = min(split.stop, stop)
    return replace(split, start=min(split.start, stop), stop=stop)


def _held_state(
    table: TableHandle, plan: ScanPlan, seen: _Seen, cancellation: Cancellation | None
) -> ScanPlan:
    splits = [each for each in plan.splits if each.keys is None]
    known = [each for each in splits if _is_known(each, seen)]
    stops = {each.bucket: seen.ranges.get(each.bucket, (0, each.stop))[1] for each in known}
    if all(stops[each.bucket] == each.stop for each in known):
        return plan if len(known) == len(splits) else replace(plan, splits=tuple(known))
    # The table was written to in between. How a state is found depends on its offsets.
    places = tuple(
        ((bucket.partition_id, bucket.bucket_id), stop) for bucket, stop in stops.items()
    )
    as_of = Bound(kind=BoundKind.OFFSETS, offsets=places)
    shape = replace(plan.shape, options=replace(plan.shape.options, as_of=as_of))
    again = plan_scan(table, shape, cancellation=cancellation)
    return replace(again, splits=tuple(each for each in again.splits if each.bucket in stops))


def _remember(plan: ScanPlan, seen: _Seen) -> None:
    options = plan.shape.options
    filter_ = plan.shape.predicate if plan.shape.filter_prunes else None
    looked_at = frozenset[str]() if filter_ is None else columns_in(filter_)
    if looked_at & set(options.metadata_names):
        return  # its ranges may be narrower than the logs
    pinned: Sequence[ScanSplit] = [each for each in plan.splits if each.keys is None]
    ranges: dict[TableBucket, tuple[int, int]] = {}
    for extent in pinned:
        known = ranges.get(extent.bucket, (extent.start, extent.stop))
        ranges[extent.bucket] = min(known[0], extent.start), max(known[1], extent.stop)
    seen.ranges |= {bucket: ends for bucket, ends in ranges.items() if bucket not in seen.ranges}
    if filter_ is None and options.partitions is None:
        seen.is_complete = True
