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
import re
from pathlib import Path
from typing import Final

from fluss.errors import CorruptBatchError, CorruptDataError, LocalServerError
from fluss.model.paths import TableBucket
from fluss.records.buffers import to_buffer
from fluss.records.log_batch import LogBatch, check_log_header, iter_log_headers
from fluss.records.log_header import read_log_header
from fluss_server.log import SEGMENT_BYTES
from fluss_server.log.bucket_log import BucketLog
from fluss_server.log.checkpoint import CHECKPOINT, WRITERS_SUFFIX, Checkpoint
from fluss_server.log.segment import Place, Segment, read_place
from fluss_server.log.writers import WriterStates, WrittenBatch

_LOG = logging.getLogger(__name__)
_NAME: Final = re.compile(r"([0-9]{20})\.log")
_WINDOW_BYTES: Final = 16 << 20


def open_log(
    bucket: TableBucket,
    directory: Path,
    *,
    segment_bytes: int = SEGMENT_BYTES,
    is_durable: bool = True,
) -> BucketLog:
    """The log whose files are in a directory; an empty one where there are none.

    Raises:
        LocalServerError: A file is damaged; the error names it, the place, and the way out.
        OSError: The disk refused.
    """
    offsets = _first_offsets(directory)
    if not offsets:
        return BucketLog(bucket, directory, segment_bytes=segment_bytes, is_durable=is_durable)
    segments = [
        Segment.sealed(directory, first, end_offset=behind, size=_size_of(directory, first))
        for first, behind in zip(offsets, [*offsets[1:], offsets[-1]], strict=True)
    ]
    segments[-1] = _open_newest(directory, offsets[-1])
    writers = _recover_writers(str(bucket), directory, segments)
    return BucketLog(
        bucket,
        directory,
        segments=segments,
        writers=writers,
        segment_bytes=segment_bytes,
        is_durable=is_durable,
    )


def _first_offsets(directory: Path) -> list[int]:
    if not directory.is_dir():
        return []
    found = (_NAME.fullmatch(each.name) for each in directory.iterdir())
    return sorted(int(each.group(1)) for each in found if each)


def _size_of(directory: Path, first_offset: int) -> int:
    return Segment(directory, first_offset).path.stat().st_size


# --- the newest segment -------------------------------------------------------------------------


def _open_newest(directory: Path, first_offset: int) -> Segment:
    size = _size_of(directory, first_offset)
    known = _checkpoint(directory, first_offset)
    if known is not None and known.size == size:
        return Segment.sealed(directory, first_offset, end_offset=known.end_offset, size=size)
    if known is not None and known.size > size:
        raise _refusal(
            Segment(directory, first_offset).path,
            size,
            f"the file ends there, but {known.size} bytes of it had been synced",
        )
    segment = Segment(directory, first_offset)
    start = 0
    if known is not None and known.has_indexes:
        start = segment.resume(size=known.size, end_offset=known.end_offset, crc=known.index_crc)
    _scan(segment, size, start=start, synced=0 if known is None else known.size)
    return segment


def _checkpoint(directory: Path, first_offset: int) -> Checkpoint | None:
    try:
        found = Checkpoint.from_bytes((directory / CHECKPOINT).read_bytes())
    except OSError:
        return None
    return found if found is not None and found.first_offset == first_offset else None


def _scan(segment: Segment, size: int, *, start: int, synced: int) -> None:
    """Check the file's batches, note them in the segment, and cut a torn end off."""
    segment.size = size
    position, window = start, _WINDOW_BYTES
    while position < size:
        data = segment.read(position, min(position + window, size))
        used, why = _note_batches(segment, data, position, synced=synced)
        if used:
            position, window = position + used, _WINDOW_BYTES
        elif position + len(data) == size:
            _cut_torn_end(segment, position, size, synced=synced, why=why)
            return
        else:
            window *= 2  # the batch is longer than what was read of it
    segment.synced_size = min(synced, size)


def _note_batches(segment: Segment, data: bytes, position: int, *, synced: int) -> tuple[int, str]:
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
    return used, why


def _believed(data: bytes, at: int, position: int, expected: int) -> Place | None:
    """A batch that was synced, by what its header says of offsets alone."""
    place = read_place(data, at, position=position)
    if place is None or place.base_offset != expected or at + place.size > len(data):
        return None
    return place


def _check_batch(view: memoryview, position: int, expected: int) -> tuple[Place | None, str]:
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
    place = Place(
        position=position,
        size=header.size_bytes,
        base_offset=header.base_offset,
        next_offset=header.next_offset,
        commit_timestamp=header.commit_timestamp,
    )
    return place, ""


def _cut_torn_end(segment: Segment, position: int, size: int, *, synced: int, why: str) -> None:
    if position < synced:
        raise _refusal(segment.path, position, f"{why}, and {synced} bytes had been synced")
    tail = segment.read(position, size)
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
    return LocalServerError(
        f"The log file {path} is damaged at byte {position}: {why}. Nothing was changed.",
        hint="Restore the file from a backup. To go on without the rows from there on, cut the file: "
        f"truncate -s {position} '{path}', and remove the file '{CHECKPOINT}' beside it.",
        path=str(path),
        at=position,
        why=why,
    )


# --- writers ------------------------------------------------------------------------------------


def _recover_writers(where: str, directory: Path, segments: list[Segment]) -> WriterStates:
    end_offset = segments[-1].end_offset
    writers, known_to = _newest_snapshot(where, directory, end_offset)
    for segment in segments:
        if segment.end_offset <= known_to:
            continue
        try:
            _read_writers(writers, segment, known_to)
        except CorruptDataError as error:
            raise _refusal(segment.path, error.at, error.why) from error
    return writers


def _newest_snapshot(where: str, directory: Path, end_offset: int) -> tuple[WriterStates, int]:
    for path in sorted(directory.glob(f"*.{WRITERS_SUFFIX}"), reverse=True):
        writers = WriterStates(where)
        try:
            made_at = writers.load(path.read_bytes())
        except (OSError, CorruptDataError) as error:
            _LOG.warning("%s is not used: %s", path, error)
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
