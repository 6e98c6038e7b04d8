"""Compares a log's directory with its list of segments and with the ledger.

A segment that is missing, shorter, unlisted or from another log is refused. A killed server can
leave two kinds of unlisted files, which are removed: a segment that had expired, and an empty one
that was about to begin. A log of an earlier version has no list; one is made from its files once.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fluss.errors import CorruptDataError
from fluss_server.damage_errors import damaged
from fluss_server.log import log_files as files
from fluss_server.log.segment_file import NO_INDEXES, Segment
from fluss_server.log.segment_list import (
    SEGMENT_LIST,
    LogIdentity,
    SealedSegment,
    SegmentList,
    read_segment_list,
)

if TYPE_CHECKING:
    from fluss_server.ledger import LedgerEntry
    from fluss_server.ledger_marks import LogMark

_LOG = logging.getLogger(__name__)
_NAME: Final = re.compile(r"([0-9]{20})\.log")


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """The checked contents of a log's directory.

    Args:
        listing: The segments.
        mark: How far the newest segment must reach; None where that is not known.
    """

    listing: SegmentList
    mark: LogMark | None


def take_inventory(
    directory: Path, identity: LogIdentity, entry: LedgerEntry | None, *, adopts: bool
) -> Inventory | None:
    """Compare a log's directory with its list of segments and with the ledger.

    Args:
        directory: The directory.
        identity: The identity of the log.
        entry: The ledger's entry; None where there is no ledger.
        adopts: Whether a log without a list is from an earlier version.

    Returns:
            The contents; None where the bucket has no log.

    Raises:
        DamagedDataError: Something is missing or contradicts the rest.
        OSError: The disk refused.
    """
    mark = None if entry is None else entry.mark
    sizes = sizes_of(directory)
    listing = read_segment_list(directory)
    if isinstance(listing, str):
        raise damaged(directory / SEGMENT_LIST, listing)
    if listing is None:
        if mark is not None:
            raise _missing(directory, mark)
        if adopts and sizes:
            listing = _adopted(directory, identity, sizes)
            _LOG.info(
                "%s was created by an earlier version; its segments are listed now", directory
            )
            return Inventory(listing=listing, mark=None)
        _check_empty(directory, sizes)
        return None
    _check_identity(directory, listing, identity)
    is_exact = entry is not None and entry.is_exact
    if mark is None and is_exact and (listing.complete or sizes.get(listing.newest)):
        path = directory if entry is None else entry.path
        raise damaged(path, f"does not list the log {directory}, which has rows")
    if mark is not None and is_exact:
        _check_mark(directory, listing, mark)
    _check_files(directory, listing, sizes, is_new=mark is None)
    grows = mark is not None and is_exact and mark.segment == listing.newest
    return Inventory(listing=listing, mark=mark if grows else None)


def sizes_of(directory: Path) -> dict[int, int]:
    """Return the file sizes of the segments in a directory, by first offset."""
    if not directory.is_dir():
        return {}
    found = ((_NAME.fullmatch(each.name), each) for each in directory.iterdir())
    return {int(name.group(1)): path.stat().st_size for name, path in found if name}


def _missing(directory: Path, mark: LogMark) -> Exception:
    path = directory / SEGMENT_LIST if directory.is_dir() else directory
    return damaged(path, f"is missing; the log had the offsets below {mark.end_offset}")


def _check_empty(directory: Path, sizes: dict[int, int]) -> None:
    # The list is written before the first segment is created.
    for first_offset in sizes:
        raise damaged(
            Segment(directory, first_offset).path,
            f"is not on a list of segments: the file {directory / SEGMENT_LIST} is missing",
        )


def _check_identity(directory: Path, listing: SegmentList, identity: LogIdentity) -> None:
    if listing.identity != identity:
        raise damaged(
            directory / SEGMENT_LIST,
            f"belongs to {listing.identity.bucket} of data directory "
            f"{listing.identity.directory_id.hex()}, not to {identity.bucket} of "
            f"{identity.directory_id.hex()}: directories or files were exchanged",
        )


def _check_mark(directory: Path, listing: SegmentList, mark: LogMark) -> None:
    path = directory / SEGMENT_LIST
    # A server may be killed after it has written the list and before the ledger.
    if listing.generation not in {mark.generation, mark.generation + 1}:
        raise damaged(
            path,
            f"has the generation {listing.generation} where the ledger has {mark.generation}: it is "
            "from another moment",
        )
    complete = {segment.first_offset: segment for segment in listing.complete}
    holding = complete.get(mark.segment)
    if holding is not None and holding.end_offset < mark.end_offset:
        raise damaged(
            path,
            f"lists that the segment {mark.segment} ends with offset {holding.end_offset}, but "
            f"the offsets below {mark.end_offset} have been acknowledged",
        )
    if holding is None and mark.segment > listing.newest:
        raise damaged(path, f"does not list the segment {mark.segment}, which the ledger has")


def _check_files(
    directory: Path, listing: SegmentList, sizes: dict[int, int], *, is_new: bool
) -> None:
    listed = {segment.first_offset: segment for segment in listing.complete}
    for first_offset, segment in listed.items():
        path = Segment(directory, first_offset).path
        size = sizes.pop(first_offset, None)
        if size is None:
            raise damaged(
                path,
                f"is missing; it had the offsets from {first_offset} to {segment.end_offset - 1}",
            )
        if size != segment.size:
            raise damaged(
                path,
                f"has {size} bytes where {segment.size} had been written",
                at=min(size, segment.size),
            )
    newest = Segment(directory, listing.newest)
    if sizes.pop(listing.newest, None) is None:
        # The list is written before the first segment of a log is created.
        if listing.complete or not is_new:
            raise damaged(newest.path, f"is missing; it had the offsets from {listing.newest} on")
        newest.create()
        newest.close_file()
    for first_offset, size in sizes.items():
        _remove_remainder(directory, listing, first_offset, size)


def _remove_remainder(directory: Path, listing: SegmentList, first_offset: int, size: int) -> None:
    segment = Segment(directory, first_offset)
    is_expired = first_offset < listing.start_offset
    is_unused = first_offset > listing.newest and not size
    if not is_expired and not is_unused:
        raise damaged(
            segment.path,
            f"is not on the list of segments {directory / SEGMENT_LIST}: it is from another moment, or "
            "a copy",
        )
    _LOG.info("%s had %s; it is removed", segment.path, "expired" if is_expired else "no batch")
    segment.delete()


def _adopted(directory: Path, identity: LogIdentity, sizes: dict[int, int]) -> SegmentList:
    """Make the list of segments of an earlier version's log, and rebuild their indexes."""
    offsets = sorted(sizes)
    complete: list[SealedSegment] = []
    for first_offset, next_first in pairwise(offsets):
        segment = Segment.sealed(
            directory,
            first_offset,
            end_offset=next_first,
            size=sizes[first_offset],
            headers_crc=0,
            index_crc=NO_INDEXES,
        )
        try:
            segment.count_stored()
        except CorruptDataError as error:
            raise damaged(
                segment.path, f"is damaged at byte {error.at}: {error.why}", at=error.at
            ) from error
        if segment.end_offset != next_first:
            raise damaged(
                segment.path,
                f"ends with offset {segment.end_offset - 1}, and the next segment begins with "
                f"{next_first}: rows between them are missing",
            )
        complete.append(
            SealedSegment(
                first_offset=first_offset,
                end_offset=segment.end_offset,
                size=segment.size,
                newest_timestamp=segment.newest_timestamp,
                headers_crc=segment.headers_crc,
                index_crc=segment.seal(),
            )
        )
        segment.close_file()
    made = SegmentList(
        identity=identity, generation=1, complete=tuple(complete), newest=offsets[-1]
    )
    made.write(directory, durable=True)
    files.sync_directory(directory)
    return made
