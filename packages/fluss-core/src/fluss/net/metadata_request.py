"""GET_METADATA: from paths of tables to a request, and from its answer to facts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fluss.model.paths import PhysicalTablePath
from fluss.model.servers import Address
from fluss.net.plan_routing import BucketLeaders, ClusterFacts, Leader
from fluss.wire import messages
from fluss.wire.table_paths import read_table_path, write_table_path


def write_question(
    paths: Sequence[PhysicalTablePath], *, partition_ids: Sequence[int] = ()
) -> messages.MetadataRequest:
    """Make a request about the cluster, and about these tables and partitions."""
    request = messages.MetadataRequest(partitions_id=partition_ids)
    for table in dict.fromkeys(each.table_path for each in paths):
        # Partitions are resolved only within the tables named in the same request.
        request.table_path.append(write_table_path(table))
    for path in paths:
        if path.partition_name is None:
            continue
        partition = path.table_path
        request.partitions_path.add(
            database_name=partition.database_name,
            table_name=partition.table_name,
            partition_name=path.partition_name,
        )
    return request


def read_facts(answer: messages.MetadataResponse) -> ClusterFacts:
    """Read the servers, tables and partitions of an answer."""
    tables = [
        BucketLeaders(
            path=PhysicalTablePath(read_table_path(table.table_path)),
            table_id=table.table_id,
            partition_id=None,
            leaders=_leaders(table.bucket_metadata),
        )
        for table in answer.table_metadata
    ]
    paths_by_id = {each.table_id: each.path.table_path for each in tables}
    partitions = [
        BucketLeaders(
            path=PhysicalTablePath(paths_by_id[partition.table_id], partition.partition_name),
            table_id=partition.table_id,
            partition_id=partition.partition_id,
            leaders=_leaders(partition.bucket_metadata),
        )
        for partition in answer.partition_metadata
        if partition.table_id in paths_by_id
    ]
    coordinator = answer.coordinator_server if answer.HasField("coordinator_server") else None
    return ClusterFacts(
        coordinator=None if coordinator is None else Address(coordinator.host, coordinator.port),
        tablet_servers={
            each.node_id: Address(each.host, each.port) for each in answer.tablet_servers
        },
        tables=(*tables, *partitions),
    )


def _leaders(buckets: Iterable[messages.PbBucketMetadata]) -> dict[int, Leader | None]:
    return {
        each.bucket_id: Leader(server_id=each.leader_id, epoch=each.leader_epoch)
        if each.HasField("leader_id")
        else None
        for each in buckets
    }
