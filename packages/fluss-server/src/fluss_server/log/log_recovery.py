"""Opens a log from what is on disk: believes what was synced, checks the rest, cuts a torn end.

A server that ended cleanly left a checkpoint that fits its newest segment, and nothing is read.
After anything else the bytes behind the last sync are checked batch by batch; of those before it
only the headers behind the last entry of the indexes are read, where the indexes are those that
the checkpoint names (`checkpoint`), and all headers of the segment otherwise. What ends in the
middle of a batch was never acknowledged whole and is cut, its bytes kept beside the log. A
damaged batch with sound ones behind it, or in front of what was synced, is not what a crash
leaves: then nothing is touched, and the server refuses to start with the name of the file and the
place.
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
from fluss_server.log.segment_file import Segment, SegmentPosition, read_place
from fluss_server.log.segment_list import NO_DIRECTORY, Identity
from fluss_server.log.writer_history import WriterStates, WrittenBatch

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
    """The log whose files are in a directory; an empty one where there are none.

    Args:
        bucket: Whose log it is.
        directory: The directory.
        segment_bytes: How large a segment may become.
        is_durable: Whether files and names are synced at all.
        entry: What the ledger says of the log.
        adopts: Whether the log may be one of an earlier version.

    Raises:
        LocalServerError: A file is damaged or missing; the error names it and the ways out.
        OSError: The disk refused.
    """
    directory_id = NO_DIRECTORY if entry is None else entry.directory_id
    identity = Identity(directory_id=directory_id, bucket=bucket)
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
    _tell_of_lost_rows(directory, segments[-1], entry)
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


def _tell_of_lost_rows(directory: Path, newest: Segment, entry: LedgerEntry | None) -> None:
    """After a power cut, say what it took: only what was synced is there."""
    mark = None if entry is None else entry.mark
    if mark is not None and newest.end_offset < mark.end_offset:
        _LOG.warning(
            "%s ends with offset %d where %d had been written: this machine was started again, and "
            "the last %d rows were not on the disk yet.",
            directory, newest.end_offset, mark.end_offset, mark.end_offset - newest.end_offset,
        )  # fmt: skip


# --- the newest segment -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """What must be there of the newest segment, by what was written down of it.

    Args:
        synced: So many bytes are on the disk; their headers are believed.
        acknowledged: So many bytes have been acknowledged.
        sums: The checksums of the headers before these positions.
    """

    synced: int
    acknowledged: int
    sums: Mapping[int, int]

    @property
    def needed(self) -> tuple[int, str]:
        """How many bytes cannot be missing, and why."""
        if self.acknowledged >= self.synced:
            return self.acknowledged, "acknowledged"
        return self.synced, "synced"


def _open_newest(directory: Path, found: Inventory, identity: Identity) -> Segment:
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
    """Whether ledger and checkpoint say the same of the end of a segment."""
    return mark is None or (mark.size, mark.end_offset, mark.headers_crc) == (
        checkpoint.size,
        checkpoint.end_offset,
        checkpoint.headers_crc,
    )


def _checkpoint(directory: Path, first_offset: int, identity: Identity) -> Checkpoint | None:
    found = read_checkpoint(directory, identity)
    return found if found is not None and found.first_offset == first_offset else None


def _scan(segment: Segment, size: int, known: _Known, *, start: int) -> None:
    """Check the file's batches, note them in the segment, and cut a torn end off."""
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
            window *= 2  # the batch is longer than what was read of it
    segment.synced_size = min(known.synced, segment.size)
    for at in sums:
        raise _refusal(segment.path, at, "no batch ends there, and one did")


def _note_batches(
    segment: Segment, data: bytes, position: int, *, synced: int, sums: dict[int, int]
) -> tuple[int, str]:
    """Note the sound batches at the start of these bytes: how long they are, why there they end."""
    view, used, why = memoryview(data), 0, ""
    while used < len(data):
        place = None
        if position + used < synced:
            place = _believed(data, used, position + used, segment.end_offset)
        if place is None:
            place, why = _check_batch(view[used:], position + used, segment.end_offset)
        if place is None:
            break
        segment.note(place)
        used += place.size
        expected = sums.pop(place.end, None)
        if expected is not None and expected != segment.headers_crc:
            why = "offset, length or time of a batch before it is another one"
            raise _refusal(segment.path, place.end, why)
    return used, why


def _believed(data: bytes, at: int, position: int, expected: int) -> SegmentPosition | None:
    """A batch that was synced, by what its header says of offsets alone."""
    place = read_place(data, at, position=position)
    if place is None or place.base_offset != expected or at + place.size > len(data):
        return None
    return place


def _check_batch(
    view: memoryview, position: int, expected: int
) -> tuple[SegmentPosition | None, str]:
    """The batch at the start of these bytes; None and why, where it is not whole and sound."""
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
    place = SegmentPosition(
        position=position,
        size=header.size_bytes,
        base_offset=header.base_offset,
        next_offset=header.next_offset,
        commit_timestamp=header.commit_timestamp,
        stamp=bytes(view[:HEADER_BYTES]),
    )
    return place, ""


def _cut_torn_end(segment: Segment, position: int, size: int, known: _Known, *, why: str) -> None:
    needed, reason = known.needed
    if position < needed:
        raise _refusal(segment.path, position, f"{why}, and {needed} bytes had been {reason}")
    tail = segment.read_unchecked(position, size)
    behind = _sound_batch_behind(tail, segment.end_offset)
    if behind is not None:
        raise _refusal(
            segment.path, position, f"{why}, but a sound batch follows at byte {position + behind}"
        )
    kept = segment.path.with_suffix(f".torn-{position}")
    kept.write_bytes(tail)
    segment.cut(position)
    _LOG.warning(
        "%s ended in the middle of a batch (%s): %d bytes from byte %d on were cut off and are kept "
        "in %s. They had not been acknowledged.",
        segment.path, why, len(tail), position, kept,
    )  # fmt: skip


def note_sound_batches(segment: Segment, size: int) -> str:
    """Check and note a file's batches from its start on, as far as they are sound.

    Returns:
        Why they end before the file does; nothing where they do not.
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


def _sound_batch_behind(tail: bytes, expected: int) -> int | None:
    """Where behind its start a whole batch with a right checksum stands, if one does."""
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
    directory: Path, segments: list[Segment], identity: Identity, *, adopts: bool
) -> WriterStates:
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
    directory: Path, end_offset: int, identity: Identity, *, adopts: bool
) -> tuple[WriterStates, int]:
    where = str(identity.bucket)
    for path in sorted(directory.glob(f"*.{WRITERS_SUFFIX}"), reverse=True):
        writers = WriterStates(where)
        try:
            data = path.read_bytes()
            snapshot = writers_in(data, identity)
            if snapshot is None and adopts:
                snapshot = data  # of an earlier version, which did not say whose it is
            made_at = None if snapshot is None else writers.load(snapshot)
        except (OSError, CorruptDataError) as error:
            _LOG.warning("%s is not used: %s", path, error)
            continue
        if made_at is None or path.name != f"{made_at:020d}.{WRITERS_SUFFIX}":
            _LOG.warning("%s is not used: it is damaged, or of another log or moment", path)
            continue
        if made_at <= end_offset:
            return writers, made_at
        # A power cut took what it is about; it must not be believed when others are at its place.
        path.unlink(missing_ok=True)
    return WriterStates(where), 0


def _read_writers(writers: WriterStates, segment: Segment, known_to: int) -> None:
    start = segment.position_of(max(known_to, segment.first_offset))
    for place in segment.walk(start):
        writers.remember(
            place.writer_id,
            WrittenBatch(
                base_offset=place.base_offset,
                next_offset=place.next_offset,
                commit_timestamp=place.commit_timestamp,
                batch_sequence=place.batch_sequence,
            ),
        )
