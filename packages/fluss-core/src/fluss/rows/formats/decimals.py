"""DECIMAL columns: 128 bits in two words, and the shortest bytes that hold a value.

A column carries an unscaled value as a low and a high int64 word. Rows carry those of more than 18
digits as big-endian two's complement without superfluous leading bytes (Java:
`BigInteger.toByteArray`). `rows.formats.stored` and the codecs decide where the bytes go.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fluss.model.types.data_type import DecimalType
from fluss.rows.buffers.byte_runs import Runs, UInt64Array, copy_runs, runs_of
from fluss.rows.buffers.columns import BoolArray, ByteArray, Int64Array

DECIMAL_BYTES_MAX = 16
_WORD_MASK = 2**64 - 1


def check_digits(
    low: Int64Array,
    high: Int64Array,
    data_type: DecimalType,
    refuse: Callable[[BoolArray, str], None],
) -> None:
    """Call `refuse` for values with more digits than the type has."""
    largest = 10**data_type.precision - 1
    magnitude_low, magnitude_high, sign = _folded(low, high)
    # A negative value was folded to one less than its magnitude.
    limit_low = np.uint64(largest & _WORD_MASK) - sign
    limit_high = np.uint64(largest >> 64)
    wrong = magnitude_high > limit_high
    wrong |= (magnitude_high == limit_high) & (magnitude_low > limit_low)
    if wrong.any():
        refuse(wrong, f"a value has more than {data_type.precision} digits")


def shortest_bytes(low: Int64Array, high: Int64Array) -> Runs:
    """Each value as few big-endian bytes as hold it and its sign."""
    rows = len(low)
    data = np.empty((rows, 2), ">i8")
    data[:, 0], data[:, 1] = high, low
    lengths = _shortest_lengths(low, high)
    ends = (np.arange(rows, dtype=np.int64) + 1) * DECIMAL_BYTES_MAX
    return runs_of(data.view(np.uint8).reshape(-1), ends - lengths, lengths)


def words_of_runs(
    source: ByteArray,
    starts: Int64Array,
    lengths: Int64Array,
    data_type: DecimalType,
    refuse: Callable[[BoolArray, str], None],
) -> Int64Array:
    """Return the low and high words of big-endian values; `refuse` is called for invalid ones."""
    wrong = (lengths < 1) | (lengths > DECIMAL_BYTES_MAX)
    if wrong.any():
        refuse(wrong, f"a DECIMAL takes 1 to {DECIMAL_BYTES_MAX} bytes")
    rows = len(starts)
    data = np.empty((rows, DECIMAL_BYTES_MAX), np.uint8)
    data[:] = np.where(source[starts] > 127, np.uint8(255), np.uint8(0))[:, np.newaxis]
    ends = (np.arange(rows, dtype=np.int64) + 1) * DECIMAL_BYTES_MAX
    copy_runs(
        source=source,
        source_starts=starts,
        target=data.reshape(-1),
        target_starts=ends - lengths,
        lengths=lengths,
    )
    words = data.view(">i8")[:, ::-1].astype("<i8")
    check_digits(words[:, 0], words[:, 1], data_type, refuse)
    return words


def _folded(low: Int64Array, high: Int64Array) -> tuple[UInt64Array, UInt64Array, UInt64Array]:
    """Return the value, or its complement where it is negative, in two words; and 1 where it is."""
    sign = high >> 63
    return (low ^ sign).view(np.uint64), (high ^ sign).view(np.uint64), (sign & 1).view(np.uint64)


def _shortest_lengths(low: Int64Array, high: Int64Array) -> Int64Array:
    magnitude_low, magnitude_high, _ = _folded(low, high)
    lengths = np.ones(len(low), np.int64)
    # One more byte at every bit that the bytes before it cannot hold beside the sign.
    for bit in range(7, 64, 8):
        lengths += (magnitude_low >> np.uint64(bit) != 0) | (magnitude_high != 0)
    for bit in range(7, 56, 8):
        lengths += magnitude_high >> np.uint64(bit) != 0
    return lengths
