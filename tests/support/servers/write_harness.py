"""Writers on a cluster, and independent reads of the stored batches; see the fixture `harness`.

Stored batches are read with hand-made requests (`tests.support.servers.raw_client`), so that the
reading side of the client does not check the writing side.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from fluss.admin.admin import AdminCore
from fluss.connection.config_to_settings import connection_settings
from fluss.model.options.config import Config
from fluss.model.paths import PhysicalTablePath, TableBucket, TablePath
from fluss.model.schema.schema import Schema
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.tables.table_info import TableInfo
from fluss.net.cluster_client import Cluster
from fluss.net.engine_thread import engine
from fluss.net.handoff import BlockingSink
from fluss.net.network_settings import Address
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.log.log_batch import LogBatch, iter_log_batches
from fluss.records.log.log_records import read_log_records
from fluss.wire import messages as pb
from fluss.write.write_batch import WriterSettings
from fluss.write.write_result import WriteResultHandle, Written
from fluss.write.writer_cores import AppendCore, UpsertCore
from fluss.write.writer_pool import WriterPool
from tests.support.generators.arrow_rows import rows_of
from tests.support.servers.raw_client import RawClient

WAIT_S = 40


def wait(result: WriteResultHandle) -> Written:
    """Wait for the acknowledgements of written rows, and return their batches, or raise."""
    caller: BlockingSink[Written] = BlockingSink()
    result.subscribe(caller)
    assert caller.wait(WAIT_S), "no answer"
    return caller.result()


class WriteHarness:
    """One connection with its writers, and reads that do not use the client."""

    def __init__(self, bootstrap: str, database: str) -> None:
        self.engine = engine()
        self.database = database
        self.config = Config({"bootstrap.servers": bootstrap})
        self.cluster = self.run(self._connect())
        self.admin = AdminCore(self.cluster)
        self.raw = RawClient(bootstrap)
        self._pools: list[WriterPool] = []
        self._clusters: list[Cluster] = []
        self._names = 0

    def run(self, work: Any) -> Any:
        return self.engine.run(work)

    async def _connect(self) -> Cluster:
        made = Cluster(connection_settings(self.config))
        await made.open()
        return made

    def close(self) -> None:
        for pool in self._pools:
            self.run(pool.close(timeout_s=10))
        for cluster in [*self._clusters, self.cluster]:
            self.run(cluster.close())
        self.raw.close()

    # --- writing ------------------------------------------------------------------------------

    def table(
        self, schema: pa.Schema, *, primary_keys: Any = None, auto: Any = None, **facts: Any
    ) -> TableInfo:
        """Create a table."""
        self._names += 1
        path = TablePath(self.database, f"t{self._names}")
        facts = {"bucket_count": 1} | facts
        descriptor = TableDescriptor(
            Schema(schema, primary_keys, auto_increment_column=auto), **facts
        )
        self.run(self.admin.create_table(path, descriptor, ignore_if_exists=False))
        return self.run(self.admin.get_table_info(path))

    def pool(self, **settings: Any) -> WriterPool:
        """Return a pool of writers with its own settings."""
        made = replace(WriterSettings.of(self.config), **settings)
        pool = WriterPool(self.cluster, made, engine=self.engine)
        self._pools.append(pool)
        return pool

    def pool_behind(self, proxy: Any, *, request_timeout_ms: int = 5_000, **settings: Any):
        """Return a pool that reaches the tablet server through a proxy only."""
        (server,) = self.cluster.view.tablet_servers.values()
        facts = connection_settings(self.config)
        facts = replace(
            facts,
            address_map={server: Address(proxy.host, proxy.port)},
            request_timeout_ms=request_timeout_ms,
        )
        cluster = Cluster(facts)
        self.run(cluster.open())
        self._clusters.append(cluster)
        made = replace(
            WriterSettings.of(self.config), request_timeout_ms=request_timeout_ms, **settings
        )
        pool = WriterPool(cluster, made, engine=self.engine)
        self._pools.append(pool)
        return pool

    def appender(self, table: TableInfo, **settings: Any) -> AppendCore:
        return self.pool(**settings).append_core(table)

    def upserter(self, table: TableInfo, *, pool: WriterPool | None = None, **facts: Any):
        core: UpsertCore = (pool or self.pool()).upsert_core(table, **facts)
        return core

    def flush(self, core: Any) -> None:
        self.run(core.flush())

    # --- reading ------------------------------------------------------------------------------

    def batches(
        self, table: TableInfo, bucket: int = 0, *, partition: str | None = None
    ) -> list[LogBatch]:
        """Return the batches of one bucket's log with verified checksums."""
        cluster = self.cluster
        path = PhysicalTablePath(table.table_path, partition)
        self.run(cluster.refresh([path]))
        partition_id = None if partition is None else cluster.view.partition_id(path)
        leader = cluster.view.leader_of(
            TableBucket.with_partition(table.table_id, partition_id, bucket)
        )
        assert leader is not None
        found: list[LogBatch] = []
        offset = 0
        while True:
            request = pb.FetchLogRequest(follower_server_id=-1, max_bytes=1 << 26)
            asked = request.tables_req.add(
                table_id=table.table_id, projection_pushdown_enabled=False
            )
            asked.buckets_req.add(
                bucket_id=bucket,
                fetch_offset=offset,
                max_fetch_bytes=1 << 26,
                partition_id=partition_id,
            )
            answer = self.raw.call(request, to=leader.server_id)
            (bucket_answer,) = answer.tables_resp[0].buckets_resp
            assert not bucket_answer.HasField("error_code"), bucket_answer.error_message
            new = list(iter_log_batches(bucket_answer.records))
            if not new:
                return found
            for batch in new:
                batch.verify_crc()
            found += new
            offset = new[-1].next_offset

    def rows(
        self, table: TableInfo, bucket: int = 0, *, partition: str | None = None
    ) -> list[dict[str, Any]]:
        """The rows of one bucket's log."""
        return [row for _, row in self.changes(table, bucket, partition=partition)]

    def changes(
        self, table: TableInfo, bucket: int = 0, *, partition: str | None = None
    ) -> list[tuple[int, dict[str, Any]]]:
        """The changes of one bucket: type and row."""
        layout = BatchLayout.of_schema(table.schema)
        found = []
        for batch in self.batches(table, bucket, partition=partition):
            if not batch.record_count:
                continue
            rows, types = read_log_records(batch, layout, table.options.log_format)
            kinds = [0] * rows.num_rows if types is None else types.tolist()
            found += zip(kinds, rows.to_pylist(), strict=True)
        return found

    def physical_rows(self, table: TableInfo) -> list[tuple[Any, ...]]:
        """The rows of bucket 0 as physical values."""
        layout = BatchLayout.of_schema(table.schema)
        return [
            row
            for batch in self.batches(table)
            for row in rows_of(batch.record_batch(layout), layout.types)
        ]

    def state(self, table: TableInfo) -> dict[Any, dict[str, Any]]:
        """Replay a primary-key table from its changelog, all buckets together."""
        keys = table.physical_primary_keys
        state = {}
        for bucket in range(table.num_buckets):
            for kind, row in self.changes(table, bucket):
                key = tuple(row[each] for each in keys)
                if kind in (1, 3):
                    state[key] = row
                elif kind == 4:
                    del state[key]
        return state
