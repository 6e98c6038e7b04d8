"""The log of one bucket: offsets, segments, writers, and the high watermark of readers.

One thread at a time writes, the one that holds the bucket's lock. The event loop reads
concurrently, and sees only what has been published. `append` and `append_changes` write and do not
publish: the code that acknowledges publishes, after the sync where one is promised. The ledger
records what is published, so that a log which lost its end is noticed. `log.log_recovery` opens a
log after a crash; `log.batch_checks` decides which batches may be appended.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fluss.error_codes import ErrorCode
from fluss.errors import FlussError
from fluss.model.paths import TableBucket
from fluss.records.arrow.received_bytes import to_view
from fluss.records.log.log_batch import LogBatch, iter_log_batches
from fluss.records.log.log_header import read_log_header, stamp_log_batch
from fluss.wire.byte_buffers import Buffer, count_bytes
from fluss_server.damage_errors import fresh_copy, removed
from fluss_server.ledger_marks import LogMark
from fluss_server.log import SEGMENT_BYTES, log_files as files
from fluss_server.log.lazy_batch_checks import HEADER_BYTES
from fluss_server.log.log_checkpoint import CheckpointWriter, Mark, RecoveryPoint
from fluss_server.log.segment_file import BatchLocation, Segment, segment_of
from fluss_server.log.segment_list import NO_DIRECTORY, LogIdentity, SealedSegment, SegmentList
from fluss_server.log.writer_history import WriterHistory, WrittenBatch
from fluss_server.server_errors import request_error

if TYPE_CHECKING:
    from fluss_server.ledger import LedgerEntry

STAMPED_BYTES: Final = 21  # base offset, length, magic, timestamp: a leader changes nothing else
_RELATIVE_OFFSET_MAX: Final = 2**31 - 1
_READ_BYTES: Final = 4 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """Whole batches as they are in the log."""

    data: bytes
    end_offset: int


class BucketLog:
    """The log of one bucket.

    Args:
        bucket: The bucket.
        directory: The directory of its files; created with the first batch.
        segments: The existing segments, in order.
        listing: The list of the existing segments; None where there are none.
        writers: The history of the writers in those segments.
        segment_bytes: The size limit of a segment.
        is_durable: Whether files and names are synced at all.
        entry: The ledger's entry, which records how far the log has been acknowledged.
    """

    def __init__(
        self,
        bucket: TableBucket,
        directory: Path,
        *,
        segments: Sequence[Segment] = (),
        listing: SegmentList | None = None,
        writers: WriterHistory | None = None,
        segment_bytes: int = SEGMENT_BYTES,
        is_durable: bool = True,
        entry: LedgerEntry | None = None,
    ) -> None:
        self.bucket = bucket
        self.directory = directory
        self.writers = writers if writers is not None else WriterHistory(str(bucket))
        self._segments = list(segments) or [Segment(directory, 0)]
        self._segment_bytes = segment_bytes
        self._is_durable = is_durable
        self._is_on_disk = bool(segments)
        self._failure: OSError | FlussError | None = None
        self._listing = listing if listing is not None else _no_segments(bucket, entry)
        self._checkpoints = CheckpointWriter(
            directory, self._listing.identity, is_durable=is_durable
        )
        self._newest_timestamp = max(each.newest_timestamp for each in self._segments[-2:])
        self.high_watermark = 0
        self._visible: tuple[Segment, int] = (self._active, 0)
        # The event loop and storage threads publish.
        self._publishing = threading.Lock()
        self._entry = entry
        self._published = self._mark()
        self.publish()

    @property
    def identity(self) -> LogIdentity:
        """The identity of the log."""
        return self._listing.identity

    @property
    def is_on_disk(self) -> bool:
        """Whether it has files; the first append makes them otherwise."""
        return self._is_on_disk

    @property
    def start_offset(self) -> int:
        """The first offset that is kept."""
        return self._segments[0].first_offset

    @property
    def end_offset(self) -> int:
        """The offset that the next batch gets."""
        return self._active.end_offset

    @property
    def size_bytes(self) -> int:
        """How many bytes of batches are kept."""
        return sum(each.size for each in self._segments)

    @property
    def unsynced_bytes(self) -> int:
        """How many bytes of batches have not been synced."""
        return self._active.size - self._active.synced_size

    @property
    def _active(self) -> Segment:
        return self._segments[-1]

    # --- writing --------------------------------------------------------------------------------

    def append(self, batches: Sequence[LogBatch], *, now_ms: int) -> list[WrittenBatch]:
        """Append a client's batches, except for duplicates.

        The bytes are stored unchanged, except for base offset and timestamp.

        Returns:
            For each batch its place in the log; for a duplicate, the place of the first one.

        Raises:
            WriterStateError: A batch is out of order; none has been written.
            OSError: The disk refused; none has been written.
        """
        outcome: list[WrittenBatch] = []
        fresh: list[tuple[LogBatch, WrittenBatch]] = []
        ahead: dict[int, int] = {}
        end_offset = self.end_offset
        timestamp = max(now_ms, self._newest_timestamp)
        for batch in batches:
            header = batch.header
            known = self.writers.find_duplicate(
                header.writer_id,
                header.batch_sequence,
                ahead=ahead.get(header.writer_id),
                at=end_offset + header.last_offset_delta,
            )
            if known is not None:
                outcome.append(known)
                continue
            written = WrittenBatch(
                base_offset=end_offset,
                next_offset=end_offset + header.last_offset_delta + 1,
                commit_timestamp=timestamp,
                batch_sequence=header.batch_sequence,
            )
            ahead[header.writer_id] = header.batch_sequence
            end_offset = written.next_offset
            fresh.append((batch, written))
            outcome.append(written)
        if fresh:
            self._write(fresh)
        return outcome

    def append_changes(self, batch: Sequence[Buffer], *, now_ms: int) -> WrittenBatch:
        """Append a batch that the server made; the caller has checked for duplicates.

        Args:
            batch: A writable header and the body, as `log_writer.write_log_batch` returns them.
            now_ms: The current time.

        Raises:
            OSError: The disk refused; nothing has been written.
        """
        header = read_log_header(to_view(batch[0]))
        written = WrittenBatch(
            base_offset=self.end_offset,
            next_offset=self.end_offset + header.last_offset_delta + 1,
            commit_timestamp=max(now_ms, self._newest_timestamp),
            batch_sequence=header.batch_sequence,
        )
        stamp_log_batch(
            batch[0],
            base_offset=written.base_offset,
            commit_timestamp=written.commit_timestamp,
        )
        stamp = bytes(to_view(batch[0])[:HEADER_BYTES])
        self._write_buffers(batch, [(written, count_bytes(batch), stamp)])
        self.writers.remember(header.writer_id, written)
        return written

    def cut_back(self, offset: int) -> None:
        """Remove unpublished batches from this offset on."""
        if offset < self.high_watermark:
            raise AssertionError(f"offset {offset} of {self.bucket} has been published")
        active = self._active
        position = active.position_of(offset)
        self._checkpoints.take_back(
            Mark(
                segment=active,
                size=position,
                end_offset=offset,
                headers_crc=active.headers_crc_at(position),
            )
        )
        active.cut(position)
        self.writers.forget_from(offset)

    def publish(self, mark: Mark | None = None) -> None:
        """Let readers see what has been written, or what had been written at a mark.

        Raises:
            OSError: The ledger could not be written; nothing is published.
        """
        with self._publishing:
            mark = self._mark() if mark is None else mark
            if mark.end_offset >= self.high_watermark:
                if self._is_on_disk:
                    self._record(mark)
                self._visible = (mark.segment, mark.size)
                self.high_watermark = mark.end_offset

    def _record(self, mark: Mark) -> None:
        """Record in the ledger how far the log is acknowledged."""
        if self._entry is not None:
            self._entry.write(
                LogMark(
                    generation=self._listing.generation,
                    end_offset=mark.end_offset,
                    segment=mark.segment.first_offset,
                    size=mark.size,
                    headers_crc=mark.headers_crc,
                )
            )
        self._published = mark

    def sync(self) -> Mark:
        """Wait until everything written is on the disk. Any thread may call it.

        Returns:
            The synced position, for `publish`.

        Raises:
            OSError: The disk refused. Its state is unknown then, so the log takes no more writes
                until it
                has been opened again.
        """
        self._check_health()
        mark = self._mark()
        if self._is_on_disk and self._is_durable and mark.segment.synced_size < mark.size:
            try:
                mark.segment.sync(mark.size)
            except OSError as error:
                # A second sync would succeed without having written what this one lost.
                self._failure = OSError(
                    f"{self.directory} takes no more rows because a sync failed ({error}); "
                    "restart the server when the disk is well"
                )
                raise
            self._checkpoints.write(mark)
        return mark

    @property
    def needs_recovery_point(self) -> bool:
        """Whether enough has been appended that its recovery would take long."""
        return self._is_durable and self._checkpoints.needs_recovery_point(self._mark())

    def recovery_point(self) -> RecoveryPoint:
        """Return the indexes and writers of the log so far. The caller holds the bucket's lock.

        Returns:
            The argument of `keep`, which needs no lock.
        """
        mark = self._mark()
        return RecoveryPoint(
            mark=mark,
            indexes=mark.segment.indexes.to_bytes(),
            writers=self.writers.to_bytes(self.end_offset),
        )

    def keep(self, recovery_point: RecoveryPoint) -> None:
        """Sync the log, then store a recovery point, which shortens the next recovery.

        Raises:
            OSError: The disk refused; the next recovery takes longer.
        """
        self.sync()
        self._checkpoints.keep(recovery_point)

    def _mark(self) -> Mark:
        active = self._active
        return Mark(
            segment=active,
            size=active.size,
            end_offset=active.end_offset,
            headers_crc=active.headers_crc,
        )

    def _write(self, fresh: Sequence[tuple[LogBatch, WrittenBatch]]) -> None:
        buffers: list[Buffer] = []
        sizes: list[tuple[WrittenBatch, int, bytes]] = []
        for batch, written in fresh:
            view = to_view(batch.data)
            head = bytearray(view[:STAMPED_BYTES])
            stamp_log_batch(
                head,
                base_offset=written.base_offset,
                commit_timestamp=written.commit_timestamp,
            )
            buffers += (head, view[STAMPED_BYTES:])
            stamp = bytes(head) + bytes(view[STAMPED_BYTES:HEADER_BYTES])
            sizes.append((written, len(view), stamp))
        self._write_buffers(buffers, sizes)
        for batch, written in fresh:
            self.writers.remember(batch.header.writer_id, written)

    def _write_buffers(
        self, buffers: Sequence[Buffer], sizes: Sequence[tuple[WrittenBatch, int, bytes]]
    ) -> None:
        self._make_room(sum(size for _, size, _ in sizes), sizes[-1][0].next_offset)
        position = self._active.size
        locations: list[BatchLocation] = []
        for written, size, stamp in sizes:
            locations.append(
                BatchLocation(
                    position=position,
                    size=size,
                    base_offset=written.base_offset,
                    next_offset=written.next_offset,
                    commit_timestamp=written.commit_timestamp,
                    stamp=stamp,
                )
            )
            position += size
        self._active.append(buffers, locations)
        self._newest_timestamp = sizes[-1][0].commit_timestamp

    # --- segments -------------------------------------------------------------------------------

    def create_files(self) -> None:
        """Create the files of a log that has none, and wait until their names are on the disk.

        Raises:
            OSError: The disk refused.
        """
        self._check_health()
        if not self._is_on_disk:
            self._make_directory()

    def _make_room(self, size: int, next_offset: int) -> None:
        self.create_files()
        active = self._segments[-1]
        if active.is_unlinked:
            self._fail_removed()
            self._check_health()
        if active.is_empty:
            return
        too_long = active.size + size > self._segment_bytes
        if too_long or next_offset - active.first_offset > _RELATIVE_OFFSET_MAX:
            self.roll()

    @property
    def failure(self) -> OSError | FlussError | None:
        """Why the log takes no more writes; None where it does."""
        return self._failure

    def check_in_place(self) -> None:
        """Take no more writes where the log's files were removed or replaced while it is open."""
        if self._is_on_disk and self._failure is None and not self._active.is_in_place:
            self._fail_removed()

    def _fail_removed(self) -> None:
        self._failure = removed(self._active.path, f"{self.bucket} takes no more rows")

    def _check_health(self) -> None:
        if self._entry is not None:
            self._entry.check()
        if isinstance(self._failure, OSError):
            raise OSError(str(self._failure))
        if self._failure is not None:
            raise fresh_copy(self._failure)

    def _make_directory(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        listing = replace(self._listing, generation=self._listing.generation + 1)
        listing.write(self.directory, durable=self._is_durable)
        self._active.create()
        if self._is_durable:
            for directory in (self.directory, *self.directory.parents[:3]):
                files.sync_directory(directory)
        self._listing = listing
        # Before the first batch: a log that disappears with its first rows must be noticed.
        self._record(self._published)
        self._is_on_disk = True

    def roll(self) -> None:
        """Seal the newest segment and begin a new one."""
        active = self._active
        if self._is_durable:
            active.sync()
        fresh = Segment(self.directory, active.end_offset)
        fresh.create()
        index_crc = self._checkpoints.seal(active, fresh, self.writers.to_bytes(active.end_offset))
        complete = SealedSegment(
            first_offset=active.first_offset,
            end_offset=active.end_offset,
            size=active.size,
            newest_timestamp=active.newest_timestamp,
            headers_crc=active.headers_crc,
            index_crc=index_crc,
        )
        self._list(complete=(*self._listing.complete, complete), newest=fresh.first_offset)
        self._segments.append(fresh)
        self._checkpoints.write(self._mark())

    def _list(self, *, complete: tuple[SealedSegment, ...], newest: int) -> None:
        """Store the list of segments. Listed files exist; unlisted ones are deleted later."""
        listing = SegmentList(
            identity=self._listing.identity,
            generation=self._listing.generation + 1,
            complete=complete,
            newest=newest,
        )
        listing.write(self.directory, durable=self._is_durable)
        try:
            if self._is_durable:
                files.sync_directory(self.directory)
            with self._publishing:
                self._listing = listing
                self._record(self._published)
        except OSError as error:
            # The list may be on the disk: a segment that it lists as sealed must not grow.
            self._failure = OSError(
                f"{self.directory} takes no more rows because its segments could not be listed "
                f"({error}); restart the server when the disk is well"
            )
            raise

    def expire(
        self, *, older_than_ms: int | None, bytes_max: int | None = None, floor: int | None = None
    ) -> int:
        """Delete the oldest segments.

        Args:
            older_than_ms: Segments whose newest batch is older expire; None to keep all.
            bytes_max: The size limit of the log, in whole segments; None for no limit.
            floor: The log is kept from this offset on, because the rows by key still need it.

        Returns:
            How many segments were deleted.
        """
        active = self._active
        if older_than_ms is not None and not active.is_empty:
            is_old = active.newest_timestamp < older_than_ms
            if is_old and self.high_watermark == self.end_offset:
                self.roll()
                self.publish()
        expired = self._expired(older_than_ms, bytes_max)
        count = sum(floor is None or each.end_offset <= floor for each in expired)
        if not count:
            return 0
        # The list first: the next start deletes an unlisted segment, and refuses a missing one.
        self._list(complete=self._listing.complete[count:], newest=self._listing.newest)
        gone, self._segments = self._segments[:count], self._segments[count:]
        for segment in gone:
            segment.delete()
        return count

    def expired_end(self, *, older_than_ms: int | None, bytes_max: int | None = None) -> int:
        """Return the offset up to which segments have expired, even if they are still needed."""
        last = self._active
        if older_than_ms and not last.is_empty and last.newest_timestamp < older_than_ms:
            return self.end_offset
        expired = self._expired(older_than_ms, bytes_max)
        return max((each.end_offset for each in expired), default=self.start_offset)

    def _expired(self, older_than_ms: int | None, bytes_max: int | None) -> Iterator[Segment]:
        """Iterate over the complete segments that are too old or too many, oldest first."""
        surplus = 0 if bytes_max is None else self.size_bytes - bytes_max
        for segment in self._segments[:-1]:
            if surplus <= 0 and not (older_than_ms and segment.newest_timestamp < older_than_ms):
                return
            surplus -= segment.size
            yield segment

    def close_files(self) -> None:
        """Close the files until they are used again."""
        for segment in self._segments:
            segment.close_file()

    def abandon(self) -> None:
        """Close the files of a dropped log, and write no more to the ledger."""
        with self._publishing:
            self._entry = None
        self.close_files()

    def close(self) -> None:
        """Store what makes the next start quick, and close the files."""
        if self._is_on_disk:
            self.sync()
            self._checkpoints.close(self._active, self.writers.to_bytes(self.end_offset))
        self.close_files()

    # --- reading --------------------------------------------------------------------------------

    def read(self, offset: int, bytes_max: int, *, at_least_one: bool) -> Slice:
        """Read whole published batches of one segment, from the one with this offset on.

        Args:
            offset: Between the start offset and the high watermark.
            bytes_max: How many bytes to return at most.
            at_least_one: Whether to return a first batch that is larger than that.

        Raises:
            OffsetOutOfRangeError: The offset is not kept any more, or not published yet.
        """
        self._check_offset(offset)
        if offset == self.high_watermark:
            return Slice(data=b"", end_offset=offset)
        segment = self._segment_with(offset)
        visible_segment, visible_size = self._visible
        end = visible_size if segment is visible_segment else segment.size
        start = segment.position_of(offset)
        limit = start + max(bytes_max, 0)
        if start < end and limit < end:
            end = segment.last_boundary(start, limit)
            if end == start and at_least_one:
                end = next(segment.walk(start)).end
        if end <= start:
            if start < segment.size or segment is visible_segment:
                return Slice(data=b"", end_offset=offset)
            raise segment.damaged(end, f"the batch with the offset {offset} is not there")
        return Slice(data=segment.read(start, end), end_offset=segment.end_offset)

    def visible_from(self, offset: int) -> Iterator[tuple[Segment, int, int]]:
        """Iterate over the segments from an offset on, with the published range of positions.

        Raises:
            OffsetOutOfRangeError: The offset is not kept any more, or not published yet.
        """
        self._check_offset(offset)
        last, last_size = self._visible
        first = segment_of([each.first_offset for each in self._segments], offset)
        for segment in self._segments[first:]:
            start = segment.position_of(offset) if segment.first_offset < offset else 0
            yield segment, start, last_size if segment is last else segment.size
            if segment is last:
                return

    def offset_since(self, timestamp: int) -> int | None:
        """Return the first offset of the first batch at or after a time; None for none."""
        for segment in self._segments:
            if segment.newest_timestamp >= timestamp:
                found = segment.first_since(timestamp)
                if found is not None and found < self.high_watermark:
                    return found
        return None

    def iter_batches(self, start_offset: int) -> Iterator[LogBatch]:
        """Iterate over all batches from the one with this offset on, published or not."""
        offset = start_offset
        while offset < self.end_offset:
            segment = self._segment_with(offset)
            start = segment.position_of(offset)
            end = min(segment.size, start + _READ_BYTES)
            if end < segment.size:
                end = max(segment.last_boundary(start, end), next(segment.walk(start)).end)
            for batch in iter_log_batches(segment.read(start, end), tail="refuse"):
                yield batch
                offset = batch.next_offset

    def _check_offset(self, offset: int) -> None:
        if not self.start_offset <= offset <= self.high_watermark:
            raise request_error(
                ErrorCode.LOG_OFFSET_OUT_OF_RANGE_EXCEPTION,
                f"The offset {offset} of {self.bucket} is not between {self.start_offset} and "
                f"{self.high_watermark}.",
            )

    def _segment_with(self, offset: int) -> Segment:
        return self._segments[segment_of([each.first_offset for each in self._segments], offset)]


def _no_segments(bucket: TableBucket, entry: LedgerEntry | None) -> SegmentList:
    directory_id = NO_DIRECTORY if entry is None else entry.directory_id
    identity = LogIdentity(directory_id=directory_id, bucket=bucket)
    return SegmentList(identity=identity, generation=0, complete=(), newest=0)
