"""Copies many short runs of bytes in a few numpy calls; encoded rows consist of such runs.

numpy has no call for "copy run i from here to there", so this file builds one out of unaligned
words: a run of 8 to 16 bytes is two words that may overlap, a run of 4 to 7 two half words, and
so on. Every write stays inside its own run, hence the order of the runs does not matter.

A batch of rows is written as a list of *parts*: part k holds the k-th stretch of every row. `Words`
are parts of at most ten bytes, given as numbers; `Runs` are parts copied from another buffer.
`join_parts` lays them out. The codecs know what the bytes mean. Words are split as they lie in
memory, so the machine must be little-endian, as Arrow's buffers are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fluss.errors import LimitExceededError
from fluss.rows.buffers.columns import ByteArray, Int32Array, Int64Array, RowBytes

UInt64Array = npt.NDArray[np.uint64]

# Zeros after a padded source, so that a word may be read at every position where a run can end.
PADDING_BYTES = 16
# From this length on, one slice copy per run is cheaper than a step per word for all of them.
LONG_RUN_BYTES = 512
# Arrow counts the bytes of a text column with 32 bits, Fluss those of a batch; so do we.
BYTES_MAX = 2**31 - 1


def words_of(data: ByteArray, dtype: str) -> npt.NDArray[Any]:
    """Return a view in which element i is the `dtype` that starts at byte i, aligned or not."""
    count = max(len(data) - np.dtype(dtype).itemsize + 1, 0)
    return np.ndarray(shape=(count,), dtype=dtype, buffer=data.data, strides=(1,))


def padded(data: ByteArray) -> ByteArray:
    """Return a copy followed by zeros, so that words may be read across its end."""
    copy = np.zeros(len(data) + PADDING_BYTES, np.uint8)
    copy[: len(data)] = data
    return copy


def offsets_of(lengths: Int64Array) -> Int64Array:
    """Return where runs of these lengths begin back to back, and where the last one ends."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def copy_runs(
    *,
    source: ByteArray,
    source_starts: Int64Array,
    target: ByteArray,
    target_starts: Int64Array,
    lengths: Int64Array,
) -> None:
    """Copies run i, of `lengths[i]` bytes, from source to target; the caller checked all bounds."""
    if len(lengths) == 0:
        return
    copy = _RunCopy(source, source_starts, target, target_starts, lengths)
    shortest, longest = int(lengths.min()), int(lengths.max())
    if longest >= LONG_RUN_BYTES:
        copy.among(shortest, longest, LONG_RUN_BYTES, longest).one_by_one()
    if longest >= 8 and shortest < LONG_RUN_BYTES:
        copy.among(shortest, longest, 8, LONG_RUN_BYTES - 1).many_words()
    for word, dtype in ((4, "<u4"), (2, "<u2"), (1, "u1")):
        if longest >= word and shortest < 2 * word:
            copy.among(shortest, longest, word, 2 * word - 1).two_words(word, dtype)


def gather_runs(
    source: ByteArray, starts: Int64Array, lengths: Int64Array
) -> tuple[ByteArray, Int64Array]:
    """Return the runs back to back, and the offsets between them; the caller checked all bounds."""
    offsets = offsets_of(lengths)
    target = np.empty(int(offsets[-1]), np.uint8)
    copy_runs(
        source=source,
        source_starts=starts,
        target=target,
        target_starts=offsets[:-1],
        lengths=lengths,
    )
    return target, offsets


def narrow_offsets(offsets: Int64Array) -> Int32Array:
    """Return the offsets as columns carry them.

    Raises:
        LimitExceededError: The column would be longer than 32-bit offsets can count.
    """
    check_bytes_max(int(offsets[-1]))
    return offsets.astype(np.int32)


def check_bytes_max(size: int) -> None:
    """Refuse a size that 32 bits cannot count, before memory is allocated.

    Raises:
        LimitExceededError: A column, or all rows together, would be longer.
    """
    if size > BYTES_MAX:
        raise LimitExceededError(
            f"Columns and rows end at {BYTES_MAX} bytes or elements, these would have {size}.",
            hint="Read or write fewer rows at a time.",
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Words:
    """Up to eight bytes per row, taken from the low end of a word, and two more in `tails`.

    Bits above the length must be zero. A length of zero writes nothing.
    """

    words: UInt64Array
    lengths: Int64Array
    tails: npt.NDArray[np.uint16] | None = None  # bytes 8 and 9, for lengths beyond eight

    @property
    def spans(self) -> Int64Array:
        """How far each row moves on."""
        return self.lengths

    def write(self, target: ByteArray, starts: Int64Array, row_ends: Int64Array) -> None:
        """Puts the bytes of row i at `starts[i]`."""
        if int((row_ends - starts).min()) >= 8:
            # The zeros above a shorter value fall into later parts of the same row, and those
            # are written after this one.
            words_of(target, "<u8")[starts] = self.words
        else:
            self._write_exactly(target, starts)
        if self.tails is not None:
            self._write_tails(target, starts, self.tails)

    def only(self, valid: npt.NDArray[np.bool_]) -> Words:
        """Return the same where a row is valid, and nothing elsewhere."""
        words = np.where(valid, self.words, np.uint64(0))
        return Words(words=words, lengths=self.lengths * valid, tails=self.tails)

    def _write_exactly(self, target: ByteArray, starts: Int64Array) -> None:
        copy_runs(
            source=self.words.view(np.uint8),
            source_starts=np.arange(len(starts), dtype=np.int64) * 8,
            target=target,
            target_starts=starts,
            lengths=np.minimum(self.lengths, 8),
        )

    def _write_tails(
        self, target: ByteArray, starts: Int64Array, tails: npt.NDArray[np.uint16]
    ) -> None:
        rows = np.flatnonzero(self.lengths > 8)
        target[starts[rows] + 8] = tails[rows].astype(np.uint8)
        rows = np.flatnonzero(self.lengths > 9)
        target[starts[rows] + 9] = (tails[rows] >> np.uint16(8)).astype(np.uint8)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Runs:
    """Bytes copied from `data`; zeros fill a span after the end of its run."""

    data: ByteArray
    starts: Int64Array
    lengths: Int64Array
    spans: Int64Array

    def write(self, target: ByteArray, starts: Int64Array, row_ends: Int64Array) -> None:
        """Puts the bytes of row i at `starts[i]`."""
        del row_ends  # a run never writes outside itself
        copy_runs(
            source=self.data,
            source_starts=self.starts,
            target=target,
            target_starts=starts,
            lengths=self.lengths,
        )


Part = Words | Runs


def fixed_words(words: UInt64Array, width: int, valid: npt.NDArray[np.bool_] | None) -> Words:
    """Return the low `width` bytes of each word, and nothing where a row is not valid."""
    fixed = Words(words=words, lengths=np.full(len(words), width, np.int64))
    return fixed if valid is None else fixed.only(valid)


def runs_of(data: ByteArray, starts: Int64Array, lengths: Int64Array) -> Runs:
    """Runs that span exactly their bytes."""
    return Runs(data=data, starts=starts, lengths=lengths, spans=lengths)


def runs_of_rows(rows: RowBytes) -> Runs:
    """Whole encoded rows as one part of others."""
    return runs_of(rows.data, rows.offsets[:-1], np.diff(rows.offsets))


def zeros(spans: Int64Array) -> Runs:
    """Return a part of zeros."""
    nothing = np.zeros(len(spans), np.int64)
    return Runs(data=np.empty(0, np.uint8), starts=nothing, lengths=nothing, spans=spans)


def join_parts(parts: Sequence[Part], rows: int) -> RowBytes:
    """Lays out `rows` rows, each the concatenation of its parts.

    Raises:
        LimitExceededError: All rows together would be longer than `BYTES_MAX`.
    """
    lengths = np.zeros(rows, np.int64)
    for part in parts:
        lengths += part.spans
    offsets = offsets_of(lengths)
    check_bytes_max(int(offsets[-1]))
    data = np.zeros(int(offsets[-1]), np.uint8)
    if rows:
        at = offsets[:-1].copy()
        for part in parts:
            part.write(data, at, offsets[1:])
            at += part.spans
    return RowBytes(data=data, offsets=offsets)


@dataclass(frozen=True, slots=True, eq=False)
class _RunCopy:
    source: ByteArray
    source_starts: Int64Array
    target: ByteArray
    target_starts: Int64Array
    lengths: Int64Array

    def among(self, shortest: int, longest: int, low: int, high: int) -> _RunCopy:
        """Only the runs of `low` to `high` bytes; `shortest` and `longest` are those of all."""
        if low <= shortest and longest <= high:
            return self
        return self._only((self.lengths >= low) & (self.lengths <= high))

    def many_words(self) -> None:
        """Whole words from the front, and one that ends where the run ends."""
        self.word_at("<u8", self.lengths - 8)
        rest, step = self, 0
        while True:
            more = rest.lengths > step + 8
            if not more.all():
                rest = rest._only(more)
            if len(rest.lengths) == 0:
                return
            rest.word_at("<u8", step)
            step += 8

    def two_words(self, word: int, dtype: str) -> None:
        """One word at the front and one that ends where the run ends; they may overlap."""
        self.word_at(dtype, 0)
        if word > 1:
            self.word_at(dtype, self.lengths - word)

    def word_at(self, dtype: str, step: Int64Array | int) -> None:
        source, target = words_of(self.source, dtype), words_of(self.target, dtype)
        target[self.target_starts + step] = source[self.source_starts + step]

    def one_by_one(self) -> None:
        for start, to, length in zip(
            self.source_starts.tolist(),
            self.target_starts.tolist(),
            self.lengths.tolist(),
            strict=True,
        ):
            self.target[to : to + length] = self.source[start : start + length]

    def _only(self, chosen: npt.NDArray[np.bool_]) -> _RunCopy:
        rows = np.flatnonzero(chosen)
        return _RunCopy(
            self.source,
            self.source_starts[rows],
            self.target,
            self.target_starts[rows],
            self.lengths[rows],
        )
