"""The lake snapshots of a table that a server knows: pure rules, and their JSON in the catalog.

A worker reports each snapshot that it commits to the lake, with a file of the snapshot's offsets.
Usually the server keeps only the newest. Java: `LakeTable`, `LakeTableHelper`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSnapshot:
    """A snapshot of the lake.

    Attributes:
        snapshot_id: The snapshot's id.
        tiered: The name of the file with the snapshot's offsets.
        readable: The name of the file with the offsets up to which readers can read the snapshot;
            None if they are unknown.
    """

    snapshot_id: int
    tiered: str
    readable: str | None = None

    @property
    def files(self) -> set[str]:
        """The names of its files."""
        return {self.tiered} if self.readable is None else {self.tiered, self.readable}


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeRecord:
    """The record of a table's lake.

    Attributes:
        snapshots: The known snapshots, the newest last.
        tiered_ms: When the newest snapshot was committed; 0 if there is none.
    """

    snapshots: tuple[KnownSnapshot, ...] = ()
    tiered_ms: int = 0

    def find(self, snapshot_id: int | None) -> KnownSnapshot | None:
        """Return a snapshot by its id; None returns the newest."""
        if snapshot_id is None:
            return self.snapshots[-1] if self.snapshots else None
        return next((known for known in self.snapshots if known.snapshot_id == snapshot_id), None)

    @property
    def readable(self) -> tuple[int, str] | None:
        """The newest snapshot whose readable offsets are known, and their file."""
        for snapshot in reversed(self.snapshots):
            if snapshot.readable is not None:
                return snapshot.snapshot_id, snapshot.readable
        return None

    @property
    def files(self) -> set[str]:
        """The names of the files of all snapshots."""
        return set[str]().union(*(known.files for known in self.snapshots))

    def with_snapshot(
        self, added: KnownSnapshot, *, earliest_kept: int | None, now_ms: int
    ) -> LakeRecord:
        """Return the record with a new snapshot, and without those that are not kept.

        Args:
            added: The new snapshot. If the newest one has the same id, it is replaced.
            earliest_kept: The id of the first snapshot that is kept. An unknown id, such as -1,
                keeps all; None keeps only the new one.
            now_ms: The current time.
        """
        known = self.snapshots
        if known and known[-1].snapshot_id == added.snapshot_id:
            # A worker that did not receive the response has retried its request.
            known = known[:-1]
        if earliest_kept is None:
            known = ()
        else:
            ids = [each.snapshot_id for each in known]
            known = known[ids.index(earliest_kept) :] if earliest_kept in ids else known
        return LakeRecord(snapshots=(*known, added), tiered_ms=now_ms)

    def to_json_object(self) -> dict[str, Any]:
        """Return its form in JSON."""
        return {
            "tiered": self.tiered_ms,
            "snapshots": [
                [each.snapshot_id, each.tiered, each.readable] for each in self.snapshots
            ],
        }


def record_from_json(content: Mapping[str, Any] | None) -> LakeRecord:
    """Read the form in JSON; None is a record without snapshots."""
    if content is None:
        return LakeRecord()
    return LakeRecord(snapshots=_snapshots(content["snapshots"]), tiered_ms=int(content["tiered"]))


def _snapshots(listed: Sequence[Sequence[Any]]) -> tuple[KnownSnapshot, ...]:
    return tuple(
        KnownSnapshot(snapshot_id=snapshot_id, tiered=tiered, readable=readable)
        for snapshot_id, tiered, readable in listed
    )
