"""Plans how to read the state of buckets: asks for the facts and has a strategy chosen.

`state.plan_state` decides which strategy is chosen. Plans are small, frozen and picklable; they
hold the pin, so reading one twice gives the same rows, whatever is written in between.
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from fluss.connection.connection import TableHandle
from fluss.errors import FlussError, OffsetOutOfRangeError, SnapshotNotFoundError
from fluss.lake.lake_format import LakePart
from fluss.log.extents import fetch_extents
from fluss.model.extent import Extent
from fluss.model.paths import PhysicalTablePath, TableBucket
from fluss.model.tables.table_options import ChangelogImage
from fluss.net.cluster_client import Cluster
from fluss.state.kv_snapshot import KvSnapshot, latest_snapshots
from fluss.state.plan_state import (
    ReadPath,
    StateFacts,
    check_strategy,
    choose_strategy,
    leads_to_pin,
    needs_snapshots,
)
from fluss.wire.api import ApiKey


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeState:
    """The rows that a lake has of one bucket.

    Attributes:
        part: Its files; None where it has no rows.
        end: The offset at which they stand.
    """

    part: LakePart | None
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StatePlan:
    """How to read the state of one bucket.

    Attributes:
        bucket: The bucket.
        pin: The offset of the state: it has all changes before this offset.
        strategy: How it is read.
        why: Why this strategy was chosen, as text.
        snapshot_id: The newest KV snapshot, where one is read.
        lake: The rows that a lake has of the bucket, where it is read and has any.
        lake_end: The offset at which they stand.
    """

    bucket: TableBucket
    pin: int
    strategy: ReadPath
    why: str
    snapshot_id: int | None = None
    lake: LakePart | None = None
    lake_end: int = 0


async def plan_state(
    table: TableHandle, path: PhysicalTablePath, bucket: TableBucket, pin: int, **how: Any
) -> StatePlan:
    """Plan one bucket; see `plan_states`."""
    return (await plan_states(table, {bucket: path}, {bucket: pin}, **how))[bucket]


async def plan_states(
    table: TableHandle,
    places: Mapping[TableBucket, PhysicalTablePath],
    pins: Mapping[TableBucket, int],
    *,
    earliest: Mapping[TableBucket, int] | None = None,
    strategy: str | None = None,
    is_past: bool = False,
    lakes: Mapping[TableBucket, LakeState] | None = None,
) -> dict[TableBucket, StatePlan]:
    """Plan buckets of a primary-key table.

    Args:
        table: The table.
        places: The buckets, and the table or partition that each is of.
        pins: The offset of each bucket at which its state is read.
        earliest: The first offset that each log still has; the leaders are asked without it.
        strategy: How to read all of them; None for the best for each.
        is_past: Whether the user named the pins, and they are not where the logs end now.
        lakes: What a lake has of each bucket; it is read where that leads to the pin.

    Raises:
        FlussError: The state of a bucket cannot be read; the error has table, bucket and hint.
    """
    connection = table.connection
    cluster, info = connection.cluster, table.info
    if earliest is None:
        extents = await fetch_extents(cluster, places, reached=pins)
        earliest = {bucket: extent.earliest for bucket, extent in extents.items()}
        for bucket, extent in extents.items():
            _check_pin(table, bucket, pins[bucket], extent)
    common = StateFacts(
        pin=0,
        earliest=0,
        is_past=is_past,
        offers_scan_kv=await cluster.offers(ApiKey.SCAN_KV),
        snapshot_offset=None,
        has_rocksdb=importlib.util.find_spec("rocksdict") is not None,
        is_full_image=info.options.changelog_image is ChangelogImage.FULL,
        expires=info.options.has_row_ttl,
    )
    facts = {
        bucket: replace(common, pin=pins[bucket], earliest=earliest[bucket]) for bucket in places
    }
    from_lake = {
        bucket: _plan_lake(bucket, facts[bucket], lake)
        for bucket, lake in (lakes or {}).items()
        if strategy is None and leads_to_pin(facts[bucket], lake.end)
    }
    places = {bucket: path for bucket, path in places.items() if bucket not in from_lake}
    asked = {places[each] for each in places if needs_snapshots(strategy, facts[each])}
    answers = await asyncio.gather(*(_snapshots(cluster, path, strategy) for path in asked))
    snapshots = dict(zip(asked, answers, strict=True))
    return from_lake | {
        bucket: _plan(
            table, bucket, facts[bucket], snapshots.get(path, {}).get(bucket.bucket_id), strategy
        )
        for bucket, path in places.items()
    }


def _plan_lake(bucket: TableBucket, facts: StateFacts, lake: LakeState) -> StatePlan:
    return StatePlan(
        bucket=bucket,
        pin=facts.pin,
        strategy="lake",
        why=f"the lake has it as of offset {lake.end}",
        lake=lake.part,
        lake_end=lake.end,
    )


async def _snapshots(
    cluster: Cluster, path: PhysicalTablePath, strategy: str | None
) -> Mapping[int, KvSnapshot]:
    """The newest snapshots, by bucket id; empty for a server that makes none."""
    try:
        return await latest_snapshots(cluster, path)
    except SnapshotNotFoundError:
        if strategy is not None:
            raise
        return {}


def _check_pin(table: TableHandle, bucket: TableBucket, pin: int, extent: Extent) -> None:
    if not 0 <= pin <= extent.end:
        error = OffsetOutOfRangeError(
            f"There is no state at offset {pin}: the log ends at offset {extent.end}.",
            hint=f"Ask for offset {extent.end} or earlier.",
            offset=pin,
        )
        raise _placed(error, table, bucket)


def _plan(
    table: TableHandle,
    bucket: TableBucket,
    facts: StateFacts,
    snapshot: KvSnapshot | None,
    strategy: str | None,
) -> StatePlan:
    if snapshot is not None:
        facts = replace(facts, snapshot_offset=snapshot.log_offset)
    try:
        chosen, why = (
            choose_strategy(facts) if strategy is None else check_strategy(strategy, facts)
        )
    except FlussError as error:
        raise _placed(error, table, bucket) from error
    return StatePlan(
        bucket=bucket,
        pin=facts.pin,
        strategy=chosen,
        why=why,
        snapshot_id=snapshot.snapshot_id if snapshot is not None and chosen == "snapshot" else None,
    )


def _placed(error: FlussError, table: TableHandle, bucket: TableBucket) -> FlussError:
    return error.with_context(
        table=str(table.info.table_path),
        bucket=bucket.bucket_id,
        partition_id=bucket.partition_id,
    )
