"""Checkpoints of a log, so that a start need not read all of it.

The file `synced` records up to where the newest segment is synced; a start trusts what lies before
that position and checks what follows. From time to time the segment's indexes and a snapshot of the
writers are stored for the same position (`RecoveryPoint`); then not even the headers before it need
to be read. All of it may be missing or damaged, which only costs time; therefore each part has a
checksum and the identity of its log. The sync always comes first: a checkpoint must not be ahead of
the disk.
"""

from __future__ import annotations

import struct
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from crc32c import crc32c

from fluss_server.log import log_files as files
from fluss_server.log.segment_file import NO_INDEXES, Segment
from fluss_server.log.segment_indexes import checksum, write_indexes
from fluss_server.log.segment_list import IDENTITY, LogIdentity

CHECKPOINT: Final = "synced"
WRITERS_SUFFIX: Final = "writers"
# A recovery point is stored after so much log, which adds half a percent of writes.
RECOVERY_POINT_BYTES: Final = 4 << 20
_SNAPSHOTS_KEPT: Final = 2
_HEAD = struct.Struct("<4sI")
_BODY = struct.Struct("<qqqqI")
_MAGIC: Final = b"FSY3"
_WRITERS_MAGIC: Final = b"FWS2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Up to where the newest segment is synced.

    Args:
        first_offset: The first offset of the segment.
        size: How many bytes of it are synced.
        end_offset: The offset after them.
        headers_crc: The checksum of the batch headers in them.
        index_crc: The checksum of the index files, which cover no more than that; -1 for none.
    """

    first_offset: int
    size: int
    end_offset: int
    headers_crc: int
    index_crc: int = NO_INDEXES

    @property
    def has_indexes(self) -> bool:
        """Whether it covers the segment's index files."""
        return self.index_crc != NO_INDEXES

    def to_bytes(self, identity: LogIdentity) -> bytes:
        """Encode the file."""
        body = identity.to_bytes() + _BODY.pack(
            self.first_offset, self.size, self.end_offset, self.index_crc, self.headers_crc
        )
        return _HEAD.pack(_MAGIC, crc32c(body)) + body

    @classmethod
    def from_bytes(cls, data: bytes, identity: LogIdentity) -> Checkpoint | None:
        """Decode the file; None where it is damaged or belongs to another log."""
        if len(data) != _HEAD.size + IDENTITY.size + _BODY.size:
            return None
        magic, crc = _HEAD.unpack_from(data)
        body = data[_HEAD.size :]
        if magic != _MAGIC or crc32c(body) != crc or not body.startswith(identity.to_bytes()):
            return None
        first_offset, size, end_offset, index_crc, headers_crc = _BODY.unpack_from(
            body, IDENTITY.size
        )
        return cls(
            first_offset=first_offset,
            size=size,
            end_offset=end_offset,
            index_crc=index_crc,
            headers_crc=headers_crc,
        )


def read_checkpoint(directory: Path, identity: LogIdentity) -> Checkpoint | None:
    """Read the checkpoint of a log's directory; None where there is no valid one of this log."""
    try:
        return Checkpoint.from_bytes((directory / CHECKPOINT).read_bytes(), identity)
    except OSError:
        return None


def writers_in(data: bytes, identity: LogIdentity) -> bytes | None:
    """Return the writer snapshot in a file; None where it is damaged or belongs to another log."""
    if len(data) < _HEAD.size + IDENTITY.size:
        return None
    magic, crc = _HEAD.unpack_from(data)
    body = data[_HEAD.size :]
    if magic != _WRITERS_MAGIC or crc32c(body) != crc or not body.startswith(identity.to_bytes()):
        return None
    return body[IDENTITY.size :]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A position in the log: a segment's size, end offset and header checksum."""

    segment: Segment
    size: int
    end_offset: int
    headers_crc: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryPoint:
    """What a recovery would have to compute for the log up to a mark: indexes and writers."""

    mark: Mark
    indexes: tuple[bytes, ...]
    writers: bytes


class CheckpointWriter:
    """Writes the checkpoints of one log; any thread may use it.

    Args:
        directory: The directory of the log.
        identity: The identity of the log.
        is_durable: Whether snapshots at the end of a segment are synced.
    """

    def __init__(self, directory: Path, identity: LogIdentity, *, is_durable: bool) -> None:
        self._directory = directory
        self._identity = identity
        self._is_durable = is_durable
        # A sync may end while the next segment begins.
        self._lock = threading.Lock()
        self._latest: Mark | None = None
        self._kept_size = 0
        self._index_crc = NO_INDEXES

    def write(self, mark: Mark) -> None:
        """Record that everything up to a mark is on the disk."""
        with self._lock:
            if self._latest is None or mark.end_offset >= self._latest.end_offset:
                self._write(mark)

    def take_back(self, mark: Mark) -> None:
        """Withdraw what follows a mark, because it is about to be cut off."""
        with self._lock:
            if self._latest is not None and mark.end_offset < self._latest.end_offset:
                self._write(mark)

    def needs_recovery_point(self, mark: Mark) -> bool:
        """Return whether the log has grown much since the last recovery point."""
        return mark.size - self._kept_size >= RECOVERY_POINT_BYTES

    def keep(self, recovery_point: RecoveryPoint) -> None:
        """Store a recovery point whose position is on the disk."""
        mark = recovery_point.mark
        with self._lock:
            latest = mark if self._latest is None else self._latest
            if latest.segment is not mark.segment:
                return  # the segment was sealed in the meantime, which stored more
            self._write_writers(mark.end_offset, recovery_point.writers, durable=False)
            write_indexes(self._directory, mark.segment.first_offset, recovery_point.indexes)
            self._kept_size, self._index_crc = mark.size, checksum(recovery_point.indexes)
            self._write(latest)

    def seal(self, segment: Segment, fresh: Segment, writers: bytes) -> int:
        """Record that a segment is complete and synced, and that a new one begins.

        Returns:
            The checksum of its index files.
        """
        # `keep` may write the same files on another thread.
        with self._lock:
            index_crc = segment.seal()
            self._write_writers(fresh.first_offset, writers, durable=self._is_durable)
            self._kept_size, self._index_crc = 0, NO_INDEXES
            self._latest = Mark(segment=fresh, size=0, end_offset=fresh.first_offset, headers_crc=0)
            return index_crc

    def close(self, segment: Segment, writers: bytes) -> None:
        """Record that a segment is synced and the log is closed."""
        with self._lock:
            self._index_crc = segment.seal()
            self._write_writers(segment.end_offset, writers, durable=self._is_durable)
            self._write(
                Mark(
                    segment=segment,
                    size=segment.size,
                    end_offset=segment.end_offset,
                    headers_crc=segment.headers_crc,
                )
            )

    def _write_writers(self, end_offset: int, snapshot: bytes, *, durable: bool) -> None:
        path = self._directory / f"{end_offset:020d}.{WRITERS_SUFFIX}"
        body = self._identity.to_bytes() + snapshot
        data = _HEAD.pack(_WRITERS_MAGIC, crc32c(body)) + body
        files.replace_file(path, data, durable=durable)
        for old in sorted(self._directory.glob(f"*.{WRITERS_SUFFIX}"))[:-_SNAPSHOTS_KEPT]:
            old.unlink(missing_ok=True)

    def _write(self, mark: Mark) -> None:
        checkpoint = Checkpoint(
            first_offset=mark.segment.first_offset,
            size=mark.size,
            end_offset=mark.end_offset,
            headers_crc=mark.headers_crc,
            index_crc=self._index_crc,
        )
        data = checkpoint.to_bytes(self._identity)
        files.replace_file(self._directory / CHECKPOINT, data, durable=False)
        self._latest = mark
