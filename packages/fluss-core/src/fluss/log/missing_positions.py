"""Looks up what a position lacks before it can be fetched: its partition's name, its offset."""

from __future__ import annotations

import asyncio

from fluss.log.plan_fetch import Position
from fluss.model.offsets import OffsetSpec
from fluss.model.paths import PhysicalTablePath
from fluss.net.cluster_client import Cluster
from fluss.net.list_offsets import list_offsets
from fluss.net.partition_ids import find_partition_path


async def find_name(cluster: Cluster, position: Position) -> PhysicalTablePath:
    """Look up the path of a position's partition by its id.

    Raises:
        PartitionNotFoundError: The table has no such partition.
    """
    partition_id = position.bucket.partition_id
    if partition_id is None:
        return position.path
    return await find_partition_path(cluster, position.path.table_path, partition_id)


async def find_offset(cluster: Cluster, position: Position) -> int:
    """Ask where the log of a position's bucket ends now."""
    spec = OffsetSpec.latest()
    return (await list_offsets(cluster, position.path, [position.bucket], spec))[position.bucket]


async def find_range(cluster: Cluster, position: Position) -> tuple[int, int]:
    """Ask which offsets of a position's bucket can be read: the earliest, and the end."""
    first, last = await asyncio.gather(
        list_offsets(cluster, position.path, [position.bucket], OffsetSpec.earliest()),
        list_offsets(cluster, position.path, [position.bucket], OffsetSpec.latest()),
    )
    return first[position.bucket], last[position.bucket]
