"""The compressions of Arrow bodies: one table of their numbers, levels and ways to compress.

=========  ======  =====  ==================================================================
name       number  level  what is done here instead of by Arrow
=========  ======  =====  ==================================================================
NONE       none    no
LZ4_FRAME  0       no     frames of large buffers, because Java reads independent blocks only
ZSTD       1       yes    small messages are decompressed in `records.arrow.arrow_inflate`
=========  ======  =====  ==================================================================

Arrow's own LZ4 writer links the blocks of a frame, so that a block may point into the one before
it. Java's reader (`FlussLZ4BlockInputStream`) refuses such frames, and every Arrow buffer above
64 KiB has more than one block. So the frame is put together here, out of blocks that Arrow
compresses one by one. Arrow reads both.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Final

import pyarrow as pa

from fluss.model.tables.table_options import ArrowCompression

LEVEL_DEFAULT: Final = 3


@dataclass(frozen=True, slots=True)
class BodyCodec:
    """How the buffers of an Arrow body are compressed: `table.log.arrow.compression.*`.

    Args:
        compression: The kind of compression.
        level: The level, for kinds that have one.
    """

    compression: ArrowCompression = ArrowCompression.ZSTD
    level: int = LEVEL_DEFAULT

    @property
    def kind(self) -> CompressionKind:
        """The facts of the kind of compression."""
        return KINDS[self.compression]

    def arrow_codec(self) -> pa.Codec:
        """Arrow's codec; only for kinds that compress."""
        level = self.level if self.kind.has_level else None
        return pa.Codec(self.kind.arrow_name, compression_level=level)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressionKind:
    """One kind of compression.

    Attributes:
        number: The codec in the message's metadata (Arrow: `CompressionType`); None for no codec.
        arrow_name: Its name in pyarrow.
        has_level: Whether it takes a level.
        compress_large: Makes the frame of a buffer above `BLOCK_BYTES`; None where Arrow can.
        content_size: Reads the uncompressed size from a frame, None where the frame lacks it; given
            for kinds of which several frames are decompressed as one stream.
    """

    number: int | None
    arrow_name: str = ""
    has_level: bool = False
    compress_large: Callable[[memoryview], bytes] | None = None
    content_size: Callable[[memoryview], int | None] | None = None


def codec_of_number(number: int | None) -> BodyCodec:
    """Return the codec with this number in a message's metadata, of the default level."""
    return BodyCodec(_OF_NUMBER[number])


# --- LZ4 ------------------------------------------------------------------------------------------
#
# A frame is its head, blocks (length as uint32, with the highest bit set where the block is stored
# plain; the bytes) and an end mark of four zero bytes.

BLOCK_BYTES: Final = 1 << 16

# Magic; version 1 with independent blocks and no checksums; 64 KiB blocks; checksum of the two.
_HEAD: Final = bytes.fromhex("04224d18 60 40 82")
_END_MARK: Final = bytes(4)
_STORED_PLAIN: Final = 1 << 31
_BLOCK_LENGTH = struct.Struct("<I")


def compress_lz4_frame(data: memoryview) -> bytes:
    """Return the bytes as one frame."""
    parts: list[bytes | memoryview] = [_HEAD]
    for start in range(0, len(data), BLOCK_BYTES):
        block: bytes | memoryview = data[start : start + BLOCK_BYTES]
        packed: bytes = _block_codec().compress(block, asbytes=True)
        if len(packed) < len(block):
            parts += (_BLOCK_LENGTH.pack(len(packed)), packed)
        else:
            parts += (_BLOCK_LENGTH.pack(len(block) | _STORED_PLAIN), block)
    parts.append(_END_MARK)
    return b"".join(parts)


@cache
def _block_codec() -> pa.Codec:
    return pa.Codec("lz4_raw")


# --- ZSTD -----------------------------------------------------------------------------------------

# The head of a ZSTD frame (RFC 8878, 3.1.1.1): the bytes before the size of its content, and
# the encoding of that size, by the descriptor's bits.
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_DICTIONARY_BYTES: Final = (0, 1, 2, 4)
_SIZES: Final = tuple(struct.Struct("<" + each) for each in "BHIQ")
_MEDIUM_FROM = 256


def zstd_content_size(frame: memoryview) -> int | None:
    """Return the content size that a ZSTD frame states; None without one, or for other bytes."""
    if len(frame) <= len(_ZSTD_MAGIC) or frame[: len(_ZSTD_MAGIC)] != _ZSTD_MAGIC:
        return None
    descriptor = frame[len(_ZSTD_MAGIC)]
    is_single = descriptor >> 5 & 1
    at = len(_ZSTD_MAGIC) + 1 + (1 - is_single) + _DICTIONARY_BYTES[descriptor & 3]
    size_kind = descriptor >> 6
    if size_kind == 0 and not is_single:
        return None
    try:
        size = int(_SIZES[size_kind].unpack_from(frame, at)[0])
    except struct.error:
        return None
    return size + _MEDIUM_FROM if size_kind == 1 else size


KINDS: Final = {
    ArrowCompression.NONE: CompressionKind(number=None),
    ArrowCompression.LZ4_FRAME: CompressionKind(
        number=0, arrow_name="lz4", compress_large=compress_lz4_frame
    ),
    ArrowCompression.ZSTD: CompressionKind(
        number=1, arrow_name="zstd", has_level=True, content_size=zstd_content_size
    ),
}
if KINDS.keys() != set(ArrowCompression):
    raise TypeError("every kind of compression that a table can have needs an entry")
_OF_NUMBER: Final = {kind.number: each for each, kind in KINDS.items()}
CODEC_NUMBERS: Final = frozenset(_OF_NUMBER) - {None}
