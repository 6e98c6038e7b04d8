"""Decompresses small messages without Arrow's pool of threads.

Arrow makes a decompressor for every buffer and hands each to its threads. Of a batch of a few
hundred rows, or of hundreds of columns, that is nearly all it costs: on two cores 140 microseconds
for 70 rows of six columns, against 30 here, where one decompressor takes all buffers in a row, and
6.0 ms for 100 rows of 500 columns, against 0.7. Arrow decompresses messages of larger buffers: on
this thread where the message is small, and on its own threads where they pay off. Nothing is
trusted: each frame states its size, ZSTD enforces it, and it must be the size that the message
claims.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Final

import pyarrow as pa
from pyarrow import ipc

from fluss.records.arrow.arrow_metadata import METADATA_KEPT, BodyMetadata, write_message
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.arrow.compression import codec_of_number

# Above this uncompressed size of all buffers, Arrow is as fast.
INFLATED_BYTES_MAX: Final = 128 << 10
# And faster above this size of the average buffer: here the rows lie in memory that Python gives
# back to the system, and Arrow keeps its own. Reading 1 million rows of two columns, 10 000 rows a
# batch, takes 23 instead of 27 ms of processor time with Arrow.
LARGE_BUFFER_BYTES: Final = 16 << 10
# Unless the average buffer is as small as this: 2 MB of 500 columns take 8.4 ms there, 3.0 here.
SMALL_BUFFER_BYTES: Final = 8 << 10
# Whatever the buffers, because the message is copied here.
COPIED_BYTES_MAX: Final = 64 << 20

# Up to this size a message is copied behind its schema, because only a stream can be read without
# threads. Reading 1 million rows of two columns, 10 000 rows a batch, takes 19.4 instead of 20.9 ms
# of processor time and 8 % less wall time; six columns (190 KB) gain nothing.
READ_ALONE_BYTES_MAX: Final = 64 << 10

_STORED_PLAIN = -1
_LENGTH = struct.Struct("<q")
_ALONE: Final = ipc.IpcReadOptions(use_threads=False)


def is_inflated_here(metadata: BodyMetadata, uncompressed_bytes: int) -> bool:
    """Return whether a message takes less time here than in Arrow."""
    count = sum(length > 0 for _, length in metadata.buffers)
    if uncompressed_bytes <= min(INFLATED_BYTES_MAX, count * LARGE_BUFFER_BYTES):
        return True
    return uncompressed_bytes <= min(count * SMALL_BUFFER_BYTES, COPIED_BYTES_MAX)


def inflated(message: memoryview, metadata: BodyMetadata) -> pa.Buffer | None:
    """Return the same message without compression; None where Arrow must decompress it.

    Args:
        message: The message; the places of its buffers and what they claim to become are checked.
        metadata: Its metadata, which names a codec.

    Raises:
        OSError: A buffer is damaged.
    """
    kind = codec_of_number(metadata.codec).kind
    content_size = kind.content_size
    if content_size is None:
        return None
    start = metadata.body_start
    sizes: list[int] = []
    frames: list[memoryview] = []
    total = 0
    for offset, length in metadata.buffers:
        at = start + offset
        size: int = _LENGTH.unpack_from(message, at)[0] if length else 0
        if size > 0:
            frame = message[at + _LENGTH.size : at + length]
            if content_size(frame) != size:
                return None
            frames.append(frame)
            total += size
        sizes.append(size)
    stream = pa.CompressedInputStream(pa.BufferReader(b"".join(frames)), kind.arrow_name)
    # In one call, because each call releases the interpreter lock and must acquire it again.
    whole = memoryview(stream.read(total + 1))
    if len(whole) != total:
        return None  # Arrow reports what is wrong
    contents: list[memoryview] = []
    taken = 0
    for (offset, length), size in zip(metadata.buffers, sizes, strict=True):
        if size == _STORED_PLAIN:
            at = start + offset
            contents.append(message[at + _LENGTH.size : at + length])
        else:
            contents.append(whole[taken : taken + size])
            taken += size
    return pa.py_buffer(write_message(metadata, contents, codec=None))


def read_alone(
    message: memoryview, metadata: BodyMetadata, layout: BatchLayout
) -> pa.RecordBatch | None:
    """Let Arrow read a message on this thread; None where the message or the schema does not allow.

    Args:
        message: The message; its metadata were compared with it and with the layout.
        metadata: Its metadata.
        layout: The columns of the batch, which are read as `user_schema`.

    Raises:
        pyarrow.ArrowException: A buffer is damaged.
        OSError: The same.
    """
    if metadata.body_length > READ_ALONE_BYTES_MAX:
        return None
    head = _schema_message(layout)
    if head is None:
        return None
    whole = b"".join((head, message[: metadata.body_start + metadata.body_length]))
    return ipc.open_stream(pa.py_buffer(whole), options=_ALONE).read_next_batch()


@lru_cache(maxsize=METADATA_KEPT)
def _schema_message(layout: BatchLayout) -> bytes | None:
    """Return the message of a schema; None where reading it would give another one."""
    message: bytes = layout.user_schema.serialize().to_pybytes()
    read = ipc.read_schema(pa.py_buffer(message))
    return message if read.equals(layout.user_schema, check_metadata=True) else None
