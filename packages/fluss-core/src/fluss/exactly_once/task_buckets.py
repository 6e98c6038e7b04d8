"""Finds the buckets of tables and partitions before anything is written to them.

A partition that does not exist is created, as its first row would create it.
"""

from __future__ import annotations

from collections.abc import Sequence

from fluss.errors import PartitionNotFoundError
from fluss.model.paths import PhysicalTablePath, TableBucket
from fluss.model.tables.table_info import TableInfo
from fluss.net.cluster_client import Cluster
from fluss.write.partition_finder import PathFinder
from fluss.write.write_batch import WriterSettings

LOOKS_MAX = 20


async def buckets_of(
    cluster: Cluster,
    paths: Sequence[PhysicalTablePath],
    *,
    table: TableInfo,
    settings: WriterSettings,
) -> dict[TableBucket, PhysicalTablePath]:
    """Find all buckets of a table, or of some of its partitions.

    Raises:
        PartitionNotFoundError: There is no such partition, and none may be created.
    """
    finder = PathFinder(cluster, settings)
    finder.partition_keys[table.table_path] = tuple(table.partition_keys)
    for _ in range(LOOKS_MAX):
        missing = _missing(cluster, paths)
        if not missing:
            break
        async for _, error in finder.find(missing):
            raise error
    for each in _missing(cluster, paths):
        raise PartitionNotFoundError(
            f"The partition {each.partition_name!r} of {table.table_path} was created and is not "
            "there.",
            hint="Does another program drop it at the same time?",
            table=str(table.table_path),
            partition=each.partition_name,
        )
    return {
        TableBucket.with_partition(table.table_id, _id_of(cluster, path), bucket): path
        for path in paths
        for bucket in range(table.num_buckets)
    }


def _missing(cluster: Cluster, paths: Sequence[PhysicalTablePath]) -> list[PhysicalTablePath]:
    named = [each for each in paths if each.partition_name is not None]
    return [each for each in named if cluster.view.partition_id(each) is None]


def _id_of(cluster: Cluster, path: PhysicalTablePath) -> int | None:
    return None if path.partition_name is None else cluster.view.partition_id(path)
