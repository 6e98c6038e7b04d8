"""Planning a scan: which buckets are read, and from where to where, fixed once.

The decisions are `plan.scan`'s; here the leaders are asked what those need. All buckets are pinned
in one round of requests, one to each server, whatever the number of partitions.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

import pyarrow as pa

from fluss.client.connection import TableCore
from fluss.connector.headers import cut_to_tail
from fluss.connector.metadata import output_schema
from fluss.connector.split import ScanSplit
from fluss.connector.statistics import ScanStats
from fluss.engine.pins import offsets_at, pin_buckets
from fluss.errors import PartitionNotFoundError
from fluss.model.bounds import Bound, BoundKind, Cursor
from fluss.model.partitions import PartitionInfo
from fluss.model.paths import PhysicalTablePath, TableBucket
from fluss.model.scan_options import Mode, Order, ScanOptions
from fluss.plan.scan import (
    BucketFacts,
    Output,
    Range,
    check_places,
    decide_mode,
    decide_output,
    decide_range,
    select_partitions,
    window_of,
)

# Partitions may come and go while they are looked at; after so many changes it is an error.
ATTEMPTS_MAX = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanShape:
    """What a scan gives, as far as that is known without asking where logs end."""

    options: ScanOptions
    mode: Mode
    output: Output
    schema: pa.Schema

    @property
    def order(self) -> Order:
        """The order of the rows; where a limit cuts, it must be one that can be repeated."""
        options = self.options
        if options.limit is not None and options.order is Order.NONE:
            return Order.BUCKET
        return options.order


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanPlan:
    """A scan, pinned.

    Attributes:
        shape: What it gives.
        splits: What it reads, by partition and bucket.
        reasons: What was decided, and why, for people.
        partitions: How many partitions there are; None where the table has none.
        stats: What has been done so far.
    """

    shape: ScanShape
    splits: tuple[ScanSplit, ...]
    reasons: tuple[str, ...]
    partitions: int | None
    stats: ScanStats = field(default_factory=ScanStats)

    def cursor(self) -> Cursor:
        """Where the scan ends, for the next one to begin."""
        table_id = self.splits[0].bucket.table_id if self.splits else 0
        return Cursor.of(table_id, {each.bucket: each.stop for each in self.splits})


def shape_of(table: TableCore, options: ScanOptions) -> ScanShape:
    """What a scan of a table gives.

    Raises:
        FlussError: The table has no such columns, or no such rows.
    """
    mode = decide_mode(options, table.info)
    output = decide_output(options, table.info, mode)
    schema = output_schema(output, table.info.schema.to_arrow())
    if options.filter is not None:
        table.scan_source().decoder([0], options.filter)  # refuses what does not fit the columns
    return ScanShape(options=options, mode=mode, output=output, schema=schema)


def plan_scan(table: TableCore, options: ScanOptions) -> ScanPlan:
    """Pin a scan.

    Raises:
        FlussError: What is asked for is not there; the error says what there is.
    """
    shape = shape_of(table, options)
    now_ms = time.time_ns() // 1_000_000
    start = None if options.start is None else options.start.at(now_ms)
    asked_end = options.end if options.as_of is None else options.as_of
    end = None if asked_end is None else asked_end.at(now_ms)
    pinned = table.connection.engine.run(_pin(table, options, start, end))
    partial = ScanSplit(
        table_path=table.info.table_path,
        bucket=TableBucket(table.info.table_id, 0),
        schema_id=table.info.schema_id,
        start=0,
        stop=0,
        output=shape.output,
        mode=shape.mode,
        filter=options.filter,
        window=window_of(start, end),
        limit=options.limit,
        strategy=options.strategy,
        skips_missing=options.missing_partitions == "skip",
    )
    splits = [
        replace(
            partial,
            bucket=each.bucket,
            partition_name=each.partition_name,
            start=0 if shape.mode is Mode.STATE else span.start,
            stop=span.stop,
        )
        for each, span in pinned.ranges
    ]
    reasons = _reasons(options, shape, pinned, start, end)
    if options.tail is not None:
        splits = cut_to_tail(table, splits, options.tail)
    stats = ScanStats(splits=len(splits), rows_max=sum(each.rows_max for each in splits))
    stats.partitions_pruned = (pinned.partitions or 0) - pinned.partitions_kept
    return ScanPlan(
        shape=shape,
        splits=tuple(splits),
        reasons=reasons,
        partitions=pinned.partitions,
        stats=stats,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pinned:
    ranges: list[tuple[BucketFacts, Range]]
    partitions: int | None
    partitions_kept: int


async def _pin(
    table: TableCore, options: ScanOptions, start: Bound | None, end: Bound | None
) -> _Pinned:
    for attempt in range(1, ATTEMPTS_MAX + 1):
        partitions, kept = await _partitions(table, options)
        try:
            facts = await _facts(table, kept, start, end)
        except PartitionNotFoundError:
            # One was dropped between the list and the question.
            if options.missing_partitions != "skip" or attempt == ATTEMPTS_MAX:
                raise
            continue
        check_places(start, facts, "start")
        check_places(end, facts, "as_of" if options.as_of is not None else "end")
        return _Pinned(
            ranges=[(each, _range(each, options, start, end)) for each in facts],
            partitions=None if partitions is None else len(partitions),
            partitions_kept=0 if kept is None else len(kept),
        )
    raise AssertionError("the last attempt raises or returns")


async def _partitions(
    table: TableCore, options: ScanOptions
) -> tuple[list[PartitionInfo] | None, list[PartitionInfo] | None]:
    info = table.info
    skips = options.missing_partitions == "skip"
    if not info.is_partitioned():
        select_partitions(options.partitions, [], info, skips_missing=skips)
        return None, None
    listed = await table.connection.admin.list_partition_infos(info.table_path)
    listed.sort(key=lambda each: each.partition_id)
    return listed, select_partitions(options.partitions, listed, info, skips_missing=skips)


async def _facts(
    table: TableCore, kept: list[PartitionInfo] | None, start: Bound | None, end: Bound | None
) -> list[BucketFacts]:
    info = table.info
    places: dict[TableBucket, PhysicalTablePath] = {}
    for each in [None] if kept is None else kept:
        name = None if each is None else each.partition_name
        partition_id = None if each is None else each.partition_id
        path = PhysicalTablePath(info.table_path, name)
        for bucket_id in range(info.num_buckets):
            places[TableBucket.with_partition(info.table_id, partition_id, bucket_id)] = path
    cluster = table.connection.cluster
    extents = await pin_buckets(cluster, places)
    times: dict[str, dict[TableBucket, int | None]] = {}
    for name, bound in (("start", start), ("end", end)):
        is_time = bound is not None and bound.kind is BoundKind.TIME
        times[name] = await offsets_at(cluster, places, bound.number) if is_time and bound else {}
    return [
        BucketFacts(
            bucket=bucket,
            partition_name=path.partition_name,
            extent=extents[bucket],
            at_start=times["start"].get(bucket),
            at_end=times["end"].get(bucket),
        )
        for bucket, path in places.items()
    ]


def _range(
    facts: BucketFacts, options: ScanOptions, start: Bound | None, end: Bound | None
) -> Range:
    return decide_range(
        facts,
        start=start,
        end=end,
        on_trimmed=options.on_trimmed,
        is_as_of=options.as_of is not None,
    )


def _reasons(
    options: ScanOptions, shape: ScanShape, pinned: _Pinned, start: Bound | None, end: Bound | None
) -> tuple[str, ...]:
    said: list[str] = []
    if pinned.partitions is not None:
        said.append(f"partitions: {pinned.partitions_kept} of {pinned.partitions}")
    said.append(f"buckets: {len(pinned.ranges)}")
    said.append(f"start: {start if start is not None else 'earliest'}")
    said.append(f"end: {end if end is not None else 'latest'}, pinned at plan time")
    if options.tail is not None:
        said.append(f"tail: the last {options.tail} rows by time, bucket and offset")
    if shape.order is not options.order:
        said.append("order: bucket, so that the limit cuts the same rows each time")
    return tuple(said)
