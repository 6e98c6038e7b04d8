"""A client's view of a cluster: its servers, and the leader of each bucket.

The view learns from answers to GET_METADATA and forgets what has proved wrong. It asks nothing:
`net.cluster_client` fetches metadata, and `net.plan_retry` decides what follows an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fluss.model.paths import PhysicalTablePath, TableBucket, TablePath
from fluss.model.servers import Address
from fluss.wire import messages
from fluss.wire.table_paths import read_table_path, write_table_path


@dataclass(frozen=True, slots=True, kw_only=True)
class Leader:
    """The tablet server that leads a bucket, and since which epoch."""

    server_id: int
    epoch: int


class ClusterView:
    """The latest known state of a cluster. Not thread-safe: the engine thread owns it."""

    def __init__(self) -> None:
        self.coordinator: Address | None = None
        self.tablet_servers: Mapping[int, Address] = {}
        self._leaders: dict[TableBucket, Leader] = {}
        self._partition_ids: dict[PhysicalTablePath, int] = {}
        self._partition_paths: dict[int, PhysicalTablePath] = {}
        self._table_ids: dict[TablePath, int] = {}
        # The partitions whose counts servers report; those before 1.0 report none.
        self._partition_counts: dict[int, int] = {}
        # How many buckets servers list, by the ids of table and partition.
        self._listed_counts: dict[tuple[int, int | None], int] = {}

    def learn(self, answer: messages.MetadataResponse) -> None:
        """Take in one metadata answer; newer facts replace older ones."""
        if answer.HasField("coordinator_server"):
            server = answer.coordinator_server
            self.coordinator = Address(server.host, server.port)
        if answer.tablet_servers:
            self.tablet_servers = {
                server.node_id: Address(server.host, server.port)
                for server in answer.tablet_servers
            }
        paths: dict[int, TablePath] = {}
        rescaled: set[int] = set()
        for table in answer.table_metadata:
            path = paths[table.table_id] = read_table_path(table.table_path)
            self._learn_table(path, table.table_id)
            self._learn_leaders(table.table_id, None, table.bucket_metadata)
            if table.bucket_count_epoch:
                rescaled.add(table.table_id)
        for partition in answer.partition_metadata:
            if partition.table_id in paths:
                name, partition_id = partition.partition_name, partition.partition_id
                path = paths[partition.table_id]
                self._partition_ids[PhysicalTablePath(path, name)] = partition_id
                self._partition_paths[partition_id] = PhysicalTablePath(path, name)
                self._learn_leaders(partition.table_id, partition_id, partition.bucket_metadata)
                count = partition.bucket_count
                if count <= 0 and partition.table_id in rescaled:
                    count = len(partition.bucket_metadata)
                if count > 0:
                    self._partition_counts[partition_id] = count

    def _learn_table(self, path: TablePath, table_id: int) -> None:
        if self._table_ids.get(path, table_id) != table_id:
            self.forget_table(path)
        self._table_ids[path] = table_id

    def _learn_leaders(
        self,
        table_id: int,
        partition_id: int | None,
        leaders: Sequence[messages.PbBucketMetadata],
    ) -> None:
        if leaders:
            self._listed_counts[table_id, partition_id] = len(leaders)
        for leader in leaders:
            bucket = TableBucket.with_partition(table_id, partition_id, leader.bucket_id)
            if leader.HasField("leader_id"):
                known = Leader(server_id=leader.leader_id, epoch=leader.leader_epoch)
                self._leaders[bucket] = known
            else:  # during an election
                self._leaders.pop(bucket, None)

    def leader_of(self, bucket: TableBucket) -> Leader | None:
        """The leader of a bucket, as far as is known; only servers that are alive count."""
        leader = self._leaders.get(bucket)
        if leader is None or leader.server_id not in self.tablet_servers:
            return None
        return leader

    def bucket_count(self, path: PhysicalTablePath) -> int | None:
        """How many buckets a partition has, where servers report it; it never changes.

        None for a partition that is not known, and where partitions have as many buckets as their
        table: on servers before 1.0, and for a table without partitions. Any thread may call it.
        """
        partition_id = self._partition_ids.get(path)
        return None if partition_id is None else self._partition_counts.get(partition_id)

    def routing_count(self, bucket: TableBucket) -> int | None:
        """The bucket count that a read of a bucket names; None where it is not known."""
        if bucket.partition_id in self._partition_counts:
            return self._partition_counts[bucket.partition_id]
        return self._listed_counts.get((bucket.table_id, bucket.partition_id))

    def forget_leader(self, bucket: TableBucket) -> None:
        """Drop a leader that proved wrong; the next question for it needs new metadata."""
        self._leaders.pop(bucket, None)

    def forget_table(self, path: TablePath) -> None:
        """Forget everything about a table, for example because it was dropped."""
        table_id = self._table_ids.pop(path, None)
        for bucket in [each for each in self._leaders if each.table_id == table_id]:
            del self._leaders[bucket]
        for place in [each for each in self._listed_counts if each[0] == table_id]:
            del self._listed_counts[place]
        for partition in [each for each in self._partition_ids if each.table_path == path]:
            self.forget_partition(partition)

    def table_id(self, path: TablePath) -> int | None:
        """The id of a table, as far as is known; a table that is created again gets another."""
        return self._table_ids.get(path)

    def partition_path(self, partition_id: int) -> PhysicalTablePath | None:
        """The partition with this id, as far as is known."""
        return self._partition_paths.get(partition_id)

    def partition_id(self, path: PhysicalTablePath) -> int | None:
        """The id of a partition, as far as is known."""
        return self._partition_ids.get(path)

    def forget_partition(self, path: PhysicalTablePath) -> None:
        """Drop the id of a partition, for example because it was dropped."""
        partition_id = self._partition_ids.pop(path, None)
        if partition_id is not None:
            self._partition_paths.pop(partition_id, None)
            self._partition_counts.pop(partition_id, None)


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
