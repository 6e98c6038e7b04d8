"""PRODUCE_LOG and PUT_KV as bytes: requests of several batches, and their answers.

The headers of the batches are encoded here, because their writer ids and sequences are known only
when they are sent. The records are not copied.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fluss.errors import FlussError, error_from_code, unusable_answer
from fluss.records.arrow.received_bytes import to_view
from fluss.records.kv.kv_batch import write_kv_batch
from fluss.records.log.log_writer import write_log_batch
from fluss.wire import messages
from fluss.wire.byte_buffers import Buffer
from fluss.wire.table_paths import read_bucket
from fluss.wire.zero_copy import record_batches as wire
from fluss.write.plan_sender import ProduceRequest
from fluss.write.write_batch import WriteBatch, WriterSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketAnswer:
    """A server's answer for one batch."""

    offset: int | None = None
    error: FlussError | None = None
    pressure: float = 0.0


def write_request_body(request: ProduceRequest, settings: WriterSettings) -> list[Buffer]:
    """The body of a request, as buffers to be sent one after the other."""
    route = request.route
    buckets = tuple(
        wire.WrittenBucket(
            partition_id=batch.partition_id,
            bucket_id=batch.bucket_id,
            records=_records(batch),
            original_partition_name=batch.original,
            routing_bucket_count=batch.bucket_count or None,
        )
        for batch in request.batches
    )
    if route.is_kv:
        return wire.PUT_KV_REQUEST.write(
            wire.PutKvRequest(
                acks=settings.acks,
                table_id=route.table_id,
                timeout_ms=settings.replica_wait_ms,
                target_columns=route.target_columns,
                buckets_req=buckets,
                agg_mode=route.agg_mode,
            )
        )
    return wire.PRODUCE_LOG_REQUEST.write(
        wire.ProduceLogRequest(
            acks=settings.acks,
            table_id=route.table_id,
            timeout_ms=settings.replica_wait_ms,
            buckets_req=buckets,
        )
    )


def read_answers(
    request: ProduceRequest, body: Buffer
) -> Iterator[tuple[WriteBatch, BucketAnswer]]:
    """The server's answer for each batch.

    Raises:
        ProtocolError: The answer cannot be read; then nothing is known of any batch.
    """
    kind: Any = messages.PutKvResponse if request.route.is_kv else messages.ProduceLogResponse
    answer = messages.read_message(kind, body)
    table_id = request.route.table_id
    # The partition of history may have a bucket several times, for several original partitions.
    found = {
        (read_bucket(table_id, each), each.original_partition_name): each
        for each in answer.buckets_resp
    }
    return iter(
        [
            (batch, _answer(batch, found.get((batch.bucket, batch.original or ""))))
            for batch in request.batches
        ]
    )


def _answer(batch: WriteBatch, found: Any) -> BucketAnswer:
    if found is None:
        why = f"it lacks bucket {batch.bucket_id}"
        return BucketAnswer(error=unusable_answer("a write request", why))
    pressure = found.pressure if batch.route.is_kv and found.HasField("pressure") else 0.0
    if found.HasField("error_code"):
        message = found.error_message if found.HasField("error_message") else None
        return BucketAnswer(error=error_from_code(found.error_code, message), pressure=pressure)
    field = "log_end_offset" if batch.route.is_kv else "base_offset"
    offset = getattr(found, field) if found.HasField(field) else None
    return BucketAnswer(offset=offset, pressure=pressure)


def _records(batch: WriteBatch) -> tuple[Buffer, ...]:
    write = write_kv_batch if batch.route.is_kv else write_log_batch
    buffers: Sequence[Any] = write(
        batch.body,
        schema_id=batch.route.schema_id,
        writer_id=batch.writer_id,
        batch_sequence=batch.sequence,
    )
    return tuple(to_view(each) for each in buffers)
