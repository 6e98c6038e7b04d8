"""Looks up the ids of partitions by their names, and the names by the ids."""

from __future__ import annotations

from fluss.errors import PartitionNotFoundError
from fluss.hints import Hint, HintKey
from fluss.model.paths import PhysicalTablePath, TablePath
from fluss.net.cluster_client import Cluster


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
    cluster: Cluster, table: TablePath, partition_id: int
) -> PhysicalTablePath:
    """The partition with this id.

    Raises:
        PartitionNotFoundError: The table has no such partition, or it was dropped.
    """
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
