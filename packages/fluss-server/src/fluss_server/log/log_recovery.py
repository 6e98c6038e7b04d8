"""Opens a log from disk: trusts what was synced, checks the rest, and cuts a torn end.

After a clean stop the checkpoint matches the newest segment, and nothing is read. Otherwise the
batches after the last sync are checked. Of the batches before it only headers are read: those
after the last index entry where the indexes match the checkpoint (`log_checkpoint`), otherwise all
headers of the segment. Bytes that end in the middle of a batch were never acknowledged and are cut
off; a copy is kept beside the log. A damaged batch that is followed by valid ones, or that lies
before the last sync, is not the result of a crash: then nothing is changed, and the server refuses
to start with the name of the file and the position.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fluss.errors import CorruptBatchError, CorruptDataError, LocalServerError
from fluss.model.paths import TableBucket
from fluss.records.arrow.received_bytes import to_buffer
from fluss.records.log.log_batch import LogBatch, check_log_header, iter_log_headers
from fluss.records.log.log_header import read_log_header
from fluss_server.damage_errors import damaged
from fluss_server.log import SEGMENT_BYTES
from fluss_server.log.bucket_log import BucketLog
from fluss_server.log.lazy_batch_checks import HEADER_BYTES
from fluss_server.log.log_checkpoint import WRITERS_SUFFIX, Checkpoint, read_checkpoint, writers_in
from fluss_server.log.log_inventory import Inventory, take_inventory
from fluss_server.log.segment_file import BatchLocation, Segment, read_location
from fluss_server.log.segment_list import NO_DIRECTORY, LogIdentity
from fluss_server.log.writer_history import WriterHistory, WrittenBatch

if TYPE_CHECKING:
    from fluss_server.ledger import LedgerEntry
    from fluss_server.ledger_marks import LogMark

_LOG = logging.getLogger(__name__)
_WINDOW_BYTES: Final = 16 << 20


def open_log(
    bucket: TableBucket,
    directory: Path,
    *,
    segment_bytes: int = SEGMENT_BYTES,
    is_durable: bool = True,
    entry: LedgerEntry | None = None,
    adopts: bool = False,
) -> BucketLog:
    """Open the log in a directory; an empty one where there are no files.

    Args:
        bucket: The bucket.
        directory: The directory.
        segment_bytes: The size limit of a segment.
        is_durable: Whether files and names are synced at all.
        entry: The ledger's entry of the log.
        adopts: Whether the log may be from an earlier version.

    Raises:
        LocalServerError: A file is damaged or missing; the error names it and the remedies.
        OSError: The disk refused.
    """
    directory_id = NO_DIRECTORY if entry is None else entry.directory_id
    identity = LogIdentity(directory_id=directory_id, bucket=bucket)
    found = take_inventory(directory, identity, entry, adopts=adopts)
    if found is None:
        return BucketLog(
            bucket, directory, segment_bytes=segment_bytes, is_durable=is_durable, entry=entry
        )
    segments = [
        Segment.sealed(
            directory,
            complete.first_offset,
            end_offset=complete.end_offset,
            size=complete.size,
            headers_crc=complete.headers_crc,
            index_crc=complete.index_crc,
            newest_timestamp=complete.newest_timestamp,
        )
        for complete in found.listing.complete
    ]
    segments.append(_open_newest(directory, found, identity))
    _warn_of_lost_rows(directory, segments[-1], entry)
    writers = _recover_writers(directory, segments, identity, adopts=adopts)
    return BucketLog(
        bucket,
        directory,
        segments=segments,
        listing=found.listing,
        writers=writers,
        segment_bytes=segment_bytes,
        is_durable=is_durable,
        entry=entry,
    )


def _warn_of_lost_rows(directory: Path, newest: Segment, entry: LedgerEntry | None) -> None:
    """Log a warning about the unsynced rows that a power cut has lost."""
    mark = None if entry is None else entry.mark
    if mark is not None and newest.end_offset < mark.end_offset:
        _LOG.warning(
            "%s ends with offset %d where %d had been written: the machine was restarted before the "
            "last %d rows were on the disk.",
            directory, newest.end_offset, mark.end_offset, mark.end_offset - newest.end_offset,
        )  # fmt: skip


# --- the newest segment -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """What checkpoint and ledger record about the newest segment.

    Args:
        synced: How many bytes are on the disk; their headers are trusted.
        acknowledged: How many bytes have been acknowledged.
        sums: The checksums of the headers before these positions.
    """

    synced: int
    acknowledged: int
    sums: Mapping[int, int]

    @property
    def needed(self) -> tuple[int, str]:
        """How many bytes must exist, and why."""
        if self.acknowledged >= self.synced:
            return self.acknowledged, "acknowledged"
        return self.synced, "synced"


def _open_newest(directory: Path, found: Inventory, identity: LogIdentity) -> Segment:
    segment = Segment(directory, found.listing.newest)
    size = segment.path.stat().st_size
    checkpoint = _checkpoint(directory, segment.first_offset, identity)
    mark = found.mark
    known = _Known(
        synced=0 if checkpoint is None else checkpoint.size,
        acknowledged=0 if mark is None else mark.size,
        sums={each.size: each.headers_crc for each in (checkpoint, mark) if each is not None},
    )
    needed, why = known.needed
    if needed > size:
        raise _refusal(
            segment.path, size, f"the file ends there, but {needed} bytes of it had been {why}"
        )
    if checkpoint is not None and checkpoint.size == size and _agree(checkpoint, mark):
        return Segment.sealed(
            directory,
            segment.first_offset,
            end_offset=checkpoint.end_offset,
            size=size,
            headers_crc=checkpoint.headers_crc,
            index_crc=checkpoint.index_crc,
        )
    start = 0
    if checkpoint is not None and checkpoint.has_indexes:
        start = segment.resume(
            size=checkpoint.size, end_offset=checkpoint.end_offset, crc=checkpoint.index_crc
        )
    _scan(segment, size, known, start=start)
    if known.synced:
        segment.note_stored()
    return segment


def _agree(checkpoint: Checkpoint, mark: LogMark | None) -> bool:
    """Return whether ledger and checkpoint agree on the end of a segment."""
    return mark is None or (mark.size, mark.end_offset, mark.headers_crc) == (
        checkpoint.size,
        checkpoint.end_offset,
        checkpoint.headers_crc,
    )


def _checkpoint(directory: Path, first_offset: int, identity: LogIdentity) -> Checkpoint | None:
    found = read_checkpoint(directory, identity)
    return found if found is not None and found.first_offset == first_offset else None


def _scan(segment: Segment, size: int, known: _Known, *, start: int) -> None:
    """Check the file's batches, add them to the indexes, and cut off a torn end."""
    segment.size = size
    sums = {at: crc for at, crc in known.sums.items() if at > start}
    position, window = start, _WINDOW_BYTES
    while position < size:
        data = segment.read_unchecked(position, min(position + window, size))
        used, why = _note_batches(segment, data, position, synced=known.synced, sums=sums)
        if used:
            position, window = position + used, _WINDOW_BYTES
        elif position + len(data) == size:
            _cut_torn_end(segment, position, size, known, why=why)
            break
        else:
            window *= 2  # the batch is longer than the window
    segment.synced_size = min(known.synced, segment.size)
    for at in sums:
        raise _refusal(segment.path, at, "a batch ended there, and none does now")


def _note_batches(
    segment: Segment, data: bytes, position: int, *, synced: int, sums: dict[int, int]
) -> tuple[int, str]:
    """Index the valid batches at the start of these bytes; return their size and why they end."""
    view, used, why = memoryview(data), 0, ""
    while used < len(data):
        location = None
        if position + used < synced:
            location = _trusted_location(data, used, position + used, segment.end_offset)
        if location is None:
            location, why = _check_batch(view[used:], position + used, segment.end_offset)
        if location is None:
            break
        segment.note(location)
        used += location.size
        expected = sums.pop(location.end, None)
        if expected is not None and expected != segment.headers_crc:
            why = "offset, length or time of a batch before it is another one"
            raise _refusal(segment.path, location.end, why)
    return used, why


def _trusted_location(data: bytes, at: int, position: int, expected: int) -> BatchLocation | None:
    """Read the location of a synced batch; only its offsets are checked."""
    location = read_location(data, at, position=position)
    if location is None or location.base_offset != expected or at + location.size > len(data):
        return None
    return location


def _check_batch(
    view: memoryview, position: int, expected: int
) -> tuple[BatchLocation | None, str]:
    """Read and check the batch at the start of these bytes; None and the reason where it fails."""
    try:
        found = next(iter(iter_log_headers(view, tail="drop")), None)
        if found is None:
            return None, "it is cut off"
        _, header = found
        check_log_header(header)
        if header.base_offset != expected:
            return None, f"it has the offset {header.base_offset} where {expected} was due"
        batch = LogBatch(header=header, data=to_buffer(view[: header.size_bytes]), at=position)
        batch.verify_crc()
    except CorruptBatchError as error:
        return None, str(error.why)
    location = BatchLocation(
        position=position,
        size=header.size_bytes,
        base_offset=header.base_offset,
        next_offset=header.next_offset,
        commit_timestamp=header.commit_timestamp,
        stamp=bytes(view[:HEADER_BYTES]),
    )
    return location, ""


def _cut_torn_end(segment: Segment, position: int, size: int, known: _Known, *, why: str) -> None:
    needed, reason = known.needed
    if position < needed:
        raise _refusal(segment.path, position, f"{why}, and {needed} bytes had been {reason}")
    tail = segment.read_unchecked(position, size)
    following = _find_valid_batch(tail, segment.end_offset)
    if following is not None:
        raise _refusal(
            segment.path,
            position,
            f"{why}, but a valid batch follows at byte {position + following}",
        )
    kept = segment.path.with_suffix(f".torn-{position}")
    kept.write_bytes(tail)
    segment.cut(position)
    _LOG.warning(
        "%s ended in the middle of a batch (%s): %d bytes from byte %d on were cut off and kept "
        "in %s. They had not been acknowledged.",
        segment.path, why, len(tail), position, kept,
    )  # fmt: skip


def note_sound_batches(segment: Segment, size: int) -> str:
    """Check and index a file's batches from its start on, up to the first damage.

    Returns:
        Why they end before the file does; an empty text where they do not.
    """
    segment.size = size
    position, window, why = 0, _WINDOW_BYTES, ""
    while position < size:
        data = segment.read_unchecked(position, min(position + window, size))
        used, why = _note_batches(segment, data, position, synced=0, sums={})
        if used:
            position, window = position + used, _WINDOW_BYTES
        elif position + len(data) == size:
            break
        else:
            window *= 2
    segment.size = position
    return why if position < size else ""


def _find_valid_batch(tail: bytes, expected: int) -> int | None:
    """Return the position of a valid batch after the first one in the tail; None for none."""
    view = memoryview(tail)
    if len(view) < 12:  # noqa: PLR2004 - base offset and length
        return None
    at = 12 + int.from_bytes(view[8:12], "little", signed=True)
    if not 12 <= at < len(view):  # noqa: PLR2004 - a batch is at least that long
        return None
    try:
        header = read_log_header(view, at)
        check_log_header(header)
        if header.base_offset <= expected or at + header.size_bytes > len(view):
            return None
        data = to_buffer(view[at : at + header.size_bytes])
        LogBatch(header=header, data=data, at=at).verify_crc()
    except CorruptBatchError:
        return None
    return at


def _refusal(path: Path, position: int, why: str) -> LocalServerError:
    return damaged(path, f"is damaged at byte {position}: {why}", at=position)


# --- writers ------------------------------------------------------------------------------------


def _recover_writers(
    directory: Path, segments: list[Segment], identity: LogIdentity, *, adopts: bool
) -> WriterHistory:
    end_offset = segments[-1].end_offset
    writers, known_to = _newest_snapshot(directory, end_offset, identity, adopts=adopts)
    for segment in segments:
        if segment.end_offset <= known_to:
            continue
        try:
            _read_writers(writers, segment, known_to)
        except CorruptDataError as error:
            raise _refusal(segment.path, error.at, error.why) from error
    return writers


def _newest_snapshot(
    directory: Path, end_offset: int, identity: LogIdentity, *, adopts: bool
) -> tuple[WriterHistory, int]:
    where = str(identity.bucket)
    for path in sorted(directory.glob(f"*.{WRITERS_SUFFIX}"), reverse=True):
        writers = WriterHistory(where)
        try:
            data = path.read_bytes()
            snapshot = writers_in(data, identity)
            if snapshot is None and adopts:
                snapshot = data  # from an earlier version, which has no identity
            made_at = None if snapshot is None else writers.load(snapshot)
        except (OSError, CorruptDataError) as error:
            _LOG.warning("%s is not used: %s", path, error)
            continue
        if made_at is None or path.name != f"{made_at:020d}.{WRITERS_SUFFIX}":
            _LOG.warning("%s is not used: it is damaged, or of another log or moment", path)
            continue
        if made_at <= end_offset:
            return writers, made_at
        # A power cut lost its batches; it must not be used when other batches get those offsets.
        path.unlink(missing_ok=True)
    return WriterHistory(where), 0


def _read_writers(writers: WriterHistory, segment: Segment, known_to: int) -> None:
    start = segment.position_of(max(known_to, segment.first_offset))
    for location in segment.walk(start):
        writers.remember(
            location.writer_id,
            WrittenBatch(
                base_offset=location.base_offset,
                next_offset=location.next_offset,
                commit_timestamp=location.commit_timestamp,
                batch_sequence=location.batch_sequence,
            ),
        )
