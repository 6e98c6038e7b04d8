"""A writers' plan with a view of a cluster, for tests that set the clock."""

from __future__ import annotations

from dataclasses import replace

from fluss.errors import FlussError, WriterStateError
from fluss.model.paths import PhysicalTablePath, TablePath
from fluss.net.network_settings import Address
from fluss.net.plan_routing import BucketLeaders, ClusterFacts, ClusterView, Leader
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
) -> ClusterView:
    view = ClusterView()
    led = {0: 0, 1: 0, 2: 1} if leaders is None else leaders
    view.learn(
        ClusterFacts(
            coordinator=Address("c", 1),
            tablet_servers={each: Address("t", 2 + each) for each in range(servers)},
            tables=(
                BucketLeaders(
                    path=path,
                    table_id=table_id,
                    partition_id=partition_id,
                    leaders={
                        bucket: None if server is None else Leader(server_id=server, epoch=0)
                        for bucket, server in led.items()
                    },
                ),
            ),
        )
    )
    return view


class Harness:
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
    ) -> WriteBatch:
        batch = WriteBatch(
            route=route, path=path, bucket_id=bucket, body=None, row_count=rows, size_bytes=size
        )
        self.plan.add(batch, now=self.now)
        return batch

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
