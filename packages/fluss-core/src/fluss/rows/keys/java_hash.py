"""Java's hash codes of text, `String.hashCode`, for one text and for many.

A text hashes as its UTF-16 code units, read as the digits of a number to the base 31, modulo 2^32.
Hashes are unsigned here, Java's are signed; the bits are the same.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from fluss.rows.buffers.byte_runs import gather_runs, offsets_of
from fluss.rows.buffers.columns import ByteArray, Int64Array, Values
from fluss.rows.keys.murmur import UInt32Array

BASE = 31

# 31 has an inverse modulo 2^32, so digits can be weighed from the front of all texts at once.
_INVERSE = pow(BASE, -1, 1 << 32)
_MASK = (1 << 32) - 1
_INT64_CHARS = 20  # -9223372036854775808
_STEP_ROWS = 32_768  # what stays in the processor's cache


def string_hash(text: str) -> int:
    """The hash of one text; UnicodeEncodeError for half a surrogate pair."""
    units: Iterable[int] = text.encode()
    if not text.isascii():
        data = text.encode("utf-16-le")
        units = struct.unpack(f"<{len(data) // 2}H", data)
    code = 0
    for unit in units:
        code = code * BASE + unit & _MASK
    return code


def string_hashes(data: ByteArray, starts: Int64Array, lengths: Int64Array) -> UInt32Array:
    """The hash of every run of UTF-8.

    Raises:
        UnicodeDecodeError: A run is not UTF-8.
    """
    packed, offsets = gather_runs(data, starts, lengths)
    if (packed < 0x80).all():
        return _hashes(packed, offsets)
    return _hashes(*_utf_16(packed, offsets))


def decimal_hashes(values: Values) -> UInt32Array:
    """The hashes of integers as their decimal text, as `Long.toString` has it."""
    codes = np.zeros(len(values), np.uint32)
    for start in range(0, len(values), _STEP_ROWS):
        step = codes[start : start + _STEP_ROWS]
        # One character per column, zeros behind the last.
        texts = values[start : start + _STEP_ROWS].astype(f"S{_INT64_CHARS}")
        for units in texts.view(np.uint8).reshape(len(texts), _INT64_CHARS).T:
            np.copyto(step, step * np.uint32(BASE) + units, where=units != 0)
    return codes


def _utf_16(packed: ByteArray, offsets: Int64Array) -> tuple[npt.NDArray[np.uint16], Int64Array]:
    """The same texts in UTF-16: their code units back to back, and the offsets between them."""
    is_continued = packed & 0xC0 == 0x80
    firsts = offsets[:-1][np.diff(offsets) > 0]
    if is_continued[firsts].any():  # a character that begins in the run before
        at = int(firsts[np.argmax(is_continued[firsts])])
        raise UnicodeDecodeError("utf-8", packed[at:].tobytes(), 0, 1, "invalid start byte")
    units = np.frombuffer(packed.tobytes().decode().encode("utf-16-le"), "<u2")
    # A character is one unit, or two where it takes four bytes of UTF-8.
    units_per_byte = np.where(is_continued, 0, np.where(packed >= 0xF0, 2, 1))
    return units, offsets_of(units_per_byte.astype(np.int64))[offsets]


def _hashes(units: npt.NDArray[np.uint8 | np.uint16], offsets: Int64Array) -> UInt32Array:
    # Unit k of all texts weighs 31^-k; a text that ends before unit e is then its share of the
    # sum times 31^(e - 1). All of it wraps at 2^32, as it must.
    count = len(units)
    if count == 0:
        return np.zeros(len(offsets) - 1, np.uint32)
    weighed = units * _powers(_INVERSE, count)
    sums = np.zeros(count + 1, np.uint32)
    np.cumsum(weighed, dtype=np.uint32, out=sums[1:])
    ends = offsets[1:]
    shares = sums[ends] - sums[offsets[:-1]]
    return shares * _powers(BASE, count)[np.maximum(ends - 1, 0)]


def _powers(base: int, count: int) -> UInt32Array:
    powers = np.full(count, base, np.uint32)
    powers[0] = 1
    return np.cumprod(powers, dtype=np.uint32)
