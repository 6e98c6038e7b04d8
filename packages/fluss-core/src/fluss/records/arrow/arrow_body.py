"""A record batch as Fluss stores it: exactly one encapsulated Arrow message, and back.

No schema message, no dictionary, no end-of-stream mark; the schema comes with the schema id of the
log batch around it. Reading first compares the metadata with the bytes and the expected layout, so
that Arrow never follows an offset out of the body or allocates a made-up size; then Arrow reads;
then the arrays are validated (`records.arrow.array_checks`). Headers, checksums and change types
belong to `records.log.log_batch`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from enum import Enum, auto
from functools import lru_cache, partial
from typing import Final

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from fluss.error_codes import ErrorCode
from fluss.records.arrow.array_checks import check_arrays
from fluss.records.arrow.arrow_inflate import inflated, is_inflated_here, read_alone
from fluss.records.arrow.arrow_metadata import (
    ALIGNMENT,
    METADATA_KEPT,
    PREFIX_BYTES,
    BodyMetadata,
    read_body_metadata,
    write_body_metadata,
    write_message,
)
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.arrow.compression import BLOCK_BYTES, BodyCodec
from fluss.records.arrow.received_bytes import to_view
from fluss.records.corrupt import corrupt_batch

# What the buffers of one batch may grow to. Java cannot read a buffer above 2 GiB, and writers cut
# batches at a few megabytes; a bomb would otherwise turn a megabyte into as much as ZSTD can claim.
BODY_BYTES_MAX: Final = 1 << 30

# Compression gains nothing for bodies up to this size: their metadata is as long. Arrow takes 200
# microseconds to compress the buffers of one row, which is most of what a single row costs.
_PLAIN_BYTES_MAX = 1024
_PLAIN_ROWS_MAX = 64  # more are not even tried

# Arrow hands even a single row to its pool of threads when a codec is named, which takes longer
# than everything else about it. Above this size a copy would.
_REPLAINED_BYTES_MAX = 64 << 10

_STORED_PLAIN = -1
_ROWS_MAX = 2**31 - 1
_END_OF_STREAM_BYTES = 8
_LENGTH = struct.Struct("<q")
_SIZE = struct.Struct("<i")


class _Stored(Enum):
    """How the buffers of a message lie in it."""

    AS_IT_IS = auto()  # there is no codec
    PLAIN = auto()  # there is one, but each buffer is marked as not compressed
    COMPRESSED = auto()  # each one is, so no array will lie over the message
    MIXED = auto()


_COMPRESSED: Final = frozenset({_Stored.COMPRESSED, _Stored.MIXED})


def write_arrow_body(
    batch: pa.RecordBatch, codec: BodyCodec, *, use_threads: bool = False
) -> pa.Buffer:
    """Encode a batch in wire form as one encapsulated message.

    Args:
        batch: The batch; only its buffers are written, so names and zones do not matter.
        codec: The compression of the table the batch goes to, and of no other: a server that
            projects the batch stamps the table's codec on it.
        use_threads: Whether Arrow may compress on its own pool besides the calling thread.
    """
    kind = codec.kind
    if kind.number is None:
        return batch.serialize()
    if batch.num_rows <= _PLAIN_ROWS_MAX:
        message = batch.serialize()
        metadata = read_body_metadata(to_view(message))
        if metadata.body_length <= _PLAIN_BYTES_MAX:
            return _repacked(message, metadata, kind.number, _stored_plain)
    if kind.compress_large is not None and batch.nbytes > BLOCK_BYTES:
        # Arrow makes frames of blocks that Java cannot read where the buffers are large.
        message = batch.serialize()
        pack = partial(_packed, kind.compress_large)
        return _repacked(message, read_body_metadata(to_view(message)), kind.number, pack)
    sink = pa.BufferOutputStream()
    with ipc.new_stream(sink, batch.schema, options=_write_options(codec, use_threads)) as stream:
        stream.write_batch(batch)
    written = sink.getvalue()
    schema_bytes = PREFIX_BYTES + _SIZE.unpack_from(written, 4)[0]
    return written.slice(schema_bytes, written.size - schema_bytes - _END_OF_STREAM_BYTES)


def _repacked(
    message: pa.Buffer, metadata: BodyMetadata, codec: int, pack: Callable[[memoryview], bytes]
) -> pa.Buffer:
    """Turn a plain message into one of a codec; `pack` gives the new form of each buffer."""
    view = to_view(message)
    contents = [
        pack(view[metadata.body_start + offset :][:length]) if length else b""
        for offset, length in metadata.buffers
    ]
    return pa.py_buffer(write_message(metadata, contents, codec=codec))


def _packed(compress: Callable[[memoryview], bytes], data: memoryview) -> bytes:
    frame = compress(data)
    if len(frame) < len(data):
        return _LENGTH.pack(len(data)) + frame
    return _stored_plain(data)


def _stored_plain(data: memoryview) -> bytes:
    return b"".join((_LENGTH.pack(_STORED_PLAIN), data))


@lru_cache(maxsize=64)
def _write_options(codec: BodyCodec, use_threads: bool) -> ipc.IpcWriteOptions:  # noqa: FBT001 - a cache key
    return ipc.IpcWriteOptions(compression=codec.arrow_codec(), use_threads=use_threads)


def read_arrow_body(
    body: pa.Buffer,
    layout: BatchLayout,
    *,
    row_count: int,
    at: int = 0,
    body_bytes_max: int = BODY_BYTES_MAX,
) -> pa.RecordBatch:
    """Decode one encapsulated message into a batch of `layout.user_schema`.

    The arrays lie over `body` where it is aligned and not compressed, and keep it alive.

    Args:
        body: The message; bytes after its end are ignored, as Java ignores them.
        layout: The columns the message must have.
        row_count: The rows the message must have.
        at: Where the body begins in what the caller read, for error messages.
        body_bytes_max: What the uncompressed buffers may take together.

    Raises:
        CorruptBatchError: The bytes are not such a batch.
    """
    view = to_view(body)
    metadata = read_body_metadata(view, at=at)
    check_body(view, metadata, layout, row_count=row_count, at=at)
    stored, size = _check_uncompressed_size(view, metadata, at=at, body_bytes_max=body_bytes_max)
    try:
        source = batch = None
        if stored is _Stored.PLAIN and metadata.body_length <= _REPLAINED_BYTES_MAX:
            source = _replained(view, metadata)
        elif stored in _COMPRESSED and is_inflated_here(metadata, size):
            source = inflated(view, metadata)
        if source is None and stored in _COMPRESSED:
            batch = read_alone(view, metadata, layout)
        if batch is None:
            if source is None:
                # Buffers that are uncompressed into new memory need no alignment.
                source = body if stored is _Stored.COMPRESSED else _aligned(body)
            batch = ipc.read_record_batch(source, layout.user_schema)
        check_arrays(batch)
    except (pa.ArrowException, OSError) as error:
        raise corrupt_batch("Arrow message", at=at, why=f"Arrow: {error}") from error
    return batch


def check_body(
    body: memoryview, metadata: BodyMetadata, layout: BatchLayout, *, row_count: int, at: int
) -> None:
    """Compare what the metadata claims with the bytes and with the layout.

    Raises:
        CorruptBatchError: They contradict each other.
    """
    why = _contradiction(metadata, layout, row_count, room=len(body) - metadata.body_start)
    if why is not None:
        raise corrupt_batch("Arrow message", at=at, why=why)


def _contradiction(
    metadata: BodyMetadata, layout: BatchLayout, row_count: int, *, room: int
) -> str | None:
    nodes, buffers, end = metadata.nodes, metadata.buffers, metadata.body_length
    if not 0 <= end <= room:
        return f"its body claims {end} bytes where {room} are left"
    if metadata.row_count != row_count:
        return f"it has {metadata.row_count} rows where the header has {row_count}"
    if len(nodes) != layout.node_count or len(buffers) != layout.buffer_count:
        return (
            f"it has {len(nodes)} nodes and {len(buffers)} buffers"
            f" where its schema needs {layout.node_count} and {layout.buffer_count}"
        )
    for offset, length in buffers:
        if not 0 <= offset <= offset + length <= end or offset % ALIGNMENT:
            return f"a buffer of {length} bytes cannot be at {offset} of a body of {end} bytes"
    for length, null_count in nodes:
        if not 0 <= null_count <= length <= _ROWS_MAX:
            return f"a node of {length} rows cannot have {null_count} nulls"
    if any(nodes[each][0] != row_count for each in layout.node_starts[:-1]):
        return f"a column does not have {row_count} rows"
    return None


def _check_uncompressed_size(
    body: memoryview, metadata: BodyMetadata, *, at: int, body_bytes_max: int
) -> tuple[_Stored, int]:
    """Add up the claimed sizes of the buffers, because Arrow allocates before it checks."""
    if metadata.codec is None:
        return _Stored.AS_IT_IS, metadata.body_length
    total = 0
    all_compressed = all_plain = True
    for offset, length in metadata.buffers:
        if not length:
            continue
        if length < _LENGTH.size:
            raise corrupt_batch("Arrow message", at=at, why="a compressed buffer has no length")
        size: int = _LENGTH.unpack_from(body, metadata.body_start + offset)[0]
        if size < _STORED_PLAIN:
            raise corrupt_batch("Arrow message", at=at, why=f"a buffer claims {size} bytes")
        if size == _STORED_PLAIN:
            total += length
            all_compressed = False
        else:
            total += size
            all_plain = False
    if total > body_bytes_max:
        why = f"its buffers claim {total} bytes uncompressed, above the limit of {body_bytes_max}"
        # Not the code of a damaged record: a writer sends that one again, and this never fits.
        too_large = ErrorCode.RECORD_TOO_LARGE_EXCEPTION
        raise corrupt_batch("Arrow message", at=at, why=why, code=too_large)
    if all_compressed:
        return _Stored.COMPRESSED, total
    return _Stored.PLAIN if all_plain else _Stored.MIXED, total


def _replained(body: memoryview, metadata: BodyMetadata) -> pa.Buffer:
    """Return the message without its codec, which no buffer uses, aligned."""
    start = metadata.body_start
    return pa.py_buffer(
        b"".join((_head_without_codec(metadata), body[start : start + metadata.body_length]))
    )


@lru_cache(maxsize=METADATA_KEPT)
def _head_without_codec(metadata: BodyMetadata) -> bytes:
    return write_body_metadata(
        row_count=metadata.row_count,
        nodes=metadata.nodes,
        buffers=[
            (offset + _LENGTH.size, length - _LENGTH.size) if length else (offset, 0)
            for offset, length in metadata.buffers
        ],
        codec=None,
        body_length=metadata.body_length,
    )


def _aligned(body: pa.Buffer) -> pa.Buffer:
    """Return the same bytes at a multiple of eight.

    A batch lies anywhere in a response, and engines read unaligned arrays slowly or not at all.
    """
    if body.address % ALIGNMENT == 0:
        return body
    copy = pa.allocate_buffer(body.size)
    np.frombuffer(copy, dtype=np.uint8)[:] = np.frombuffer(body, dtype=np.uint8)
    return copy
