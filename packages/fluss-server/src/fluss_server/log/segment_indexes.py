"""The two sparse indexes of one segment, in memory and as files beside it.

They map an offset, a position or a time to a batch at or before it, with about one entry for 4 KiB
of log; `segment_file` walks the rest. Their files are those of Fluss, which `index_files` encodes,
and can be rebuilt from the batches at any time. A third file, `.sums`, has for each entry of the
offset index the checksum of all batch headers before it (CRC-32C, little endian), because a batch's
own checksum does not cover its offset and its time; `lazy_batch_checks` compares stored batches
with it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING, Final

import numpy as np
from crc32c import crc32c

from fluss.errors import CorruptDataError
from fluss.records.log.segment import segment_file_name
from fluss_server.log import log_files as files
from fluss_server.log.index_files import INDEX_INTERVAL_BYTES, OffsetIndex, TimeIndex

if TYPE_CHECKING:
    from pathlib import Path

    from fluss_server.log.segment_file import BatchLocation

SUFFIXES: Final = ("index", "timeindex", "sums")


class SegmentIndexes:
    """Indexes that grow with their segment. The thread that holds the bucket's lock writes them.

    Args:
        first_offset: The segment's first offset.
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
        """The last offset of the batch at `indexed_to`; None without an entry."""
        return self._offsets[-1] if self._offsets else None

    def note(self, location: BatchLocation) -> None:
        """Add the batch at the end of the segment."""
        self.note_time(location)
        if location.position - self.indexed_to > INDEX_INTERVAL_BYTES:
            # Readers on another thread search `_offsets` and `_times` first, so those grow last.
            self._sums.append(self.headers_crc)
            self._positions.append(location.position)
            self._offsets.append(location.next_offset - 1)
            if not self._times or self.newest_timestamp > self._times[-1]:
                self._time_offsets.append(self._newest_offset)
                self._times.append(self.newest_timestamp)
            self.indexed_to = location.position
        self.headers_crc = crc32c(location.stamp, self.headers_crc)

    def note_time(self, location: BatchLocation) -> None:
        """Add only the time of a batch that is indexed already."""
        if location.commit_timestamp > self.newest_timestamp:
            self.newest_timestamp = location.commit_timestamp
            self._newest_offset = location.base_offset

    def position_for(self, offset: int) -> int:
        """Return a position at or before the batch with this offset."""
        slot = bisect_right(self._offsets, offset) - 1
        return self._positions[slot] if slot >= 0 else 0

    def boundary_at(self, position: int) -> int:
        """Return the last indexed beginning of a batch at or before a position."""
        slot = bisect_right(self._positions, position) - 1
        return self._positions[slot] if slot >= 0 else 0

    def offset_for(self, timestamp: int) -> int:
        """Return an offset at or before the first batch that is not older than this."""
        slot = bisect_right(self._times, timestamp) - 1
        return self._time_offsets[slot] if slot >= 0 else self._first_offset

    def sum_before(self, position: int) -> tuple[int, int]:
        """Return the last entry at or before a position, and the header checksum there."""
        slot = bisect_right(self._positions, position) - 1
        return (self._positions[slot], self._sums[slot]) if slot >= 0 else (0, 0)

    def sums(self) -> dict[int, int]:
        """Return the checksum of all headers before each entry, by the entry's position."""
        return dict(zip(self._positions, self._sums, strict=True))

    def block_of(self, position: int) -> int:
        """Return the number of the block with a position; a block lies between two entries."""
        return bisect_right(self._positions, position)

    def block_end(self, block: int, *, size: int, headers_crc: int) -> tuple[int, int]:
        """Return where a block of the first `size` bytes ends, and the header checksum there.

        Args:
            block: The number of the block.
            size: The end of the last block.
            headers_crc: The checksum at that end.
        """
        if block < len(self._positions) and self._positions[block] < size:
            return self._positions[block], self._sums[block]
        return size, headers_crc

    # --- files ----------------------------------------------------------------------------------

    def to_bytes(self) -> tuple[bytes, ...]:
        """Encode the files, in the order of `SUFFIXES`."""
        offsets, positions, times, time_offsets = (
            np.array(values, dtype=np.int64)
            for values in (self._offsets, self._positions, self._times, self._time_offsets)
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
        """Read the index files; None where they do not match the segment.

        Args:
            directory: The directory of the segment.
            first_offset: Its first offset.
            size: Its size in bytes.
            end_offset: The offset after its last batch.
            crc: The checksum of the index files.
        """
        made = cls(first_offset)
        try:
            written = tuple(
                (directory / segment_file_name(first_offset, suffix)).read_bytes()
                for suffix in SUFFIXES
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
    """Write the index files, each atomically."""
    for suffix, data in zip(SUFFIXES, written, strict=True):
        files.replace_file(directory / segment_file_name(first_offset, suffix), data, durable=False)


def checksum(written: tuple[bytes, ...]) -> int:
    """Return one checksum of all index files."""
    found = 0
    for data in written:
        found = crc32c(data, found)
    return found
