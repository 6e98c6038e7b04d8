"""Which files a log must have: its list of segments and the ledger, compared with the directory.

A segment that is missing, shorter or of another log is refused, and so is one that nobody knows.
Two kinds of files are left by a server that was killed and are removed: a segment that had
expired, and an empty one that was about to be begun. A log of an earlier version has no list; it
is taken in once, with what is there.
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
from fluss_server.log.segment_list import LISTING, Complete, Identity, Listing, read_listing

if TYPE_CHECKING:
    from fluss_server.ledger import LedgerEntry
    from fluss_server.ledger_marks import LogMark

_LOG = logging.getLogger(__name__)
_NAME: Final = re.compile(r"([0-9]{20})\.log")


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """What a log's directory must have, and has.

    Args:
        listing: The segments.
        mark: What must be there of the newest one; None where nobody knows.
    """

    listing: Listing
    mark: LogMark | None


def take_inventory(
    directory: Path, identity: Identity, entry: LedgerEntry | None, *, adopts: bool
) -> Inventory | None:
    """Compare a log's directory with its list of segments and with the ledger.

    Args:
        directory: The directory.
        identity: Whose log it is.
        entry: What the ledger says of it; None where there is no ledger.
        adopts: Whether a log without a list is one of an earlier version.

    Returns:
        What is there; None where the bucket has no log.

    Raises:
        DamagedDataError: Something is missing or contradicts the rest.
        OSError: The disk refused.
    """
    mark = None if entry is None else entry.mark
    sizes = sizes_of(directory)
    listing = read_listing(directory)
    if isinstance(listing, str):
        raise damaged(directory / LISTING, listing)
    if listing is None:
        if mark is not None:
            raise _missing(directory, mark)
        if adopts and sizes:
            listing = _adopted(directory, identity, sizes)
            _LOG.info("%s was made by an earlier version; its segments are listed now", directory)
            return Inventory(listing=listing, mark=None)
        _check_empty(directory, sizes)
        return None
    _check_identity(directory, listing, identity)
    is_exact = entry is not None and entry.is_exact
    if mark is None and is_exact and (listing.complete or sizes.get(listing.newest)):
        path = directory if entry is None else entry.path
        raise damaged(path, f"does not know the log {directory}, which has rows")
    if mark is not None and is_exact:
        _check_mark(directory, listing, mark)
    _check_files(directory, listing, sizes, is_new=mark is None)
    grows = mark is not None and is_exact and mark.segment == listing.newest
    return Inventory(listing=listing, mark=mark if grows else None)


def sizes_of(directory: Path) -> dict[int, int]:
    """The segments in a log's directory by their first offsets, with the sizes of their files."""
    if not directory.is_dir():
        return {}
    found = ((_NAME.fullmatch(each.name), each) for each in directory.iterdir())
    return {int(name.group(1)): path.stat().st_size for name, path in found if name}


def _missing(directory: Path, mark: LogMark) -> Exception:
    path = directory / LISTING if directory.is_dir() else directory
    return damaged(path, f"is missing; the log had the offsets below {mark.end_offset}")


def _check_empty(directory: Path, sizes: dict[int, int]) -> None:
    # The list is written before the first segment, and a segment before anything is in it.
    for first_offset in sizes:
        raise damaged(
            Segment(directory, first_offset).path,
            f"is not on a list of segments: the file {directory / LISTING} is missing",
        )


def _check_identity(directory: Path, listing: Listing, identity: Identity) -> None:
    if listing.identity != identity:
        raise damaged(
            directory / LISTING,
            f"belongs to {listing.identity.bucket} of data directory "
            f"{listing.identity.directory_id.hex()}, not to {identity.bucket} of "
            f"{identity.directory_id.hex()}: directories or files were exchanged",
        )


def _check_mark(directory: Path, listing: Listing, mark: LogMark) -> None:
    path = directory / LISTING
    # A server may be killed after it has written the list and before the ledger.
    if listing.generation not in {mark.generation, mark.generation + 1}:
        raise damaged(
            path,
            f"is the list number {listing.generation} where the ledger knows {mark.generation}: it "
            "is from another moment",
        )
    complete = {segment.first_offset: segment for segment in listing.complete}
    holding = complete.get(mark.segment)
    if holding is not None and holding.end_offset < mark.end_offset:
        raise damaged(
            path,
            f"says that the segment {mark.segment} ends with offset {holding.end_offset}, but "
            f"the offsets below {mark.end_offset} have been acknowledged",
        )
    if holding is None and mark.segment > listing.newest:
        raise damaged(path, f"does not know the segment {mark.segment}, which the ledger knows")


def _check_files(directory: Path, listing: Listing, sizes: dict[int, int], *, is_new: bool) -> None:
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
        # The list is written before the first segment of a log is made.
        if listing.complete or not is_new:
            raise damaged(newest.path, f"is missing; it had the offsets from {listing.newest} on")
        newest.create()
        newest.close_file()
    for first_offset, size in sizes.items():
        _remove_remainder(directory, listing, first_offset, size)


def _remove_remainder(directory: Path, listing: Listing, first_offset: int, size: int) -> None:
    segment = Segment(directory, first_offset)
    is_expired = first_offset < listing.start_offset
    is_unused = first_offset > listing.newest and not size
    if not is_expired and not is_unused:
        raise damaged(
            segment.path,
            f"is not on the list of segments {directory / LISTING}: it is from another moment, or "
            "a copy",
        )
    _LOG.info("%s had %s; it is removed", segment.path, "expired" if is_expired else "no batch")
    segment.delete()


def _adopted(directory: Path, identity: Identity, sizes: dict[int, int]) -> Listing:
    """List the segments of a log that an earlier version has made; their indexes are made again."""
    offsets = sorted(sizes)
    complete: list[Complete] = []
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
            Complete(
                first_offset=first_offset,
                end_offset=segment.end_offset,
                size=segment.size,
                newest_timestamp=segment.newest_timestamp,
                headers_crc=segment.headers_crc,
                index_crc=segment.seal(),
            )
        )
        segment.close_file()
    made = Listing(identity=identity, generation=1, complete=tuple(complete), newest=offsets[-1])
    made.write(directory, durable=True)
    files.sync_directory(directory)
    return made
