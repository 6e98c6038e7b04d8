"""Checks the batches that were on disk when a segment was opened, when they are first read.

A batch's checksum covers its records, but not the offset and the time that the server gave it. The
running checksum of all headers covers those, and the indexes have it at each of their entries. A
stored batch is compared with both, once per process, in blocks: a block lies between two entries
of the offset index. What this process itself wrote is not checked.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from crc32c import crc32c

if TYPE_CHECKING:
    from fluss_server.log.segment_indexes import SegmentIndexes

# Base offset, length, magic, time and checksum; the checksum covers the rest of the batch.
HEADER_BYTES: Final = 25
_CHECKED_BYTES_MAX: Final = 4 << 20
_LENGTH = struct.Struct("<8xi")
_LENGTH_END: Final = 12
_CRC = struct.Struct("<21xI")


class StoredBatches:
    """The part of a segment that was on disk when it was opened.

    Args:
        size: Its size in bytes.
        headers_crc: The checksum of its batch headers.
    """

    __slots__ = ("_checked", "checked_bytes", "headers_crc", "size")

    def __init__(self, size: int, headers_crc: int) -> None:
        self.size = size
        self.headers_crc = headers_crc
        self.checked_bytes = 0
        self._checked: set[int] = set()

    def check(
        self,
        indexes: SegmentIndexes,
        start: int,
        end: int,
        *,
        read: Callable[[int, int], bytes],
    ) -> tuple[int, str] | None:
        """Check the unchecked blocks between two positions.

        Args:
            indexes: The segment's indexes.
            start: The first position.
            end: The position after the last byte.
            read: Reads the bytes between two positions.

        Returns:
            The position and the description of a damage; None where there is none.
        """
        for first, last in self._unchecked(indexes, start, end):
            found = self._check_blocks(indexes, first, last, read)
            if found is not None:
                return found
        return None

    def block_end(self, indexes: SegmentIndexes, position: int) -> int:
        """Return the end of the block with the byte before a position."""
        return self._end(indexes, indexes.block_of(min(position, self.size) - 1))[0]

    def _unchecked(
        self, indexes: SegmentIndexes, start: int, end: int
    ) -> Iterator[tuple[int, int]]:
        """Iterate over runs of unchecked blocks, each short enough for one read."""
        block, last = indexes.block_of(start), indexes.block_of(min(end, self.size) - 1)
        while block <= last:
            if block in self._checked:
                block += 1
                continue
            first, began = block, self._begin(indexes, block)[0]
            while block < last and block + 1 not in self._checked:
                if self._end(indexes, block)[0] - began >= _CHECKED_BYTES_MAX:
                    break
                block += 1
            yield first, block
            block += 1

    def _check_blocks(
        self, indexes: SegmentIndexes, first: int, last: int, read: Callable[[int, int], bytes]
    ) -> tuple[int, str] | None:
        position, crc = self._begin(indexes, first)
        view = memoryview(read(position, self._end(indexes, last)[0]))
        began = position
        for block in range(first, last + 1):
            end, expected = self._end(indexes, block)
            block_began = position
            while position < end:
                size = _sound_size(view[position - began : end - began])
                if size is None:
                    return position, "the batch there does not have its checksum"
                at = position - began
                crc = crc32c(view[at : at + HEADER_BYTES], crc)
                position += size
            if crc != expected:
                return block_began, "offset or time of a batch from there on is another one"
            self._checked.add(block)
        self.checked_bytes += position - began
        return None

    def _begin(self, indexes: SegmentIndexes, block: int) -> tuple[int, int]:
        return self._end(indexes, block - 1) if block else (0, 0)

    def _end(self, indexes: SegmentIndexes, block: int) -> tuple[int, int]:
        return indexes.block_end(block, size=self.size, headers_crc=self.headers_crc)


def _sound_size(batch: memoryview) -> int | None:
    """Return the size of the batch at the start of these bytes; None where it is damaged."""
    if len(batch) < HEADER_BYTES:
        return None
    size: int = _LENGTH_END + _LENGTH.unpack_from(batch)[0]
    if not HEADER_BYTES <= size <= len(batch):
        return None
    return size if crc32c(batch[HEADER_BYTES:size]) == _CRC.unpack_from(batch)[0] else None
