"""One file of a log: batches back to back, and the two sparse indexes that lead into them.

Names, batches and index files are those of Fluss (`fluss.records.segment`), so a segment of ours
and one of a real tablet server differ in nothing but their rows. Indexes are kept in memory while
they are used and written when the segment is sealed; they can be made from the batches at any
time. Which segment an offset lies in, and what readers may see, is known to `bucket_log`.
"""

from __future__ import annotations

import os
import struct
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from fluss.errors import CorruptDataError
from fluss.records.log_header import HEADER_BYTES_MIN, LENGTH_END
from fluss.records.segment import (
    INDEX_INTERVAL_BYTES,
    OffsetIndex,
    TimeIndex,
    segment_file_name,
)
from fluss.wire.buffers import Buffer
from fluss_server.log import files

_WALK_BYTES: Final = 16 * 1024
# Base offset, length, magic, timestamp, (checksum, schema id, attributes), last offset delta: the
# same places in magic 0 and 1, which are all that is stored (`log.checks`).
_PLACE = struct.Struct("<qibq7xi")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one batch is, and what its header says of offsets and time."""

    position: int
    size: int
    base_offset: int
    next_offset: int
    commit_timestamp: int

    @property
    def end(self) -> int:
        """The position behind it."""
        return self.position + self.size


class Segment:
    """A file of batches; written by one thread at a time, the one with the bucket's turn.

    Args:
        directory: Where its files are.
        first_offset: The offset it begins with.
    """

    __slots__ = (
        "_descriptor",
        "_directory",
        "_index_offsets",
        "_index_positions",
        "_indexed_to",
        "_is_loaded",
        "_newest",
        "_newest_offset",
        "_time_offsets",
        "_times",
        "end_offset",
        "first_offset",
        "size",
        "synced_size",
    )

    def __init__(self, directory: Path, first_offset: int) -> None:
        self._directory = directory
        self.first_offset = first_offset
        self.end_offset = first_offset
        self.size = 0
        self.synced_size = 0
        self._descriptor: int | None = None
        self._is_loaded = True
        self._indexed_to = 0
        self._newest = -1
        self._clear_indexes()

    @classmethod
    def sealed(cls, directory: Path, first_offset: int, *, end_offset: int, size: int) -> Segment:
        """A segment that is on disk; its indexes are read when they are first needed."""
        made = cls(directory, first_offset)
        made.end_offset = end_offset
        made.size = made.synced_size = size
        made._is_loaded = False
        return made

    @property
    def path(self) -> Path:
        """The file of the batches."""
        return self._path("log")

    @property
    def is_empty(self) -> bool:
        """Whether no batch is in it."""
        return self.size == 0

    @property
    def newest_timestamp(self) -> int:
        """The largest timestamp in it, -1 where it is empty."""
        self._load()
        return self._newest

    # --- writing --------------------------------------------------------------------------------

    def append(self, buffers: Sequence[Buffer], places: Sequence[Place]) -> None:
        """Write batches that have been stamped; all of them or none.

        Raises:
            OSError: The disk refused.
        """
        self._load()
        self.size = files.append(self._opened(), self.size, buffers)
        for place in places:
            self.note(place)

    def note(self, place: Place) -> None:
        """Take a batch that is in the file into the indexes."""
        self.end_offset = place.next_offset
        if place.commit_timestamp > self._newest:
            self._newest, self._newest_offset = place.commit_timestamp, place.base_offset
        if place.position - self._indexed_to > INDEX_INTERVAL_BYTES:
            self._index_offsets.append(place.next_offset - 1)
            self._index_positions.append(place.position)
            if not self._times or self._newest > self._times[-1]:
                self._times.append(self._newest)
                self._time_offsets.append(self._newest_offset)
            self._indexed_to = place.position

    def cut(self, size: int) -> None:
        """Forget everything from a position on, which is where a batch begins."""
        os.ftruncate(self._opened(), size)
        self.size = size
        self.synced_size = min(self.synced_size, size)
        self.rebuild()

    def sync(self, size: int | None = None) -> None:
        """Wait until what is written, or was when it had this size, is on the disk."""
        size = self.size if size is None else size
        if size > self.synced_size:
            files.sync(self._opened())
            self.synced_size = max(self.synced_size, size)

    def seal(self) -> None:
        """Write the indexes; the segment may be appended to afterwards, but they are then old."""
        self._load()
        offsets, times = self._as_indexes()
        self._path("index").write_bytes(offsets.write())
        self._path("timeindex").write_bytes(times.write())

    def create(self) -> None:
        """Make the file, so that its name can be synced before anything is in it."""
        self._opened()

    def close_file(self) -> None:
        """Give the file back to the system; it is opened again when it is needed."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def delete(self) -> None:
        """Remove the files."""
        self.close_file()
        for suffix in ("log", "index", "timeindex"):
            self._path(suffix).unlink(missing_ok=True)

    # --- reading --------------------------------------------------------------------------------

    def read(self, start: int, end: int) -> bytes:
        """The bytes between two positions.

        Raises:
            OSError: The disk refused, or the file is shorter than it was.
        """
        data = files.read(self._opened(), start, end - start)
        if len(data) != end - start:
            raise OSError(
                f"{self.path} ends at byte {start + len(data)} where {end} had been written"
            )
        return data

    def walk(self, position: int = 0, *, end: int | None = None) -> Iterator[Place]:
        """The batches from a position on, by their headers alone.

        Raises:
            CorruptDataError: A header makes no sense; that must be another program's doing.
        """
        end = self.size if end is None else end
        chunk, chunk_at = b"", position
        while position < end:
            if position + _PLACE.size > chunk_at + len(chunk):
                chunk_at = position
                chunk = self.read(position, min(position + _WALK_BYTES, end))
            place = read_place(chunk, position - chunk_at, position=position)
            if place is None or place.end > end:
                raise self.damaged(position, "no batch begins there")
            yield place
            position = place.end

    def position_of(self, offset: int) -> int:
        """Where the batch with this offset begins; the end where the offset is the next one."""
        if offset >= self.end_offset:
            return self.size
        self._load()
        slot = bisect_right(self._index_offsets, offset) - 1
        start = self._index_positions[slot] if slot >= 0 else 0
        for place in self.walk(start):
            if place.next_offset > offset:
                return place.position
        return self.size

    def last_boundary(self, start: int, limit: int) -> int:
        """The end of the last whole batch that ends at or before `limit`, from `start` on."""
        self._load()
        slot = bisect_right(self._index_positions, limit) - 1
        boundary = start
        if slot >= 0:
            boundary = max(start, self._index_positions[slot])
        for place in self.walk(boundary):
            if place.end > limit:
                break
            boundary = place.end
        return boundary

    def first_since(self, timestamp: int) -> int | None:
        """The first offset of the first batch that is not older than this, None for none."""
        self._load()
        slot = bisect_right(self._times, timestamp) - 1
        start = self._time_offsets[slot] if slot >= 0 else self.first_offset
        for place in self.walk(self.position_of(start)):
            if place.commit_timestamp >= timestamp:
                return place.base_offset
        return None

    def damaged(self, position: int, why: str) -> CorruptDataError:
        """The error for a file that is not what was written."""
        return CorruptDataError(
            f"{self.path} is damaged at byte {position}: {why}.",
            hint="Stop the server and restore the file from a backup.",
            what=str(self.path),
            at=position,
            why=why,
        )

    # --- indexes --------------------------------------------------------------------------------

    def rebuild(self) -> None:
        """Make the indexes from the headers."""
        self._clear_indexes()
        self._is_loaded = True
        self.end_offset = self.first_offset
        for place in self.walk():
            self.note(place)

    def _load(self) -> None:
        if self._is_loaded:
            return
        if not self._load_files():
            self.rebuild()

    def _load_files(self) -> bool:
        """Read the index files; they are no more than a shortcut, so any doubt discards them."""
        try:
            offsets = OffsetIndex.read(
                self._path("index").read_bytes(), first_offset=self.first_offset
            )
            times = TimeIndex.read(
                self._path("timeindex").read_bytes(), first_offset=self.first_offset
            )
        except (OSError, CorruptDataError):
            return False
        inside = not len(offsets.positions) or offsets.positions[-1] < self.size
        if not inside or (len(offsets.offsets) and offsets.offsets[-1] >= self.end_offset):
            return False
        self._index_offsets = array("q", offsets.offsets.tobytes())
        self._index_positions = array("q", offsets.positions.tobytes())
        self._times = array("q", times.timestamps.tobytes())
        self._time_offsets = array("q", times.offsets.tobytes())
        self._indexed_to = self._index_positions[-1] if self._index_positions else 0
        self._is_loaded = True
        try:
            # The batches behind the last entry say which timestamp is the newest.
            for place in self.walk(self._indexed_to):
                if place.commit_timestamp > self._newest:
                    self._newest, self._newest_offset = place.commit_timestamp, place.base_offset
        except CorruptDataError:
            self._clear_indexes()
            self._is_loaded = False
            return False
        return True

    def _as_indexes(self) -> tuple[OffsetIndex, TimeIndex]:
        columns = (self._index_offsets, self._index_positions, self._times, self._time_offsets)
        offsets, positions, times, time_offsets = (
            np.array(each, dtype=np.int64) for each in columns
        )
        return (
            OffsetIndex(first_offset=self.first_offset, offsets=offsets, positions=positions),
            TimeIndex(first_offset=self.first_offset, timestamps=times, offsets=time_offsets),
        )

    def _clear_indexes(self) -> None:
        self._index_offsets = array("q")
        self._index_positions = array("q")
        self._times = array("q")
        self._time_offsets = array("q")
        self._indexed_to = 0
        self._newest = -1
        self._newest_offset = self.first_offset

    def _opened(self) -> int:
        if self._descriptor is None:
            self._descriptor = files.open_file(self.path)
        return self._descriptor

    def _path(self, suffix: str) -> Path:
        return self._directory / segment_file_name(self.first_offset, suffix)


def read_place(data: bytes, at: int, *, position: int) -> Place | None:
    """The batch whose header is at `at` of these bytes, None where that cannot be one."""
    if len(data) - at < _PLACE.size:
        return None
    base_offset, length, _, timestamp, delta = _PLACE.unpack_from(data, at)
    size = LENGTH_END + length
    if size < HEADER_BYTES_MIN or base_offset < 0 or delta < 0:
        return None
    return Place(
        position=position,
        size=size,
        base_offset=base_offset,
        next_offset=base_offset + delta + 1,
        commit_timestamp=timestamp,
    )


def segment_of(first_offsets: Sequence[int], offset: int) -> int:
    """Which of the segments that begin at these offsets holds the offset."""
    slot = bisect_left(first_offsets, offset)
    if slot < len(first_offsets) and first_offsets[slot] == offset:
        return slot
    return max(slot - 1, 0)
