"""Eight-byte slots and the variable part after them, shared by arrays, aligned and Paimon rows.

A slot holds its value, or the value's position in the *section* (the array or row, counted from
its first byte). Everything in the variable part starts at a multiple of 8 and is filled up
with zeros. Little endian; Java: `AbstractBinaryWriter`, `BinarySegmentUtils`.

=====================  ==========================  ========================================
value                  slot                        variable part
=====================  ==========================  ========================================
number                 the number
text, bytes up to 7    bytes 0-6: the bytes,       nothing
                       byte 7: 0x80 | length
text, bytes from 8     low half: length,           the bytes
                       high half: offset
ARRAY, MAP, ROW        the same at any length      the bytes
DECIMAL(19-38)         low half: length,           16 bytes: the shortest big-endian bytes, zeros
                       high half: offset
TIMESTAMP(4-9)         low half: nanoseconds,      int64 milliseconds
                       high half: offset
=====================  ==========================  ========================================

Sections, null bits and narrower slots are handled by the codecs that have them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fluss.model.types.data_type import DataType
from fluss.model.types.type_facts import DecimalStorage
from fluss.rows.buffers.byte_runs import Runs, UInt64Array, copy_runs, runs_of
from fluss.rows.buffers.columns import BoolArray, Int64Array
from fluss.rows.formats.decimals import DECIMAL_BYTES_MAX
from fluss.rows.formats.stored import Refuse, SplitTimestamp

INLINE_BYTES_MAX = 7
_INLINE_MARK = 0x80
_u64 = np.uint64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Slots:
    """One slot per value; a `placed` one lacks the offset of its run in `variable`."""

    words: UInt64Array
    placed: BoolArray
    variable: Runs

    def with_offsets(self, offsets: Int64Array) -> UInt64Array:
        """Return the slots, where the run of value i begins `offsets[i]` bytes into its section."""
        return np.where(self.placed, self.words | offsets.view(np.uint64) << _u64(32), self.words)


def rounded_up(lengths: Int64Array) -> Int64Array:
    """Return the next multiples of 8."""
    return (lengths + 7) & ~7


def number_slots(values: npt.NDArray[Any]) -> Slots:
    """Slots of numbers of up to eight bytes; the bytes above a narrower one are zeros."""
    unsigned = np.ascontiguousarray(values).view(f"<u{values.dtype.itemsize}").astype("<u8")
    nothing = np.zeros(len(values), np.int64)
    return Slots(
        words=unsigned,
        placed=np.zeros(len(values), np.bool_),
        variable=runs_of(np.empty(0, np.uint8), nothing, nothing),
    )


def placed_slots(
    stored: SplitTimestamp | Runs, data_type: DataType, valid: BoolArray | None
) -> Slots:
    """Slots of values that are no numbers and not nested."""
    if isinstance(stored, SplitTimestamp):
        return _timestamp_slots(stored, valid)
    if isinstance(data_type.storage, DecimalStorage):
        placed = _all_if_none(valid, len(stored.lengths))
        return _placed(stored, placed, placed * np.int64(DECIMAL_BYTES_MAX))
    return _text_slots(stored, valid)


def _timestamp_slots(split: SplitTimestamp, valid: BoolArray | None) -> Slots:
    """Slots of timestamps that need nanoseconds."""
    placed = _all_if_none(valid, len(split.millis))
    eights = placed * np.int64(8)
    starts = np.arange(len(placed), dtype=np.int64) * 8
    return Slots(
        words=np.where(placed, split.nanos, 0).astype("<u8"),
        placed=placed,
        variable=runs_of(split.millis.astype("<i8", copy=False).view(np.uint8), starts, eights),
    )


def section_slots(runs: Runs, valid: BoolArray | None) -> Slots:
    """Slots of encoded arrays, maps and rows."""
    return _placed(runs, _all_if_none(valid, len(runs.lengths)), rounded_up(runs.lengths))


def _text_slots(runs: Runs, valid: BoolArray | None) -> Slots:
    """Slots of text and bytes."""
    present = _all_if_none(valid, len(runs.lengths))
    placed = runs.lengths > INLINE_BYTES_MAX
    inline = np.where(placed, 0, runs.lengths)
    words = np.zeros(len(placed), np.uint64)
    copy_runs(
        source=runs.data,
        source_starts=runs.starts,
        target=words.view(np.uint8),
        target_starts=np.arange(len(placed), dtype=np.int64) * 8,
        lengths=inline,
    )
    words |= np.where(present, inline | _INLINE_MARK, 0).view(np.uint64) << _u64(56)
    long = np.where(placed, runs.lengths, 0)
    spread = Runs(data=runs.data, starts=runs.starts, lengths=long, spans=rounded_up(long))
    return Slots(
        words=np.where(placed, long.view(np.uint64), words), placed=placed, variable=spread
    )


def _placed(runs: Runs, placed: BoolArray, spans: Int64Array) -> Slots:
    words = runs.lengths.astype("<u8")
    variable = Runs(data=runs.data, starts=runs.starts, lengths=runs.lengths, spans=spans)
    return Slots(words=words, placed=placed, variable=variable)


def _all_if_none(valid: BoolArray | None, count: int) -> BoolArray:
    return np.ones(count, np.bool_) if valid is None else valid


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OpenSlots:
    """Slots that were read, with the section each of them belongs to.

    Positions count in the source the sections were read from. `refuse` is called for slots that
    point out of their section.
    """

    words: UInt64Array
    at: Int64Array
    section_starts: Int64Array
    section_lengths: Int64Array
    refuse: Refuse

    def texts(self) -> tuple[Int64Array, Int64Array]:
        """Return where the text or bytes of each slot are, and how many."""
        starts, lengths = self._run(self._low_half())
        inline = self.words >> _u64(63) == 1
        inline_lengths = (self.words >> _u64(56)).astype(np.int64) & 0x7F
        wrong = inline & (inline_lengths > INLINE_BYTES_MAX)
        if wrong.any():
            self.refuse(wrong, f"a slot has room for {INLINE_BYTES_MAX} bytes")
        starts = np.where(inline, self.at, starts)
        lengths = np.where(inline, inline_lengths, lengths)
        self._check(starts, lengths)
        return starts, lengths

    def sections(self) -> tuple[Int64Array, Int64Array]:
        """Return where the array, map, row or large decimal of each slot is, and its length."""
        starts, lengths = self._run(self._low_half())
        self._check(starts, lengths)
        return starts, lengths

    def timestamps(self) -> tuple[Int64Array, npt.NDArray[np.int32]]:
        """Return where the milliseconds of each slot are, and its nanoseconds."""
        starts, eights = self._run(np.full(len(self.words), 8, np.int64))
        self._check(starts, eights)
        return starts, self._low_half().astype(np.int32)

    def _low_half(self) -> Int64Array:
        return self.words.astype("<u4").view("<i4").astype(np.int64)

    def _run(self, lengths: Int64Array) -> tuple[Int64Array, Int64Array]:
        return self.section_starts + (self.words >> _u64(32)).astype(np.int64), lengths

    def _check(self, starts: Int64Array, lengths: Int64Array) -> None:
        wrong = lengths < 0
        wrong |= starts + lengths > self.section_starts + self.section_lengths
        if wrong.any():
            self.refuse(wrong, "a slot points out of its section")
        # Valid slots share no bytes. Without this check, a few slots that all point to one long
        # run would need far more memory than there are bytes.
        if int(lengths.sum()) > _total_of_sections(self.section_starts, self.section_lengths):
            self.refuse(lengths == lengths.max(), "slots share their bytes")


def _total_of_sections(starts: Int64Array, lengths: Int64Array) -> int:
    """Return the bytes of all sections, each counted once; slots of one section are neighbours."""
    if len(starts) == 0:
        return 0
    first = np.ones(len(starts), np.bool_)
    first[1:] = starts[1:] != starts[:-1]
    return int(lengths[first].sum())


# The slot of a value in the variable part: its low half, and its offset.
pack_halves: Callable[[int, int], bytes] = struct.Struct("<II").pack


def inline_slot(data: bytes) -> bytes:
    """Return the slot of up to seven bytes of text."""
    size = len(data)
    return data + bytes(INLINE_BYTES_MAX - size) + bytes((_INLINE_MARK | size,))
