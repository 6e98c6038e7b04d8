"""LZ4 frames that Java can read: blocks of 64 KiB, each by itself.

Arrow's own writer links the blocks of a frame, so that a block may point into the one before it.
Java's reader (`FlussLZ4BlockInputStream`) refuses such frames, and every Arrow buffer above 64 KiB
has more than one block. So the frame is put together here, out of blocks that Arrow compresses one
by one. Reading needs nothing of the kind: Arrow reads both.

A frame is its head, blocks (length as uint32, with the highest bit set where the block is stored
plain; the bytes) and an end mark of four zero bytes.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import Final

import pyarrow as pa

BLOCK_BYTES: Final = 1 << 16

# Magic; version 1 with independent blocks and no checksums; 64 KiB blocks; checksum of the two.
_HEAD: Final = bytes.fromhex("04224d18 60 40 82")
_END_MARK: Final = bytes(4)
_STORED_PLAIN: Final = 1 << 31
_LENGTH = struct.Struct("<I")


def compress_lz4_frame(data: memoryview) -> bytes:
    """The bytes as one frame."""
    parts: list[bytes | memoryview] = [_HEAD]
    for start in range(0, len(data), BLOCK_BYTES):
        block: bytes | memoryview = data[start : start + BLOCK_BYTES]
        packed: bytes = _codec().compress(block, asbytes=True)
        if len(packed) < len(block):
            parts += (_LENGTH.pack(len(packed)), packed)
        else:
            parts += (_LENGTH.pack(len(block) | _STORED_PLAIN), block)
    parts.append(_END_MARK)
    return b"".join(parts)


@cache
def _codec() -> pa.Codec:
    return pa.Codec("lz4_raw")
