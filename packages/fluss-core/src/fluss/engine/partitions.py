"""The ids of partitions by their names, asked for when needed."""

from __future__ import annotations

from fluss.engine.cluster import Cluster
from fluss.errors import PartitionNotFoundError
from fluss.model.paths import PhysicalTablePath

PARTITION_NOT_EXISTS_CODE = 36


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
            hint="admin.list_partition_infos() lists those there are.",
            table=str(path.table_path),
            partition=path.partition_name,
        )
    return known
