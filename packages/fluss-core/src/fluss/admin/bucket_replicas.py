"""Which tablet servers hold the buckets of a table, and which of them leads each.

The answer is the cluster's own view at this moment. Clients that write or read keep another, which
they correct when a server refuses (`net.plan_routing`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fluss.connection.describe_table import missing_table
from fluss.errors import ServerError, TableNotFoundError
from fluss.model.paths import PhysicalTablePath, TablePath
from fluss.net.cluster_client import Cluster
from fluss.net.plan_routing import write_question
from fluss.wire import messages

if TYPE_CHECKING:
    from fluss.wire import messages as pb

PARTITIONS_PER_QUESTION: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketReplicas:
    """Where one bucket is.

    Attributes:
        partition_name: The partition; None where the table has none.
        bucket_id: The bucket.
        leader: The tablet server that leads it; None while none is elected.
        replicas: The tablet servers that hold it.
        in_sync: Those that have all its rows; None where the cluster does not report them.
    """

    partition_name: str | None
    bucket_id: int
    leader: int | None
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...] | None


async def bucket_replicas(
    cluster: Cluster, path: TablePath, partitions: Sequence[str] | None
) -> list[BucketReplicas]:
    """Ask where the buckets of a table are.

    Args:
        cluster: The cluster.
        path: The table.
        partitions: The names of its partitions; None where it is not partitioned.

    Raises:
        TableNotFoundError: There is no such table; the hint names the nearest.
    """
    if partitions is None:
        return await _ask(cluster, path, [PhysicalTablePath(path)])
    found: list[BucketReplicas] = []
    for first in range(0, len(partitions), PARTITIONS_PER_QUESTION):
        chunk = partitions[first : first + PARTITIONS_PER_QUESTION]
        found += await _ask(cluster, path, [PhysicalTablePath(path, each) for each in chunk])
    return found


async def _ask(
    cluster: Cluster, path: TablePath, places: Sequence[PhysicalTablePath]
) -> list[BucketReplicas]:
    question = write_question(places)
    try:
        answer = await cluster.ask_any(question, messages.MetadataResponse)
    except TableNotFoundError as error:
        raise await missing_table(cluster, path) from error
    except ServerError as error:
        # 0.9.1 reports a table or a partition that was dropped as an unknown error.
        raise await missing_table(cluster, path) from error
    names: list[tuple[str | None, Iterable[pb.PbBucketMetadata]]] = [
        (each.partition_name, each.bucket_metadata) for each in answer.partition_metadata
    ]
    if places[0].partition_name is None:
        names = [(None, each.bucket_metadata) for each in answer.table_metadata]
    return [
        _read(name, bucket)
        for name, buckets in names
        for bucket in sorted(buckets, key=lambda each: each.bucket_id)
    ]


def _read(partition_name: str | None, bucket: pb.PbBucketMetadata) -> BucketReplicas:
    return BucketReplicas(
        partition_name=partition_name,
        bucket_id=bucket.bucket_id,
        leader=bucket.leader_id if bucket.HasField("leader_id") else None,
        replicas=tuple(bucket.replica_id),
        in_sync=tuple(bucket.isr) or None,
    )
