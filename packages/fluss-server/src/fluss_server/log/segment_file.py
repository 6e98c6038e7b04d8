"""One file of a log: batches back to back, and the way into them.

Names, batches and index files are those of Fluss (`fluss.records.log.segment`), so a segment of
ours and one of a real tablet server differ in nothing but their rows. Indexes (`indexes`) are read
when they are first needed. Which segment an offset lies in, and what readers may see, is known to
`bucket_log`.
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
# Base offset, length, magic, timestamp, (checksum, schema id, attributes), last offset delta, id of
# the writer, batch sequence: the same places in magic 0 and 1, which are all that is stored.
_PLACE = struct.Struct("<qibq7xiqi")


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentPosition:
    """Where one batch is, and what its header says of offsets, time and its writer.

    The stamp is the header as far as the batch's own checksum, and this checksum.
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
        """A segment that is on disk; its indexes are read when they are first needed."""
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
        """Whether no batch is in it."""
        return self.size == 0

    @property
    def newest_timestamp(self) -> int:
        """The largest timestamp in it, -1 where it is empty."""
        if self._indexes is None and self._newest_timestamp is not None:
            return self._newest_timestamp
        return self.indexes.newest_timestamp

    @property
    def headers_crc(self) -> int:
        """The checksum of the headers of all batches."""
        if self._indexes is None and self._stored is not None:
            return self._stored.headers_crc
        return self.indexes.headers_crc

    @property
    def is_unlinked(self) -> bool:
        """Whether the file was removed while it is open."""
        return files.is_unlinked(self._opened())

    @property
    def is_in_place(self) -> bool:
        """Whether the file that is open is still the one of that name."""
        try:
            found = self.path.stat()
        except OSError:
            return False
        return self._descriptor is None or os.path.samestat(os.fstat(self._descriptor), found)

    @property
    def indexes(self) -> SegmentIndexes:
        """Its indexes, read from disk or made of the headers if need be."""
        if self._indexes is None:
            self._indexes = self._loaded() or self._made()
        return self._indexes

    # --- writing --------------------------------------------------------------------------------

    def append(self, buffers: Sequence[Buffer], places: Sequence[SegmentPosition]) -> None:
        """Write batches that have been stamped; all of them or none.

        Raises:
            OSError: The disk refused.
        """
        indexes = self.indexes
        self.size = files.append(self._opened(), self.size, buffers)
        for place in places:
            self.end_offset = place.next_offset
            indexes.note(place)

    def note(self, place: SegmentPosition) -> None:
        """Take a batch that is in the file into the indexes."""
        self.end_offset = place.next_offset
        self.indexes.note(place)

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

    def seal(self) -> int:
        """Write the indexes; the segment may be appended to afterwards, but they are then old.

        Returns:
            The checksum of their files.
        """
        written = self.indexes.to_bytes()
        write_indexes(self._directory, self.first_offset, written)
        return checksum(written)

    def create(self) -> None:
        """Make the file, so that its name can be synced before anything is in it."""
        if self._descriptor is None:
            self._descriptor = files.open_file(self.path)

    def count_stored(self) -> None:
        """Make indexes and checksums of a file of which only the size is known.

        Raises:
            CorruptDataError: A header makes no sense.
        """
        self._stored = None
        self._indexes = self._made()

    def note_stored(self) -> None:
        """Take note that all that is in the file was there when it was opened."""
        self._stored = StoredBatches(self.size, self.headers_crc)

    def close_file(self) -> None:
        """Give the file back to the system; it is opened again when it is needed."""
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
        """The bytes between two positions; what this process has not written is checked.

        Raises:
            CorruptDataError: A batch is not what was written.
            OSError: The disk refused, or the file is shorter than it was.
        """
        self._check_stored(start, end)
        return self.read_unchecked(start, end)

    @property
    def checked_bytes(self) -> int:
        """How much has been checked because this process had not written it."""
        return 0 if self._stored is None else self._stored.checked_bytes

    def read_unchecked(self, start: int, end: int) -> bytes:
        """The bytes between two positions as they are in the file.

        Raises:
            OSError: The disk refused, or the file is shorter than it was.
        """
        data = files.read(self._opened(), start, end - start)
        if len(data) != end - start:
            at = start + len(data)
            raise self.damaged(at, f"it ends there, and {end} bytes had been written")
        return data

    def walk(self, position: int = 0, *, end: int | None = None) -> Iterator[SegmentPosition]:
        """The batches from a position on, by their headers.

        Raises:
            CorruptDataError: A batch is not what was written.
        """
        checked_to = position
        for place in self._walk_unchecked(position, end=end):
            if place.position >= checked_to:
                checked_to = self._check_stored(place.position, place.end)
            yield place

    def _walk_unchecked(
        self, position: int = 0, *, end: int | None = None
    ) -> Iterator[SegmentPosition]:
        """The same by the headers alone."""
        end = self.size if end is None else end
        chunk, chunk_at = b"", position
        while position < end:
            if position + _PLACE.size > chunk_at + len(chunk):
                chunk_at = position
                chunk = self.read_unchecked(position, min(position + _WALK_BYTES, end))
            place = read_place(chunk, position - chunk_at, position=position)
            if place is None or place.end > end:
                raise self.damaged(position, "no batch begins there")
            yield place
            position = place.end

    def position_of(self, offset: int) -> int:
        """Where the batch with this offset begins; the end where the offset is the next one."""
        if offset >= self.end_offset:
            return self.size
        for place in self.walk(self.indexes.position_for(offset)):
            if place.next_offset > offset:
                return place.position
        return self.size

    def headers_crc_at(self, position: int) -> int:
        """The checksum of the headers of all batches before a position, where one begins."""
        start, headers_crc = self.indexes.sum_before(position)
        for place in self._walk_unchecked(start, end=position):
            headers_crc = crc32c(place.stamp, headers_crc)
        return headers_crc

    def stored_sums(self, size: int) -> dict[int, int]:
        """The checksum of all headers before each batch boundary, as far as headers make sense."""
        found, headers_crc = {0: 0}, 0
        try:
            for place in self._walk_unchecked(end=size):
                headers_crc = crc32c(place.stamp, headers_crc)
                found[place.end] = headers_crc
        except CorruptDataError:
            pass  # the file is damaged from there on
        return found

    def last_boundary(self, start: int, limit: int) -> int:
        """The end of the last whole batch that ends at or before `limit`, from `start` on."""
        boundary = max(start, self.indexes.boundary_at(limit))
        for place in self.walk(boundary):
            if place.end > limit:
                break
            boundary = place.end
        return boundary

    def first_since(self, timestamp: int) -> int | None:
        """The first offset of the first batch that is not older than this, None for none."""
        for place in self.walk(self.position_of(self.indexes.offset_for(timestamp))):
            if place.commit_timestamp >= timestamp:
                return place.base_offset
        return None

    def _check_stored(self, start: int, end: int) -> int:
        """Check what this process has not written between two positions.

        Returns:
            How far everything is checked now.
        """
        stored = self._stored
        if stored is None or start >= min(end, stored.size):
            return self.size if stored is None or start >= stored.size else end
        found = stored.check(self.indexes, start, end, read=self.read_unchecked)
        if found is not None:
            raise self.damaged(*found)
        return stored.block_end(self.indexes, end)

    def damaged(self, position: int, why: str) -> CorruptDataError:
        """The error for a file that is not what was written."""
        return CorruptDataError(
            f"{self.path} is damaged at byte {position}: {why}.",
            # Clients send a request again where the code is that of a damaged record.
            int(ErrorCode.UNKNOWN_SERVER_ERROR),
            hint=WAYS_OUT,
            what=str(self.path),
            at=position,
            why=why,
        )

    # --- indexes --------------------------------------------------------------------------------

    def rebuild(self) -> None:
        """Make the indexes from the headers."""
        self._indexes = self._made()

    def resume(self, *, size: int, end_offset: int, crc: int) -> int:
        """Take over the indexes of a segment that was not sealed, as they were at a checkpoint.

        Args:
            size: How long the file was.
            end_offset: The offset behind it.
            crc: The index files' checksum.

        Returns:
            Where its batches have to be looked at from; its start, if there is any doubt.
        """
        found = SegmentIndexes.load(
            self._directory, self.first_offset, size=size, end_offset=end_offset, crc=crc
        )
        if found is None or found.last_offset is None:
            return 0
        self._index_crc = crc
        place = read_place(
            files.read(self._opened(), found.indexed_to, _PLACE.size), 0, position=found.indexed_to
        )
        if place is None or place.next_offset - 1 != found.last_offset or place.end > size:
            return 0
        self._indexes, self.end_offset = found, place.base_offset
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
        # The batches after the last entry say which timestamp is the newest.
        for place in self._walk_unchecked(found.indexed_to):
            found.note_time(place)
            found.headers_crc = crc32c(place.stamp, found.headers_crc)
        self._check_total(found.headers_crc, end=self.size)
        return found

    def _made(self) -> SegmentIndexes:
        made = SegmentIndexes(self.first_offset)
        end_offset = self.first_offset
        for place in self._walk_unchecked():
            made.note(place)
            end_offset = place.next_offset
            self._check_total(made.headers_crc, end=place.end)
        self.end_offset = end_offset
        return made

    def _check_total(self, headers_crc: int, *, end: int) -> None:
        """Refuse headers that are not those which were there when the file was opened."""
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


def read_place(data: bytes, at: int, *, position: int) -> SegmentPosition | None:
    """The batch whose header is at `at` of these bytes, None where that cannot be one."""
    if len(data) - at < _PLACE.size:
        return None
    base_offset, length, _, timestamp, delta, writer_id, sequence = _PLACE.unpack_from(data, at)
    size = LENGTH_END + length
    if size < HEADER_BYTES_MIN or base_offset < 0 or delta < 0:
        return None
    return SegmentPosition(
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
    """Which of the segments that begin at these offsets holds the offset."""
    slot = bisect_left(first_offsets, offset)
    if slot < len(first_offsets) and first_offsets[slot] == offset:
        return slot
    return max(slot - 1, 0)
