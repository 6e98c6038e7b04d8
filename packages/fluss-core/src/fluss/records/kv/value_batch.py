"""Value batches: the rows that LIMIT_SCAN and SCAN_KV answer with, and the values of lookups.

A batch is its length (int32, itself not counted), magic 0, a record count (int32), and records of
a length (int32, itself not counted) and a value (Java: `DefaultValueRecordBatch`). There is no
checksum. A value is the id of the schema its row was written with (int16) and the row; a batch may
hold rows of several schemas; reading gives one batch in the requested schema, in the order of the
rows.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from fluss.model.tables.table_options import KvFormat
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.arrow.numpy_arrays import empty_batch, from_numpy
from fluss.records.arrow.received_bytes import ByteSource, to_view
from fluss.records.convert.evolve import Evolution
from fluss.records.corrupt import corrupt_batch
from fluss.records.framing import Frames, find_frames, write_frames
from fluss.records.kv.row_bytes import batch_from_rows
from fluss.rows.buffers.byte_runs import fixed_words, join_parts, runs_of_rows, words_of
from fluss.rows.buffers.columns import Int64Array, RowBytes

MAGIC: Final = 0
SCHEMA_ID_BYTES: Final = 2
TAG_BYTES: Final = 8

_HEADER = struct.Struct("<ibi")
_LENGTH_END: Final = 4


def write_values(rows: RowBytes, *, schema_id: int) -> RowBytes:
    """Put the schema id in front of encoded rows: values as a KV store keeps them."""
    count = len(rows)
    ids = np.full(count, schema_id, dtype=np.uint64)
    return join_parts([fixed_words(ids, SCHEMA_ID_BYTES, None), runs_of_rows(rows)], count)


def write_value_batch(values: RowBytes) -> list[ByteSource]:
    """Frame values (schema id and row) as one batch; the result is to be sent back to back."""
    records = write_frames([runs_of_rows(values)], len(values))
    length = _HEADER.size - _LENGTH_END + len(records.data)
    return [_HEADER.pack(length, MAGIC, len(values)), records.data]


def read_value_batch(data: ByteSource) -> Frames:
    """Find the values in the one batch that fills the bytes.

    Raises:
        CorruptBatchError: The bytes are not a batch.
    """
    view = to_view(data)
    if len(view) < _HEADER.size:
        raise corrupt_batch("value batch", at=0, why=f"only {len(view)} bytes are there")
    length, magic, count = _HEADER.unpack_from(view)
    if length != len(view) - _LENGTH_END or magic != MAGIC or count < 0:
        why = (
            f"its header claims magic {magic}, {length} bytes after the length"
            f" and {count} records, of {len(view)} bytes"
        )
        raise corrupt_batch("value batch", at=0, why=why)
    return find_frames(
        np.frombuffer(view, dtype=np.uint8),
        start=_HEADER.size,
        count=count,
        record_bytes_min=SCHEMA_ID_BYTES,
        what="value",
    )


def frames_of_values(values: Sequence[ByteSource]) -> Frames:
    """Return the frames of values that came one by one, as in a lookup response.

    Raises:
        CorruptBatchError: One is too short for a schema id.
    """
    lengths = np.array([memoryview(each).nbytes for each in values], dtype=np.int64)
    ends = np.cumsum(lengths)
    if len(lengths) and int(lengths.min()) < SCHEMA_ID_BYTES:
        index = int(lengths.argmin())
        raise corrupt_batch("value", at=0, why=f"value {index} has only {lengths[index]} bytes")
    data = np.frombuffer(b"".join(values), dtype=np.uint8)
    return Frames(data=data, starts=ends - lengths, ends=ends)


def frames_of_tagged_values(values: Sequence[ByteSource]) -> Frames:
    """Return the frames of values with a tag, as KV snapshots of layout 2 hold them.

    The tag is the time of the row in 8 bytes, big endian, before the schema id (Java:
    `KvValueLayout`). It says when the row expires, which is the servers' business.

    Raises:
        CorruptBatchError: One is too short for a tag and a schema id.
    """
    whole = frames_of_values(values)
    starts = whole.starts + TAG_BYTES
    short = np.flatnonzero(whole.ends - starts < SCHEMA_ID_BYTES)
    if len(short):
        index = int(short[0])
        why = f"value {index} has only {int(whole.ends[index] - whole.starts[index])} bytes"
        raise corrupt_batch("tagged value", at=0, why=why)
    return Frames(data=whole.data, starts=starts, ends=whole.ends)


def frames_of_ranges(data: ByteSource, starts: Int64Array, ends: Int64Array) -> Frames:
    """Return the frames of values at scattered positions of one response.

    Args:
        data: The bytes.
        starts: Where each value starts; all of them lie within the bytes.
        ends: Where it ends.

    Raises:
        CorruptBatchError: One is too short for a schema id.
    """
    short = ends - starts < SCHEMA_ID_BYTES
    if short.any():
        index = int(short.argmax())
        why = f"value {index} has only {ends[index] - starts[index]} bytes"
        raise corrupt_batch("value", at=int(starts[index]), why=why)
    return Frames(data=np.frombuffer(to_view(data), dtype=np.uint8), starts=starts, ends=ends)


def schema_ids_of(values: Frames) -> Int64Array:
    """Return the schema id of each value."""
    if not len(values):
        return values.starts
    return words_of(values.data, "<i2")[values.starts].astype(np.int64)


def batch_from_values(
    values: Frames,
    layouts: Mapping[int, BatchLayout],
    target: BatchLayout,
    row_format: KvFormat,
) -> pa.RecordBatch:
    """Decode values, each with the schema it was written with, into one batch.

    Args:
        values: The values, as `read_value_batch` or `frames_of_values` give them.
        layouts: The columns of every schema id that occurs.
        target: The requested columns; those an old schema lacks are NULL.
        row_format: `table.kv.format`.

    Returns:
        The rows in `target.user_schema`, in the order of the values.

    Raises:
        CorruptDataError: A value cannot be read, or its schema id is not in `layouts`.
    """
    parts: list[pa.RecordBatch] = []
    places: list[Int64Array] = []
    for schema_id, rows in _by_schema_id(values):
        source = layouts.get(schema_id)
        if source is None:
            at = int(values.starts[rows[0]])
            raise corrupt_batch("value", at=at, why=f"its schema id {schema_id} is unknown")
        own = values if len(rows) == len(values) else values.take(rows)
        decoded = batch_from_rows(own.beyond(SCHEMA_ID_BYTES), source, row_format)
        parts.append(Evolution.between(source, target).apply(decoded))
        places.append(rows)
    if not parts:
        return empty_batch(target.user_schema)
    if len(parts) == 1:
        return parts[0]
    return pa.concat_batches(parts).take(from_numpy(np.argsort(np.concatenate(places))))


def _by_schema_id(values: Frames) -> Iterator[tuple[int, Int64Array]]:
    ids = schema_ids_of(values)
    for schema_id in np.unique(ids).tolist():
        yield schema_id, np.flatnonzero(ids == schema_id)
