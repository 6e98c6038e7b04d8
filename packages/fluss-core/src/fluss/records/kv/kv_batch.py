"""KV record batches: the keys and rows that PUT_KV carries, both ways.

=====================  ====  =====================================================================
field                  size  what (all little endian; Java: `DefaultKvRecordBatch`)
=====================  ====  =====================================================================
length                    4  of everything after this field
magic                     1  0
CRC-32C                   4  over everything after it
schema id                 2
attributes                1  0
writer id                 8  -1 where the writer is not idempotent
batch sequence            4  -1 where the writer is not idempotent
record count              4
records                      length of the rest (int32), key length (varint), key, row
=====================  ====  =====================================================================

A record without a row deletes its key (Java: `DefaultKvRecord`). Keys and rows are bytes here;
`rows` and `records.kv.row_bytes` encode them. As with log batches, the records are
encoded once and get their header when writer id and sequence are known.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

import numpy as np
from crc32c import crc32c

from fluss.records.arrow.received_bytes import ByteSource, to_view
from fluss.records.corrupt import corrupt_batch
from fluss.records.framing import Frames, find_frames, write_frames
from fluss.records.log.log_header import NO_BATCH_SEQUENCE, NO_WRITER_ID
from fluss.rows.buffers.byte_runs import padded, runs_of, runs_of_rows
from fluss.rows.buffers.columns import BoolArray, ByteArray, Int64Array, RowBytes
from fluss.rows.formats.varint import VARINT_BYTES_MAX, read_varint_column, varint_column

MAGIC: Final = 0
LENGTH_END: Final = 4
CRC_END: Final = 9

_HEADER = struct.Struct("<ibIhbqii")
_CRC = struct.Struct("<I")
_CRC_AT: Final = 5
HEADER_BYTES: Final = _HEADER.size


@dataclass(frozen=True, slots=True, kw_only=True)
class KvBody:
    """The records of one batch, encoded."""

    records: ByteArray
    record_count: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KvBatch:
    """A batch that was read; keys and rows are places in the received bytes.

    Args:
        schema_id: The schema the rows were encoded with.
        writer_id: The writer, -1 where it is not idempotent.
        batch_sequence: The batch's number, -1 where the writer is not idempotent.
        keys: One key per record.
        rows: One encoded row per record; empty where the record deletes.
    """

    schema_id: int
    writer_id: int
    batch_sequence: int
    keys: Frames
    rows: Frames

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def deletes(self) -> BoolArray:
        """Which records delete their key."""
        empty: BoolArray = self.rows.starts == self.rows.ends
        return empty


def kv_body(keys: RowBytes, rows: RowBytes, *, deletes: BoolArray | None = None) -> KvBody:
    """Encode records.

    Args:
        keys: One key per record.
        rows: One encoded row per record; that of a deletion is not written.
        deletes: Which records delete; None for none.
    """
    count = len(keys)
    key_runs = runs_of_rows(keys)
    row_runs = runs_of_rows(rows)
    if deletes is not None:
        kept = np.where(deletes, 0, row_runs.lengths)
        row_runs = runs_of(row_runs.data, row_runs.starts, kept)
    key_lengths = varint_column(key_runs.lengths.astype(np.int32))
    records = write_frames([key_lengths, key_runs, row_runs], count)
    return KvBody(records=records.data, record_count=count)


def write_kv_batch(
    body: KvBody,
    *,
    schema_id: int,
    writer_id: int = NO_WRITER_ID,
    batch_sequence: int = NO_BATCH_SEQUENCE,
) -> list[ByteSource]:
    """Put a header in front of encoded records; the result is to be sent back to back."""
    length = HEADER_BYTES - LENGTH_END + len(body.records)
    header = bytearray(
        _HEADER.pack(length, MAGIC, 0, schema_id, 0, writer_id, batch_sequence, body.record_count)
    )
    crc = crc32c(body.records.data, crc32c(memoryview(header)[CRC_END:]))
    _CRC.pack_into(header, _CRC_AT, crc)
    return [header, body.records]


def read_kv_batch(data: ByteSource, *, verify_crc: bool = True) -> KvBatch:
    """Read the one batch that fills the bytes.

    Args:
        data: The bytes; keys and rows stay in them.
        verify_crc: Whether to compute the checksum. Java servers never do, so a wrong checksum of
            another client may be stored unnoticed.

    Raises:
        CorruptBatchError: The bytes are not a batch.
    """
    view = to_view(data)
    what = "KV batch"
    if len(view) < HEADER_BYTES:
        raise corrupt_batch(what, at=0, why=f"only {len(view)} bytes are there")
    length, magic, crc, schema_id, _, writer_id, sequence, count = _HEADER.unpack_from(view)
    if length != len(view) - LENGTH_END or magic != MAGIC or count < 0 or schema_id < 0:
        why = (
            f"its header claims magic {magic}, {length} bytes after the length,"
            f" schema id {schema_id} and {count} records, of {len(view)} bytes"
        )
        raise corrupt_batch(what, at=0, why=why)
    if verify_crc and (computed := crc32c(view[CRC_END:])) != crc:
        why = f"its checksum is {computed:08x} where the header has {crc:08x}"
        raise corrupt_batch(what, at=0, why=why)
    records = find_frames(
        np.frombuffer(view, dtype=np.uint8),
        start=HEADER_BYTES,
        count=count,
        record_bytes_min=1,
        what="KV record",
    )
    keys, rows = _split(records)
    return KvBatch(
        schema_id=schema_id, writer_id=writer_id, batch_sequence=sequence, keys=keys, rows=rows
    )


def _split(records: Frames) -> tuple[Frames, Frames]:
    key_lengths, prefixes = _key_lengths(records)
    key_starts = records.starts + prefixes
    key_ends = key_starts + key_lengths
    wrong = (prefixes > VARINT_BYTES_MAX) | (key_lengths < 0) | (key_ends > records.ends)
    if wrong.any():
        row = int(wrong.argmax())
        why = f"the key of record {row} does not fit the record"
        raise corrupt_batch("KV record", at=int(records.starts[row]), why=why)
    keys = Frames(data=records.data, starts=key_starts, ends=key_ends)
    return keys, Frames(data=records.data, starts=key_ends, ends=records.ends)


def _key_lengths(records: Frames) -> tuple[Int64Array, Int64Array]:
    """Return the varint at the start of each record, and how many bytes it takes."""
    if not len(records):
        return records.starts, records.starts
    first = records.data[records.starts]
    if int(first.max()) < 1 << 7:
        return first.astype(np.int64), np.ones(len(first), dtype=np.int64)
    # Only words need the copy with padding after its end.
    lengths, prefixes = read_varint_column(padded(records.data), records.starts)
    return lengths.astype(np.uint32).view(np.int32).astype(np.int64), prefixes
