"""Unsigned LEB128 numbers, as compacted rows store integers: single values and whole columns.

Negative numbers are written as their two's complement, hence always in 5 bytes (INT) or 10 bytes
(BIGINT); there is no zigzag. Java: `CompactedRowWriter.writeInt`, `writeLong`. A column is spread
and gathered in registers: 56 bits become eight bytes of seven bits each in three steps, without a
loop over bytes or rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fluss.errors import CorruptDataError
from fluss.rows.buffers.byte_runs import UInt64Array, Words, words_of
from fluss.rows.buffers.columns import ByteArray, Int64Array

VARINT_BYTES_MAX = 5
VARLONG_BYTES_MAX = 10
# The length that `read_varint_column` gives for a number that does not end within ten bytes.
UNENDING = VARLONG_BYTES_MAX + 1

_INT_MASK = 2**32 - 1
_LONG_MASK = 2**64 - 1


def _two_bytes_each(last: int) -> list[bytes]:
    """Every 14-bit number in two bytes, with `last` in the high bit of the second."""
    numbers = np.arange(1 << 14, dtype="<u2")
    raw = (numbers & 127 | 128 | numbers >> 7 << 8 | last << 8).tobytes()
    return [raw[at : at + 2] for at in range(0, len(raw), 2)]


# Numbers of up to 14 bits are looked up, longer ones are put together from two bytes at a time.
_SHORT = [bytes((number,)) for number in range(128)] + _two_bytes_each(0)[128:]
_PAIRS = _two_bytes_each(128)


def varint(value: int) -> bytes:
    """Return a 32-bit number, signed or not; anything wider raises OverflowError."""
    if 0 <= value < 16384:
        return _SHORT[value]
    if not -(2**31) <= value < 2**31:
        raise OverflowError(f"{value} does not fit 32 bits")
    return _long_form(value & _INT_MASK)


def varlong(value: int) -> bytes:
    """Return a 64-bit signed number; anything wider raises OverflowError."""
    if 0 <= value < 16384:
        return _SHORT[value]
    if not -(2**63) <= value < 2**63:
        raise OverflowError(f"{value} does not fit 64 bits")
    return _long_form(value & _LONG_MASK)


def _long_form(value: int) -> bytes:
    out = b""
    while value >= 16384:
        out += _PAIRS[value & 16383]
        value >>= 14
    return out + _SHORT[value]


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the signed 32-bit number at `at`, and its end; IndexError if `data` ends before."""
    first = data[at]
    if first < 128:
        return first, at + 1
    value, at = _read_long_form(data, at, VARINT_BYTES_MAX)
    value &= _INT_MASK
    return (value - 2**32 if value >> 31 else value), at


def read_varlong(data: bytes, at: int) -> tuple[int, int]:
    """Return the signed 64-bit number at `at`, and its end; IndexError if `data` ends before."""
    first = data[at]
    if first < 128:
        return first, at + 1
    value, at = _read_long_form(data, at, VARLONG_BYTES_MAX)
    value &= _LONG_MASK
    return (value - 2**64 if value >> 63 else value), at


def _read_long_form(data: bytes, at: int, bytes_max: int) -> tuple[int, int]:
    value = shift = 0
    for byte in data[at : at + bytes_max]:
        if byte < 128:
            return value | byte << shift, at + shift // 7 + 1
        value |= (byte & 127) << shift
        shift += 7
    if at + bytes_max > len(data):
        raise IndexError(f"the number at byte {at} is cut off")
    raise CorruptDataError(
        f"A number at byte {at} goes on beyond {bytes_max} bytes.",
        what="varint",
        at=at,
        why=f"no last byte among {bytes_max}",
    )


_u64 = np.uint64
_HIGH_BITS = _u64(0x8080808080808080)
_SEVEN_BITS = _u64(0x7F7F7F7F7F7F7F7F)


def varint_column(values: npt.NDArray[Any]) -> Words:
    """One number per row; signed ones are taken in two's complement of their own width."""
    unsigned = values.astype(f"<u{values.dtype.itemsize}", copy=False).astype("<u8", copy=False)
    largest = int(unsigned.max(initial=0))
    if largest < 1 << 7:
        return Words(words=unsigned, lengths=np.ones(len(values), np.int64))
    spread = _spread(unsigned)
    more = _continuation_bits(spread)
    if largest < 1 << 56:
        return Words(words=spread | more, lengths=np.bitwise_count(more).astype(np.int64) + 1)
    return _with_tails(unsigned, spread, more)


def _with_tails(unsigned: UInt64Array, spread: UInt64Array, more: UInt64Array) -> Words:
    tops = unsigned >> _u64(56)
    more = np.where(tops > 0, _HIGH_BITS, more)
    lengths = np.bitwise_count(more).astype(np.int64) + 1 + (tops > 127)
    # Byte 8 holds seven of the eight bits, byte 9 the last one.
    tails = (tops | ((tops & _u64(128)) << _u64(1))).astype(np.uint16)
    return Words(words=spread | more, lengths=lengths, tails=tails)


def _spread(unsigned: UInt64Array) -> UInt64Array:
    """Return the low 56 bits, seven to a byte."""
    x = (unsigned & _u64(0x000000000FFFFFFF)) | ((unsigned & _u64(0x00FFFFFFF0000000)) << _u64(4))
    x = (x & _u64(0x00003FFF00003FFF)) | ((x & _u64(0x0FFFC0000FFFC000)) << _u64(2))
    return (x & _u64(0x007F007F007F007F)) | ((x & _u64(0x3F803F803F803F80)) << _u64(1))


def _continuation_bits(spread: UInt64Array) -> UInt64Array:
    """Return the high bit of every byte that has a non-zero byte above it."""
    x = spread >> _u64(8)
    for shift in (8, 16, 32):
        x |= x >> _u64(shift)
    return (x + _SEVEN_BITS) & _HIGH_BITS


def read_varint_column(data: ByteArray, at: Int64Array) -> tuple[UInt64Array, Int64Array]:
    """Return the number at each position of a padded source, and its length.

    The length is `UNENDING` where ten bytes do not end a number. Bits beyond the 64th are ignored,
    as in Java.
    """
    words: UInt64Array = words_of(data, "<u8")[at]
    if not (words & _u64(0x80)).any():
        return words & _u64(0x7F), np.ones(len(at), np.int64)
    stops = ~words & _HIGH_BITS
    lowest = stops & (~stops + _u64(1))
    within = lowest | (lowest - _u64(1))
    values = _gather(words & within & _SEVEN_BITS)
    lengths = np.bitwise_count(within).astype(np.int64) >> 3
    long = np.flatnonzero(stops == 0)
    if len(long):
        _read_tails(data, at, long, values, lengths)
    return values, lengths


def _read_tails(
    data: ByteArray, at: Int64Array, rows: Int64Array, values: UInt64Array, lengths: Int64Array
) -> None:
    """Adds the ninth and tenth byte of the numbers in `rows`."""
    eighth = data[at[rows] + 8].astype(np.uint64)
    ninth = data[at[rows] + 9].astype(np.uint64)
    goes_on = eighth > 127
    values[rows] |= (eighth & _u64(0x7F)) << _u64(56)
    values[rows] |= np.where(goes_on, ninth << _u64(63), _u64(0))
    lengths[rows] = np.where(goes_on, np.where(ninth > 127, UNENDING, 10), 9)


def _gather(x: UInt64Array) -> UInt64Array:
    """Return the inverse of `_spread`."""
    x = (x & _u64(0x007F007F007F007F)) | ((x & _u64(0x7F007F007F007F00)) >> _u64(1))
    x = (x & _u64(0x00003FFF00003FFF)) | ((x & _u64(0x3FFF00003FFF0000)) >> _u64(2))
    return (x & _u64(0x000000000FFFFFFF)) | ((x & _u64(0x0FFFFFFF00000000)) >> _u64(4))
