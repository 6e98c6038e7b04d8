"""Maintenance of a lake: expires snapshots, compacts files, and removes orphan files.

None of it changes a row, and none is a round: nothing is reported to the cluster, and readers see
the new files after the next round. Commits are made on top of the newest snapshot, or not at all.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table

from fluss.connection.connection import TableHandle
from fluss.errors import FlussError
from fluss.lake.lake_format import LakePart
from fluss.net.cancellation import Cancellation
from fluss_lake.catalogs import open_table
from fluss_lake.file_plan import IcebergContents, Place
from fluss_lake.iceberg_parts import entries_of, paths_of_all_snapshots
from fluss_lake.iceberg_writes import (
    Change,
    commit_change,
    expire_snapshots,
    remove_files,
)
from fluss_lake.lake_errors import LakeConflictError, check_base_is_there
from fluss_lake.lake_files import FileLister
from fluss_lake.tiering.cluster_calls import known_snapshot
from fluss_lake.tiering.file_writer import FileWriter
from fluss_lake.tiering.lake_table import commits_of, newest_id
from fluss_lake.tiering.lake_target import LakeTarget, file_partition
from fluss_lake.tiering.plan_maintenance import expired, is_orphan, runs_to_rewrite
from fluss_lake.tiering.present_rows import PresentFiles, paths_of
from fluss_lake.tiering.round_driver import RoundOptions, check_has_lake, lake_settings

ATTEMPTS_MAX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Expired:
    """The result of expiring snapshots.

    Attributes:
        snapshots: How many snapshots have expired.
        files: How many files were removed.
        left: How many files could not be removed.
    """

    snapshots: int
    files: int
    left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """The result of a compaction.

    Attributes:
        before: How many files were replaced, delete files included.
        after: How many files replace them.
        rows: How many rows the new files have.
        snapshot_id: The snapshot of the compaction; None if there was nothing to compact.
    """

    before: int = 0
    after: int = 0
    rows: int = 0
    snapshot_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """The result of removing orphan files.

    Attributes:
        files: How many files were removed, or would be.
        size_bytes: Their size.
        left: How many files could not be removed.
    """

    files: int
    size_bytes: int
    left: int


def clean(
    table: TableHandle, options: RoundOptions, *, before_ms: int, is_dry: bool = False
) -> Cleaned:
    """Remove files that rounds and compactions have written and no snapshot has.

    Such files remain where a process was killed, or an executor of Spark was lost. Files of other
    programs are left alone.

    Args:
        table: The table, as it is now.
        options: How the lake is reached.
        before_ms: Files written at this time or later are kept: a round may still commit them.
        is_dry: Whether the files are only counted.

    Raises:
        UnsupportedOperationError: The files of this store cannot be listed.
        FlussError: The lake cannot be reached.
    """
    check_has_lake(table)
    lake = open_table(table.info, lake_settings(table, options))
    lister = FileLister(lake.io, lake.location())
    # Listed before the snapshots are read, so that a file committed meanwhile is seen as such.
    stored = list(lister.files())
    lake.refresh()
    known = {lister.path_of(path) for path in paths_of_all_snapshots(lake)}
    found = [
        file
        for file in stored
        if is_orphan(
            name=file.name,
            modified_ms=file.modified_ms,
            is_in_snapshot=file.path in known,
            before_ms=before_ms,
        )
    ]
    left = 0 if is_dry else lister.remove(found)
    size = sum(file.size_bytes for file in found)
    return Cleaned(files=len(found) - left, size_bytes=size, left=left)


def expire(
    table: TableHandle, options: RoundOptions, *, before_ms: int, keep_last: int = 1
) -> Expired:
    """Remove snapshots that no reader needs, and the files that only these snapshots have.

    Args:
        table: The table, as it is now.
        options: How the lake is reached.
        before_ms: Snapshots made at this time or later are kept.
        keep_last: How many snapshots are kept at least.

    Raises:
        LakeConflictError: Another program has committed meanwhile.
        FlussError: The lake cannot be reached, or lacks the snapshot that the cluster knows.
    """
    check_has_lake(table)
    lake = open_table(table.info, lake_settings(table, options))
    path = table.info.table_path
    known = table.connection.engine.run(known_snapshot(table.connection, path))
    found = expired(
        str(path),
        None if known is None else known.snapshot_id,
        commits_of(lake),
        {snapshot.snapshot_id: snapshot.timestamp_ms for snapshot in lake.metadata.snapshots},
        before_ms=before_ms,
        keep_last=keep_last,
        named={ref.snapshot_id for ref in lake.metadata.refs.values()},
    )
    files, left = expire_snapshots(lake, found)
    return Expired(snapshots=len(found), files=files, left=left)


def compact(
    table: TableHandle, options: RoundOptions, *, cancellation: Cancellation | None = None
) -> Compacted:
    """Rewrite small files as large ones, and files with deletes without the deleted rows.

    Args:
        table: The table, as it is now.
        options: How the lake is reached, and how large files become.
        cancellation: Cancels the compaction from another thread.

    Raises:
        LakeConflictError: Another program has committed meanwhile, at every attempt.
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
        try:
            return self._upon(base_id)
        except (OSError, FlussError) as error:
            check_base_is_there(self._lake, base_id, error)
            raise

    def _upon(self, base_id: int) -> Compacted:
        contents = IcebergContents(self._info, base_id, entries_of(self._lake, base_id))
        added: list[DataFile] = []
        removed: set[str] = set()
        try:
            parts = {(part.partition_name, part.bucket_id): part for part in contents.parts(None)}
            for place, part in parts.items():
                written, replaced = self._bucket(part)
                added += written
                removed |= replaced
                removed |= _unused_deletes(contents, place, part, removed)
            for place in contents.deletes.keys() - parts.keys():
                removed |= {file.path for file in contents.deletes[place]}
            if not removed:
                return Compacted()
            change = Change(added=added, removed=frozenset(removed), is_rewrite=True)
            snapshot_id = commit_change(self._lake, base_id, change)
        except BaseException:
            for writer in self._writers:
                writer.abandon()
            remove_files(self._lake.io, [file.file_path for file in added])
            raise
        return Compacted(
            before=len(removed),
            after=len(added),
            rows=sum(file.record_count for file in added),
            snapshot_id=snapshot_id,
        )

    def _bucket(self, part: LakePart) -> tuple[list[DataFile], frozenset[str]]:
        """Rewrite the files of a bucket that are small or have deletes.

        Returns:
            The new files, and the paths of the files that they replace.
        """
        is_log = not self._info.has_primary_key()
        sizes = [(file.size_bytes, bool(file.deletes)) for file in part.files]
        runs = runs_to_rewrite(sizes, file_bytes=self._options.file_bytes, is_ordered=is_log)
        added: list[DataFile] = []
        again: list[int] = []
        for number, run in enumerate(runs):
            some = replace(part, files=tuple(part.files[index] for index in run))
            added += self._written(some, number, is_log=is_log)
            again += run
        if not again:
            return [], frozenset()
        whole = replace(part, files=tuple(part.files[index] for index in again))
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


def _unused_deletes(
    contents: IcebergContents, place: Place, part: LakePart, removed: set[str]
) -> set[str]:
    """The delete files of a bucket that apply to no remaining file."""
    kept = [file.sequence for file in part.files if file.path not in removed]
    return {
        file.path
        for file in contents.deletes.get(place, ())
        if not any(file.may_delete_from(sequence) for sequence in kept)
    }
