"""The bytes a reader is given: one Arrow buffer to slice without copying, one view to read from.

Received bytes come as `bytes`, `bytearray`, `memoryview` or `pyarrow.Buffer`. An Arrow buffer keeps
its owner alive and can be handed to Arrow; a memoryview of unsigned bytes is what `struct`, numpy
and the checksum read.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import pyarrow as pa

# What holds bytes: bytes, bytearray, memoryview, a numpy array of uint8 or a pyarrow.Buffer.
# Python has a name for it (collections.abc.Buffer) from 3.12 on only.
ByteSource: TypeAlias = Any


def to_buffer(data: ByteSource) -> pa.Buffer:
    """Return the bytes as an Arrow buffer over the same memory."""
    return data if isinstance(data, pa.Buffer) else pa.py_buffer(data)


def to_view(data: ByteSource) -> memoryview:
    """Return the bytes as a view of unsigned bytes over the same memory."""
    return memoryview(data).cast("B")


def size_of(buffers: Iterable[ByteSource]) -> int:
    """Return how many bytes stand in the buffers of one written batch."""
    return sum(memoryview(each).nbytes for each in buffers)
