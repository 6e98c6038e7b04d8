"""The requests PRODUCE_LOG and PUT_KV: batches for the buckets of one table.

Their answers are small and are left to protobuf.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fluss.wire.byte_buffers import Buffer
from fluss.wire.field_codecs import INT32, INT32_LIST, INT64, LARGE_BYTES, STRING
from fluss.wire.message_layout import Layout, NestedList


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenBucket:
    """Batches for one bucket; the same fields in both requests."""

    partition_id: Annotated[int | None, 1, INT64] = None
    bucket_id: Annotated[int, 2, INT32]
    records: Annotated[tuple[Buffer, ...], 3, LARGE_BYTES]
    original_partition_name: Annotated[str | None, 4, STRING] = None
    routing_bucket_count: Annotated[int | None, 5, INT32] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceLogRequest:
    """Log batches for the buckets of one table."""

    acks: Annotated[int, 1, INT32]
    table_id: Annotated[int, 2, INT64]
    timeout_ms: Annotated[int, 3, INT32]
    buckets_req: Annotated[tuple[WrittenBucket, ...], 4, NestedList(WrittenBucket)] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PutKvRequest:
    """Key-value batches for the buckets of one table."""

    acks: Annotated[int, 1, INT32]
    table_id: Annotated[int, 2, INT64]
    timeout_ms: Annotated[int, 3, INT32]
    target_columns: Annotated[tuple[int, ...], 4, INT32_LIST] = ()
    buckets_req: Annotated[tuple[WrittenBucket, ...], 5, NestedList(WrittenBucket)] = ()
    agg_mode: Annotated[int | None, 6, INT32] = None


PRODUCE_LOG_REQUEST = Layout(ProduceLogRequest)
PUT_KV_REQUEST = Layout(PutKvRequest)
