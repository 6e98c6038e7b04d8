"""Maintenance of a lake: snapshots expire, small files become large ones, deletes are applied.

Neither changes a row, and neither is a round: the cluster learns of nothing, and readers see
the new files with the next round. Both are committed upon the newest snapshot or not at all.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table

from fluss.connection.connection import TableHandle
from fluss.lake.lake_format import LakePart
from fluss.net.cancellation import Cancellation
from fluss_lake.catalogs import open_table
from fluss_lake.file_plan import IcebergContents, Place
from fluss_lake.iceberg_parts import entries_of
from fluss_lake.iceberg_writes import Change, commit_change, expire_snapshots, remove_files
from fluss_lake.lake_errors import LakeConflictError
from fluss_lake.tiering.cluster_calls import known_snapshot
from fluss_lake.tiering.file_writer import FileWriter
from fluss_lake.tiering.lake_table import commits_of, newest_id
from fluss_lake.tiering.lake_target import LakeTarget, file_partition
from fluss_lake.tiering.plan_maintenance import expired, runs_to_rewrite
from fluss_lake.tiering.present_rows import PresentFiles, paths_of
from fluss_lake.tiering.round_driver import RoundOptions, check_has_lake, lake_settings

ATTEMPTS_MAX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Expired:
    """What has expired.

    Attributes:
        snapshots: How many snapshots.
        files: How many files were removed.
        left: How many could not be removed.
    """

    snapshots: int
    files: int
    left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """What was written again.

    Attributes:
        before: How many files there were instead, those of deletes included.
        after: How many were written.
        rows: How many rows they have.
        snapshot_id: The snapshot; None where nothing was worth it.
    """

    before: int = 0
    after: int = 0
    rows: int = 0
    snapshot_id: int | None = None


def expire(
    table: TableHandle, options: RoundOptions, *, before_ms: int, keep_last: int = 1
) -> Expired:
    """Remove snapshots that no reader needs, and the files that only they have.

    Args:
        table: The table, as it is now.
        options: How the lake is reached.
        before_ms: Snapshots since then are kept.
        keep_last: How many are kept at least.

    Raises:
        LakeConflictError: Another program has committed meanwhile.
        FlussError: The lake cannot be reached, or is not as the cluster knows it.
    """
    check_has_lake(table)
    lake = open_table(table.info, lake_settings(table, options))
    path = table.info.table_path
    known = table.connection.engine.run(known_snapshot(table.connection, path))
    found = expired(
        str(path),
        None if known is None else known.snapshot_id,
        commits_of(lake),
        {each.snapshot_id: each.timestamp_ms for each in lake.metadata.snapshots},
        before_ms=before_ms,
        keep_last=keep_last,
        named={each.snapshot_id for each in lake.metadata.refs.values()},
    )
    files, left = expire_snapshots(lake, found)
    return Expired(snapshots=len(found), files=files, left=left)


def compact(
    table: TableHandle, options: RoundOptions, *, cancellation: Cancellation | None = None
) -> Compacted:
    """Write small files again as large ones, and rows without those that are deleted.

    Args:
        table: The table, as it is now.
        options: How the lake is reached, and how large files become.
        cancellation: Ends the work from another thread.

    Raises:
        LakeConflictError: Another program has committed meanwhile, each time it was tried.
        FlussError: The lake cannot be reached.
    """
    check_has_lake(table)
    for attempt in range(1, ATTEMPTS_MAX + 1):
        work = _Compaction(table, options, cancellation or Cancellation())
        try:
            return work.done()
        except LakeConflictError:
            if attempt == ATTEMPTS_MAX:
                raise
    raise AssertionError("the last attempt returns or raises")


class _Compaction:
    """One attempt to compact a table."""

    def __init__(
        self, table: TableHandle, options: RoundOptions, cancellation: Cancellation
    ) -> None:
        self._table, self._info, self._options = table, table.info, options
        self._cancellation = cancellation
        self._lake: Table = open_table(table.info, lake_settings(table, options))
        self._target = LakeTarget.of(self._lake, table.info)
        self._id = uuid.uuid4().hex[:16]
        self._writers: list[FileWriter] = []

    def done(self) -> Compacted:
        base_id = newest_id(self._lake)
        if base_id is None:
            return Compacted()
        contents = IcebergContents(self._info, base_id, entries_of(self._lake, base_id))
        added: list[DataFile] = []
        removed: set[str] = set()
        try:
            parts = {(each.partition_name, each.bucket_id): each for each in contents.parts(None)}
            for place, part in parts.items():
                written, replaced = self._bucket(part)
                added += written
                removed |= replaced
                removed |= _without_use(contents, place, part, removed)
            for place in contents.deletes.keys() - parts.keys():
                removed |= {each.path for each in contents.deletes[place]}
            if not removed:
                return Compacted()
            change = Change(added=added, removed=frozenset(removed), is_rewrite=True)
            snapshot_id = commit_change(self._lake, base_id, change)
        except BaseException:
            for each in self._writers:
                each.abandon()
            remove_files(self._lake.io, [each.file_path for each in added])
            raise
        return Compacted(
            before=len(removed),
            after=len(added),
            rows=sum(each.record_count for each in added),
            snapshot_id=snapshot_id,
        )

    def _bucket(self, part: LakePart) -> tuple[list[DataFile], frozenset[str]]:
        """Write the files of a bucket again that are worth it: the new ones, and the old paths."""
        is_log = not self._info.has_primary_key()
        sizes = [(each.size_bytes, bool(each.deletes)) for each in part.files]
        runs = runs_to_rewrite(sizes, file_bytes=self._options.file_bytes, is_ordered=is_log)
        added: list[DataFile] = []
        again: list[int] = []
        for number, run in enumerate(runs):
            some = replace(part, files=tuple(part.files[each] for each in run))
            added += self._written(some, number, is_log=is_log)
            again += run
        if not again:
            return [], frozenset()
        whole = replace(part, files=tuple(part.files[each] for each in again))
        return added, paths_of(whole, part)

    def _written(self, part: LakePart, number: int, *, is_log: bool) -> list[DataFile]:
        name = "" if part.partition_name is None else f"{uuid.uuid4().hex[:8]}-"
        writer = FileWriter(
            io=self._lake.io,
            target=self._target,
            record=file_partition(part.partition_name, part.bucket_id),
            name=f"{self._id}-{name}{part.bucket_id}-{number}-compacted",
            file_bytes=self._options.file_bytes,
        )
        self._writers.append(writer)
        for batch in self._rows(part, is_log=is_log):
            writer.write(batch)
        return list(writer.finish())

    def _rows(self, part: LakePart, *, is_log: bool) -> Iterator[pa.RecordBatch]:
        files = PresentFiles(self._info, self._lake.io, self._target.schema, self._cancellation)
        return files.rows_in_order(part) if is_log else files.rows(part)


def _without_use(
    contents: IcebergContents, place: Place, part: LakePart, removed: set[str]
) -> set[str]:
    """The files of deletes of a bucket that apply to no file that stays."""
    kept = [each.sequence for each in part.files if each.path not in removed]
    return {
        each.path
        for each in contents.deletes.get(place, ())
        if not any(each.may_delete_from(sequence) for sequence in kept)
    }
