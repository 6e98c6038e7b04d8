"""Plans a scan: which buckets are read, and from where to where, fixed once.

`scan.plan_scan`, `scan.plan_filters` and `state.plan_state` decide; here the leaders are asked for
the facts that they need. All buckets are pinned in one round of requests, one to each server,
whatever the number of partitions; no server is asked about what a filter rules out.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fluss.admin.admin import admin_of
from fluss.connection.connection import TableHandle
from fluss.errors import (
    PartitionNotFoundError,
)
from fluss.log.extents import fetch_extents
from fluss.lookup.frame_lookups import FOUND
from fluss.model.options.bounds import Bound, BoundKind, Cursor
from fluss.model.options.scan_options import (
    Mode,
    ScanOptions,
    check_order,
)
from fluss.model.paths import PhysicalTablePath, TableBucket
from fluss.model.tables.partitions import PartitionInfo
from fluss.model.tables.table_info import TableInfo
from fluss.net.cancellation import Cancellation
from fluss.scan.batch_headers import cut_to_tail
from fluss.scan.commit_times import offsets_since, offsets_until
from fluss.scan.explain import reasons_of
from fluss.scan.plan_filters import FilterPlan
from fluss.scan.plan_scan import (
    BucketFacts,
    Range,
    Window,
    check_places,
    decide_range,
    exact_offset,
    meet,
    select_partitions,
    window_of,
)
from fluss.scan.scan_stats import ScanStats
from fluss.scan.shape import ScanShape
from fluss.scan.split import ScanSplit
from fluss.state.state_planner import plan_states

# Partitions may come and go while a scan is planned; after so many attempts it is an error.
ATTEMPTS_MAX = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanPlan:
    """A scan, pinned.

    Attributes:
        table_id: The table.
        shape: Its columns and its filter.
        splits: Its splits, by partition and bucket.
        reasons: The decisions and their reasons, for people.
        partitions: How many partitions there are; None where the table has none.
        stats: Counts what is read.
    """

    table_id: int
    shape: ScanShape
    splits: tuple[ScanSplit, ...]
    reasons: tuple[str, ...]
    partitions: int | None
    stats: ScanStats = field(default_factory=ScanStats)

    def cursor(self) -> Cursor:
        """Where the scan ends, and the next one begins."""
        return Cursor.of(self.table_id, {each.bucket: each.stop for each in self.splits})


def plan_scan(
    table: TableHandle, shape: ScanShape, *, cancellation: Cancellation | None = None
) -> ScanPlan:
    """Pin a scan.

    Args:
        table: The table.
        shape: The shape of the scan.
        cancellation: Ends the planning from another thread.

    Raises:
        FlussError: A partition, an offset or a state that the scan names is not there; the error
            lists what is.
    """
    options = shape.options
    now_ms = time.time_ns() // 1_000_000
    start = None if options.start is None else options.start.at(now_ms)
    given_end = options.end if options.as_of is None else options.as_of
    end = None if given_end is None else given_end.at(now_ms)
    check_order(start, end)
    connection = table.connection
    pinned = connection.engine.run(_pin(table, shape, start, end), cancellation=cancellation)
    splits = pinned.splits
    reasons = reasons_of(table.info, shape, pinned, start, end)
    if options.tail is not None:
        splits = cut_to_tail(table, splits, options.tail, cancellation=cancellation)
    stats = ScanStats(
        splits=len(splits),
        rows_max=sum(each.rows_max for each in splits),
        partitions_pruned=(pinned.partitions or 0) - pinned.partitions_kept,
        buckets_pruned=pinned.buckets_pruned,
    )
    return ScanPlan(
        table_id=table.info.table_id,
        shape=shape,
        splits=tuple(splits),
        reasons=reasons,
        partitions=pinned.partitions,
        stats=stats,
    )


# --- pinning --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """The splits of a scan, and what a filter has left out."""

    splits: list[ScanSplit]
    partitions: int | None
    partitions_kept: int
    buckets_pruned: int
    filtered: FilterPlan


async def _pin(
    table: TableHandle, shape: ScanShape, start: Bound | None, end: Bound | None
) -> Pinned:
    return await table.connection.cluster.in_one_call(_pinned(table, shape, start, end))


async def _pinned(
    table: TableHandle, shape: ScanShape, start: Bound | None, end: Bound | None
) -> Pinned:
    options = shape.options
    for attempt in range(1, ATTEMPTS_MAX + 1):
        partitions = await _partitions(table, options)
        chosen = _chosen(table, options, partitions)
        filtered = shape.plan_filter(chosen)
        kept = _kept(chosen, filtered)
        pruning = Pinned(
            splits=[],
            partitions=None if partitions is None else len(partitions),
            partitions_kept=0 if kept is None else len(kept),
            buckets_pruned=_buckets_pruned(table, chosen, kept, filtered),
            filtered=filtered,
        )
        check_places(start, _places(table, chosen), "start")
        name = "as_of" if options.as_of is not None else "end"
        check_places(end, _places(table, chosen), name)
        if filtered.is_empty:
            return pruning
        try:
            if may_look_up(table.info, shape, filtered):
                return replace(pruning, splits=_lookup_splits(table, shape, filtered))
            facts = await _facts(table, kept, filtered, start, end)
            splits = await _splits(table, shape, filtered, facts, start, end)
        except PartitionNotFoundError:
            # One was dropped after the partitions were listed.
            if options.missing_partitions != "skip" or attempt == ATTEMPTS_MAX:
                raise
            continue
        return replace(pruning, splits=splits)
    raise AssertionError("the last attempt raises or returns")


async def _partitions(table: TableHandle, options: ScanOptions) -> list[PartitionInfo] | None:
    info = table.info
    if not info.is_partitioned():
        select_partitions(options.partitions, [], info, skips_missing=False)  # refuses
        return None
    listed = await admin_of(table.connection).list_partition_infos(info.table_path)
    return sorted(listed, key=lambda each: each.partition_id)


def _chosen(
    table: TableHandle, options: ScanOptions, partitions: list[PartitionInfo] | None
) -> list[PartitionInfo] | None:
    if partitions is None:
        return None
    skips = options.missing_partitions == "skip"
    return select_partitions(options.partitions, partitions, table.info, skips_missing=skips)


def _places(
    table: TableHandle, chosen: list[PartitionInfo] | None
) -> Iterator[tuple[str | int | None, int]]:
    """The names that the buckets of a scan have in bounds, whatever a filter leaves of them."""
    names: list[str | int | None] = [None]
    if chosen is not None:
        names = [name for each in chosen for name in (each.partition_name, each.partition_id)]
    return ((name, bucket_id) for name in names for bucket_id in range(table.info.num_buckets))


def _kept(chosen: list[PartitionInfo] | None, filtered: FilterPlan) -> list[PartitionInfo] | None:
    if chosen is None or filtered.partition_names is None:
        return chosen
    names = frozenset(filtered.partition_names)
    return [each for each in chosen if each.partition_name in names]


def _buckets_pruned(
    table: TableHandle,
    chosen: list[PartitionInfo] | None,
    kept: list[PartitionInfo] | None,
    filtered: FilterPlan,
) -> int:
    count = table.info.num_buckets if filtered.bucket_ids is None else len(filtered.bucket_ids)
    before = table.info.num_buckets * (1 if chosen is None else len(chosen))
    return before - count * (1 if kept is None else len(kept))


async def _facts(
    table: TableHandle,
    kept: list[PartitionInfo] | None,
    filtered: FilterPlan,
    start: Bound | None,
    end: Bound | None,
) -> list[BucketFacts]:
    info, cluster = table.info, table.connection.cluster
    buckets = range(info.num_buckets) if filtered.bucket_ids is None else filtered.bucket_ids
    places: dict[TableBucket, PhysicalTablePath] = {}
    for each in [None] if kept is None else kept:
        name = None if each is None else each.partition_name
        partition_id = None if each is None else each.partition_id
        path = PhysicalTablePath(info.table_path, name)
        for bucket_id in buckets:
            places[TableBucket.with_partition(info.table_id, partition_id, bucket_id)] = path
    exact = {
        bucket: [exact_offset(each, bucket, path.partition_name) or 0 for each in (start, end)]
        for bucket, path in places.items()
    }
    reached = {bucket: max(offsets) for bucket, offsets in exact.items()}
    extents = await fetch_extents(cluster, places, reached=reached)
    low_ms, stop_ms = filtered.timestamp_range_ms or (None, None)
    times = {
        each: await offsets_since(table, places, extents, each)
        for each in {_time_of(start), _time_of(end), low_ms, stop_ms}
        if each is not None and each >= 0
    }

    ends = {
        each: await offsets_until(table, places, extents, times[each], each)
        for each in {_time_of(end), stop_ms}
        if each is not None and each >= 0
    }

    def at(
        known: Mapping[int, Mapping[TableBucket, int | None]],
        bucket: TableBucket,
        timestamp_ms: int | None,
    ) -> int | None:
        return None if timestamp_ms is None else known.get(timestamp_ms, {}).get(bucket)

    return [
        BucketFacts(
            bucket=bucket,
            partition_name=path.partition_name,
            extent=extents[bucket],
            at_start=at(times, bucket, _time_of(start)),
            at_end=at(ends, bucket, _time_of(end)),
            at_filter_start=None if low_ms is None else at(times, bucket, max(0, low_ms)),
            at_filter_end=at(ends, bucket, stop_ms),
        )
        for bucket, path in places.items()
    ]


def _time_of(bound: Bound | None) -> int | None:
    return bound.number if bound is not None and bound.kind is BoundKind.TIME else None


async def _splits(
    table: TableHandle,
    shape: ScanShape,
    filtered: FilterPlan,
    facts: Sequence[BucketFacts],
    start: Bound | None,
    end: Bound | None,
) -> list[ScanSplit]:
    options = shape.options
    ranges = {each.bucket: _range(each, shape, filtered, start, end) for each in facts}
    template = _template(table, shape, filtered, window_of(start, end))
    splits = [
        replace(
            template,
            bucket=each.bucket,
            partition_name=each.partition_name,
            start=ranges[each.bucket].start,
            stop=ranges[each.bucket].stop,
        )
        for each in facts
    ]
    if shape.mode is not Mode.STATE:
        return splits
    path = table.info.table_path
    states = await plan_states(
        table,
        {each.bucket: PhysicalTablePath(path, each.partition_name) for each in splits},
        {each.bucket: each.stop for each in splits},
        earliest={each.bucket: each.extent.earliest for each in facts},
        strategy=options.strategy,
        is_past=options.as_of is not None,
    )
    return [replace(each, start=0, state=states[each.bucket]) for each in splits]


def _template(
    table: TableHandle, shape: ScanShape, filtered: FilterPlan, window: Window | None
) -> ScanSplit:
    low_ms, stop_ms = filtered.timestamp_range_ms or (None, None)
    if low_ms is not None or stop_ms is not None:
        window = Window(start_ms=low_ms, end_ms=stop_ms).meet(window)
    options = shape.options
    return ScanSplit(
        table_path=table.info.table_path,
        bucket=TableBucket(table.info.table_id, 0),
        schema_id=table.info.schema_id,
        start=0,
        stop=0,
        output=shape.output,
        chosen=shape.chosen,
        mode=shape.mode,
        filter=filtered.pushed,
        metadata_filter=filtered.metadata_residual,
        metadata_prefix=options.metadata_prefix,
        window=None if shape.mode is Mode.STATE else window,
        limit=options.limit,
        skips_missing=options.missing_partitions == "skip",
        skips_trimmed=options.on_trimmed == "earliest",
    )


def _range(
    facts: BucketFacts,
    shape: ScanShape,
    filtered: FilterPlan,
    start: Bound | None,
    end: Bound | None,
) -> Range:
    options = shape.options
    decided = decide_range(
        facts,
        start=start,
        end=end,
        on_trimmed=options.on_trimmed,
        is_as_of=options.as_of is not None,
    )
    if shape.mode is Mode.STATE:
        return decided
    return meet(decided, filtered, facts)


# --- lookups --------------------------------------------------------------------------------------


def may_look_up(table: TableInfo, shape: ScanShape, filtered: FilterPlan) -> bool:
    """Whether lookups may answer: they give the state at the moment of reading, and no other.

    So they may not where the options request another state. Nor may they where the table has a
    column with the name of the column that lookups add to their answer.
    """
    options = shape.options
    return (
        shape.mode is Mode.STATE
        and (filtered.lookups is not None or filtered.prefixes is not None)
        and options.as_of is None
        and options.strategy is None
        and options.partitions is None
        and filtered.metadata_residual is None
        and not any(shape.output.metadata)
        and FOUND not in table.schema.column_names
    )


def _lookup_splits(table: TableHandle, shape: ScanShape, filtered: FilterPlan) -> list[ScanSplit]:
    template = _template(table, shape, filtered, None)
    if filtered.lookups is not None:
        return [replace(template, keys=filtered.lookups)]
    return [replace(template, keys=filtered.prefixes, prefix_columns=filtered.prefix_columns)]
