"""Decides which snapshots of a lake expire, and which of its files are written again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from fluss_lake.lake_errors import LakeMismatchError
from fluss_lake.tiering.plan_round import LakeCommit

# A file of at least this share of the requested size is large enough.
SHARE_LARGE: Final = 0.75
# Fewer small files are not worth the work.
FILES_MIN: Final = 2


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

    Kept are: the newest `keep_last` of the branch, those that branches and tags name, the one that
    the cluster knows, the newest of a tiering service, which the cluster may not know yet, and all
    that are not older than `before_ms`.

    Args:
        table: The table's name, for errors.
        known_id: The snapshot that the cluster knows.
        commits: The snapshots of the table's branch, the newest first.
        times_ms: When each snapshot of the table was made.
        before_ms: Snapshots since then are kept.
        keep_last: How many are kept at least.
        named: Those that branches and tags name.

    Raises:
        LakeMismatchError: The lake does not have the snapshot that the cluster knows.
    """
    if known_id is not None and known_id not in times_ms:
        raise LakeMismatchError(
            f"The lake of {table} does not have the snapshot {known_id}, which the cluster knows.",
            hint="Nothing was expired. Was the table rolled back?",
            table=table,
            snapshot_id=known_id,
        )
    kept = {each.snapshot_id for each in commits[: max(1, keep_last)]} | set(named)
    kept |= {each.snapshot_id for each in commits if each.is_tiered and each is _newest(commits)}
    if known_id is not None:
        kept.add(known_id)
    return sorted(
        each for each, at_ms in times_ms.items() if at_ms < before_ms and each not in kept
    )


def _newest(commits: Iterable[LakeCommit]) -> LakeCommit | None:
    return next((each for each in commits if each.is_tiered), None)


def runs_to_rewrite(
    sizes: Sequence[tuple[int, bool]], *, file_bytes: int, is_ordered: bool
) -> Iterator[list[int]]:
    """The files that are written again together, by their places.

    Args:
        sizes: The size of each file, and whether deletes apply to it, in the order of offsets.
        file_bytes: The requested size.
        is_ordered: Whether files must stay in the order of offsets: only neighbours are joined.
    """
    run: list[int] = []
    for place, (size, has_deletes) in enumerate(sizes):
        if has_deletes or size < file_bytes * SHARE_LARGE:
            run.append(place)
        elif is_ordered:
            yield from _worth(run, sizes)
            run = []
    yield from _worth(run, sizes)


def _worth(run: list[int], sizes: Sequence[tuple[int, bool]]) -> Iterator[list[int]]:
    if len(run) >= FILES_MIN or any(sizes[each][1] for each in run):
        yield run
