"""What is written down beside a log so that a start need not read it: how far, and the way in.

`synced` says up to where the newest segment is known to be on the disk; a start believes what lies
before that and checks what lies behind. Now and then the segment's indexes and a snapshot of the
writers are written, too, for the same place (`Progress`): then even the headers before it need not
be read. All of it may be missing or damaged, which costs nothing but time; that is why each part
has a checksum and the identity of its log. Sync comes first, always: nothing here may know more
than the disk has.
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
from fluss_server.log.segment_list import IDENTITY, Identity

CHECKPOINT: Final = "synced"
WRITERS_SUFFIX: Final = "writers"
# After so much log the way into it is written down: half a percent more to write.
PROGRESS_BYTES: Final = 4 << 20
_SNAPSHOTS_KEPT: Final = 2
_HEAD = struct.Struct("<4sI")
_BODY = struct.Struct("<qqqqI")
_MAGIC: Final = b"FSY3"
_WRITERS_MAGIC: Final = b"FWS2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Up to where the newest segment is known to be on the disk.

    Args:
        first_offset: The segment.
        size: So many bytes of it are.
        end_offset: The offset behind them.
        headers_crc: The checksum of the headers in them.
        index_crc: The checksum of its index files, which cover no more than that; -1 for none.
    """

    first_offset: int
    size: int
    end_offset: int
    headers_crc: int
    index_crc: int = NO_INDEXES

    @property
    def has_indexes(self) -> bool:
        """Whether the segment's index files belong to it."""
        return self.index_crc != NO_INDEXES

    def to_bytes(self, identity: Identity) -> bytes:
        """The file's bytes."""
        body = identity.to_bytes() + _BODY.pack(
            self.first_offset, self.size, self.end_offset, self.index_crc, self.headers_crc
        )
        return _HEAD.pack(_MAGIC, crc32c(body)) + body

    @classmethod
    def from_bytes(cls, data: bytes, identity: Identity) -> Checkpoint | None:
        """What the bytes say; None where they are damaged, or another log's."""
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


def read_checkpoint(directory: Path, identity: Identity) -> Checkpoint | None:
    """The checkpoint in a log's directory; None where there is no sound one of this log."""
    try:
        return Checkpoint.from_bytes((directory / CHECKPOINT).read_bytes(), identity)
    except OSError:
        return None


def writers_in(data: bytes, identity: Identity) -> bytes | None:
    """The snapshot in the bytes of a file; None where they are damaged or another log's."""
    if len(data) < _HEAD.size + IDENTITY.size:
        return None
    magic, crc = _HEAD.unpack_from(data)
    body = data[_HEAD.size :]
    if magic != _WRITERS_MAGIC or crc32c(body) != crc or not body.startswith(identity.to_bytes()):
        return None
    return body[IDENTITY.size :]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A place in the log: so many bytes of a segment, the offset after them, their headers."""

    segment: Segment
    size: int
    end_offset: int
    headers_crc: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What a start would have to find out about the log up to a place: indexes and writers."""

    mark: Mark
    indexes: tuple[bytes, ...]
    writers: bytes


class Checkpoints:
    """Writes them for one log; any thread may.

    Args:
        directory: Where the log is.
        identity: Whose log it is.
        is_durable: Whether snapshots at the end of a segment are synced.
    """

    def __init__(self, directory: Path, identity: Identity, *, is_durable: bool) -> None:
        self._directory = directory
        self._identity = identity
        self._is_durable = is_durable
        # A sync of the last second may end while the next segment is begun.
        self._lock = threading.Lock()
        self._latest: Mark | None = None
        self._kept_size = 0
        self._index_crc = NO_INDEXES

    def write(self, mark: Mark) -> None:
        """Everything up to a mark is on the disk."""
        with self._lock:
            if self._latest is None or mark.end_offset >= self._latest.end_offset:
                self._write(mark)

    def take_back(self, mark: Mark) -> None:
        """Nothing behind a mark may be believed, because it is about to be cut off."""
        with self._lock:
            if self._latest is not None and mark.end_offset < self._latest.end_offset:
                self._write(mark)

    def wants_progress(self, mark: Mark) -> bool:
        """Whether there is much behind what was written down last."""
        return mark.size - self._kept_size >= PROGRESS_BYTES

    def keep(self, progress: Progress) -> None:
        """Write down what is known of a log up to a place that is on the disk."""
        mark = progress.mark
        with self._lock:
            latest = mark if self._latest is None else self._latest
            if latest.segment is not mark.segment:
                return  # it was sealed meanwhile, which has written the same and more
            self._write_writers(mark.end_offset, progress.writers, durable=False)
            write_indexes(self._directory, mark.segment.first_offset, progress.indexes)
            self._kept_size, self._index_crc = mark.size, checksum(progress.indexes)
            self._write(latest)

    def seal(self, segment: Segment, fresh: Segment, writers: bytes) -> int:
        """A segment is complete and on the disk, and another one begins.

        Returns:
            The checksum of its index files.
        """
        # The same files may be on their way from `keep`, which is on another thread.
        with self._lock:
            index_crc = segment.seal()
            self._write_writers(fresh.first_offset, writers, durable=self._is_durable)
            self._kept_size, self._index_crc = 0, NO_INDEXES
            self._latest = Mark(segment=fresh, size=0, end_offset=fresh.first_offset, headers_crc=0)
            return index_crc

    def close(self, segment: Segment, writers: bytes) -> None:
        """A segment is on the disk, and nobody will write for a while."""
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
