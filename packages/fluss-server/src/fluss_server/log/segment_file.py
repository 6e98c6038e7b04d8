"""One segment file of a log: batches back to back, and their lookup by offset and time.

Names, batches and index files are those of Fluss (`fluss.records.log.segment`), so a segment of
this server and one of a real tablet server have the same format. Indexes (`segment_indexes`) are
read when they are first needed. `bucket_log` knows which segment has an offset, and what readers
may see.
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from crc32c import crc32c

from fluss.error_codes import ErrorCode
from fluss.errors import CorruptDataError
from fluss.records.log.log_header import (
    HEADER_BYTES_MIN,
    LENGTH_END,
    NO_BATCH_SEQUENCE,
    NO_WRITER_ID,
)
from fluss.records.log.segment import segment_file_name
from fluss.wire.byte_buffers import Buffer
from fluss_server.damage_errors import WAYS_OUT, damaged
from fluss_server.log import log_files as files
from fluss_server.log.lazy_batch_checks import HEADER_BYTES, StoredBatches
from fluss_server.log.segment_indexes import SUFFIXES, SegmentIndexes, checksum, write_indexes

NO_INDEXES: Final = -1
_WALK_BYTES: Final = 16 * 1024
# Base offset, length, magic, timestamp, (checksum, schema id, attributes), last offset delta,
# writer id, batch sequence: at the same positions in magic 0 and 1, and no other magic is stored.
_PLACE = struct.Struct("<qibq7xiqi")


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLocation:
    """The position of one batch, with the offsets, the time and the writer from its header.

    `stamp` is the header up to and including the batch's checksum.
    """

    position: int
    size: int
    base_offset: int
    next_offset: int
    commit_timestamp: int
    stamp: bytes
    writer_id: int = NO_WRITER_ID
    batch_sequence: int = NO_BATCH_SEQUENCE

    @property
    def end(self) -> int:
        """The position after it."""
        return self.position + self.size


class Segment:
    """A file of batches. One thread at a time writes, the one that holds the bucket's lock.

    Args:
        directory: The directory of its files.
        first_offset: Its first offset.
    """

    __slots__ = (
        "_descriptor",
        "_directory",
        "_index_crc",
        "_indexes",
        "_newest_timestamp",
        "_stored",
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
        self._indexes: SegmentIndexes | None = SegmentIndexes(first_offset)
        self._index_crc = NO_INDEXES
        self._newest_timestamp: int | None = None
        self._stored: StoredBatches | None = None

    @classmethod
    def sealed(
        cls,
        directory: Path,
        first_offset: int,
        *,
        end_offset: int,
        size: int,
        headers_crc: int,
        index_crc: int,
        newest_timestamp: int | None = None,
    ) -> Segment:
        """Return a segment that is on disk; its indexes are read when they are first needed."""
        made = cls(directory, first_offset)
        made.end_offset = end_offset
        made.size = made.synced_size = size
        made._indexes = None
        made._index_crc = index_crc
        made._newest_timestamp = newest_timestamp
        made._stored = StoredBatches(size, headers_crc)
        return made

    @property
    def path(self) -> Path:
        """The file of the batches."""
        return self._path("log")

    @property
    def is_empty(self) -> bool:
        """Whether it has no batch."""
        return self.size == 0

    @property
    def newest_timestamp(self) -> int:
        """The largest timestamp in it; -1 where it is empty."""
        if self._indexes is None and self._newest_timestamp is not None:
            return self._newest_timestamp
        return self.indexes.newest_timestamp

    @property
    def headers_crc(self) -> int:
        """The checksum of all batch headers."""
        if self._indexes is None and self._stored is not None:
            return self._stored.headers_crc
        return self.indexes.headers_crc

    @property
    def is_unlinked(self) -> bool:
        """Whether the open file was removed."""
        return files.is_unlinked(self._opened())

    @property
    def is_in_place(self) -> bool:
        """Whether the open file is still the one that its path names."""
        try:
            found = self.path.stat()
        except OSError:
            return False
        return self._descriptor is None or os.path.samestat(os.fstat(self._descriptor), found)

    @property
    def indexes(self) -> SegmentIndexes:
        """Its indexes, read from disk or rebuilt from the headers if need be."""
        if self._indexes is None:
            self._indexes = self._loaded() or self._made()
        return self._indexes

    # --- writing --------------------------------------------------------------------------------

    def append(self, buffers: Sequence[Buffer], locations: Sequence[BatchLocation]) -> None:
        """Append stamped batches; all of them or none.

        Raises:
            OSError: The disk refused.
        """
        indexes = self.indexes
        self.size = files.append(self._opened(), self.size, buffers)
        for location in locations:
            self.end_offset = location.next_offset
            indexes.note(location)

    def note(self, location: BatchLocation) -> None:
        """Add a batch of the file to the indexes."""
        self.end_offset = location.next_offset
        self.indexes.note(location)

    def cut(self, size: int) -> None:
        """Truncate the file at the beginning of a batch."""
        os.ftruncate(self._opened(), size)
        self.size = size
        self.synced_size = min(self.synced_size, size)
        self.rebuild()

    def sync(self, size: int | None = None) -> None:
        """Wait until the file is on the disk, at least up to a size."""
        size = self.size if size is None else size
        if size > self.synced_size:
            files.sync(self._opened())
            self.synced_size = max(self.synced_size, size)

    def seal(self) -> int:
        """Write the index files. A later append makes them outdated.

        Returns:
            The checksum of the files.
        """
        written = self.indexes.to_bytes()
        write_indexes(self._directory, self.first_offset, written)
        return checksum(written)

    def create(self) -> None:
        """Create the file, so that its name can be synced before its first batch."""
        if self._descriptor is None:
            self._descriptor = files.open_file(self.path)

    def count_stored(self) -> None:
        """Build the indexes and checksums of a file of which only the size is known.

        Raises:
            CorruptDataError: A header is invalid.
        """
        self._stored = None
        self._indexes = self._made()

    def note_stored(self) -> None:
        """Record that the whole file was on disk when it was opened."""
        self._stored = StoredBatches(self.size, self.headers_crc)

    def close_file(self) -> None:
        """Close the file; it is opened again when it is needed."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def delete(self) -> None:
        """Remove the files."""
        self.close_file()
        for suffix in ("log", *SUFFIXES):
            self._path(suffix).unlink(missing_ok=True)

    # --- reading --------------------------------------------------------------------------------

    def read(self, start: int, end: int) -> bytes:
        """Read the bytes between two positions; check what this process has not written.

        Raises:
            CorruptDataError: A batch differs from what was written.
            OSError: The disk refused, or the file is shorter than it was.
        """
        self._check_stored(start, end)
        return self.read_unchecked(start, end)

    @property
    def checked_bytes(self) -> int:
        """How many bytes have been checked because this process had not written them."""
        return 0 if self._stored is None else self._stored.checked_bytes

    def read_unchecked(self, start: int, end: int) -> bytes:
        """Read the bytes between two positions without checks.

        Raises:
            OSError: The disk refused, or the file is shorter than it was.
        """
        data = files.read(self._opened(), start, end - start)
        if len(data) != end - start:
            at = start + len(data)
            raise self.damaged(at, f"it ends there, and {end} bytes had been written")
        return data

    def walk(self, position: int = 0, *, end: int | None = None) -> Iterator[BatchLocation]:
        """Iterate over the batches from a position on, by their headers.

        Raises:
            CorruptDataError: A batch differs from what was written.
        """
        checked_to = position
        for location in self._walk_unchecked(position, end=end):
            if location.position >= checked_to:
                checked_to = self._check_stored(location.position, location.end)
            yield location

    def _walk_unchecked(
        self, position: int = 0, *, end: int | None = None
    ) -> Iterator[BatchLocation]:
        """Do the same without checks of the batches' contents."""
        end = self.size if end is None else end
        chunk, chunk_at = b"", position
        while position < end:
            if position + _PLACE.size > chunk_at + len(chunk):
                chunk_at = position
                chunk = self.read_unchecked(position, min(position + _WALK_BYTES, end))
            location = read_location(chunk, position - chunk_at, position=position)
            if location is None or location.end > end:
                raise self.damaged(position, "no batch begins there")
            yield location
            position = location.end

    def position_of(self, offset: int) -> int:
        """Return where the batch with an offset begins; the file's end for the next offset."""
        if offset >= self.end_offset:
            return self.size
        for location in self.walk(self.indexes.position_for(offset)):
            if location.next_offset > offset:
                return location.position
        return self.size

    def headers_crc_at(self, position: int) -> int:
        """Return the checksum of all headers before a batch's position."""
        start, headers_crc = self.indexes.sum_before(position)
        for location in self._walk_unchecked(start, end=position):
            headers_crc = crc32c(location.stamp, headers_crc)
        return headers_crc

    def stored_sums(self, size: int) -> dict[int, int]:
        """Return the header checksum at each batch boundary, up to the first damage."""
        found, headers_crc = {0: 0}, 0
        try:
            for location in self._walk_unchecked(end=size):
                headers_crc = crc32c(location.stamp, headers_crc)
                found[location.end] = headers_crc
        except CorruptDataError:
            pass  # the file is damaged from there on
        return found

    def last_boundary(self, start: int, limit: int) -> int:
        """Return the end of the last batch from `start` on that ends at or before `limit`."""
        boundary = max(start, self.indexes.boundary_at(limit))
        for location in self.walk(boundary):
            if location.end > limit:
                break
            boundary = location.end
        return boundary

    def first_since(self, timestamp: int) -> int | None:
        """Return the first offset of the first batch at or after a time; None for none."""
        for location in self.walk(self.position_of(self.indexes.offset_for(timestamp))):
            if location.commit_timestamp >= timestamp:
                return location.base_offset
        return None

    def _check_stored(self, start: int, end: int) -> int:
        """Check what this process has not written between two positions.

        Returns:
            The position up to which everything is checked now.
        """
        stored = self._stored
        if stored is None or start >= min(end, stored.size):
            return self.size if stored is None or start >= stored.size else end
        found = stored.check(self.indexes, start, end, read=self.read_unchecked)
        if found is not None:
            raise self.damaged(*found)
        return stored.block_end(self.indexes, end)

    def damaged(self, position: int, why: str) -> CorruptDataError:
        """Return the error for a file that differs from what was written."""
        return CorruptDataError(
            f"{self.path} is damaged at byte {position}: {why}.",
            # Not the code of a corrupt record: clients retry after that one.
            int(ErrorCode.UNKNOWN_SERVER_ERROR),
            hint=WAYS_OUT,
            what=str(self.path),
            at=position,
            why=why,
        )

    # --- indexes --------------------------------------------------------------------------------

    def rebuild(self) -> None:
        """Build the indexes from the headers."""
        self._indexes = self._made()

    def resume(self, *, size: int, end_offset: int, crc: int) -> int:
        """Load the indexes of an unsealed segment as they were at a checkpoint.

        Args:
            size: The size of the file then.
            end_offset: The end offset then.
            crc: The checksum of the index files.

        Returns:
            The position from which batches must be read; 0 where the indexes cannot be used.
        """
        found = SegmentIndexes.load(
            self._directory, self.first_offset, size=size, end_offset=end_offset, crc=crc
        )
        if found is None or found.last_offset is None:
            return 0
        self._index_crc = crc
        location = read_location(
            files.read(self._opened(), found.indexed_to, _PLACE.size), 0, position=found.indexed_to
        )
        if location is None or location.next_offset - 1 != found.last_offset or location.end > size:
            return 0
        self._indexes, self.end_offset = found, location.base_offset
        return found.indexed_to

    def _loaded(self) -> SegmentIndexes | None:
        found = SegmentIndexes.load(
            self._directory,
            self.first_offset,
            size=self.size,
            end_offset=self.end_offset,
            crc=self._index_crc,
        )
        if found is None:
            return None
        # The newest timestamp may be in the batches after the last entry.
        for location in self._walk_unchecked(found.indexed_to):
            found.note_time(location)
            found.headers_crc = crc32c(location.stamp, found.headers_crc)
        self._check_total(found.headers_crc, end=self.size)
        return found

    def _made(self) -> SegmentIndexes:
        made = SegmentIndexes(self.first_offset)
        end_offset = self.first_offset
        for location in self._walk_unchecked():
            made.note(location)
            end_offset = location.next_offset
            self._check_total(made.headers_crc, end=location.end)
        self.end_offset = end_offset
        return made

    def _check_total(self, headers_crc: int, *, end: int) -> None:
        """Refuse headers that changed since the file was opened."""
        stored = self._stored
        if stored is not None and end == stored.size and headers_crc != stored.headers_crc:
            raise self.damaged(0, "offset, length or time of a batch is another one")

    def _opened(self) -> int:
        if self._descriptor is None:
            try:
                self._descriptor = files.open_existing(self.path)
            except FileNotFoundError:
                raise damaged(self.path, "is missing") from None
        return self._descriptor

    def _path(self, suffix: str) -> Path:
        return self._directory / segment_file_name(self.first_offset, suffix)


def read_location(data: bytes, at: int, *, position: int) -> BatchLocation | None:
    """Read the header at a position of these bytes; None where it is not a batch header."""
    if len(data) - at < _PLACE.size:
        return None
    base_offset, length, _, timestamp, delta, writer_id, sequence = _PLACE.unpack_from(data, at)
    size = LENGTH_END + length
    if size < HEADER_BYTES_MIN or base_offset < 0 or delta < 0:
        return None
    return BatchLocation(
        position=position,
        size=size,
        base_offset=base_offset,
        next_offset=base_offset + delta + 1,
        commit_timestamp=timestamp,
        stamp=bytes(data[at : at + HEADER_BYTES]),
        writer_id=writer_id,
        batch_sequence=sequence,
    )


def segment_of(first_offsets: Sequence[int], offset: int) -> int:
    """Return the index of the segment that has an offset, by the segments' first offsets."""
    slot = bisect_left(first_offsets, offset)
    if slot < len(first_offsets) and first_offsets[slot] == offset:
        return slot
    return max(slot - 1, 0)
