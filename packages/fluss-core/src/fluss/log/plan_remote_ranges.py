"""Decides which bytes of a remote segment are read: up to an offset, and of some columns only.

A segment is whole batches, each a head (header, change types, Arrow metadata) and the buffers of
its columns. Where a scan needs few columns of large batches, the heads are read, and then the
buffers of these columns. A request costs a round trip to the store: where that spares little, whole
batches are read. `log.remote_log` reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import pyarrow as pa

from fluss.records.arrow.arrow_metadata import PREFIX_BYTES, BodyMetadata, read_body_metadata
from fluss.records.arrow.projection import Projection, project_log_batch
from fluss.records.log.log_batch import LogBatch, check_log_header
from fluss.records.log.log_header import HEADER_BYTES_MIN, LogBatchHeader, Magic1, read_log_header
from fluss.records.log.segment import IndexEntry

# A request costs as much as so many bytes: 10 ms of a connection with 13 MB/s, or 2 ms with 65.
REQUEST_BYTES: Final = 128 * 1024
# The assumed length of a batch's head, until the first one is known; later ones are similar.
HEAD_BYTES: Final = 4 * 1024
# Ranges with a smaller gap are merged.
GAP_BYTES_MAX: Final = 1024
# The index is read if it may spare at least so many bytes of a segment.
SPARED_BYTES_MIN: Final = 256 * 1024
_HEADER_BYTES_MAX: Final = 64

# For smaller batches, reading single columns never spares as much as the requests cost.
BATCH_BYTES_MIN: Final = 2 * REQUEST_BYTES

Range = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A range of a segment that is read in one step.

    Attributes:
        start: The position of its first byte.
        end: One past its last byte.
        last: An upper bound for the end of the batches that start in it.
        has_columns: Whether single columns are read; then it starts and ends at a batch boundary.
    """

    start: int
    end: int
    last: int
    has_columns: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The bytes before the columns of a batch.

    Attributes:
        header: The header of the batch.
        metadata: The positions of the buffers, relative to the body.
        body_start: The position of the body, relative to the start of the batch.
    """

    header: LogBatchHeader
    metadata: BodyMetadata
    body_start: int


def end_of_rows(entries: Sequence[IndexEntry], stop: int, *, file_size: int) -> int:
    """The position up to which a segment is read for the rows before the offset `stop`."""
    ends = (entry for entry in entries if entry.last_offset >= stop - 1)
    next(ends, None)  # this one may still hold rows before the offset
    following = next(ends, None)
    return file_size if following is None else following.position


def pieces_of_batches(start: int, end: int, *, piece_bytes: int) -> list[Piece]:
    """Cut a range of a segment into pieces that are read whole."""
    return [
        Piece(start=at, end=min(at + piece_bytes, end), last=end)
        for at in range(start, end, piece_bytes)
    ]


def pieces_of_columns(
    entries: Sequence[IndexEntry], start: int, end: int, *, piece_bytes: int
) -> list[Piece]:
    """Cut a range of a segment into pieces of few batches, of which some columns are read.

    Where batches are so small that this can spare nothing, several become a piece that is read
    whole: a request for each would take long.
    """
    starts = [start, *(each.position for each in entries if start < each.position < end), end]
    pieces: list[Piece] = []
    whole_from = start
    for at, following in pairwise(starts):
        if following - at < BATCH_BYTES_MIN:
            continue
        pieces += pieces_of_batches(whole_from, at, piece_bytes=piece_bytes)
        pieces.append(Piece(start=at, end=following, last=following, has_columns=True))
        whole_from = following
    return pieces + pieces_of_batches(whole_from, end, piece_bytes=piece_bytes)


def read_head(data: memoryview, magic_1: Magic1) -> Head | int | None:
    """Read the head of a batch.

    Returns:
        The number of bytes that are needed, where there are too few; None of a batch without rows.

    Raises:
        CorruptBatchError: The bytes are no batch.
    """
    if len(data) < HEADER_BYTES_MIN:
        return _HEADER_BYTES_MAX
    header = read_log_header(data, 0, magic_1=magic_1)
    check_log_header(header)
    if not header.record_count:
        return None
    change_types = 0 if header.is_append_only else header.record_count
    start = header.records_start + change_types
    if len(data) < start + PREFIX_BYTES:
        return start + HEAD_BYTES
    size = int.from_bytes(data[start + 4 : start + 8], "little", signed=True)
    if size > 0 and len(data) < start + PREFIX_BYTES + size <= header.size_bytes:
        return start + PREFIX_BYTES + size
    metadata = read_body_metadata(data[start:], at=start)
    return Head(header=header, metadata=metadata, body_start=start + metadata.body_start)


def column_ranges(head: Head, projection: Projection) -> list[Range]:
    """The ranges of the projection's columns, relative to the start of the batch."""
    size = head.header.size_bytes
    places = sorted(
        (head.body_start + offset, head.body_start + offset + length)
        for offset, length in (
            head.metadata.buffers[each]
            for each in projection.buffers
            if each < len(head.metadata.buffers)
        )
        if length > 0 and offset >= 0
    )
    ranges: list[Range] = []
    for start, end in places:
        is_near = bool(ranges) and start - ranges[-1][1] <= GAP_BYTES_MAX
        ranges.append((ranges.pop()[0] if is_near else start, min(end, size)))
    return [(start, end) for start, end in ranges if start < end]


def is_worthwhile(head: Head, ranges: Iterable[Range]) -> bool:
    """Whether reading these ranges of a batch spares more than the requests cost."""
    ranges = list(ranges)
    read = head.body_start + sum(end - start for start, end in ranges)
    return head.header.size_bytes - read >= REQUEST_BYTES * (1 + len(ranges))


def projected(data: pa.Buffer, head: Head, projection: Projection) -> bytes:
    """Return a batch with the projection's columns only, as servers send it.

    Args:
        data: As many bytes as the batch has; those outside of the head and of the ranges may be
            anything.
        head: Its head.
        projection: The columns.

    Raises:
        CorruptBatchError: The batch is not one of the projection's schema.
    """
    batch = LogBatch(header=head.header, data=data)
    return b"".join(project_log_batch(batch, projection))
