"""Encoded rows as the vectorised readers of `fluss.rows` want them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from fluss.rows.buffers.columns import ByteArray, Int64Array, RowBytes

# What stands around the rows is not theirs: a reader that looks there reads this.
_AROUND = b"\xaa\xaa\xaa\xaa\xaa"


def joined(encoded: Sequence[bytes]) -> tuple[ByteArray, Int64Array, Int64Array]:
    """All rows in one buffer, with where each begins and ends; between them lies rubbish."""
    data = bytearray(_AROUND)
    starts, ends = [], []
    for each in encoded:
        starts.append(len(data))
        data += each
        ends.append(len(data))
        data += _AROUND
    as_array = np.frombuffer(bytes(data), dtype=np.uint8)
    return as_array, np.array(starts, dtype=np.int64), np.array(ends, dtype=np.int64)


def row_bytes(encoded: Sequence[bytes]) -> RowBytes:
    """All rows back to back, as our writers give them."""
    offsets = np.array([0, *accumulate(map(len, encoded))], dtype=np.int64)
    return RowBytes(data=np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets=offsets)
