"""The metadata of one Arrow record-batch message: read without trust, written without a library.

An encapsulated message is `FFFFFFFF`, the metadata's size (int32), the metadata (a flatbuffer) and
the body. Of the flatbuffer only the handful of fields that Fluss uses is known here: the row count,
the field nodes, the places of the buffers, the codec and the body's length. That is enough to
refuse wrong metadata before Arrow reads it, and to describe a body that was cut from another one.
The contents of the buffers are for `records.arrow.arrow_body`.

The tables are those of Arrow's Message.fbs; Java's counterpart is MessageSerializer.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import starmap
from typing import Final, TypeAlias

from fluss.errors import CorruptBatchError
from fluss.records.arrow.compression import CODEC_NUMBERS
from fluss.records.corrupt import corrupt_batch

Pair: TypeAlias = tuple[int, int]

CONTINUATION: Final = b"\xff\xff\xff\xff"
PREFIX_BYTES: Final = 8  # the continuation marker and the metadata's size
ALIGNMENT: Final = 8  # of every buffer in a body
METADATA_BYTES_MAX: Final = 16 << 20  # 500 000 buffers; a table's columns are int16-counted
# Writers and followers of single rows produce the same few shapes again and again.
METADATA_KEPT: Final = 256
_KEPT_BYTES_MAX: Final = 2048
_PADDING: Final = tuple(bytes(each) for each in range(ALIGNMENT))

_HEADER_RECORD_BATCH: Final = 3
_VERSIONS: Final = (3, 4)  # V4 and V5 differ in unions only, which Fluss does not have
_METHOD_BUFFER: Final = 0

_U8, _U16 = struct.Struct("<B"), struct.Struct("<H")
_I16, _I32, _U32, _I64 = (struct.Struct("<" + each) for each in "hiIq")
_PAIR = struct.Struct("<qq")
_VTABLE_OF_FOUR = struct.Struct("<6H")  # its own size, its table's size, four fields


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BodyMetadata:
    """The metadata of a body, not yet compared with the body.

    It is cached and shared by its bytes, so its lists must not be changed.

    Args:
        row_count: Rows of the batch.
        nodes: Per field node, its length and its null count.
        buffers: Per buffer, its offset in the body and its length.
        codec: The number of the compression, or None where buffers are stored plain.
        body_start: Where the body begins, from the start of the message.
        body_length: How long the body is.
    """

    row_count: int
    nodes: list[Pair]
    buffers: list[Pair]
    codec: int | None
    body_start: int
    body_length: int


def read_body_metadata(message: memoryview, *, at: int = 0) -> BodyMetadata:
    """Read the metadata at the start of an encapsulated record-batch message.

    Args:
        message: The message and whatever follows it.
        at: Where the message begins in the bytes the caller was given, for error messages.

    Raises:
        CorruptBatchError: The bytes are not the metadata of a record batch.
    """
    metadata = _metadata(message, at)
    try:
        if len(metadata) <= _KEPT_BYTES_MAX:
            with suppress(CorruptBatchError):  # raised again below, with the right position
                return _read_kept(bytes(metadata))
        return _read_message(metadata, at)
    except struct.error as error:
        why = "a field lies outside the metadata"
        raise corrupt_batch("Arrow metadata", at=at, why=why) from error


@lru_cache(maxsize=METADATA_KEPT)
def _read_kept(metadata: bytes) -> BodyMetadata:
    return _read_message(memoryview(metadata), 0)


def _metadata(message: memoryview, at: int) -> memoryview:
    if len(message) < PREFIX_BYTES or bytes(message[:4]) != CONTINUATION:
        raise corrupt_batch("Arrow message", at=at, why="it does not begin with FFFFFFFF")
    size: int = _I32.unpack_from(message, 4)[0]
    room = min(len(message) - PREFIX_BYTES, METADATA_BYTES_MAX)
    if not 0 < size <= room:
        why = f"its metadata claims {size} bytes where at most {room} can be"
        raise corrupt_batch("Arrow message", at=at, why=why)
    return message[PREFIX_BYTES : PREFIX_BYTES + size]


def _read_message(metadata: memoryview, at: int) -> BodyMetadata:
    version_at, header_type_at, header_at, body_length_at = table_fields(
        metadata, follow(metadata, 0)
    )
    version = _scalar(_I16, metadata, version_at)
    header_type = _scalar(_U8, metadata, header_type_at)
    if version not in _VERSIONS or header_type != _HEADER_RECORD_BATCH or not header_at:
        why = f"it is a message of type {header_type} and version {version}, not a record batch"
        raise corrupt_batch("Arrow message", at=at, why=why)
    length_at, nodes_at, buffers_at, compression_at = table_fields(
        metadata, follow(metadata, header_at)
    )
    return BodyMetadata(
        row_count=_scalar(_I64, metadata, length_at),
        nodes=_pairs(metadata, nodes_at, at),
        buffers=_pairs(metadata, buffers_at, at),
        codec=_codec(metadata, compression_at, at) if compression_at else None,
        body_start=PREFIX_BYTES + len(metadata),
        body_length=_scalar(_I64, metadata, body_length_at),
    )


def _codec(metadata: memoryview, compression_at: int, at: int) -> int:
    codec_at, method_at, _, _ = table_fields(metadata, follow(metadata, compression_at))
    codec, method = _scalar(_U8, metadata, codec_at), _scalar(_U8, metadata, method_at)
    if codec not in CODEC_NUMBERS or method != _METHOD_BUFFER:
        why = f"its compression (codec {codec}, method {method}) is not LZ4 or ZSTD by buffer"
        raise corrupt_batch("Arrow message", at=at, why=why)
    return codec


# --- flatbuffers ------------------------------------------------------------------------------
#
# A table is a position; in front of it lies its vtable, which holds for each field its distance
# after the table's position, or 0 where it is absent and has its default. Positions are never
# negative, because struct would then count from the end.


def follow(metadata: memoryview, position: int) -> int:
    """Return where the offset at this position of a flatbuffer leads."""
    offset: int = _U32.unpack_from(metadata, position)[0]
    return position + offset


def table_fields(metadata: memoryview, table: int) -> tuple[int, int, int, int]:
    """Return where the first four fields of a table are; 0 for an absent one."""
    vtable = table - _I32.unpack_from(metadata, table)[0]
    if vtable < 0:
        raise struct.error("a vtable lies before the metadata")
    size: int = _U16.unpack_from(metadata, vtable)[0]
    if size >= _VTABLE_OF_FOUR.size:
        _, _, a, b, c, d = _VTABLE_OF_FOUR.unpack_from(metadata, vtable)
    else:
        known = [_U16.unpack_from(metadata, vtable + each)[0] for each in range(4, size - 1, 2)]
        a, b, c, d = (*known, 0, 0, 0, 0)[:4]
    return a and table + a, b and table + b, c and table + c, d and table + d


def _scalar(kind: struct.Struct, metadata: memoryview, position: int) -> int:
    if not position:
        return 0
    value: int = kind.unpack_from(metadata, position)[0]
    return value


def _pairs(metadata: memoryview, position: int, at: int) -> list[Pair]:
    """Return a vector of structs of two int64 each."""
    if not position:
        return []
    vector = follow(metadata, position)
    count: int = _U32.unpack_from(metadata, vector)[0]
    end = vector + 4 + _PAIR.size * count
    if end > len(metadata):
        why = f"a list of {count} entries does not fit its metadata"
        raise corrupt_batch("Arrow message", at=at, why=why)
    return list(_PAIR.iter_unpack(metadata[vector + 4 : end]))


# --- writing ----------------------------------------------------------------------------------
#
# Everything before the two vectors always has the same shape, so it is laid out once by hand:
#
#   0  root -> 16               40  vtable of RecordBatch          80  vtable of BodyCompression
#   4  vtable of Message        52  RecordBatch: vtable at -12     88  BodyCompression: vtable at -8
#  16  Message: vtable at -12   56    length                       92    codec, method
#  20    header -> 52           64    -> nodes, 68 -> buffers     100  nodes: count, entries
#  24    bodyLength             72    -> compression                 …  buffers: count, entries
#  32    version, header type
#
# int64 fields and the entries of the vectors stand at multiples of eight, as flatbuffers demand.

_SKELETON: Final = struct.Struct("<I 6H iIqhBx4x 6H iqIII4x 4H iBB2x4x")
_NODES_AT: Final = 100


def write_body_metadata(
    *,
    row_count: int,
    nodes: Sequence[Pair],
    buffers: Sequence[Pair],
    codec: int | None,
    body_length: int,
) -> bytes:
    """Return the start of an encapsulated message whose body has these nodes and buffers.

    The result's length is a multiple of eight, so the body begins aligned.
    """
    buffers_at = _NODES_AT + 4 + _PAIR.size * len(nodes) + 4
    size = buffers_at + 4 + _PAIR.size * len(buffers)
    skeleton = _SKELETON.pack(
        16,
        *(12, 20, 16, 18, 4, 8),
        *(12, 52 - 20, body_length, _VERSIONS[-1], _HEADER_RECORD_BATCH),
        *(12, 24, 4, 12, 16, 0 if codec is None else 20),
        *(12, row_count, _NODES_AT - 64, buffers_at - 68, 88 - 72),
        *(8, 6, 4, 5),
        *(8, codec or 0, _METHOD_BUFFER),
    )
    return b"".join(
        (
            CONTINUATION,
            _I32.pack(size),
            skeleton,
            _U32.pack(len(nodes)),
            *starmap(_PAIR.pack, nodes),
            bytes(4),
            _U32.pack(len(buffers)),
            *starmap(_PAIR.pack, buffers),
        )
    )


def write_message(
    metadata: BodyMetadata, contents: Iterable[bytes | memoryview], *, codec: int | None
) -> bytes:
    """Return a message of the same rows with other buffers, one after the other, aligned.

    Args:
        metadata: The metadata of the rows.
        contents: The new content of each buffer.
        codec: The compression of the contents.
    """
    parts: list[bytes | memoryview] = [b""]
    places: list[Pair] = []
    end = 0
    for content in contents:
        size = len(content)
        padding = -size % ALIGNMENT
        places.append((end, size))
        parts += (content, _PADDING[padding])
        end += size + padding
    parts[0] = write_body_metadata(
        row_count=metadata.row_count,
        nodes=metadata.nodes,
        buffers=places,
        codec=codec,
        body_length=end,
    )
    return b"".join(parts)
