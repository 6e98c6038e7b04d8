"""Writes log record batches: a header in front of a body that was encoded before.

A body is encoded once, on any thread; its header is made when the writer id and the sequence are
known, and again when a retry changes them. The result is a list of buffers to send as they are.
Callers decide which records go into a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from crc32c import crc32c

from fluss.errors import LimitExceededError
from fluss.records.arrow.arrow_body import write_arrow_body
from fluss.records.arrow.compression import BodyCodec
from fluss.records.arrow.received_bytes import ByteSource, size_of
from fluss.records.log.log_header import (
    APPEND_ONLY,
    LENGTH_END,
    NO_BATCH_SEQUENCE,
    NO_LEADER_EPOCH,
    NO_WRITER_ID,
    HeaderFormat,
    LogBatchHeader,
    format_of,
    patch_crc,
    write_log_header,
)
from fluss.rows.buffers.columns import ByteArray

_LENGTH_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LogBody:
    """The records of one batch, encoded.

    Args:
        buffers: The bytes after header and statistics.
        record_count: The number of records.
        is_append_only: Whether every record is an append; an Arrow body then has no change types.
        statistics: The encoded statistics block, None for a batch without (magic 0).
    """

    buffers: tuple[ByteSource, ...]
    record_count: int
    is_append_only: bool
    statistics: bytes | None = None


def arrow_log_body(
    batch: pa.RecordBatch,
    codec: BodyCodec,
    *,
    change_types: ByteArray | None = None,
    statistics: bytes | None = None,
    use_threads: bool = False,
) -> LogBody:
    """Encode a batch in wire form.

    Args:
        batch: The rows.
        codec: The compression of the table.
        change_types: One per row; None where all are appends.
        statistics: The encoded statistics block, if the table has one.
        use_threads: Whether Arrow may compress on its own pool.
    """
    if change_types is not None and len(change_types) != batch.num_rows:
        raise ValueError(f"{len(change_types)} change types for {batch.num_rows} rows")
    body = write_arrow_body(batch, codec, use_threads=use_threads) if batch.num_rows else b""
    return LogBody(
        buffers=(body,) if change_types is None else (change_types, body),
        record_count=batch.num_rows,
        is_append_only=change_types is None,
        statistics=statistics,
    )


def write_log_batch(
    body: LogBody,
    *,
    schema_id: int,
    writer_id: int = NO_WRITER_ID,
    batch_sequence: int = NO_BATCH_SEQUENCE,
    base_offset: int = 0,
    commit_timestamp: int = 0,
    leader_epoch: int | None = None,
) -> list[ByteSource]:
    """Put a header in front of an encoded body.

    The batch is written in the oldest format that holds the arguments: magic 0, magic 1 with
    statistics, magic 2 with a leader epoch. A 0.9.1 server takes magic 0 only.

    Args:
        body: The encoded records.
        schema_id: The schema they were encoded with.
        writer_id: The id of an idempotent writer.
        batch_sequence: The batch's number among those of its writer and bucket.
        base_offset: The first offset; a client leaves it to the leader.
        commit_timestamp: The time; a client leaves it to the leader.
        leader_epoch: The leader's epoch.

    Returns:
        Buffers to send back to back.
    """
    magic = 2 if leader_epoch is not None else 0 if body.statistics is None else 1
    shape = format_of(magic)
    rest = (body.statistics or b"", *body.buffers)
    length = shape.size - LENGTH_END + size_of(rest)
    if length > _LENGTH_MAX:
        raise LimitExceededError(
            f"A batch of {length} bytes is longer than the {_LENGTH_MAX} that its header can say.",
            hint="Write fewer rows at a time.",
        )
    header = write_log_header(
        LogBatchHeader(
            base_offset=base_offset,
            length=length,
            magic=magic,
            commit_timestamp=commit_timestamp,
            leader_epoch=NO_LEADER_EPOCH if leader_epoch is None else leader_epoch,
            schema_id=schema_id,
            attributes=APPEND_ONLY if body.is_append_only else 0,
            last_offset_delta=max(body.record_count - 1, 0),
            writer_id=writer_id,
            batch_sequence=batch_sequence,
            record_count=body.record_count,
            statistics_length=len(body.statistics or b""),
            format=shape,
        )
    )
    seal(header, shape, rest)
    return [header, *(each for each in rest if memoryview(each).nbytes)]


def seal(header: bytearray, shape: HeaderFormat, rest: Sequence[ByteSource]) -> None:
    """Compute the checksum over the end of the header and what follows, and set it."""
    crc = crc32c(memoryview(header)[shape.checked_from :])
    for part in rest:
        crc = crc32c(part, crc)
    patch_crc(header, shape, crc)
