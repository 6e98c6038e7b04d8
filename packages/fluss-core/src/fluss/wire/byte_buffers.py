"""Byte buffers, which this room passes on without joining or copying them."""

from __future__ import annotations

from collections.abc import Iterable

Buffer = bytes | bytearray | memoryview


def size_of(buffer: Buffer) -> int:
    """How many bytes a buffer holds."""
    # len() of a memoryview counts items, which are not bytes in every format.
    return buffer.nbytes if isinstance(buffer, memoryview) else len(buffer)


def count_bytes(buffers: Iterable[Buffer]) -> int:
    """The total size of the buffers."""
    return sum(map(size_of, buffers))
