"""Finds older snapshots of a lake, for states before the newest snapshot.

An older snapshot has the state of a bucket at the offset up to which it goes. From there the
changelog leads to a later offset, where the log still begins early enough. Only the cluster says
how far a snapshot goes: it keeps that for as long as the tiering service wants it to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import anyio

from fluss.admin.admin import admin_of
from fluss.connection.connection import TableHandle
from fluss.errors import SnapshotNotFoundError
from fluss.lake.lake_format import LakePart, the_format
from fluss.model.paths import TableBucket
from fluss.model.predicates.predicate import Predicate
from fluss.state.state_planner import LakeState

# At most so many snapshots are requested, the newest first.
SNAPSHOTS_MAX: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRequest:
    """A requested state.

    Attributes:
        partition_name: The partition of its bucket.
        pin: The offset of the state.
        earliest: The first offset that the log of the bucket still has.
    """

    partition_name: str | None
    pin: int
    earliest: int

    def is_answered_from(self, end: int) -> bool:
        """Whether a snapshot that ends at this offset, with the log after it, gives the state."""
        return end == self.pin or self.earliest <= end <= self.pin


@dataclass(slots=True)
class Found:
    """The states that older snapshots have.

    Attributes:
        states: The stored state of each bucket, to which the changes up to its pin are applied.
        offsets: The offsets with a stored state, by bucket, the newest first.
    """

    states: dict[TableBucket, LakeState] = field(default_factory=dict)
    offsets: dict[TableBucket, list[int]] = field(default_factory=dict)


async def find_past_states(
    table: TableHandle,
    requested: Mapping[TableBucket, PastRequest],
    *,
    before: int,
    predicate: Predicate | None,
) -> Found:
    """Find the states of buckets in the snapshots that both the lake and the cluster still have.

    Args:
        table: The table.
        requested: The requested states.
        before: The snapshot that was searched already.
        predicate: The condition by which files are pruned.
    """
    offered = the_format(str(table.info.options.datalake_format), table.info)
    settings = table.connection.lake_settings()
    listing = partial(offered.snapshots, table.info, settings)
    listed = await anyio.to_thread.run_sync(listing)
    chosen: dict[TableBucket, tuple[int, int]] = {}
    found = Found()
    for snapshot in [each for each in listed if each.snapshot_id != before][:SNAPSHOTS_MAX]:
        if len(chosen) == len(requested):
            break
        ends = await _ends(table, snapshot.snapshot_id)
        for bucket, request in requested.items():
            end = ends.get(bucket)
            if end is None or bucket in chosen:
                continue
            found.offsets.setdefault(bucket, []).append(end)
            if request.is_answered_from(end):
                chosen[bucket] = snapshot.snapshot_id, end
    for snapshot_id in {snapshot_id for snapshot_id, _ in chosen.values()}:
        work = partial(offered.open, table.info, snapshot_id, settings)
        contents = await anyio.to_thread.run_sync(work)
        parts: dict[tuple[str | None, int], LakePart] = {
            (each.partition_name, each.bucket_id): each for each in contents.parts(predicate)
        }
        for bucket, (of, end) in chosen.items():
            if of == snapshot_id:
                place = requested[bucket].partition_name, bucket.bucket_id
                found.states[bucket] = LakeState(part=parts.get(place), end=end)
    return found


async def _ends(table: TableHandle, snapshot_id: int) -> Mapping[TableBucket, int]:
    """The offset at which a snapshot ends, by bucket; empty if the cluster does not know it."""
    try:
        admin = admin_of(table.connection)
        known = await admin.get_lake_snapshot(table.info.table_path, snapshot_id)
    except SnapshotNotFoundError:
        return {}
    return known.table_buckets_offset
