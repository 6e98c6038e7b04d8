"""The list of a log's segments, which reveals a missing, shortened or foreign file.

It is a file beside the segments, replaced as a whole with every roll and every expiry. It has the
size, the end and the checksums of sealed segments, and only the first offset of the newest one,
because that one grows. The ledger records how far that one has been acknowledged.

==========  ===========================================================================
head        magic (4), CRC-32C of what follows (4), data directory (16), table (8),
            partition (8, -1 for none), bucket (8), generation (8), newest segment (8),
            number of complete segments (8)
a segment   first offset, end offset, bytes, newest timestamp (8 each), CRC-32C of its
            headers, CRC-32C of its index files (4 each)
==========  ===========================================================================
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from crc32c import crc32c

from fluss.model.paths import TableBucket
from fluss_server.log import log_files as files

SEGMENT_LIST: Final = "segments"
# The id for a log that belongs to no data directory.
NO_DIRECTORY: Final = bytes(16)
_MAGIC: Final = b"FSG1"
_CRC = struct.Struct("<4sI")
_COUNTS = struct.Struct("<qqq")
_SEGMENT = struct.Struct("<qqqqII")
IDENTITY: Final = struct.Struct("<16sqqq")
_NO_PARTITION: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class LogIdentity:
    """The identity of a log, by which files of another log are recognized."""

    directory_id: bytes
    bucket: TableBucket

    def to_bytes(self) -> bytes:
        """Encode the identity for the head of a file."""
        partition = self.bucket.partition_id
        return IDENTITY.pack(
            self.directory_id,
            self.bucket.table_id,
            _NO_PARTITION if partition is None else partition,
            self.bucket.bucket,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedSegment:
    """A complete segment; nothing more is appended to it."""

    first_offset: int
    end_offset: int
    size: int
    newest_timestamp: int
    headers_crc: int
    index_crc: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentList:
    """The segments of a log at one moment.

    Args:
        identity: The identity of the log.
        generation: How many lists the log has had.
        complete: The sealed segments, in order.
        newest: The first offset of the growing segment.
    """

    identity: LogIdentity
    generation: int
    complete: tuple[SealedSegment, ...]
    newest: int

    @property
    def start_offset(self) -> int:
        """The first offset that is kept."""
        return self.complete[0].first_offset if self.complete else self.newest

    def to_bytes(self) -> bytes:
        """Encode the file."""
        body = b"".join(
            [
                self.identity.to_bytes(),
                _COUNTS.pack(self.generation, self.newest, len(self.complete)),
                *(
                    _SEGMENT.pack(
                        segment.first_offset,
                        segment.end_offset,
                        segment.size,
                        segment.newest_timestamp,
                        segment.headers_crc,
                        segment.index_crc,
                    )
                    for segment in self.complete
                ),
            ]
        )
        return _CRC.pack(_MAGIC, crc32c(body)) + body

    def write(self, directory: Path, *, durable: bool) -> None:
        """Replace the file.

        Raises:
            OSError: The disk refused; the previous list is still there.
        """
        files.replace_file(directory / SEGMENT_LIST, self.to_bytes(), durable=durable)


def read_segment_list(directory: Path) -> SegmentList | str | None:
    """Read the list in a directory; a text says why it is damaged, None that it is missing.

    Raises:
        OSError: The disk refused.
    """
    try:
        data = (directory / SEGMENT_LIST).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    head_bytes = _CRC.size + IDENTITY.size + _COUNTS.size
    if len(data) < head_bytes:
        return f"has {len(data)} bytes where its head alone has {head_bytes}"
    magic, crc = _CRC.unpack_from(data)
    if magic != _MAGIC or crc32c(data[_CRC.size :]) != crc:
        return "is damaged: its checksum is wrong"
    directory_id, table_id, partition, bucket = IDENTITY.unpack_from(data, _CRC.size)
    generation, newest, count = _COUNTS.unpack_from(data, _CRC.size + IDENTITY.size)
    rows = data[head_bytes:]
    if len(rows) != count * _SEGMENT.size:
        return f"is damaged: {count} segments do not fit it"
    return SegmentList(
        identity=LogIdentity(
            directory_id=directory_id,
            bucket=TableBucket(
                table_id, bucket, partition_id=None if partition == _NO_PARTITION else partition
            ),
        ),
        generation=generation,
        complete=tuple(
            SealedSegment(
                first_offset=row[0],
                end_offset=row[1],
                size=row[2],
                newest_timestamp=row[3],
                headers_crc=row[4],
                index_crc=row[5],
            )
            for row in _SEGMENT.iter_unpack(rows)
        ),
        newest=newest,
    )
