"""Repairs a damaged log: keeps the rows up to the first damage, and moves the rest aside.

Every batch is checked, and also whether it belongs to this log: a batch of another log or data
directory is valid by itself, but the headers before it do not match the recorded checksums. A
segment that matches none of them is not kept. Lost offsets are reported; those after the remaining
end are assigned again.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fluss_server.ledger_marks import LogMark
from fluss_server.log.log_checkpoint import CHECKPOINT, read_checkpoint
from fluss_server.log.log_inventory import sizes_of
from fluss_server.log.log_recovery import note_sound_batches
from fluss_server.log.segment_file import Segment
from fluss_server.log.segment_indexes import SegmentIndexes
from fluss_server.log.segment_list import (
    SEGMENT_LIST,
    LogIdentity,
    SealedSegment,
    SegmentList,
    read_segment_list,
)

Report = Callable[[str], None]
Aside = Callable[[Path], None]


def repair_log(
    directory: Path,
    identity: LogIdentity,
    mark: LogMark | None,
    *,
    put_aside: Aside,
    report: Report,
) -> LogMark | None:
    """Repair the log in a directory.

    Args:
        directory: The directory.
        identity: The expected identity of the log.
        mark: The ledger's mark of the log.
        put_aside: Moves a file or directory aside.
        report: Called with a sentence for each thing that is given up.

    Returns:
        The new mark for the ledger; None where no log is left.

    Raises:
        OSError: The disk refused.
    """
    listing = read_segment_list(directory)
    if isinstance(listing, str):
        report(f"{directory / SEGMENT_LIST} {listing}; it is rebuilt from the segments")
        put_aside(directory / SEGMENT_LIST)
        listing = None
    if listing is not None and listing.identity != identity:
        report(f"{directory} is the log of {listing.identity.bucket}")
        put_aside(directory)
        return None
    if not directory.is_dir():
        _report_lost(directory, listing, mark, start=None, end=0, report=report)
        return None
    known = _Known(directory, identity, listing, mark)
    kept, start = _kept_segments(directory, known, put_aside, report)
    generation = 1 + max(
        0 if listing is None else listing.generation, 0 if mark is None else mark.generation
    )
    end_offset = kept[-1].end_offset if kept else 0
    _report_lost(directory, listing, mark, start=start, end=end_offset, report=report)
    if not kept:
        for path in (directory / SEGMENT_LIST, directory / CHECKPOINT):
            path.unlink(missing_ok=True)
        return None
    made = SegmentList(
        identity=identity,
        generation=generation,
        complete=tuple(_complete(segment) for segment in kept[:-1]),
        newest=kept[-1].first_offset,
    )
    made.write(directory, durable=True)
    (directory / CHECKPOINT).unlink(missing_ok=True)
    newest = kept[-1]
    for segment in kept:
        segment.close_file()
    return LogMark(
        generation=generation,
        end_offset=newest.end_offset,
        segment=newest.first_offset,
        size=newest.size,
        headers_crc=newest.headers_crc,
    )


class _Known:
    """The recorded header checksums of a log.

    Args:
        directory: The directory of the log.
        identity: The identity of the log.
        listing: The list of its segments.
        mark: The ledger's mark of the log.
    """

    def __init__(
        self,
        directory: Path,
        identity: LogIdentity,
        listing: SegmentList | None,
        mark: LogMark | None,
    ) -> None:
        self.listing = listing
        self._directory = directory
        self._mark = mark
        self._checkpoint = read_checkpoint(directory, identity)

    def sums(self, first_offset: int) -> dict[int, int]:
        """Return the recorded checksums of one segment by position."""
        found: dict[int, int] = {}
        for complete in () if self.listing is None else self.listing.complete:
            if complete.first_offset == first_offset:
                found[complete.size] = complete.headers_crc
                found |= self._indexed(
                    first_offset, complete.size, complete.end_offset, complete.index_crc
                )
        checkpoint, mark = self._checkpoint, self._mark
        if checkpoint is not None and checkpoint.first_offset == first_offset:
            found[checkpoint.size] = checkpoint.headers_crc
            found |= self._indexed(
                first_offset, checkpoint.size, checkpoint.end_offset, checkpoint.index_crc
            )
        if mark is not None and mark.segment == first_offset:
            found[mark.size] = mark.headers_crc
        found.pop(0, None)  # true of every segment
        return found

    def _indexed(self, first_offset: int, size: int, end_offset: int, crc: int) -> dict[int, int]:
        indexes = SegmentIndexes.load(
            self._directory, first_offset, size=size, end_offset=end_offset, crc=crc
        )
        return {} if indexes is None else indexes.sums()


def _genuine_bytes(segment: Segment, size: int, known: dict[int, int]) -> int:
    """Return how many bytes of a file match the recorded checksums."""
    if not known:
        return size
    there = segment.stored_sums(size)
    agreed = 0
    for position in sorted(known):
        if position > max(there):
            break
        if there.get(position) != known[position]:
            return agreed
        agreed = position
    return size if agreed else 0


def _kept_segments(
    directory: Path, known: _Known, put_aside: Aside, report: Report
) -> tuple[list[Segment], int | None]:
    """Return the segments up to the first damage, checked and cut, and their first offset."""
    listing = known.listing
    sizes = sizes_of(directory)
    offsets = sorted(sizes)
    if listing is not None:
        listed = {segment.first_offset for segment in listing.complete} | {listing.newest}
        for first_offset in offsets:
            if first_offset not in listed:
                report(f"{Segment(directory, first_offset).path} is not one of the log's segments")
                put_aside(Segment(directory, first_offset).path)
        offsets = [each for each in offsets if each in listed]
    kept: list[Segment] = []
    is_whole = True
    for first_offset in offsets:
        segment = Segment(directory, first_offset)
        follows = not kept or kept[-1].end_offset == first_offset
        if not is_whole or not follows:
            report(f"{segment.path} follows rows that are lost")
            put_aside(segment.path)
            is_whole = False
            continue
        genuine = _genuine_bytes(segment, sizes[first_offset], known.sums(first_offset))
        why = note_sound_batches(segment, genuine)
        if not why and genuine < sizes[first_offset]:
            why = "what follows is not what was written there"
        if why:
            _cut(segment, sizes[first_offset], why, put_aside, report)
            is_whole = False
        kept.append(segment)
    return kept, offsets[0] if offsets else None


def _cut(segment: Segment, size: int, why: str, put_aside: Aside, report: Report) -> None:
    report(f"{segment.path} is damaged at byte {segment.size}: {why}; {size} bytes were there")
    tail = segment.path.with_suffix(f".cut-{segment.size}")
    tail.write_bytes(segment.read_unchecked(segment.size, size))
    put_aside(tail)
    segment.cut(segment.size)


def _complete(segment: Segment) -> SealedSegment:
    return SealedSegment(
        first_offset=segment.first_offset,
        end_offset=segment.end_offset,
        size=segment.size,
        newest_timestamp=segment.newest_timestamp,
        headers_crc=segment.headers_crc,
        index_crc=segment.seal(),
    )


def _report_lost(
    directory: Path,
    listing: SegmentList | None,
    mark: LogMark | None,
    *,
    start: int | None,
    end: int,
    report: Report,
) -> None:
    if listing is not None and start is not None and start > listing.start_offset:
        report(f"{directory} has lost the offsets from {listing.start_offset} to {start - 1}")
    known = max(0 if mark is None else mark.end_offset, 0 if listing is None else listing.newest)
    if known > end:
        report(f"{directory} has lost the offsets from {end} to {known - 1}")
