"""Decides which snapshots of a lake expire, and which of its files are rewritten."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from fluss_lake.lake_errors import LakeMismatchError
from fluss_lake.tiering.plan_round import LakeCommit

# A file of at least this share of the requested size is not rewritten for its size.
SHARE_LARGE: Final = 0.75
# Fewer small files than this are not rewritten.
FILES_MIN: Final = 2
# The names that rounds (`write_range`) and compactions (`lake_maintenance`) give to files.
_WRITTEN: Final = re.compile(
    r"[0-9a-f]{16}-(?:\d+-)?\d+-[0-9a-f]{12}-(?:rows|deletes)-\d+\.parquet"
    r"|[0-9a-f]{16}-(?:[0-9a-f]{8}-)?\d+-\d+-compacted-\d+\.parquet"
)


def expired(
    table: str,
    known_id: int | None,
    commits: Sequence[LakeCommit],
    times_ms: dict[int, int],
    *,
    before_ms: int,
    keep_last: int,
    named: Collection[int] = (),
) -> list[int]:
    """The snapshots that no reader needs any more.

    These are kept: the newest `keep_last` of the branch, those that branches and tags name, the one
    that the cluster knows, the newest one of a tiering service, which the cluster may not know yet,
    and all that are not older than `before_ms`.

    Args:
        table: The table's name, for errors.
        known_id: The snapshot that the cluster knows.
        commits: The snapshots of the table's branch, the newest first.
        times_ms: When each snapshot of the table was made.
        before_ms: Snapshots made at this time or later are kept.
        keep_last: How many snapshots are kept at least.
        named: The snapshots that branches and tags name.

    Raises:
        LakeMismatchError: The lake does not have the snapshot that the cluster knows.
    """
    if known_id is not None and known_id not in times_ms:
        raise LakeMismatchError(
            f"The lake of {table} does not have the snapshot {known_id}, which the cluster knows.",
            hint="Nothing was expired. The lake's table may have been rolled back.",
            table=table,
            snapshot_id=known_id,
        )
    kept = {commit.snapshot_id for commit in commits[: max(1, keep_last)]} | set(named)
    newest = _newest_tiered(commits)
    if newest is not None:
        kept.add(newest.snapshot_id)
    if known_id is not None:
        kept.add(known_id)
    return sorted(id_ for id_, at_ms in times_ms.items() if at_ms < before_ms and id_ not in kept)


def _newest_tiered(commits: Iterable[LakeCommit]) -> LakeCommit | None:
    return next((commit for commit in commits if commit.is_tiered), None)


def is_orphan(*, name: str, modified_ms: int | None, is_in_snapshot: bool, before_ms: int) -> bool:
    """Whether a file was written by a round or a compaction that has not committed it.

    Files of other programs are left alone, and so are files that a running round may still commit.

    Args:
        name: The name of the file.
        modified_ms: When it was written; None if that is unknown.
        is_in_snapshot: Whether any snapshot has it.
        before_ms: Files written at this time or later are kept.
    """
    if is_in_snapshot or _WRITTEN.fullmatch(name) is None:
        return False
    return modified_ms is not None and modified_ms < before_ms


def runs_to_rewrite(
    sizes: Sequence[tuple[int, bool]], *, file_bytes: int, is_ordered: bool
) -> Iterator[list[int]]:
    """The runs of files that are rewritten together, as indexes into `sizes`.

    Args:
        sizes: The size of each file, and whether deletes apply to it, in the order of offsets.
        file_bytes: The requested size.
        is_ordered: Whether files must stay in the order of offsets: then only adjacent files are
            joined.
    """
    run: list[int] = []
    for index, (size, has_deletes) in enumerate(sizes):
        if has_deletes or size < file_bytes * SHARE_LARGE:
            run.append(index)
        elif is_ordered:
            yield from _if_worthwhile(run, sizes)
            run = []
    yield from _if_worthwhile(run, sizes)


def _if_worthwhile(run: list[int], sizes: Sequence[tuple[int, bool]]) -> Iterator[list[int]]:
    if len(run) >= FILES_MIN or any(sizes[index][1] for index in run):
        yield run
