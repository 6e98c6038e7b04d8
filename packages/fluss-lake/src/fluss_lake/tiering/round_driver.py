"""Drives one round of one table: plans its tasks, then commits or aborts their results.

A driver uses three functions. `begin_round` reads the state of the cluster and of the lake, reports
the snapshot of an interrupted round, and plans the tasks. The tasks run anywhere, in any order
(`range_task` is the seam). `commit_round` makes one snapshot of all results, on top of the snapshot
that the round started with, and reports it to the cluster. `abort_round` removes the written files.

    round_ = begin_round(table, options)
    written = [write_range(task, table, io) for task in round_.tasks]
    committed = commit_round(round_, written)

All functions block; none waits longer than its requests.
"""

from __future__ import annotations

import uuid
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from pyiceberg.table import Table

from fluss.connection.connection import TableHandle
from fluss.errors import FlussError, TableNotFoundError, UnsupportedOperationError
from fluss.log.extents import fetch_extents
from fluss.model.paths import TableBucket
from fluss.model.tables.table_options import DataLakeFormat
from fluss.net.leader_requests import Places
from fluss.state.state_planner import StatePlan, plan_states
from fluss_lake.catalogs import open_table
from fluss_lake.iceberg_writes import Change, commit_change, remove_files
from fluss_lake.lake_errors import LakeConflictError, LakeMismatchError
from fluss_lake.table_checks import check_keys
from fluss_lake.tiering.cluster_calls import known_snapshot, prepare_offsets, report_snapshot
from fluss_lake.tiering.earlier_partitions import earlier_partitions
from fluss_lake.tiering.lake_table import commits_of, newest_id, present_parts
from fluss_lake.tiering.lake_tables import places_of
from fluss_lake.tiering.lake_target import LakeTarget
from fluss_lake.tiering.plan_round import (
    KEEP_ALL,
    BucketEnd,
    Known,
    LakeCommit,
    PlannedRange,
    check_ends,
    commit_properties,
    ends_of,
    is_known,
    kept_from,
    merged_ends,
    missing_commit,
    offsets_path_of,
    plan_range,
)
from fluss_lake.tiering.range_task import (
    FILE_BYTES,
    MEMORY_BYTES,
    RangeTask,
    WriteMode,
    WrittenRange,
)

T = TypeVar("T")

WRITE_MODE_PROPERTY: Final = "tiering.write-mode"
ROWS_MAX: Final = 8_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundOptions:
    """How rounds are made.

    Attributes:
        worker: The worker's name; snapshots carry it.
        write_mode: How rows of primary-key tables are replaced. None uses the table's property
            `tiering.write-mode`, and deletes by key if the table has no such property.
        rows_max: How many offsets of a bucket one round reads.
        skips_lost: Whether to skip rows that were deleted before they were copied.
        replaces_partitions: Whether rows by key may replace those of an earlier partition.
        file_bytes: A file of this size is closed, and the next one is opened.
        memory_bytes: How much memory the changes of one task may take.
        settings: Additional settings of the lake; they may hold secrets.
    """

    worker: str = "fluss-lake"
    write_mode: WriteMode | None = None
    rows_max: int = ROWS_MAX
    skips_lost: bool = False
    replaces_partitions: bool = False
    file_bytes: int = FILE_BYTES
    memory_bytes: int = MEMORY_BYTES
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Round:
    """A round of a table that has started.

    Attributes:
        table: The table.
        lake: The lake's table, as it was at the start of the round.
        base_id: The lake's newest snapshot; None if it has none.
        known: The snapshot that the cluster knows.
        tasks: The tasks; any process may run them.
        ends: The ends of buckets without anything to read.
        is_cut: Whether a limit left rows for the next round.
        recovered_id: The snapshot of an interrupted round that this one has reported to the
            cluster; None if there was none.
        options: The options of the round.
        replaced: The paths of files of earlier partitions, which are removed.
    """

    table: TableHandle
    lake: Table
    base_id: int | None
    known: Known | None
    tasks: tuple[RangeTask, ...]
    ends: Mapping[TableBucket, BucketEnd]
    is_cut: bool
    recovered_id: int | None
    options: RoundOptions
    replaced: frozenset[str] = frozenset()

    @property
    def has_work(self) -> bool:
        """Whether there is anything to commit."""
        return bool(self.tasks or self.ends)


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """The result of a committed round.

    Attributes:
        snapshot_id: The new snapshot; None if there was nothing to copy.
        changes: How many changes were read.
        rows: How many rows were written.
        deletes: How many keys were deleted.
        files: How many files were written.
        size_bytes: The total size of the files.
    """

    snapshot_id: int | None = None
    changes: int = 0
    rows: int = 0
    deletes: int = 0
    files: int = 0
    size_bytes: int = 0


# --- start ------------------------------------------------------------------------------------


def begin_round(table: TableHandle, options: RoundOptions, *, now_ms: int) -> Round:
    """Plan a round of a table.

    Args:
        table: The table, as it is now.
        options: The options of the round.
        now_ms: The current time.

    Raises:
        UnsupportedOperationError: The table has no lake, or one in another format than Iceberg.
        LakeMismatchError: The lake's table is not the one that Fluss made.
        OffsetOutOfRangeError: The log has lost rows that were not copied.
        FlussError: The cluster, the catalog or the lake cannot be reached.
    """
    check_has_lake(table)
    return _RoundPlanner(table, options, now_ms).round()


def check_has_lake(table: TableHandle) -> None:
    """Refuse a table that has no lake, or a lake in another format than Iceberg.

    Raises:
        UnsupportedOperationError: The table is refused, or its keys would be truncated.
    """
    options, path = table.info.options, table.info.table_path
    if not options.datalake_enabled:
        raise UnsupportedOperationError(
            f"The table {path} is not copied into a lake.",
            hint="Set its property table.datalake.enabled to true. A table from before its cluster "
            "had a lake must be created again.",
            table=str(path),
        )
    if options.datalake_format is not DataLakeFormat.ICEBERG:
        raise UnsupportedOperationError(
            f"The lake of {path} has the format {options.datalake_format}, and only Iceberg is "
            "written.",
            hint="Fluss's own job in Flink writes the other formats.",
            table=str(path),
        )
    check_keys(table.info)


class _RoundPlanner:
    def __init__(self, table: TableHandle, options: RoundOptions, now_ms: int) -> None:
        self._table, self._options, self._now_ms = table, options, now_ms
        self._info, self._connection = table.info, table.connection
        self._name = str(table.info.table_path)
        self._round_id = uuid.uuid4().hex[:16]

    def round(self) -> Round:
        lake = open_table(self._info, lake_settings(self._table, self._options))
        target = LakeTarget.of(lake, self._info)
        known, recovered = self._known(lake)
        places = self._run(places_of(self._table))
        extents = self._run(fetch_extents(self._connection.cluster, places))
        copied = {} if known is None else known.ends
        ranges = [
            plan_range(
                bucket,
                extents[bucket],
                copied.get(bucket),
                has_primary_key=self._info.has_primary_key(),
                rows_max=self._options.rows_max,
                skips_lost=self._options.skips_lost,
            )
            for bucket in sorted(places)
        ]
        again = earlier_partitions(
            lake, self._info, known, places, ranges, may_replace=self._options.replaces_partitions
        )
        return Round(
            table=self._table,
            lake=lake,
            base_id=newest_id(lake),
            known=known,
            replaced=again.files,
            tasks=tuple(self._tasks(lake, target, places, ranges, again.names)),
            ends={
                each.bucket: BucketEnd(end=each.stop)
                for each in ranges
                if each.start == each.stop
                and not each.is_state
                and copied.get(each.bucket, 0) < each.stop
            },
            is_cut=any(each.is_cut for each in ranges),
            recovered_id=None if recovered is None else recovered.snapshot_id,
            options=self._options,
        )

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._connection.engine.run(work)

    # --- an interrupted round -----------------------------------------------------------------

    def _known(self, lake: Table) -> tuple[Known | None, LakeCommit | None]:
        """Report the snapshot of an interrupted round, if there is one.

        Returns:
            The snapshot that the cluster knows then, and the one that was reported.
        """
        path, table_id = self._info.table_path, self._info.table_id
        known = self._run(known_snapshot(self._connection, path))
        missing = missing_commit(self._name, table_id, known, commits_of(lake))
        if missing is None:
            return known, None
        ends = ends_of(table_id, missing)
        if ends is None:
            offsets_path, ends = offsets_path_of(self._name, missing), {}
        else:
            check_ends(self._name, known, ends)
            # The file that the snapshot names may have been removed meanwhile.
            offsets_path = self._run(prepare_offsets(self._connection, path, table_id, ends))
        _report(self._table, known, missing.snapshot_id, offsets_path, ends, keep_from=KEEP_ALL)
        return self._run(known_snapshot(self._connection, path)), missing

    # --- tasks --------------------------------------------------------------------------------

    def _tasks(
        self,
        lake: Table,
        target: LakeTarget,
        places: Places,
        ranges: Sequence[PlannedRange],
        again: frozenset[str],
    ) -> Iterable[RangeTask]:
        mode = write_mode_of(self._table, self._options)
        requested = [each for each in ranges if each.is_state or each.start < each.stop]
        pins = {each.bucket: each.stop for each in requested if each.is_state}
        states: Mapping[TableBucket, StatePlan] = {}
        if pins:
            of_states = {each: places[each] for each in pins}
            states = self._run(plan_states(self._table, of_states, pins))
        replaces = bool(pins) or (mode is WriteMode.COPY_ON_WRITE and bool(requested))
        found = present_parts(lake, self._info) if replaces else {}
        present = {place: part for place, part in found.items() if place[0] not in again}
        for request in requested:
            name = places[request.bucket].partition_name
            rewrites = request.is_state or mode is WriteMode.COPY_ON_WRITE
            yield RangeTask(
                table_path=self._info.table_path,
                table_id=self._info.table_id,
                bucket=request.bucket,
                partition_name=name,
                start=request.start,
                stop=request.stop,
                round_id=self._round_id,
                target=target,
                mode=mode,
                state=states.get(request.bucket),
                present=present.get((name, request.bucket.bucket_id)) if rewrites else None,
                at_ms=self._now_ms,
                file_bytes=self._options.file_bytes,
                memory_bytes=self._options.memory_bytes,
            )


def lake_settings(table: TableHandle, options: RoundOptions) -> dict[str, str]:
    """The user's settings for the lake: the connection's `lake.*`, and those of the options."""
    return {**table.connection.lake_settings(), **options.settings}


def write_mode_of(table: TableHandle, options: RoundOptions) -> WriteMode:
    """How the rows of a table are replaced.

    Raises:
        UnsupportedOperationError: The table's property names an unknown write mode.
    """
    if not table.info.has_primary_key():
        return WriteMode.EQUALITY_DELETES
    if options.write_mode is not None:
        return WriteMode(options.write_mode)  # a program may have given its text
    text = table.info.custom_properties.get(WRITE_MODE_PROPERTY, WriteMode.EQUALITY_DELETES)
    try:
        return WriteMode(text)
    except ValueError as error:
        raise UnsupportedOperationError(
            f"{table.info.table_path} has the property {WRITE_MODE_PROPERTY} = {text!r}.",
            hint=f"it may be {' or '.join(WriteMode)}",
            table=str(table.info.table_path),
        ) from error


# --- commit -----------------------------------------------------------------------------------


def commit_round(round_: Round, written: Sequence[WrittenRange]) -> Committed:
    """Commit the written files to the lake, and report the snapshot to the cluster.

    Args:
        round_: The round.
        written: The results of all its tasks, in any order.

    Raises:
        LakeConflictError: Another program has committed meanwhile; the files are removed.
        LakeMismatchError: The offsets would go backwards.
        TableNotFoundError: The table was dropped and created again meanwhile; the files are
            removed.
        FlussError: The lake or the cluster cannot be reached. If the lake has the snapshot
            already, the next round reports it to the cluster.
    """
    if not round_.has_work:
        return Committed()
    try:
        ends = _ends(round_, written)
        _check_is_same(round_)
        snapshot_id, path = _commit_to_lake(round_, written, ends)
    except FlussError:
        abort_round(round_, written)
        raise
    keep = kept_from(round_.known)
    _report(round_.table, round_.known, snapshot_id, path, ends, keep_from=keep)
    return Committed(
        snapshot_id=snapshot_id,
        changes=sum(result.changes for result in written),
        rows=sum(result.rows for result in written),
        deletes=sum(result.deletes for result in written),
        files=sum(len(result.files) for result in written),
        size_bytes=sum(result.size_bytes for result in written),
    )


def abort_round(round_: Round, written: Iterable[WrittenRange]) -> None:
    """Remove the files of tasks that will not be committed."""
    paths = [path for result in written for path in result.paths]
    remove_files(round_.lake.io, paths)


def _ends(round_: Round, written: Sequence[WrittenRange]) -> dict[TableBucket, BucketEnd]:
    done = {result.bucket for result in written}
    missing = [task for task in round_.tasks if task.bucket not in done]
    if missing or len(written) != len(round_.tasks):
        raise LakeMismatchError(
            f"{len(missing)} of {len(round_.tasks)} tasks of the round of "
            f"{round_.table.info.table_path} are not done.",
            hint="A round is committed as a whole.",
            table=str(round_.table.info.table_path),
        )
    now = {
        result.bucket: BucketEnd(end=result.end, max_timestamp_ms=result.max_timestamp_ms)
        for result in written
    }
    ends = merged_ends(round_.known, {**round_.ends, **now})
    check_ends(str(round_.table.info.table_path), round_.known, ends)
    return ends


def _check_is_same(round_: Round) -> None:
    """Refuse to commit rows of a table that was created again since the round started."""
    connection, path = round_.table.connection, round_.table.info.table_path
    found = connection.engine.run(connection.table(path))
    if found.info.table_id != round_.table.info.table_id:
        raise TableNotFoundError(
            f"The table {path} was dropped and created again during the round.",
            hint="Nothing was committed. The next round copies the new one.",
            table=str(path),
        )


def _commit_to_lake(
    round_: Round, written: Sequence[WrittenRange], ends: Mapping[TableBucket, BucketEnd]
) -> tuple[int, str]:
    connection, info = round_.table.connection, round_.table.info
    path = connection.engine.run(prepare_offsets(connection, info.table_path, info.table_id, ends))
    change = Change(
        added=[file for result in written for file in result.files],
        removed=round_.replaced.union(*(result.removed for result in written)),
        properties=commit_properties(info.table_id, round_.options.worker, path, ends),
    )
    base_id = round_.base_id
    try:
        return commit_change(round_.lake, base_id, change), path
    except LakeConflictError:
        # After a compaction of another program, the written files are still valid.
        base_id = _base_after_conflict(round_, change)
    return commit_change(round_.lake, base_id, change), path


def _base_after_conflict(round_: Round, change: Change) -> int | None:
    """The snapshot to commit on top of, if only compactions were committed meanwhile.

    Raises:
        LakeConflictError: A tiering service has committed, or files that this round replaces may
            be gone.
    """
    before = round_.base_id
    round_.lake.refresh()
    since = []
    for commit in commits_of(round_.lake):
        if commit.snapshot_id == before:
            break
        since.append(commit)
    else:
        if before is not None:
            raise _conflict(round_, "its branch was rolled back")
    if change.removed:
        raise _conflict(round_, "files that were to be replaced may be gone")
    if any(commit.is_tiered for commit in since):
        raise _conflict(round_, "another tiering service has committed")
    return newest_id(round_.lake)


def _conflict(round_: Round, why: str) -> LakeConflictError:
    name = str(round_.table.info.table_path)
    return LakeConflictError(
        f"The lake of {name} was changed by another program during the round: {why}.",
        hint="Nothing was committed. The next round starts from the lake's present state.",
        table=name,
    )


def _report(
    table: TableHandle,
    before: Known | None,
    snapshot_id: int,
    offsets_path: str,
    ends: Mapping[TableBucket, BucketEnd],
    *,
    keep_from: int,
) -> None:
    """Report a snapshot to the cluster, unless the cluster knows it already.

    The server accepts any snapshot, and the same one twice. If no answer arrives, the driver asks
    which snapshot the cluster knows, and reports the new one again if necessary.
    """
    connection, info = table.connection, table.info
    name = str(info.table_path)

    def is_reported() -> bool:
        now = connection.engine.run(known_snapshot(connection, info.table_path))
        return is_known(name, before, now, snapshot_id)

    def report(keep: int) -> None:
        request = report_snapshot(
            connection, info.table_id, snapshot_id, offsets_path, ends, keep_from=keep
        )
        connection.engine.run(request)

    if is_reported():
        return
    try:
        report(keep_from)
    except FlussError:
        if not is_reported():
            # The first request may still arrive. With KEEP_ALL the server does not remove the
            # file of offsets that the first request names.
            report(KEEP_ALL)
