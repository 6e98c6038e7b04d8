"""Decides what a round of tiering does: what it recovers, what it reads, and what it may commit.

A round starts from the snapshot that the cluster knows, and from the offsets that the cluster has
for it. It reads each bucket from its offset to the end of the log, or to a limit. The new snapshot
is reported to the cluster only if the lake has it and no offset goes backwards: the server checks
neither.

If the lake has a newer snapshot of a tiering service than the cluster knows, that service ended
between its two commits, and its snapshot is reported to the cluster first. Snapshots of other
programs, such as compactions, are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from fluss.errors import OffsetOutOfRangeError
from fluss.model.extent import Extent
from fluss.model.paths import TableBucket
from fluss_lake.lake_errors import LakeMismatchError

# Fluss's own services write these properties, and look for them.
COMMIT_USER_KEY: Final = "commit-user"
COMMIT_USER: Final = "__fluss_lake_tiering"
OFFSETS_KEY: Final = "fluss-offsets"
# This client adds the worker, the id of the table, and the offsets themselves.
WORKER_KEY: Final = "fluss-tiering.worker"
TABLE_ID_KEY: Final = "fluss-tiering.table-id"
ENDS_KEY: Final = "fluss-tiering.ends"

KEEP_ALL: Final = -1
# With more buckets, the offsets are only in the server's file: the catalog keeps the properties of
# a snapshot as long as the snapshot, so they must stay small.
LISTED_BUCKETS_MAX: Final = 512
_SHOWN_MAX: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeCommit:
    """One snapshot of the lake's table.

    Attributes:
        snapshot_id: The snapshot's id.
        sequence: Its sequence number.
        properties: The properties in its summary.
    """

    snapshot_id: int
    sequence: int
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_tiered(self) -> bool:
        """Whether a tiering service made it."""
        return self.properties.get(COMMIT_USER_KEY) == COMMIT_USER


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The lake snapshot that the cluster knows.

    Attributes:
        snapshot_id: The snapshot's id.
        ends: One past the last offset that the snapshot has, by bucket.
    """

    snapshot_id: int
    ends: Mapping[TableBucket, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketEnd:
    """Up to where a bucket has been copied.

    Attributes:
        end: One past the last offset.
        max_timestamp_ms: When the last row was committed; None if that is unknown.
    """

    end: int
    max_timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRange:
    """What a round reads of one bucket.

    Attributes:
        bucket: The bucket.
        start: The first offset.
        stop: One past the last offset; if it equals `start`, there is nothing to read.
        is_state: Whether the state at `stop` is read, because changes before `start` are gone.
        is_cut: Whether the log continues after `stop`.
    """

    bucket: TableBucket
    start: int
    stop: int
    is_state: bool = False
    is_cut: bool = False


def missing_commit(
    table: str, table_id: int, known: Known | None, commits: Sequence[LakeCommit]
) -> LakeCommit | None:
    """The newest snapshot of a tiering service, if the cluster does not know it.

    Args:
        table: The table's name, for errors.
        table_id: The table's id.
        known: The snapshot that the cluster knows; None if it knows none.
        commits: The snapshots of the table's branch, the newest first.

    Raises:
        LakeMismatchError: The lake does not have the snapshot that the cluster knows, or has
            snapshots of another table, or only snapshots of other programs.
    """
    newest = next((commit for commit in commits if commit.is_tiered), None)
    if newest is not None:
        _check_table_id(table, table_id, newest)
    if known is None:
        if newest is None and commits:
            raise _not_ours(table, commits[0])
        return newest
    same = next((commit for commit in commits if commit.snapshot_id == known.snapshot_id), None)
    if same is None:
        raise LakeMismatchError(
            f"The lake of {table} does not have the snapshot {known.snapshot_id} any more, which the "
            "cluster knows.",
            hint="The lake's table may have been rolled back, or its snapshots expired by hand. If "
            "its newest snapshot is the right one, report that one to the cluster. Nothing was "
            "committed.",
            table=table,
            snapshot_id=known.snapshot_id,
        )
    if newest is None or newest.sequence <= same.sequence:
        return None
    return newest


def _check_table_id(table: str, table_id: int, commit: LakeCommit) -> None:
    found = commit.properties.get(TABLE_ID_KEY)
    if found is not None and found != str(table_id):
        raise LakeMismatchError(
            f"The lake's table of {table} has the rows of another table: that one had the id "
            f"{found}, and this one has {table_id}.",
            hint="The Fluss table was dropped and created again. Drop the lake's table, too, or "
            "give the new Fluss table another name.",
            table=table,
        )


def _not_ours(table: str, commit: LakeCommit) -> LakeMismatchError:
    return LakeMismatchError(
        f"The lake's table of {table} has a snapshot that no tiering service made "
        f"({commit.snapshot_id}), and the cluster knows of none.",
        hint="Another program has written to it. Drop it in the lake, or give the Fluss table "
        "another name.",
        table=table,
    )


def plan_range(
    bucket: TableBucket,
    extent: Extent,
    copied: int | None,
    *,
    has_primary_key: bool,
    rows_max: int,
    skips_lost: bool = False,
) -> PlannedRange:
    """Decide what a round reads of a bucket.

    Args:
        bucket: The bucket.
        extent: The first offset of its log, and one past the last.
        copied: One past the last offset that the lake has; None if it has none.
        has_primary_key: Whether the log has changes by key.
        rows_max: How many offsets of a bucket one round reads.
        skips_lost: Whether to skip rows that the log has lost before they were copied.

    Raises:
        OffsetOutOfRangeError: The log ends before the last copied offset, or has lost rows that
            were not copied.
    """
    start = extent.earliest if copied is None else copied
    if extent.end < start:
        raise _shrunk(bucket, extent, start)
    if has_primary_key and extent.earliest > (copied or 0) and extent.end > start:
        # Some changes after `start` are gone: the state of all keys replaces them.
        return PlannedRange(bucket=bucket, start=extent.end, stop=extent.end, is_state=True)
    if start < extent.earliest:
        if not skips_lost and not has_primary_key:
            raise _lost(bucket, extent, start)
        start = extent.earliest
    stop = min(extent.end, start + rows_max)
    return PlannedRange(bucket=bucket, start=start, stop=stop, is_cut=stop < extent.end)


def _shrunk(bucket: TableBucket, extent: Extent, copied: int) -> OffsetOutOfRangeError:
    return OffsetOutOfRangeError(
        f"The log of bucket {bucket.bucket_id} ends at offset {extent.end}, and its lake has rows up "
        f"to offset {copied}.",
        hint="The cluster may be starting, or may have lost rows. Offsets never go backwards in a "
        "lake.",
        bucket=bucket.bucket_id,
        partition_id=bucket.partition_id,
        offset=copied,
    )


def _lost(bucket: TableBucket, extent: Extent, copied: int) -> OffsetOutOfRangeError:
    return OffsetOutOfRangeError(
        f"The log of bucket {bucket.bucket_id} starts at offset {extent.earliest}, and its lake has "
        f"rows up to offset {copied}: {extent.earliest - copied} rows between them are gone.",
        hint="They were deleted before they were copied, as when table.datalake.enabled was off for "
        "a while. skips_lost=True (--on-lost skip) continues after them.",
        bucket=bucket.bucket_id,
        partition_id=bucket.partition_id,
        offset=copied,
    )


def created_again(
    known: Known | None, names: Mapping[TableBucket, str | None], stored: Collection[str | None]
) -> frozenset[str]:
    """The partitions of which the lake has only the rows of an earlier partition of the same name.

    Args:
        known: The snapshot that the cluster knows.
        names: The partition of each bucket that the round copies.
        stored: The partitions of which the lake has files.
    """
    copied = {bucket.partition_id for bucket in ({} if known is None else known.ends)}
    return frozenset(
        name
        for bucket, name in names.items()
        if name is not None and name in stored and bucket.partition_id not in copied
    )


def check_not_created_again(table: str, partitions: Collection[str]) -> None:
    """Refuse to add the rows of a primary-key table to those of earlier partitions.

    A key may be in both, and a lake's readers would give both rows.

    Raises:
        LakeMismatchError: The lake has rows of an earlier partition.
    """
    if not partitions:
        return
    listed = ", ".join(repr(each) for each in sorted(partitions)[:_SHOWN_MAX])
    raise LakeMismatchError(
        f"The lake of {table} has rows of earlier partitions of the same names: {listed} dropped and "
        "created again.",
        hint="replaces_partitions=True (--replace-partitions) removes these rows from the lake's newest "
        "snapshot, when the first rows of the new partition are copied.",
        table=table,
    )


def commit_properties(
    table_id: int, worker: str, path: str, ends: Mapping[TableBucket, BucketEnd]
) -> dict[str, str]:
    """The properties that a round writes into the summary of its snapshot.

    Args:
        table_id: The table.
        worker: The name of the worker that makes the snapshot.
        path: The file of offsets that the server has written.
        ends: The offsets of all buckets.
    """
    listed = [
        [bucket.partition_id, bucket.bucket_id, end.end, end.max_timestamp_ms]
        for bucket, end in sorted(ends.items())
    ]
    properties = {
        COMMIT_USER_KEY: COMMIT_USER,
        OFFSETS_KEY: path,
        WORKER_KEY: worker,
        TABLE_ID_KEY: str(table_id),
    }
    if len(listed) <= LISTED_BUCKETS_MAX:
        properties[ENDS_KEY] = json.dumps(listed, separators=(",", ":"))
    return properties


def ends_of(table_id: int, commit: LakeCommit) -> dict[TableBucket, BucketEnd] | None:
    """The offsets in a snapshot's properties; None if it has none, as those of Flink's job."""
    text = commit.properties.get(ENDS_KEY)
    if text is None:
        return None
    return {
        TableBucket.with_partition(table_id, partition_id, bucket_id): BucketEnd(
            end=end, max_timestamp_ms=time_ms
        )
        for partition_id, bucket_id, end, time_ms in json.loads(text)
    }


def offsets_path_of(table: str, commit: LakeCommit) -> str:
    """The path of a snapshot's file of offsets.

    Raises:
        LakeMismatchError: The snapshot names no file of offsets.
    """
    path = commit.properties.get(OFFSETS_KEY)
    if not path:
        raise LakeMismatchError(
            f"A tiering service made the snapshot {commit.snapshot_id} of the lake of {table}, and "
            "the snapshot does not name its offsets.",
            hint="Roll the lake's table back to the snapshot before it.",
            table=table,
            snapshot_id=commit.snapshot_id,
        )
    return path


def merged_ends(
    known: Known | None, written: Mapping[TableBucket, BucketEnd]
) -> dict[TableBucket, BucketEnd]:
    """The offsets of all buckets after a round."""
    before = {} if known is None else known.ends
    return {bucket: BucketEnd(end=end) for bucket, end in before.items()} | dict(written)


def check_ends(table: str, known: Known | None, ends: Mapping[TableBucket, BucketEnd]) -> None:
    """Refuse to report offsets that go backwards, or that leave out a bucket.

    Raises:
        LakeMismatchError: An offset goes backwards, or a bucket is left out.
    """
    for bucket, end in ({} if known is None else known.ends).items():
        found = ends.get(bucket)
        if found is None or found.end < end:
            raise LakeMismatchError(
                f"The offsets of {table} would go backwards: bucket {bucket.bucket_id} is copied up "
                f"to offset {end}, and the new snapshot has it up to "
                f"{'none' if found is None else found.end}.",
                hint="Another program may have copied the table meanwhile. Nothing was reported to "
                "the cluster.",
                table=table,
                bucket=bucket.bucket_id,
                partition_id=bucket.partition_id,
            )


def kept_from(known: Known | None) -> int:
    """The oldest snapshot whose offsets the server keeps: the previous one may still be read."""
    return KEEP_ALL if known is None else known.snapshot_id


def is_known(table: str, before: Known | None, now: Known | None, snapshot_id: int) -> bool:
    """Whether the cluster knows a snapshot; if not, the caller may report it now.

    Args:
        table: The table's name, for errors.
        before: The snapshot that the cluster knew when the round started.
        now: The snapshot that the cluster knows now.
        snapshot_id: The snapshot to report.

    Raises:
        LakeMismatchError: The cluster knows another snapshot than before: another program has
            reported one.
    """
    if now is not None and now.snapshot_id == snapshot_id:
        return True
    if (None if now is None else now.snapshot_id) == (
        None if before is None else before.snapshot_id
    ):
        return False
    raise LakeMismatchError(
        f"The cluster knows another snapshot of {table} than when the round started: "
        f"{'none' if now is None else now.snapshot_id}. Another program copies the table.",
        hint=f"The snapshot {snapshot_id} is in the lake; this round did not report it to the "
        "cluster.",
        table=table,
        snapshot_id=snapshot_id,
    )
