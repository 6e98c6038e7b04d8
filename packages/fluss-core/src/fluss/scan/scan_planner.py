"""Plans a scan: which buckets are read, and from where to where, fixed once.

`scan.plan_scan`, `scan.plan_filters` and `state.plan_state` decide; here the leaders are asked for
the facts that they need. All buckets are pinned in one round of requests, one to each server,
whatever the number of partitions; no server is asked about what a filter rules out.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fluss.admin.admin import admin_of
from fluss.connection.connection import TableHandle
from fluss.errors import PartitionNotFoundError
from fluss.log.extents import fetch_extents
from fluss.lookup.frame_lookups import FOUND
from fluss.model.options.bounds import Bound, BoundKind, Cursor
from fluss.model.options.scan_options import LakeUse, Mode, check_order
from fluss.model.paths import PhysicalTablePath, TableBucket
from fluss.model.predicates.predicate import Predicate, columns_in, conjoined, conjuncts
from fluss.model.tables.partitions import PartitionInfo
from fluss.model.tables.table_info import TableInfo
from fluss.model.tables.table_options import ChangelogImage
from fluss.net.cancellation import Cancellation
from fluss.scan import plan_lake, plan_scan as plan
from fluss.scan.batch_headers import cut_to_tail
from fluss.scan.commit_times import CommitTimes
from fluss.scan.explain import reasons_of
from fluss.scan.lake_planner import PinnedLake, pin_lake
from fluss.scan.past_lake import PastRequest, find_past_states
from fluss.scan.plan_filters import FilterPlan
from fluss.scan.scan_stats import ScanStats
from fluss.scan.shape import ScanShape
from fluss.scan.split import ScanSplit, files_of
from fluss.state.state_planner import LakeState, plan_states

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
    pinning = _pinning(table, shape)
    pinned = table.connection.engine.run(pinning.pinned(), cancellation=cancellation)
    return _plan_of(pinning, pinned, cancellation)


def plan_unless_changed(
    table: TableHandle, shape: ScanShape, *, cancellation: Cancellation | None = None
) -> ScanPlan | None:
    """Pin a scan of a table that is known from before, and meanwhile ask what the table is now.

    Both are asked at the same time: of a query of Polars over two rows, that saves one of five
    round trips. What is pinned counts only where the table is as it was.

    Args:
        table: The table as it was.
        shape: The shape of the scan of that table.
        cancellation: Ends the planning from another thread.

    Returns:
        None where the table has changed in any way.

    Raises:
        TableNotFoundError: There is no such table any more.
        FlussError: The table is as it was, and a partition, an offset or a state that the scan
            names is not there.
    """
    pinning = _pinning(table, shape)
    asked = pinning.pinned_unless_changed()
    pinned = table.connection.engine.run(asked, cancellation=cancellation)
    return None if pinned is None else _plan_of(pinning, pinned, cancellation)


def _pinning(table: TableHandle, shape: ScanShape) -> _Pinning:
    options = shape.options
    now_ms = time.time_ns() // 1_000_000
    start = None if options.start is None else options.start.at(now_ms)
    given_end = options.end if options.as_of is None else options.as_of
    end = None if given_end is None else given_end.at(now_ms)
    check_order(start, end)
    return _Pinning(table=table, shape=shape, start=start, end=end)


def _plan_of(pinning: _Pinning, pinned: Pinned, cancellation: Cancellation | None) -> ScanPlan:
    table, shape, options = pinning.table, pinning.shape, pinning.shape.options
    splits = pinned.splits
    reasons = reasons_of(table.info, shape, pinned, pinning.start, pinning.end)
    if options.tail is not None:
        splits = cut_to_tail(table, splits, options.tail, cancellation=cancellation)
    stats = ScanStats(
        splits=len(splits),
        rows_max=sum(each.rows_max for each in splits),
        partitions_pruned=(pinned.partitions or 0) - pinned.partitions_kept,
        buckets_pruned=pinned.buckets_pruned,
        files_pruned=sum(
            0 if part is None else part.files_left_out for part in map(files_of, splits)
        ),
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
    lake: PinnedLake


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pinning:
    """Plans one scan: asks where its buckets begin and end. Lives on the engine's loop."""

    table: TableHandle
    shape: ScanShape
    start: Bound | None
    end: Bound | None

    async def pinned(self) -> Pinned:
        """Pin the scan, again where a partition is dropped meanwhile."""
        return await self.table.connection.cluster.in_one_call(self._pinned())

    async def pinned_unless_changed(self) -> Pinned | None:
        """Pin the scan, and meanwhile ask for the table; None where it has changed."""
        return await self.table.connection.cluster.in_one_call(self._unless_changed())

    async def _unless_changed(self) -> Pinned | None:
        table = self.table
        pinned = asyncio.ensure_future(self._pinned())
        # Its error counts only where the table is as it was.
        pinned.add_done_callback(lambda done: None if done.cancelled() else done.exception())
        try:
            now = await table.connection.table(table.info.table_path)
            return await pinned if now.info == table.info else None
        finally:
            pinned.cancel()

    async def _pinned(self) -> Pinned:
        for attempt in range(1, ATTEMPTS_MAX + 1):
            try:
                return await self._attempt()
            except PartitionNotFoundError:
                # One was dropped after the partitions were listed.
                if not self._skips_missing or attempt == ATTEMPTS_MAX:
                    raise
        raise AssertionError("the last attempt raises or returns")

    async def _attempt(self) -> Pinned:
        partitions = await self._partitions()
        options = self.shape.options
        lake = await pin_lake(
            self.table,
            options.lake,
            self.shape.mode,
            partitions,
            predicate=self._condition_on_partitions(),
        )
        if partitions is not None:
            partitions += lake.dropped
        chosen = None if partitions is None else self._chosen(partitions)
        filtered = self.shape.plan_filter(chosen)
        kept = chosen
        if chosen is not None and filtered.partition_names is not None:
            names = frozenset(filtered.partition_names)
            kept = [each for each in chosen if each.partition_name in names]
        pruning = Pinned(
            splits=[],
            partitions=None if partitions is None else len(partitions),
            partitions_kept=0 if kept is None else len(kept),
            buckets_pruned=self._buckets_pruned(chosen, kept, filtered),
            filtered=filtered,
            lake=lake,
        )
        plan.check_places(self.start, self._places(chosen), "start")
        is_as_of = options.as_of is not None
        plan.check_places(self.end, self._places(chosen), "as_of" if is_as_of else "end")
        if filtered.is_empty:
            return pruning
        if may_look_up(self.table.info, self.shape, filtered):
            return replace(pruning, splits=self._lookup_splits(filtered))
        places = self._places_of(kept, filtered)
        facts = await self._facts(places, filtered, lake)
        return replace(pruning, splits=await self._splits(filtered, facts, lake))

    def _condition_on_partitions(self) -> Predicate | None:
        """The part of the filter that looks at partition keys alone; None for none."""
        shape, keys = self.shape, frozenset(self.table.info.partition_keys)
        # A partition that is named must be found, whatever the filter leaves of it.
        if shape.predicate is None or not shape.filter_prunes or shape.options.partitions:
            return None
        found = [each for each in conjuncts(shape.predicate) if columns_in(each) <= keys]
        return conjoined(found) if keys and found else None

    @property
    def _skips_missing(self) -> bool:
        return self.shape.options.missing_partitions == "skip"

    # --- partitions and buckets -----------------------------------------------------------------

    async def _partitions(self) -> list[PartitionInfo] | None:
        info = self.table.info
        if not info.is_partitioned():
            self._chosen([])  # refuses a choice
            return None
        listed = await admin_of(self.table.connection).list_partition_infos(info.table_path)
        return sorted(listed, key=lambda partition: partition.partition_id)

    def _chosen(self, partitions: list[PartitionInfo]) -> list[PartitionInfo]:
        choices = self.shape.options.partitions
        return plan.select_partitions(
            choices, partitions, self.table.info, skips_missing=self._skips_missing
        )

    def _places(self, chosen: list[PartitionInfo] | None) -> Iterator[tuple[str | int | None, int]]:
        """The names that the buckets of a scan have in bounds, whatever a filter leaves of them."""
        for partition in [None] if chosen is None else chosen:
            names: list[str | int | None] = [None]
            if partition is not None:
                names = [partition.partition_name, partition.partition_id]
            buckets = range(self.table.info.bucket_count_of(partition))
            yield from ((name, bucket_id) for name in names for bucket_id in buckets)

    def _buckets_pruned(
        self,
        chosen: list[PartitionInfo] | None,
        kept: list[PartitionInfo] | None,
        filtered: FilterPlan,
    ) -> int:
        count_of = self.table.info.bucket_count_of
        before = sum(count_of(each) for each in (chosen if chosen is not None else [None]))
        return before - sum(
            len(filtered.buckets_kept(count_of(each)))
            for each in (kept if kept is not None else [None])
        )

    # --- offsets --------------------------------------------------------------------------------

    def _places_of(
        self, kept: list[PartitionInfo] | None, filtered: FilterPlan
    ) -> dict[TableBucket, PhysicalTablePath]:
        info = self.table.info
        places: dict[TableBucket, PhysicalTablePath] = {}
        for partition in [None] if kept is None else kept:
            name = None if partition is None else partition.partition_name
            partition_id = None if partition is None else partition.partition_id
            path = PhysicalTablePath(info.table_path, name)
            for bucket_id in filtered.buckets_kept(info.bucket_count_of(partition)):
                places[TableBucket.with_partition(info.table_id, partition_id, bucket_id)] = path
        return places

    async def _facts(
        self,
        all_places: dict[TableBucket, PhysicalTablePath],
        filtered: FilterPlan,
        lake: PinnedLake,
    ) -> list[plan.BucketFacts]:
        start, end = self.start, self.end
        parts = lake.parts(filtered.pushed)
        places = {
            bucket: path
            for bucket, path in all_places.items()
            if not lake.is_dropped(bucket.partition_id)
        }
        reached = {
            bucket: max(
                plan.exact_offset(each, bucket, path.partition_name) or 0 for each in (start, end)
            )
            for bucket, path in places.items()
        }
        extents = await fetch_extents(self.table.connection.cluster, places, reached=reached)
        low_ms, stop_ms = filtered.timestamp_range_ms or (None, None)
        logs = CommitTimes(table=self.table, places=places, extents=extents)
        times = {
            time_ms: await logs.offsets_since(time_ms)
            for time_ms in {_time_of(start), _time_of(end), low_ms, stop_ms}
            if time_ms is not None and time_ms >= 0
        }
        ends = {
            time_ms: await logs.offsets_until(time_ms, times[time_ms])
            for time_ms in {_time_of(end), stop_ms}
            if time_ms is not None and time_ms >= 0
        }

        def at(
            known: Mapping[int, Mapping[TableBucket, int | None]],
            bucket: TableBucket,
            timestamp_ms: int | None,
        ) -> int | None:
            return None if timestamp_ms is None else known.get(timestamp_ms, {}).get(bucket)

        def facts_of(bucket: TableBucket, path: PhysicalTablePath) -> plan.BucketFacts:
            place = path.partition_name, bucket.bucket_id
            name, number = path.partition_name, bucket.partition_id
            part = parts.get(place) if lake.has_files_of(name, number) else None
            if bucket not in places:
                return plan_lake.facts_of_dropped(bucket, name, part)
            facts = plan.BucketFacts(
                bucket=bucket,
                partition_name=path.partition_name,
                extent=extents[bucket],
                at_start=at(times, bucket, _time_of(start)),
                at_end=at(ends, bucket, _time_of(end)),
                at_filter_start=None if low_ms is None else at(times, bucket, max(0, low_ms)),
                at_filter_end=at(ends, bucket, stop_ms),
            )
            if self.shape.mode is Mode.STATE:
                return plan_lake.with_lake_state(facts, part, lake.ends.get(place))
            return plan_lake.with_lake(facts, part, lake.ends.get(place), is_cut=lake.is_cut)

        return [facts_of(bucket, path) for bucket, path in all_places.items()]

    # --- splits ---------------------------------------------------------------------------------

    async def _splits(
        self, filtered: FilterPlan, facts: Sequence[plan.BucketFacts], lake: PinnedLake
    ) -> list[ScanSplit]:
        shape, options = self.shape, self.shape.options
        template = self._template(filtered)
        if shape.mode is Mode.STATE:
            return await self._states(template, facts, lake)
        splits = []
        for bucket in facts:
            offsets = self._range(bucket, filtered)
            in_lake, in_log = plan_lake.divide(offsets, bucket, options)
            if in_lake is not None:
                splits.append(replace(_placed(template, bucket, in_lake), lake=bucket.lake))
            if in_log is not None:
                splits.append(_placed(template, bucket, in_log))
        return splits

    async def _states(
        self, template: ScanSplit, facts: Sequence[plan.BucketFacts], lake: PinnedLake
    ) -> list[ScanSplit]:
        """The splits of a state: what only the lake has is read there, as it stands."""
        options, path = self.shape.options, self.table.info.table_path
        splits, alone, lakes = [], [], {}
        past = await self._past_states(facts, lake, template.filter)
        for bucket in facts:
            placed = replace(template, bucket=bucket.bucket, partition_name=bucket.partition_name)
            if options.lake is LakeUse.ONLY or not bucket.is_in_log:
                end = bucket.lake_end or 0
                if bucket.lake is not None:
                    start = bucket.lake.start_of_state
                    alone.append(replace(placed, start=start, stop=end, lake=bucket.lake))
            elif bucket.bucket in past:
                lakes[bucket.bucket] = past[bucket.bucket]
                splits.append(replace(placed, stop=plan.requested_stop(bucket, self.end)))
            else:
                splits.append(replace(placed, stop=self._decided(bucket).stop))
                if bucket.lake_end is not None:
                    lakes[bucket.bucket] = LakeState(part=bucket.lake, end=bucket.lake_end)
        states = await plan_states(
            self.table,
            {each.bucket: PhysicalTablePath(path, each.partition_name) for each in splits},
            {each.bucket: each.stop for each in splits},
            earliest={each.bucket: each.extent.earliest for each in facts},
            strategy=options.strategy,
            is_past=self._is_past(splits, facts),
            lakes=lakes,
        )
        return alone + [replace(each, start=0, state=states[each.bucket]) for each in splits]

    async def _past_states(
        self, facts: Sequence[plan.BucketFacts], lake: PinnedLake, predicate: Predicate | None
    ) -> dict[TableBucket, LakeState]:
        """The states of older snapshots, where a moment is requested that needs one.

        Raises:
            UnsupportedOperationError: What only the lake has is requested, as of a moment.
            OffsetOutOfRangeError: Neither the log nor the lake has the state of a bucket.
        """
        options, end = self.shape.options, self.end
        if options.as_of is None or end is None or end.kind is BoundKind.LATEST:
            return {}
        if options.lake is LakeUse.ONLY:
            raise plan_lake.only_at_a_moment()
        is_full = self.table.info.options.changelog_image is ChangelogImage.FULL
        requested = {
            each.bucket: PastRequest(
                partition_name=each.partition_name,
                pin=plan.requested_stop(each, end),
                earliest=each.extent.earliest,
            )
            for each in facts
            if options.strategy is None and plan_lake.needs_past(each, end, is_full_image=is_full)
        }
        if not requested:
            return {}
        found = await find_past_states(
            self.table, requested, before=lake.snapshot_id, predicate=predicate
        )
        for fact in facts:
            request = requested.get(fact.bucket)
            if (
                request is not None
                and fact.bucket not in found.states
                and request.pin < request.earliest
            ):
                known = [*found.offsets.get(fact.bucket, []), fact.lake_end or 0]
                raise plan.before_retention(fact, end, sorted(set(known)))
        return found.states

    def _is_past(self, splits: Sequence[ScanSplit], facts: Sequence[plan.BucketFacts]) -> bool:
        """Whether an earlier state is requested; where rows expire, `latest` is not one."""
        if self.shape.options.as_of is None or not self.table.info.options.has_row_ttl:
            return self.shape.options.as_of is not None
        ends = {each.bucket: each.extent.end for each in facts}
        return any(each.stop < ends[each.bucket] for each in splits)

    def _template(self, filtered: FilterPlan) -> ScanSplit:
        shape, info, options = self.shape, self.table.info, self.shape.options
        window, left = plan.window_of(self.start, self.end), plan.window_left_by(filtered)
        window = window if left is None else left.meet(window)
        return ScanSplit(
            table_path=info.table_path,
            bucket=TableBucket(info.table_id, 0),
            schema_id=info.schema_id,
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
            skips_missing=self._skips_missing,
            skips_trimmed=options.on_trimmed == "earliest",
        )

    def _range(self, facts: plan.BucketFacts, filtered: FilterPlan) -> plan.Range:
        return plan.meet(self._decided(facts), filtered, facts)

    def _decided(self, facts: plan.BucketFacts) -> plan.Range:
        options = self.shape.options
        return plan.decide_range(
            facts,
            start=self.start,
            end=self.end,
            on_trimmed=options.on_trimmed,
            is_as_of=options.as_of is not None,
        )

    def _lookup_splits(self, filtered: FilterPlan) -> list[ScanSplit]:
        template = self._template(filtered)
        if filtered.lookups is not None:
            return [replace(template, keys=filtered.lookups)]
        return [replace(template, keys=filtered.prefixes, prefix_columns=filtered.prefix_columns)]


def _placed(template: ScanSplit, bucket: plan.BucketFacts, offsets: plan.Range) -> ScanSplit:
    """The split of a range of offsets; copied once, because plans have thousands of splits."""
    return replace(
        template,
        bucket=bucket.bucket,
        partition_name=bucket.partition_name,
        start=offsets.start,
        stop=offsets.stop,
    )


def _time_of(bound: Bound | None) -> int | None:
    return bound.number if bound is not None and bound.kind is BoundKind.TIME else None


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
        and options.lake is not LakeUse.ONLY
        and options.partitions is None
        and filtered.metadata_residual is None
        and not any(shape.output.metadata)
        and FOUND not in table.schema.column_names
    )
