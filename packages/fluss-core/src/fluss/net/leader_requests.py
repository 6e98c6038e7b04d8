"""Asks the leaders of buckets: one request to each server, for all of its buckets.

Partitions are found by name or by id, because requests name them by id and users by name.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias, TypeVar

from fluss.errors import FlussError, PartitionNotFoundError
from fluss.hints import Hint, HintKey
from fluss.model.paths import PhysicalTablePath, TableBucket, TablePath
from fluss.net.cluster_client import Cluster

T = TypeVar("T")

# Buckets, and the table or partition of each.
Places: TypeAlias = Mapping[TableBucket, PhysicalTablePath]
# Asks one server for some of its buckets.
Ask: TypeAlias = Callable[[int, list[TableBucket]], Awaitable[Mapping[TableBucket, T | FlussError]]]


async def by_leader(cluster: Cluster, places: Places) -> dict[int, list[TableBucket]]:
    """Group buckets by the server that leads each; unknown leaders are asked for."""
    unknown = [path for bucket, path in places.items() if cluster.view.leader_of(bucket) is None]
    if unknown:
        await cluster.refresh(dict.fromkeys(unknown))
    grouped: dict[int, list[TableBucket]] = defaultdict(list)
    for bucket, path in places.items():
        grouped[(await cluster.leader(path, bucket)).server_id].append(bucket)
    return grouped


async def ask_leaders(cluster: Cluster, places: Places, ask: Ask[T]) -> dict[TableBucket, T]:
    """Ask the leaders of buckets; those that a server refuses are asked again.

    Args:
        cluster: The cluster.
        places: The buckets.
        ask: Asks one server for all of its buckets.

    Raises:
        FlussError: A bucket was refused, and a retry cannot help, or no time is left.
    """
    found: dict[TableBucket, T] = {}

    async def attempt() -> None:
        missing = {bucket: path for bucket, path in places.items() if bucket not in found}
        leaders = await by_leader(cluster, missing)
        answers = await asyncio.gather(*(ask(*server) for server in leaders.items()))
        failed: FlussError | None = None
        for answer in answers:
            for bucket, fact in answer.items():
                if isinstance(fact, FlussError):
                    cluster.view.forget_leader(bucket)
                    failed = fact
                else:
                    found[bucket] = fact
        if failed is not None:
            raise failed

    if places:
        await cluster.retrying(attempt)
    return found


async def find_partition_id(cluster: Cluster, path: PhysicalTablePath) -> int | None:
    """The id of a partition; None for a table without partitions.

    Raises:
        PartitionNotFoundError: The table has no such partition.
    """
    if path.partition_name is None:
        return None
    known = cluster.view.partition_id(path)
    if known is None:
        await cluster.retrying(lambda: cluster.refresh([path]))
        known = cluster.view.partition_id(path)
    if known is None:
        raise PartitionNotFoundError(
            f"Table '{path.table_path}' has no partition '{path.partition_name}'.",
            hint=Hint(HintKey.LIST_PARTITIONS, table=str(path.table_path)),
            table=str(path.table_path),
            partition=path.partition_name,
        )
    return known


async def find_partition_path(
    cluster: Cluster, table: TablePath, partition_id: int | None
) -> PhysicalTablePath:
    """The partition with this id.

    Raises:
        PartitionNotFoundError: The table has no such partition, or it was dropped.
    """
    if partition_id is None:
        return PhysicalTablePath(table)
    known = cluster.view.partition_path(partition_id)
    if known is None:
        try:
            await cluster.retrying(lambda: cluster.refresh_partition(table, partition_id))
        except PartitionNotFoundError as error:
            raise _no_such_id(table, partition_id) from error
        known = cluster.view.partition_path(partition_id)
    if known is None or known.table_path != table:
        raise _no_such_id(table, partition_id)
    return known


def _no_such_id(table: TablePath, partition_id: int) -> PartitionNotFoundError:
    return PartitionNotFoundError(
        f"Table '{table}' has no partition with the id {partition_id}.",
        hint=Hint(HintKey.LIST_PARTITIONS, table=str(table)),
        table=str(table),
        partition_id=partition_id,
    )
