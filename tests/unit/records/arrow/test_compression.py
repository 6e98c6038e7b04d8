"""LZ4 frames of independent blocks."""

from __future__ import annotations

import struct
from random import Random

import pyarrow as pa
import pytest

from fluss.records.arrow.compression import BLOCK_BYTES, compress_lz4_frame

CODEC = pa.Codec("lz4")


def contents():
    rng = Random(3)
    yield b""
    yield b"a"
    yield rng.randbytes(100)
    yield bytes(BLOCK_BYTES)
    yield bytes(BLOCK_BYTES + 1)
    yield rng.randbytes(BLOCK_BYTES) + bytes(BLOCK_BYTES) + b"end"


@pytest.mark.parametrize("data", list(contents()), ids=len)
def test_arrow_reads_a_frame(data):
    frame = compress_lz4_frame(memoryview(data))
    assert CODEC.decompress(frame, len(data), asbytes=True) == data


def test_a_small_frame_is_the_one_arrow_writes():
    data = b"abc" * 100
    assert compress_lz4_frame(memoryview(data)) == CODEC.compress(data, asbytes=True)


def test_each_block_can_be_read_alone():
    data = (b"the same text again and again " * 10_000)[: 3 * BLOCK_BYTES + 5]
    frame = compress_lz4_frame(memoryview(data))
    raw, at, found = pa.Codec("lz4_raw"), 7, b""
    while True:
        (length,) = struct.unpack_from("<I", frame, at)
        at += 4
        if not length:
            break
        expected = min(BLOCK_BYTES, len(data) - len(found))
        if length >> 31:
            length &= 2**31 - 1
            found += frame[at : at + length]
        else:
            found += raw.decompress(frame[at : at + length], expected, asbytes=True)
        at += length
    assert at == len(frame)
    assert found == data
