"""A client's view of a cluster: its servers, and the leader of each bucket.

The view is filled from metadata answers and forgets what has proved wrong. It sends no requests:
`net.cluster_client` fetches metadata, and `net.plan_retry` decides what follows an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fluss.model.paths import PhysicalTablePath, TableBucket, TablePath
from fluss.model.servers import Address


@dataclass(frozen=True, slots=True, kw_only=True)
class Leader:
    """The tablet server that leads a bucket, and since which epoch."""

    server_id: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketLeaders:
    """The leaders of a table or partition in one metadata answer."""

    path: PhysicalTablePath
    table_id: int
    partition_id: int | None
    leaders: Mapping[int, Leader | None]  # by bucket; None during an election


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """One metadata answer."""

    coordinator: Address | None
    tablet_servers: Mapping[int, Address]
    tables: tuple[BucketLeaders, ...] = ()


class ClusterView:
    """The latest known state of a cluster. Not thread-safe: the engine thread owns it."""

    def __init__(self) -> None:
        self.coordinator: Address | None = None
        self.tablet_servers: Mapping[int, Address] = {}
        self._leaders: dict[TableBucket, Leader] = {}
        self._partition_ids: dict[PhysicalTablePath, int] = {}
        self._partition_paths: dict[int, PhysicalTablePath] = {}
        self._table_ids: dict[TablePath, int] = {}

    def learn(self, facts: ClusterFacts) -> None:
        """Take in one metadata answer; newer facts replace older ones."""
        if facts.coordinator is not None:
            self.coordinator = facts.coordinator
        if facts.tablet_servers:
            self.tablet_servers = dict(facts.tablet_servers)
        for table in facts.tables:
            self._learn_table(table)

    def _learn_table(self, table: BucketLeaders) -> None:
        path = table.path.table_path
        known = self._table_ids.get(path)
        if known is not None and known != table.table_id:
            self.forget_table(path)
        self._table_ids[path] = table.table_id
        if table.partition_id is not None:
            self._partition_ids[table.path] = table.partition_id
            self._partition_paths[table.partition_id] = table.path
        for bucket_id, leader in table.leaders.items():
            bucket = TableBucket.with_partition(table.table_id, table.partition_id, bucket_id)
            if leader is None:
                self._leaders.pop(bucket, None)
            else:
                self._leaders[bucket] = leader

    def leader_of(self, bucket: TableBucket) -> Leader | None:
        """The leader of a bucket, as far as is known; only servers that are alive count."""
        leader = self._leaders.get(bucket)
        if leader is None or leader.server_id not in self.tablet_servers:
            return None
        return leader

    def forget_leader(self, bucket: TableBucket) -> None:
        """Drop a leader that proved wrong; the next question for it needs new metadata."""
        self._leaders.pop(bucket, None)

    def forget_table(self, path: TablePath) -> None:
        """Forget everything about a table, for example because it was dropped."""
        table_id = self._table_ids.pop(path, None)
        for bucket in [each for each in self._leaders if each.table_id == table_id]:
            del self._leaders[bucket]
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
