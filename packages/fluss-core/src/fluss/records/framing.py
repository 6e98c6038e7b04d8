"""Finds and writes records that lie back to back, each preceded by its length as int32.

Row logs, KV batches and value batches all frame their records so. Where record i begins is only
known after the length of record i - 1, so finding them is the one loop over rows in this room
(80 ns each); all further steps are vectorised. The
callers know what is in a record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from fluss.records.corrupt import corrupt_batch
from fluss.rows.buffers.byte_runs import Part, fixed_words, gather_runs, join_parts
from fluss.rows.buffers.columns import ByteArray, Int64Array, RowBytes

LENGTH_BYTES: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Frames:
    """Where records are in `data`: record i is data[starts[i]:ends[i]], its length not included."""

    data: ByteArray
    starts: Int64Array
    ends: Int64Array

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, index: int) -> bytes:
        return self.data[self.starts[index] : self.ends[index]].tobytes()

    def gathered(self) -> RowBytes:
        """Return the records back to back, without their lengths."""
        data, offsets = gather_runs(self.data, self.starts, self.ends - self.starts)
        return RowBytes(data=data, offsets=offsets)

    def beyond(self, skipped: int | Int64Array) -> Frames:
        """Return the same records without the first `skipped` bytes of each."""
        return Frames(data=self.data, starts=self.starts + skipped, ends=self.ends)

    def take(self, rows: npt.NDArray[np.int64]) -> Frames:
        """Some of the records, in the order given."""
        return Frames(data=self.data, starts=self.starts[rows], ends=self.ends[rows])


def find_frames(
    data: ByteArray, *, start: int, count: int, record_bytes_min: int, what: str, at: int = 0
) -> Frames:
    """Find `count` records that fill the bytes from `start` to the end.

    Args:
        data: The bytes.
        start: Where the first record's length stands.
        count: How many records there must be.
        record_bytes_min: The shortest that a record can be, its length field not included.
        what: What the records are, for errors.
        at: Where `data` begins in what the caller read, for errors.

    Raises:
        CorruptBatchError: The lengths do not lead to the end in that many steps.
    """
    size = len(data)
    if count * (LENGTH_BYTES + record_bytes_min) > size - start:
        why = f"{count} of them do not fit {size - start} bytes"
        raise corrupt_batch(what, at=at + start, why=why)
    starts, end = _walk(data, start, count)
    ends = np.empty_like(starts)
    ends[:-1] = starts[1:] - LENGTH_BYTES
    ends[-1:] = end
    wrong = (ends - starts < record_bytes_min) | (ends > size)
    if wrong.any():
        row = int(wrong.argmax())
        why = f"record {row} claims {ends[row] - starts[row]} bytes"
        raise corrupt_batch(what, at=at + int(starts[row]) - LENGTH_BYTES, why=why)
    if end != size:
        raise corrupt_batch(what, at=at + end, why=f"{size - end} bytes follow the last one")
    return Frames(data=data, starts=starts, ends=ends)


def _walk(data: ByteArray, start: int, count: int) -> tuple[Int64Array, int]:
    """Follow the lengths, for at most `count` steps; wrong lengths may lead anywhere."""
    bytes_ = data.data
    words_max = [(len(data) - phase) // LENGTH_BYTES for phase in range(LENGTH_BYTES)]
    # A view can only be read as whole words, so there is one for each way a length can lie.
    views = [
        bytes_[phase : phase + LENGTH_BYTES * words].cast("i")
        for phase, words in enumerate(words_max)
    ]
    starts: list[int] = []
    at = start
    try:
        for _ in range(count):
            starts.append(at + LENGTH_BYTES)
            at += views[at & 3][at >> 2] + LENGTH_BYTES
    except IndexError:
        # The length leads out of the data. The caller sees that the last record ends after the
        # end.
        return np.array(starts, dtype=np.int64), len(data) + 1
    return np.array(starts, dtype=np.int64), at


def write_frames(heads: Sequence[Part], rows: int) -> RowBytes:
    """Return records made of these parts, each preceded by its length."""
    lengths = np.zeros(rows, dtype=np.int64)
    for part in heads:
        lengths += part.spans
    words = lengths.view(np.uint64)
    return join_parts([fixed_words(words, LENGTH_BYTES, None), *heads], rows)
