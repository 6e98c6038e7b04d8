"""A writers' plan with a view of a cluster, for tests that set the clock."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fluss.errors import FlussError, WriterStateError
from fluss.model.paths import PhysicalTablePath, TablePath
from fluss.net.plan_routing import ClusterView
from fluss.wire import messages as pb
from fluss.wire.table_paths import write_table_path
from fluss.write.plan_sender import SendPlan
from fluss.write.write_batch import Route, WriteBatch, WriterSettings

TABLE = TablePath("db", "t")
PATH = PhysicalTablePath(TABLE)
ROUTE = Route(table_id=7, is_kv=False, schema_id=1)


def view_of(
    path: PhysicalTablePath = PATH,
    *,
    table_id: int = 7,
    partition_id: int | None = None,
    leaders: dict[int, int | None] | None = None,
    servers: int = 2,
    bucket_count: int = 0,
) -> ClusterView:
    view = ClusterView()
    led = {0: 0, 1: 0, 2: 1} if leaders is None else leaders
    view.learn(
        metadata(
            path,
            table_id=table_id,
            partition_id=partition_id,
            leaders=led,
            servers={number: ("t", 2 + number) for number in range(servers)},
            bucket_count=bucket_count,
        )
    )
    return view


def metadata(
    path: PhysicalTablePath,
    *,
    leaders: dict[int, int | None],
    servers: dict[int, tuple[str, int]],
    table_id: int = 7,
    partition_id: int | None = None,
    bucket_count: int = 0,
) -> pb.MetadataResponse:
    """An answer to GET_METADATA about one table, or about one of its partitions."""
    answer = pb.MetadataResponse()
    answer.coordinator_server.MergeFrom(pb.PbServerNode(node_id=9, host="c", port=9))
    for number, (host, port) in servers.items():
        answer.tablet_servers.add(node_id=number, host=host, port=port)
    table = answer.table_metadata.add(
        table_path=write_table_path(path.table_path),
        table_id=table_id,
        schema_id=1,
        table_json=b"",
        created_time=0,
        modified_time=0,
    )
    owner: Any = table
    if path.partition_name is not None:
        owner = answer.partition_metadata.add(
            table_id=table_id, partition_id=partition_id, partition_name=path.partition_name
        )
        owner.bucket_count = bucket_count
    for bucket, server in leaders.items():
        owner.bucket_metadata.add(bucket_id=bucket, leader_id=server, leader_epoch=0)
    return answer


class PlanHarness:
    """A plan, its clock and its view of the cluster; `go` returns the requests to send now."""

    def __init__(self, *, view: ClusterView | None = None, writer_id: int | None = 0, **settings):
        self.plan = SendPlan(replace(WriterSettings(), **settings))
        self.view = view or view_of()
        self.now = 1_000.0
        if writer_id is not None:
            self.plan.take_writer_id(writer_id)

    def add(
        self,
        bucket: int = 0,
        *,
        rows: int = 1,
        size: int = 100,
        route: Route = ROUTE,
        path: PhysicalTablePath = PATH,
        bucket_count: int = 0,
    ) -> WriteBatch:
        batch = self.made(bucket, rows=rows, size=size, route=route, path=path)
        batch.bucket_count = bucket_count
        self.plan.add(batch, now=self.now)
        return batch

    @staticmethod
    def made(
        bucket: int,
        *,
        rows: int = 1,
        size: int = 100,
        route: Route = ROUTE,
        path: PhysicalTablePath = PATH,
        bucket_count: int = 0,
    ) -> WriteBatch:
        return WriteBatch(
            route=route,
            path=path,
            bucket_id=bucket,
            body=None,
            row_count=rows,
            size_bytes=size,
            bucket_count=bucket_count,
        )

    def add_many(self, count: int, **facts) -> list[WriteBatch]:
        return [self.add(**facts) for _ in range(count)]

    def next_requests(self):
        return self.plan.next_requests(self.view, now=self.now)

    def go(self) -> list[tuple[WriteBatch, ...]]:
        return [tuple(each.batches) for each in self.next_requests().requests]

    def sent(self) -> list[WriteBatch]:
        return [batch for batches in self.go() for batch in batches]

    def leave(self) -> None:
        """Send the due requests, as an engine with connections does."""
        for batch in self.sent():
            batch.is_sent = True

    def written(self, *batches: WriteBatch) -> None:
        for batch in batches:
            settled = self.plan.written(batch, offset=batch.sequence, now=self.now)
            assert settled.error is None

    def fail(self, batch: WriteBatch, error: FlussError):
        return self.plan.failed(batch, error, now=self.now, jitter=0.5)

    def later(self, seconds: float) -> None:
        self.now += seconds


def out_of_order(got: int, last: int) -> FlussError:
    return WriterStateError(
        f"Out of order batch sequence for writer 0 at offset 12 in table-bucket "
        f"TableBucket{{tableId=7, bucket=0}} : {got} (incoming batch seq.), "
        f"{last} (current batch seq.)",
        31,
    )
