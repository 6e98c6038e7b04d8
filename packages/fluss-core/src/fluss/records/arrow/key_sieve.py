"""Rules out rows whose keys are not among many others, before the keys are looked up.

A sieve notes for each hash whether a key has it. It may let a row pass that has none of the keys,
and never the reverse. Most rows of a large file have no deleted key, so the exact and slower lookup
(`key_index`) sees only a few of them. The hash of a text takes its length, its first and its last
bytes: many texts pass that differ from a key only in the middle.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from fluss.records.arrow.numpy_arrays import to_numpy
from fluss.rows.buffers.columns import BoolArray, Int64Array

UInt64Array = np.ndarray[Any, np.dtype[np.uint64]]

# Of rows with other keys, one in so many passes at most. With more places the sieve outgrows the
# processor's cache.
PLACES_PER_KEY: Final = 8
_WORD: Final = 8
_MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)
_OF_LAST: Final = np.uint64(0xC2B2AE3D27D4EB4F)
_OF_LENGTH: Final = np.uint64(0x165667B19E3779F9)
# The bytes of a word that belong to a text of 0 to 8 bytes.
_MASKS: Final = np.array([(1 << 8 * each) - 1 for each in range(_WORD + 1)], dtype=np.uint64)


class KeySieve:
    """Which rows may have one of some keys.

    Args:
        hashes: The keys' hashes, by `number_hashes` or `text_hashes`.
    """

    def __init__(self, hashes: UInt64Array) -> None:
        bits = max(1, int(PLACES_PER_KEY * len(hashes) - 1).bit_length())
        self._shift = np.uint64(64 - bits)
        self._is_taken: BoolArray = np.zeros(1 << bits, dtype=np.bool_)
        self._is_taken[self._places(hashes)] = True

    def passing(self, hashes: UInt64Array) -> Int64Array:
        """The rows that may have one of the keys, by their hashes."""
        return np.flatnonzero(self._is_taken[self._places(hashes)])

    def _places(self, hashes: UInt64Array) -> Int64Array:
        return (hashes >> self._shift).view(np.int64)


def number_hashes(numbers: pa.Array) -> UInt64Array:
    """Hashes of integers; no two of them have the same."""
    # One multiplication alone leaves multiples of a number together.
    return _mixed(to_numpy(numbers).astype(np.int64).view(np.uint64) * _MULTIPLIER)


def text_hashes(texts: pa.Array) -> UInt64Array:
    """Hashes of texts or bytes by their length, and their first and last eight bytes."""
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1]
    begin, end = int(ends[0]), int(ends[-1])
    whole = np.empty(0, dtype=np.uint8) if data is None else np.frombuffer(data, dtype=np.uint8)
    # A word may begin at any byte, and the last one has to end somewhere.
    padded = np.concatenate([whole[begin:end], np.zeros(_WORD, dtype=np.uint8)])
    words = np.ndarray(end - begin + 1, dtype="<u8", buffer=padded, strides=(1,))
    starts, lengths = ends[:-1] - begin, np.diff(ends)
    hashes = words[starts] & _MASKS[np.minimum(lengths, _WORD)]
    long = np.flatnonzero(lengths > _WORD)
    if len(long):
        hashes[long] = _mixed(hashes[long]) + words[ends[1:][long] - begin - _WORD] * _OF_LAST
    return _mixed(hashes + lengths.astype(np.uint64) * _OF_LENGTH)


def _mixed(words: UInt64Array) -> UInt64Array:
    return (words ^ (words >> np.uint64(32))) * _MULTIPLIER
