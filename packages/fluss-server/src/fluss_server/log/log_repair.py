"""Makes a damaged log whole again: the rows up to the first damage stay, the rest is kept aside.

Every batch is checked, and so is whether it is this log's: a batch of another log, or of another
data directory, is sound by itself, but the headers before it do not have the checksums that were
written down. A segment that was changed and agrees with none of them is not taken in. Offsets
that are lost are reported; those after the end that remains are given out again.
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
from fluss_server.log.segment_list import LISTING, Complete, Identity, Listing, read_listing

Report = Callable[[str], None]
Aside = Callable[[Path], None]


def repair_log(
    directory: Path, identity: Identity, mark: LogMark | None, *, put_aside: Aside, report: Report
) -> LogMark | None:
    """Make the log in a directory whole.

    Args:
        directory: The directory.
        identity: Whose log it must be.
        mark: What the ledger says of it.
        put_aside: Moves a file or directory out of the way.
        report: Called with what is given up.

    Returns:
        What the ledger must say of it; None where there is no log any more.

    Raises:
        OSError: The disk refused.
    """
    listing = read_listing(directory)
    if isinstance(listing, str):
        report(f"{directory / LISTING} {listing}; it is made again from the segments")
        put_aside(directory / LISTING)
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
        for path in (directory / LISTING, directory / CHECKPOINT):
            path.unlink(missing_ok=True)
        return None
    made = Listing(
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
    """The checksums of headers that were written down of a log.

    Args:
        directory: Where the log is.
        identity: Whose it is.
        listing: The list of its segments.
        mark: What the ledger says of it.
    """

    def __init__(
        self, directory: Path, identity: Identity, listing: Listing | None, mark: LogMark | None
    ) -> None:
        self.listing = listing
        self._directory = directory
        self._mark = mark
        self._checkpoint = read_checkpoint(directory, identity)

    def sums(self, first_offset: int) -> dict[int, int]:
        """The checksums of one segment by position; none where nothing was written down."""
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
        found.pop(0, None)  # every segment has that
        return found

    def _indexed(self, first_offset: int, size: int, end_offset: int, crc: int) -> dict[int, int]:
        indexes = SegmentIndexes.load(
            self._directory, first_offset, size=size, end_offset=end_offset, crc=crc
        )
        return {} if indexes is None else indexes.sums()


def _genuine_bytes(segment: Segment, size: int, known: dict[int, int]) -> int:
    """How much of a file may be this log's, by the checksums that were written down."""
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
    """The segments up to the first damage, checked and cut; and where they begin."""
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


def _complete(segment: Segment) -> Complete:
    return Complete(
        first_offset=segment.first_offset,
        end_offset=segment.end_offset,
        size=segment.size,
        newest_timestamp=segment.newest_timestamp,
        headers_crc=segment.headers_crc,
        index_crc=segment.seal(),
    )


def _report_lost(
    directory: Path,
    listing: Listing | None,
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
