"""A cluster of one scripted server that leads one table, with logs that the test fills.

It responds as a server does, unless a test overrides that: `faults` has error codes for a bucket,
one per fetch; `on_fetch` gets every fetch first and may return the response. `fetches` records the
requested fetches.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Self

import numpy as np
import pyarrow as pa

from fluss.model.paths import TablePath
from fluss.model.schema.schema import Schema
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.tables.table_options import ArrowCompression
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.arrow.compression import BodyCodec
from fluss.records.arrow.projection import Projection, project_log_batch
from fluss.records.convert.cast import to_wire_batch
from fluss.records.log.log_batch import iter_log_batches
from fluss.records.log.log_writer import arrow_log_body, write_log_batch
from fluss.wire import messages as pb
from fluss.wire.api import ApiKey
from tests.support.scripted.scripted_peer import Request, ScriptedPeer, api_versions, error, success

PATH = TablePath("db", "t")
TABLE_ID = 7
SERVER_ID = 1
PLAIN = BodyCodec(ArrowCompression.NONE)
SERVED = [
    ApiKey.API_VERSIONS,
    ApiKey.GET_METADATA,
    ApiKey.GET_TABLE_INFO,
    ApiKey.GET_TABLE_SCHEMA,
    ApiKey.FETCH_LOG,
    ApiKey.LIST_OFFSETS,
    ApiKey.LOOKUP,
    ApiKey.PREFIX_LOOKUP,
]


@dataclass(frozen=True, kw_only=True)
class StoredBatch:
    """One batch of a log."""

    data: bytes
    base: int
    end: int


def batch_bytes(
    rows: pa.RecordBatch,
    base_offset: int,
    *,
    schema: Schema,
    schema_id: int = 1,
    change_types: Sequence[int] | None = None,
) -> bytes:
    """A log batch as a leader stores it."""
    layout = BatchLayout.of_schema(schema)
    kinds = None if change_types is None else np.array(change_types, dtype=np.uint8)
    body = arrow_log_body(to_wire_batch(rows, layout), PLAIN, change_types=kinds)
    return b"".join(
        write_log_batch(body, schema_id=schema_id, base_offset=base_offset, commit_timestamp=1)
    )


Answer = pb.FetchLogResponse | bytes | None


@dataclass
class ScriptedCluster:
    """One server, one table."""

    schema: Schema
    bucket_count: int = 1
    partition: tuple[int, str] | None = None
    properties: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.table_id = TABLE_ID
        self.exists = True
        self.leads = True
        self.schemas = {1: self.schema}
        self.logs: dict[int, list[StoredBatch]] = defaultdict(list)
        self.high_watermarks: dict[int, int] = {}
        self.faults: dict[int, deque[int]] = defaultdict(deque)
        self.refused_requests: deque[int] = deque()
        self.values: dict[bytes, bytes | None] = {}
        self.lookup_faults: deque[int] = deque()
        self.fetches: list[Any] = []
        self.lookups: list[Any] = []
        self.asked: list[ApiKey] = []
        self.on_fetch: Callable[[Any], Answer | str] | None = None
        self.hold_lookups = threading.Event()
        self.hold_lookups.set()
        self.address: tuple[str, int] | None = None  # advertised instead of its own
        self.peer = ScriptedPeer(self._answer)

    def __enter__(self) -> Self:
        self.peer.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.hold_lookups.set()
        self.peer.__exit__(*error)

    @property
    def bootstrap(self) -> str:
        return f"{self.peer.host}:{self.peer.port}"

    # --- its logs -----------------------------------------------------------------------------

    def append(
        self, columns: dict[str, list[Any]], bucket: int = 0, *, schema_id: int = 1, **facts: Any
    ) -> StoredBatch:
        """Add a batch at the end of a log."""
        schema = self.schemas[schema_id]
        rows = pa.RecordBatch.from_pydict(columns, schema=schema.to_arrow())
        base = self.end(bucket)
        data = batch_bytes(rows, base, schema=schema, schema_id=schema_id, **facts)
        return self.store(data, base, base + max(rows.num_rows, 1), bucket)

    def store(self, data: bytes, base: int, end: int, bucket: int = 0) -> StoredBatch:
        """Add bytes as a batch."""
        stored = StoredBatch(data=data, base=base, end=end)
        self.logs[bucket].append(stored)
        return stored

    def end(self, bucket: int) -> int:
        log = self.logs[bucket]
        return log[-1].end if log else 0

    # --- responses ----------------------------------------------------------------------------

    def _answer(self, request: Request) -> bytes | None:
        api = ApiKey(request.api_key)
        self.asked.append(api)
        if api is ApiKey.API_VERSIONS:
            return success(request, api_versions(*SERVED))
        name = api.message
        body = getattr(pb, f"{name}Request").FromString(request.body)
        answer = getattr(self, f"_{api.name.lower()}")(body)
        if isinstance(answer, int):
            return error(request, answer, f"refused with {answer}")
        if answer is None or isinstance(answer, bytes):
            return answer
        return success(request, answer.SerializeToString())

    def _get_metadata(self, asked: Any) -> Any:
        host, port = self.address or (self.peer.host, self.peer.port)
        node = pb.PbServerNode(node_id=SERVER_ID, host=host, port=port)
        answer = pb.MetadataResponse(coordinator_server=node, tablet_servers=[node])
        if asked.table_path and not self.exists:
            return 7
        for path in asked.table_path:
            table = answer.table_metadata.add(
                table_path=path,
                table_id=self.table_id,
                schema_id=max(self.schemas),
                table_json=b"{}",
                created_time=0,
                modified_time=0,
            )
            if self.partition is None:
                self._add_buckets(table)
        for requested in asked.partitions_path:
            if self.partition is None or requested.partition_name != self.partition[1]:
                return 36
        if self.partition is not None and (asked.partitions_path or asked.partitions_id):
            if any(each != self.partition[0] for each in asked.partitions_id):
                return 36
            found = answer.partition_metadata.add(
                table_id=self.table_id,
                partition_name=self.partition[1],
                partition_id=self.partition[0],
            )
            self._add_buckets(found)
        return answer

    def _add_buckets(self, where: Any) -> None:
        for bucket_id in range(self.bucket_count):
            bucket = where.bucket_metadata.add(bucket_id=bucket_id, leader_epoch=0)
            if self.leads:
                bucket.leader_id = SERVER_ID

    def _get_table_info(self, _: Any) -> Any:
        if not self.exists:
            return 7
        newest = max(self.schemas)
        descriptor = TableDescriptor(
            self.schemas[newest],
            bucket_count=self.bucket_count,
            partition_keys=["p"] if self.partition else [],
            properties=self.properties,
        )
        return pb.GetTableInfoResponse(
            table_id=self.table_id,
            schema_id=newest,
            table_json=descriptor.to_json().encode(),
            created_time=0,
            modified_time=0,
        )

    def _get_table_schema(self, asked: Any) -> Any:
        found = self.schemas.get(asked.schema_id)
        if found is None:
            return 9
        text = found.to_json()
        data = text if isinstance(text, bytes) else text.encode()
        return pb.GetTableSchemaResponse(schema_id=asked.schema_id, schema_json=data)

    def _list_offsets(self, asked: Any) -> Any:
        answer = pb.ListOffsetsResponse()
        for bucket_id in asked.bucket_id:
            log = self.logs[bucket_id]
            first = log[0].base if log else 0
            latest = self.end if asked.follower_server_id >= 0 else self.high_watermark
            offset = first if asked.offset_type == 0 else latest(bucket_id)
            answer.buckets_resp.add(bucket_id=bucket_id, offset=offset)
        return answer

    def high_watermark(self, bucket: int) -> int:
        return self.high_watermarks.get(bucket, self.end(bucket))

    def _fetch_log(self, asked: Any) -> Any:
        self.fetches.append(asked)
        if self.refused_requests:
            return self.refused_requests.popleft()
        if self.on_fetch is not None:
            answer = self.on_fetch(asked)
            if answer != "as usual":
                return answer
        return self.fetch(asked)

    def fetch(self, asked: Any) -> Any:
        """Return the response of a healthy server."""
        (table,) = asked.tables_req
        answer = pb.FetchLogResponse()
        found = answer.tables_resp.add(table_id=table.table_id)
        room, has_rows = asked.max_bytes, False
        for requested in table.buckets_req:
            bucket = found.buckets_resp.add(bucket_id=requested.bucket_id)
            if requested.HasField("partition_id"):
                bucket.partition_id = requested.partition_id
            records = self._fill(table, requested, bucket, room, at_least_one=not has_rows)
            room -= len(records)
            has_rows = has_rows or bool(records)
        if asked.HasField("min_bytes") and not has_rows:
            time.sleep(min(asked.max_wait_ms, 10) / 1_000)
        return answer

    def _fill(
        self, table: Any, requested: Any, bucket: Any, room: int, *, at_least_one: bool
    ) -> bytes:
        bucket_id, offset = requested.bucket_id, requested.fetch_offset
        if table.table_id != self.table_id or not self.exists:
            bucket.error_code = 21
            return b""
        if self.faults[bucket_id]:
            bucket.error_code = self.faults[bucket_id].popleft()
            bucket.error_message = "as the test wants"
            return b""
        log, end = self.logs[bucket_id], self.high_watermark(bucket_id)
        if offset == -1 or offset > self.end(bucket_id) or (log and 0 <= offset < log[0].base):
            bucket.error_code = 19
            return b""
        bucket.high_watermark = end
        batches = [each for each in log if each.end > offset and each.end <= end]
        if table.projection_pushdown_enabled and batches:
            late = [each for each in batches if max(table.projected_fields) >= self._width(each)]
            if late:
                bucket.error_code = 34
                return b""
        parts = [self._shown(each, table) for each in batches]
        room = max(
            min(room, requested.max_fetch_bytes), len(parts[0]) if parts and at_least_one else 0
        )
        data = b"".join(parts)
        # A slice by bytes may end within a batch; projected batches are written whole.
        ends = [len(data)] if len(data) <= room else [room]
        if table.projection_pushdown_enabled:
            ends = [end for end in accumulate(map(len, parts)) if end <= room]
        bucket.records = data[: ends[-1]] if ends else b""
        return bucket.records

    def _shown(self, batch: StoredBatch, table: Any) -> bytes:
        """Return a batch as a fetch receives it: projected, with its original checksum."""
        if not table.projection_pushdown_enabled:
            return batch.data
        (read,) = iter_log_batches(batch.data, verify_crc=False)
        if not read.record_count:
            return batch.data
        source = BatchLayout.of_schema(self.schemas[read.header.schema_id])
        projection = Projection.of(source, list(table.projected_fields))
        return b"".join(map(bytes, project_log_batch(read, projection)))

    def _width(self, batch: StoredBatch) -> int:
        schema_id = int.from_bytes(batch.data[25:27], "little")
        return len(self.schemas[schema_id].columns)

    def _lookup(self, asked: Any) -> Any:
        self.lookups.append(asked)
        self.hold_lookups.wait(10)
        fault = self.lookup_faults.popleft() if self.lookup_faults else None
        answer = pb.LookupResponse()
        for requested in asked.buckets_req:
            bucket = answer.buckets_resp.add(bucket_id=requested.bucket_id)
            if requested.HasField("partition_id"):
                bucket.partition_id = requested.partition_id
            if fault is not None:
                bucket.error_code = fault
                continue
            for key in getattr(requested, "keys"):  # noqa: B009 - a field, though it looks like a method
                value = bucket.values.add()
                stored = self.values.get(key)
                if stored is not None:
                    value.values = stored
        return answer


def ints(batches: Iterable[Any], column: int = 0) -> list[int]:
    """The values of one column of decoded batches."""
    return [value for each in batches for value in each.batch.column(column).to_pylist()]
