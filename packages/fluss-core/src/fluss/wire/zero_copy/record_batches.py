"""The requests PRODUCE_LOG and PUT_KV: batches for the buckets of one table.

Their answers are small and are left to protobuf.
"""

from __future__ import annotations

from dataclasses import dataclass

from fluss.wire.byte_buffers import Buffer
from fluss.wire.field_codecs import INT32, INT32_LIST, INT64, LARGE_BYTES, STRING
from fluss.wire.message_layout import Layout, NestedList


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenBucket:
    """Batches for one bucket; the same fields in both requests."""

    partition_id: int | None = None
    bucket_id: int
    records: tuple[Buffer, ...]
    original_partition_name: str | None = None
    routing_bucket_count: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceLogRequest:
    """Log batches for the buckets of one table."""

    acks: int
    table_id: int
    timeout_ms: int
    buckets_req: tuple[WrittenBucket, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PutKvRequest:
    """Key-value batches for the buckets of one table."""

    acks: int
    table_id: int
    timeout_ms: int
    target_columns: tuple[int, ...] = ()
    buckets_req: tuple[WrittenBucket, ...] = ()
    agg_mode: int | None = None


_WRITTEN_BUCKET = Layout(
    WrittenBucket,
    {
        1: ("partition_id", INT64),
        2: ("bucket_id", INT32),
        3: ("records", LARGE_BYTES),
        4: ("original_partition_name", STRING),
        5: ("routing_bucket_count", INT32),
    },
)
PRODUCE_LOG_REQUEST = Layout(
    ProduceLogRequest,
    {
        1: ("acks", INT32),
        2: ("table_id", INT64),
        3: ("timeout_ms", INT32),
        4: ("buckets_req", NestedList(_WRITTEN_BUCKET)),
    },
)
PUT_KV_REQUEST = Layout(
    PutKvRequest,
    {
        1: ("acks", INT32),
        2: ("table_id", INT64),
        3: ("timeout_ms", INT32),
        4: ("target_columns", INT32_LIST),
        5: ("buckets_req", NestedList(_WRITTEN_BUCKET)),
        6: ("agg_mode", INT32),
    },
)
