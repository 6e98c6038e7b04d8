"""The two sparse indexes of one segment in memory, and as the files beside it.

They lead from an offset, a position or a time to a batch at or before it, with about one entry
for 4 KiB of log; the rest of the way is walked (`segment`). Their files are those of Fluss
(`fluss.records.log.segment`) and only a shortcut: they can be made from the batches at any time.
A third file, `.sums`, has for each entry of the offset index the checksum of all batch headers
before it (CRC-32C, little endian), because a batch's own checksum leaves its offset and its time
out; `checking` compares stored batches with it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING, Final

import numpy as np
from crc32c import crc32c

from fluss.errors import CorruptDataError
from fluss.records.log.segment import (
    INDEX_INTERVAL_BYTES,
    OffsetIndex,
    TimeIndex,
    segment_file_name,
)
from fluss_server.log import log_files as files

if TYPE_CHECKING:
    from pathlib import Path

    from fluss_server.log.segment_file import SegmentPosition

SUFFIXES: Final = ("index", "timeindex", "sums")


class SegmentIndexes:
    """Indexes that grow with their segment; written by whoever holds the bucket's turn.

    Args:
        first_offset: The offset the segment begins with.
    """

    __slots__ = (
        "_first_offset",
        "_newest_offset",
        "_offsets",
        "_positions",
        "_sums",
        "_time_offsets",
        "_times",
        "headers_crc",
        "indexed_to",
        "newest_timestamp",
    )

    def __init__(self, first_offset: int) -> None:
        self._first_offset = first_offset
        self._offsets, self._positions = array("q"), array("q")
        self._times, self._time_offsets = array("q"), array("q")
        self._sums = array("I")
        self.headers_crc = 0
        self.indexed_to = 0
        self.newest_timestamp = -1
        self._newest_offset = first_offset

    @property
    def last_offset(self) -> int | None:
        """The last offset of the batch at `indexed_to`; None where there is no entry."""
        return self._offsets[-1] if self._offsets else None

    def note(self, place: SegmentPosition) -> None:
        """Take note of the batch that is behind all others."""
        self.note_time(place)
        if place.position - self.indexed_to > INDEX_INTERVAL_BYTES:
            # What is looked at first grows last: readers are on another thread.
            self._sums.append(self.headers_crc)
            self._positions.append(place.position)
            self._offsets.append(place.next_offset - 1)
            if not self._times or self.newest_timestamp > self._times[-1]:
                self._time_offsets.append(self._newest_offset)
                self._times.append(self.newest_timestamp)
            self.indexed_to = place.position
        self.headers_crc = crc32c(place.stamp, self.headers_crc)

    def note_time(self, place: SegmentPosition) -> None:
        """Take note of a batch's time alone, because it is indexed already."""
        if place.commit_timestamp > self.newest_timestamp:
            self.newest_timestamp = place.commit_timestamp
            self._newest_offset = place.base_offset

    def position_for(self, offset: int) -> int:
        """A position at or before the batch with this offset."""
        slot = bisect_right(self._offsets, offset) - 1
        return self._positions[slot] if slot >= 0 else 0

    def boundary_at(self, position: int) -> int:
        """The last position known to be a batch's beginning, at or before this one."""
        slot = bisect_right(self._positions, position) - 1
        return self._positions[slot] if slot >= 0 else 0

    def offset_for(self, timestamp: int) -> int:
        """An offset from which on to look for the first batch that is not older than this."""
        slot = bisect_right(self._times, timestamp) - 1
        return self._time_offsets[slot] if slot >= 0 else self._first_offset

    def sum_before(self, position: int) -> tuple[int, int]:
        """The last entry at or before a position, and the checksum of all headers before it."""
        slot = bisect_right(self._positions, position) - 1
        return (self._positions[slot], self._sums[slot]) if slot >= 0 else (0, 0)

    def sums(self) -> dict[int, int]:
        """The checksum of all headers before each entry, by the entry's position."""
        return dict(zip(self._positions, self._sums, strict=True))

    def block_of(self, position: int) -> int:
        """The number of the entry after a position; blocks of batches lie between two entries."""
        return bisect_right(self._positions, position)

    def block_end(self, block: int, *, size: int, headers_crc: int) -> tuple[int, int]:
        """Where a block of the first `size` bytes ends, and the checksum of all headers before.

        Args:
            block: The number of the block.
            size: Where the last of them ends.
            headers_crc: The checksum there.
        """
        if block < len(self._positions) and self._positions[block] < size:
            return self._positions[block], self._sums[block]
        return size, headers_crc

    # --- files ----------------------------------------------------------------------------------

    def to_bytes(self) -> tuple[bytes, ...]:
        """The bytes of the files, in the order of `SUFFIXES`."""
        offsets, positions, times, time_offsets = (
            np.array(each, dtype=np.int64)
            for each in (self._offsets, self._positions, self._times, self._time_offsets)
        )
        first = self._first_offset
        return (
            OffsetIndex(first_offset=first, offsets=offsets, positions=positions).write(),
            TimeIndex(first_offset=first, timestamps=times, offsets=time_offsets).write(),
            np.array(self._sums, dtype="<u4").tobytes(),
        )

    @classmethod
    def load(
        cls, directory: Path, first_offset: int, *, size: int, end_offset: int, crc: int
    ) -> SegmentIndexes | None:
        """The indexes that are on disk; None where they are not those that were written.

        Args:
            directory: Where the segment is.
            first_offset: Its first offset.
            size: How long it is.
            end_offset: The offset behind its last batch.
            crc: The files' checksum.
        """
        made = cls(first_offset)
        try:
            written = tuple(
                (directory / segment_file_name(first_offset, each)).read_bytes()
                for each in SUFFIXES
            )
            if crc != checksum(written):
                return None
            offsets = OffsetIndex.read(written[0], first_offset=first_offset)
            times = TimeIndex.read(written[1], first_offset=first_offset)
        except (OSError, CorruptDataError):
            return None
        inside = not len(offsets.positions) or offsets.positions[-1] < size
        if not inside or (len(offsets.offsets) and offsets.offsets[-1] >= end_offset):
            return None
        made._offsets = array("q", offsets.offsets.tobytes())
        made._positions = array("q", offsets.positions.tobytes())
        made._times = array("q", times.timestamps.tobytes())
        made._time_offsets = array("q", times.offsets.tobytes())
        made._sums = array("I", np.frombuffer(written[2], dtype="<u4").astype("I").tobytes())
        made.headers_crc = made._sums[-1] if made._sums else 0
        made.indexed_to = made._positions[-1] if made._positions else 0
        if made._times:
            made.newest_timestamp, made._newest_offset = made._times[-1], made._time_offsets[-1]
        return made


def write_indexes(directory: Path, first_offset: int, written: tuple[bytes, ...]) -> None:
    """Put the files in place, each as a whole."""
    for suffix, data in zip(SUFFIXES, written, strict=True):
        files.replace_file(directory / segment_file_name(first_offset, suffix), data, durable=False)


def checksum(written: tuple[bytes, ...]) -> int:
    """One checksum for all files."""
    found = 0
    for each in written:
        found = crc32c(each, found)
    return found
