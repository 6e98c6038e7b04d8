"""Some columns of an Arrow log batch, by rewriting its metadata and leaving its buffers alone.

A compressed buffer means the same wherever it lies, so a batch is projected by choosing field nodes
and buffers and describing the chosen bytes again; nothing is decoded (20 µs where decoding and
encoding take milliseconds). Servers answer projected fetches this way (Java: `FileLogProjection`);
clients read single columns of remote segments with it. The checksum stays that of the whole batch,
as in Java: readers of projected batches do not check it, and writers recognise their batches by it.
Two differences from Java are intended: the codec in the metadata stays the batch's own, and a
column younger than the batch arrives as NULLs instead of failing the fetch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, Self

import pyarrow as pa

from fluss.errors import SchemaMismatchError
from fluss.records.arrow.arrow_body import (
    BODY_BYTES_MAX,
    check_body,
    read_arrow_body,
    write_arrow_body,
)
from fluss.records.arrow.arrow_metadata import (
    BodyMetadata,
    Pair,
    read_body_metadata,
    write_body_metadata,
)
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.arrow.compression import codec_of_number
from fluss.records.arrow.received_bytes import ByteSource, size_of, to_view
from fluss.records.corrupt import corrupt_batch
from fluss.records.log.log_batch import LogBatch
from fluss.records.log.log_header import LENGTH_END, write_log_header

_ALIGNMENT: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Projection:
    """Which columns of batches of one layout to keep; made once per schema id and fetch.

    Args:
        source: The columns the batches have.
        target: The columns kept, in ascending order, then those the batches lack.
        nodes: The field nodes kept.
        buffers: The buffers kept.
        missing: The wire schema of the columns the batches lack; they will be NULL.
    """

    source: BatchLayout
    target: BatchLayout
    nodes: tuple[int, ...]
    buffers: tuple[int, ...]
    missing: pa.Schema

    @classmethod
    def of(
        cls, source: BatchLayout, positions: Sequence[int], *, newest: BatchLayout | None = None
    ) -> Self:
        """Keep the columns at these positions, which are strictly ascending.

        Args:
            source: The columns of the batches.
            positions: Positions in the table's schema.
            newest: The table's newest columns, of which `source` is the beginning; positions
                beyond `source` are then allowed and name columns that are NULL in its batches.

        Raises:
            SchemaMismatchError: There are no positions, or they are not ascending, or name nothing.
        """
        whole = newest or source
        ascending = all(low < high for low, high in pairwise(positions))
        if not positions or not ascending or positions[0] < 0 or positions[-1] >= len(whole):
            raise SchemaMismatchError(
                f"The projection {list(positions)} does not name columns of a table of {len(whole)}"
                " columns in ascending order, each once.",
                positions=tuple(positions),
            )
        kept = [each for each in positions if each < len(source)]
        absent = [each for each in positions if each >= len(source)]
        nodes, buffers = source.node_starts, source.buffer_starts
        return cls(
            source=source,
            target=whole.project(positions),
            nodes=tuple(at for each in kept for at in range(nodes[each], nodes[each + 1])),
            buffers=tuple(at for each in kept for at in range(buffers[each], buffers[each + 1])),
            missing=pa.schema([whole.wire_schema.field(each) for each in absent]),
        )


def project_log_batch(batch: LogBatch, projection: Projection) -> list[ByteSource]:
    """Return the batch with some of its columns, as buffers to send back to back.

    Offsets, timestamp, checksum and change types stay, statistics are dropped.

    Args:
        batch: An Arrow batch of the projection's source layout.
        projection: The columns to keep.

    Raises:
        CorruptBatchError: The batch is not one of that layout.
    """
    header = batch.header
    if not header.record_count:
        return [batch.data]
    body = project_arrow_body(
        batch.arrow_body,
        projection,
        row_count=header.record_count,
        at=batch.at + batch.arrow_body_start,
    )
    if not header.is_append_only:
        start = header.records_start
        body.insert(0, batch.data.slice(start, header.record_count))
    shape = header.format
    length = shape.size - LENGTH_END + size_of(body)
    written = write_log_header(replace(header, length=length, statistics_length=0))
    return [written, *body]


def read_projected(
    batch: LogBatch, projection: Projection, *, body_bytes_max: int = BODY_BYTES_MAX
) -> pa.RecordBatch:
    """Decode some columns of an unprojected Arrow batch, without decompressing the others.

    Raises:
        CorruptBatchError: The batch is not one of the projection's source layout.
    """
    rows = batch.header.record_count
    if not rows:
        return batch.record_batch(projection.target)
    at = batch.at + batch.arrow_body_start
    chosen = project_arrow_body(batch.arrow_body, projection, row_count=rows, at=at)
    body = pa.py_buffer(b"".join(chosen))
    return read_arrow_body(
        body, projection.target, row_count=rows, at=at, body_bytes_max=body_bytes_max
    )


def project_arrow_body(
    body: ByteSource, projection: Projection, *, row_count: int, at: int = 0
) -> list[ByteSource]:
    """Return an encapsulated message with some of the columns of another one.

    Args:
        body: A message of the projection's source layout.
        projection: The columns to keep.
        row_count: The rows the message must have.
        at: Where it begins in what the caller read, for error messages.

    Returns:
        Buffers to send back to back; all but the first are slices of `body`.

    Raises:
        CorruptBatchError: The message is not one of that layout.
    """
    view = to_view(body)
    metadata = read_body_metadata(view, at=at)
    check_body(view, metadata, projection.source, row_count=row_count, at=at)
    nodes = [metadata.nodes[each] for each in projection.nodes]
    buffers, slices, length = _moved(view, metadata, projection.buffers, at)
    if len(projection.missing):
        null_nodes, null_buffers, null_body = _null_columns(
            projection.missing, row_count, metadata.codec
        )
        nodes += null_nodes
        buffers += [(length + offset, size) for offset, size in null_buffers]
        slices.append(null_body)
        length += len(null_body)
    head = write_body_metadata(
        row_count=row_count,
        nodes=nodes,
        buffers=buffers,
        codec=metadata.codec,
        body_length=length,
    )
    return [head, *slices]


def _moved(
    body: memoryview, metadata: BodyMetadata, chosen: Sequence[int], at: int
) -> tuple[list[Pair], list[ByteSource], int]:
    """Move the chosen buffers together; return their positions, the bytes and their size.

    Buffers that lie side by side become one slice, so that there are few to send.
    """
    places: list[Pair] = []
    runs: list[tuple[int, int]] = []
    length = start = end = 0
    for index in chosen:
        offset, size = metadata.buffers[index]
        places.append((length, size))
        if not size:
            continue
        if offset != end:
            runs.append((start, end))
            start = end = offset
        padded = -(-size // _ALIGNMENT) * _ALIGNMENT
        end += padded
        length += padded
    runs.append((start, end))
    if length > metadata.body_length + _ALIGNMENT:
        why = f"its buffers overlap: they take {length} of {metadata.body_length} bytes"
        raise corrupt_batch("Arrow message", at=at, why=why)
    slices: list[ByteSource] = []
    whole = body[metadata.body_start : metadata.body_start + metadata.body_length]
    for low, high in runs:
        if low < high:
            slices.append(whole[low:high])
            if high > len(whole):  # the writer did not pad its last buffer
                slices.append(bytes(high - len(whole)))
    return places, slices, length


def _null_columns(
    schema: pa.Schema, rows: int, codec: int | None
) -> tuple[list[Pair], list[Pair], memoryview]:
    nulls = [pa.nulls(rows, each.type) for each in schema]
    batch = pa.RecordBatch.from_arrays(nulls, names=schema.names)
    message = to_view(write_arrow_body(batch, codec_of_number(codec)))
    metadata = read_body_metadata(message)
    return metadata.nodes, metadata.buffers, message[metadata.body_start :]
