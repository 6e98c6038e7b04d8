"""Makes a damaged log whole again: the rows up to the first damage stay, the rest is kept aside.

Every batch is checked. A file of another log is never taken in. Offsets that are lost are reported;
those after the end that remains are given out again.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fluss_server.log.checkpoint import CHECKPOINT
from fluss_server.log.inventory import sizes_of
from fluss_server.log.listing import LISTING, Complete, Identity, Listing, read_listing
from fluss_server.log.recovery import note_sound_batches
from fluss_server.log.segment import Segment
from fluss_server.marks import LogMark

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
    kept, start = _kept_segments(directory, listing, put_aside, report)
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


def _kept_segments(
    directory: Path, listing: Listing | None, put_aside: Aside, report: Report
) -> tuple[list[Segment], int | None]:
    """The segments up to the first damage, checked and cut; and where they begin."""
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
        why = note_sound_batches(segment, sizes[first_offset])
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
