"""Bytes as this room passes them on: never joined, never copied without need."""

from __future__ import annotations

from collections.abc import Iterable

Buffer = bytes | bytearray | memoryview


def count_bytes(buffers: Iterable[Buffer]) -> int:
    """How many bytes the buffers hold together."""
    # len() of a memoryview counts items, which are not bytes in every format.
    return sum(each.nbytes if isinstance(each, memoryview) else len(each) for each in buffers)
