"""Arranges encoded rows as the vectorised readers of `fluss.rows` take them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from fluss.rows.buffers.columns import ByteArray, Int64Array, RowBytes

# Garbage around the rows; a reader that reads too far decodes it.
_AROUND = b"\xaa\xaa\xaa\xaa\xaa"


def joined(encoded: Sequence[bytes]) -> tuple[ByteArray, Int64Array, Int64Array]:
    """Return all rows in one buffer with garbage between them, and the bounds of each row."""
    data = bytearray(_AROUND)
    starts, ends = [], []
    for row in encoded:
        starts.append(len(data))
        data += row
        ends.append(len(data))
        data += _AROUND
    as_array = np.frombuffer(bytes(data), dtype=np.uint8)
    return as_array, np.array(starts, dtype=np.int64), np.array(ends, dtype=np.int64)


def row_bytes(encoded: Sequence[bytes]) -> RowBytes:
    """Return all rows back to back, as our writers do."""
    offsets = np.array([0, *accumulate(map(len, encoded))], dtype=np.int64)
    return RowBytes(data=np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets=offsets)
