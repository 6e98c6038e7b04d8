"""A log table on a server, written and read with hand-made requests."""

from __future__ import annotations

from fluss.model.schema.schema import Schema
from fluss.model.tables.descriptor import TableDescriptor
from fluss.wire import messages as pb
from tests.support.servers.bucket_logs import SCHEMA, batch_bytes
from tests.support.servers.raw_client import RawConnection

ALL_BYTES = 1 << 24


class LogTable:
    """One bucket of a log table with the columns id and name."""

    def __init__(
        self,
        connection: RawConnection,
        name: str = "events",
        schema: Schema = SCHEMA,
        **descriptor: object,
    ) -> None:
        self.connection = connection
        self.path = pb.PbTablePath(database_name="fluss", table_name=name)
        made = TableDescriptor(schema, **{"bucket_count": 1, **descriptor})
        connection.call(
            pb.CreateTableRequest(
                table_path=self.path, table_json=made.to_json().encode(), ignore_if_exists=True
            )
        )
        self.id = self.info().table_id

    def info(self):
        return self.connection.call(pb.GetTableInfoRequest(table_path=self.path))

    def produce_request(self, *batches: bytes, bucket: int = 0, partition: int | None = None):
        request = pb.ProduceLogRequest(acks=-1, table_id=self.id, timeout_ms=1_000)
        request.buckets_req.add(bucket_id=bucket, records=b"".join(batches), partition_id=partition)
        return request

    def produce(self, *batches: bytes, **where):
        """The bucket's answer, whatever it says."""
        request = self.produce_request(*(batches or (batch_bytes(3),)), **where)
        (answer,) = self.connection.call(request).buckets_resp
        return answer

    def fetch_request(
        self, offset: int = 0, *, wait_ms: int | None = None, projected=None, bucket: int = 0,
        partition: int | None = None, bytes_max: int = ALL_BYTES,
    ):  # fmt: skip
        request = pb.FetchLogRequest(follower_server_id=-1, max_bytes=ALL_BYTES)
        if wait_ms is not None:
            request.max_wait_ms, request.min_bytes = wait_ms, 1
        table = request.tables_req.add(
            table_id=self.id,
            projection_pushdown_enabled=projected is not None,
            projected_fields=projected or (),
        )
        table.buckets_req.add(
            bucket_id=bucket, fetch_offset=offset, max_fetch_bytes=bytes_max,
            partition_id=partition,
        )  # fmt: skip
        return request

    def fetch(self, offset: int = 0, **how):
        """The bucket's answer, whatever it says."""
        (table,) = self.connection.call(self.fetch_request(offset, **how)).tables_resp
        (bucket,) = table.buckets_resp
        return bucket
