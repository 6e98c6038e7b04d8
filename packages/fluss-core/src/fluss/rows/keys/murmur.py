"""Murmur3-32 over one key and over many, in the three dialects that bucket functions need.

All dialects read the key as little-endian 32-bit words and finish alike; they differ in what they
do with the last `length % 4` bytes (`Tail`). What a hash means for buckets is in
`rows.keys.bucketing`. (Java: `MurmurHashUtils`, Guava's `murmur3_32_fixed`.)

Hashes are unsigned here, Java's are signed; the bits are the same.
"""

from __future__ import annotations

import struct
from enum import Enum, auto
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from fluss.rows.buffers.columns import ByteArray, Int64Array, RowBytes

UInt32Array = npt.NDArray[np.uint32]

FLUSS_SEED = 42

_C1 = 0xCC9E2D51
_C2 = 0x1B873593
_ADD = 0xE6546B64
_FINISH_1 = 0x85EBCA6B
_FINISH_2 = 0xC2B2AE35
_WORD = 0xFFFFFFFF

# Rows per step: the arrays of a step stay in the processor's cache, which is worth a factor of 3.
_STEP_ROWS = 32_768
# Below this many rows of a step that still have words, numpy's overhead per call outweighs it.
_VECTOR_ROWS_MIN = 8
# Fewer rows with keys from this length on are hashed one by one: a step of numpy takes 20 µs.
_LONG_KEY_BYTES = 256
# numpy sorts 16-bit integers by radix, which is ten times as fast.
_RADIX_SORT_MAX = 2**16 - 1


class Tail(Enum):
    """How the bytes after the last whole word are mixed in."""

    SIGNED_BYTES = auto()
    """Each is mixed in as a word of its own, sign-extended: Fluss's and Flink's Java."""

    ONE_WORD = auto()
    """Together they are one last word, as Murmur3 defines it: Guava and Iceberg."""


# --- one key --------------------------------------------------------------------------------------


def hash_bytes(key: bytes, *, seed: int, tail: Tail) -> int:
    """Return the hash of one key."""
    state = seed
    # Written out, because every single write and lookup passes here.
    for word in _words(len(key), tail).unpack_from(key):
        word = word * _C1 & _WORD  # noqa: PLW2901 - it is the word that is mixed
        state ^= (word << 15 | word >> 17) * _C2 & _WORD
        state = ((state << 13 | state >> 19) * 5 + _ADD) & _WORD
    if tail is Tail.ONE_WORD:
        state ^= _mix(int.from_bytes(key[len(key) & ~3 :], "little"))
    return finish(state ^ len(key))


@lru_cache(maxsize=256)
def _words(length: int, tail: Tail) -> struct.Struct:
    """Return how a key of this length becomes words; what is signed is extended as Java does it."""
    kinds = {Tail.SIGNED_BYTES: "b", Tail.ONE_WORD: "x"}
    return struct.Struct(f"<{length // 4}i{length % 4}{kinds[tail]}")


def hash_int(value: int) -> int:
    """Return the hash of one 32-bit integer, as Fluss scrambles a key's hash a second time."""
    return finish(_mix_into(0, _mix(value)) ^ 4)


def finish(state: int) -> int:
    """Murmur's final avalanche."""
    state = (state ^ state >> 16) * _FINISH_1 & _WORD
    state = (state ^ state >> 13) * _FINISH_2 & _WORD
    return state ^ state >> 16


def _mix(word: int) -> int:
    word = word * _C1 & _WORD
    return (word << 15 | word >> 17) * _C2 & _WORD


def _mix_into(state: int, mixed: int) -> int:
    state ^= mixed
    return ((state << 13 | state >> 19) * 5 + _ADD) & _WORD


# --- many keys ------------------------------------------------------------------------------------


def hash_rows(keys: RowBytes, *, seed: int, tail: Tail) -> UInt32Array:
    """Return the hash of every key."""
    count = len(keys)
    hashes = np.empty(count, np.uint32)
    data = np.ascontiguousarray(keys.data)
    for start in range(0, count, _STEP_ROWS):
        end = min(start + _STEP_ROWS, count)
        offsets = keys.offsets[start : end + 1]
        lengths = np.diff(offsets)
        length = int(lengths[0])
        is_worth_it = end - start >= _VECTOR_ROWS_MIN or length < _LONG_KEY_BYTES
        if is_worth_it and (lengths == length).all():
            block = data[offsets[0] : offsets[-1]].reshape(end - start, length)
            hashes[start:end] = _hash_block(block, seed, tail)
        else:
            hashes[start:end] = _hash_ragged(data, offsets[:-1], lengths, seed, tail)
    return hashes


def hash_ints(values: UInt32Array) -> UInt32Array:
    """`hash_int` of every value."""
    hashes = np.empty_like(values)
    for start in range(0, len(values), _STEP_ROWS):
        step = values[start : start + _STEP_ROWS].copy()
        states = np.zeros_like(step)
        _mix_words_into(states, step)
        states ^= 4
        _finish_all(states)
        hashes[start : start + _STEP_ROWS] = states
    return hashes


def _hash_block(block: ByteArray, seed: int, tail: Tail) -> UInt32Array:
    """Return the hashes of keys of one length: a matrix of a key per line."""
    count, length = block.shape
    aligned = length & ~3
    words = np.ascontiguousarray(block[:, :aligned]).view("<u4")
    states = np.full(count, seed, np.uint32)
    for index in range(aligned // 4):
        _mix_words_into(states, words[:, index].astype(np.uint32))
    if tail is Tail.ONE_WORD:
        last = np.zeros(count, np.uint32)
        for shift, index in enumerate(range(aligned, length)):
            last |= block[:, index].astype(np.uint32) << 8 * shift
        states ^= _mix_words(last)
    else:
        for index in range(aligned, length):
            _mix_words_into(states, _byte_words(block[:, index]))
    states ^= length
    _finish_all(states)
    return states


def _hash_ragged(
    data: ByteArray, starts: Int64Array, lengths: Int64Array, seed: int, tail: Tail
) -> UInt32Array:
    # With the longest keys first, the keys that still have a word to give are always a prefix.
    shortness = lengths.max() - lengths
    if shortness.max() <= _RADIX_SORT_MAX:
        shortness = shortness.astype(np.uint16)
    order = np.argsort(shortness, kind="stable")
    starts, lengths = starts[order], lengths[order]
    word_counts = lengths >> 2
    states = np.full(len(order), seed, np.uint32)
    _mix_whole_words(states, data, starts, word_counts)
    _mix_tails(states, data, starts + 4 * word_counts, lengths & 3, tail)
    states ^= lengths.astype(np.uint32)
    _finish_all(states)
    hashes = np.empty_like(states)
    hashes[order] = states
    return hashes


def _mix_whole_words(
    states: UInt32Array, data: ByteArray, starts: Int64Array, word_counts: Int64Array
) -> None:
    # A word may start at any byte: a view of all of them, each one byte after the last.
    words = np.ndarray(max(len(data) - 3, 0), dtype="<u4", buffer=data, strides=(1,))
    shortest_first = word_counts[::-1]
    index = 0
    while True:
        active = len(states) - int(np.searchsorted(shortest_first, index, side="right"))
        if active < _VECTOR_ROWS_MIN:
            break
        picked = words[starts[:active] + 4 * index].astype(np.uint32)
        _mix_words_into(states[:active], picked)
        index += 1
    for row in range(active):  # the few that are much longer than the others
        state = int(states[row])
        rest = data[starts[row] + 4 * index : starts[row] + 4 * word_counts[row]]
        for (word,) in struct.iter_unpack("<I", rest.tobytes()):
            state = _mix_into(state, _mix(word))
        states[row] = state


def _mix_tails(
    states: UInt32Array, data: ByteArray, positions: Int64Array, sizes: Int64Array, tail: Tail
) -> None:
    last = np.zeros(len(states), np.uint32)
    for index in range(3):
        rows = np.flatnonzero(sizes > index)
        tail_bytes = data[positions[rows] + index]
        if tail is Tail.ONE_WORD:
            last[rows] |= tail_bytes.astype(np.uint32) << 8 * index
        else:
            picked = states[rows]
            _mix_words_into(picked, _byte_words(tail_bytes))
            states[rows] = picked
    states ^= _mix_words(last)  # zero mixes to zero


def _byte_words(column: ByteArray) -> UInt32Array:
    """Return the words of signed bytes."""
    return column.view(np.int8).astype(np.int32).view(np.uint32)


def _mix_words(words: UInt32Array) -> UInt32Array:
    """Mix the words, in place."""
    words *= _C1
    _rotate(words, 15)
    words *= _C2
    return words


def _mix_words_into(states: UInt32Array, words: UInt32Array) -> None:
    states ^= _mix_words(words)
    _rotate(states, 13)
    states *= 5
    states += _ADD


def _finish_all(states: UInt32Array) -> None:
    states ^= states >> 16
    states *= _FINISH_1
    states ^= states >> 13
    states *= _FINISH_2
    states ^= states >> 16


def _rotate(words: UInt32Array, bits: int) -> None:
    high = words >> (32 - bits)
    words <<= bits
    words |= high
