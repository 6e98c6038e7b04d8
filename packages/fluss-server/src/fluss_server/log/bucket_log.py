"""The log of one bucket: offsets, segments, writers, and how far readers may see.

Written by one thread at a time, the one that holds the bucket's turn; read by the event loop at
the same moment, which sees only what has been published. `append` and `append_changes` write and
publish nothing: whoever acknowledges publishes, after the sync if one was promised. Opening a log
after a crash is `log.recovery`; which batches may come in at all is `log.checks`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fluss.error_codes import ErrorCode
from fluss.model.paths import TableBucket
from fluss.records.buffers import to_view
from fluss.records.log_batch import LogBatch, iter_log_batches
from fluss.records.log_header import read_log_header, stamp_log_batch
from fluss.wire.buffers import Buffer, count_bytes
from fluss_server.log import SEGMENT_BYTES, files
from fluss_server.log.checkpoint import Checkpoints, Mark, Progress
from fluss_server.log.segment import Place, Segment, segment_of
from fluss_server.log.writers import WriterStates, WrittenBatch
from fluss_server.refusals import refuse

STAMPED_BYTES: Final = 21  # base offset, length, magic, timestamp: all that a leader changes
_RELATIVE_OFFSET_MAX: Final = 2**31 - 1
_READ_BYTES: Final = 4 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """Whole batches as they lie in the log."""

    data: bytes
    end_offset: int


class BucketLog:
    """The log of one bucket.

    Args:
        bucket: Which one.
        directory: Where its files are; made with the first batch.
        segments: What is there already, in order.
        writers: What is known of the writers of those.
        segment_bytes: How large a segment may become.
        is_durable: Whether files and names are synced at all.
    """

    def __init__(
        self,
        bucket: TableBucket,
        directory: Path,
        *,
        segments: Sequence[Segment] = (),
        writers: WriterStates | None = None,
        segment_bytes: int = SEGMENT_BYTES,
        is_durable: bool = True,
    ) -> None:
        self.bucket = bucket
        self.directory = directory
        self.writers = writers if writers is not None else WriterStates(str(bucket))
        self._segments = list(segments) or [Segment(directory, 0)]
        self._segment_bytes = segment_bytes
        self._is_durable = is_durable
        self._is_on_disk = bool(segments)
        self._failure: OSError | None = None
        self._checkpoints = Checkpoints(directory, is_durable=is_durable)
        self._newest_timestamp = max(each.newest_timestamp for each in self._segments[-2:])
        self.high_watermark = 0
        self._visible: tuple[Segment, int] = (self._active, 0)
        self.publish()

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
        """How many bytes of batches might not be on the disk."""
        return self._active.size - self._active.synced_size

    @property
    def _active(self) -> Segment:
        return self._segments[-1]

    # --- writing --------------------------------------------------------------------------------

    def append(self, batches: Sequence[LogBatch], *, now_ms: int) -> list[WrittenBatch]:
        """Write a client's batches, those that are not there already.

        The bytes stay as they came, except for base offset and timestamp.

        Returns:
            For each batch where it is, or where it has been since it came first.

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
            known = self.writers.judge(
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
        """Write a batch of the server's own making; its writer has been judged before.

        Args:
            batch: Header, writable, and what follows, as `log_writer.write_log_batch` makes them.
            now_ms: The clock.

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
        self._write_buffers(batch, [(written, count_bytes(batch))])
        self.writers.remember(header.writer_id, written)
        return written

    def cut_back(self, offset: int) -> None:
        """Take back what was appended from this offset on and has not been published."""
        if offset < self.high_watermark:
            raise AssertionError(f"offset {offset} of {self.bucket} has been published")
        position = self._active.position_of(offset)
        self._checkpoints.take_back(Mark(segment=self._active, size=position, end_offset=offset))
        self._active.cut(position)
        self.writers.forget_from(offset)

    def publish(self, mark: Mark | None = None) -> None:
        """Let readers see what has been written, or what had been at a mark."""
        mark = self._mark() if mark is None else mark
        if mark.end_offset >= self.high_watermark:
            self._visible = (mark.segment, mark.size)
            self.high_watermark = mark.end_offset

    def sync(self) -> Mark:
        """Wait until everything written is on the disk; any thread may.

        Returns:
            How far that is, for `publish`.

        Raises:
            OSError: The disk refused. What it has then nobody knows, so nothing more is written to
                this log until it has been opened again.
        """
        self._check_health()
        mark = self._mark()
        if self._is_on_disk and self._is_durable and mark.segment.synced_size < mark.size:
            try:
                mark.segment.sync(mark.size)
            except OSError as error:
                self._failure = error
                raise
            self._checkpoints.write(mark)
        return mark

    @property
    def wants_progress(self) -> bool:
        """Whether so much has been appended that finding the way in it again would take long."""
        return self._is_durable and self._checkpoints.wants_progress(self._mark())

    def progress(self) -> Progress:
        """What is known of what has been appended; by the holder of the turn.

        Returns:
            For `keep`, which needs no turn.
        """
        mark = self._mark()
        return Progress(
            mark=mark,
            indexes=mark.segment.indexes.to_bytes(),
            writers=self.writers.to_bytes(self.end_offset),
        )

    def keep(self, progress: Progress) -> None:
        """Write down, behind the bytes that it is about, how to go on from there after a crash.

        Raises:
            OSError: The disk refused; the next start takes longer.
        """
        self.sync()
        self._checkpoints.keep(progress)

    def _mark(self) -> Mark:
        active = self._active
        return Mark(segment=active, size=active.size, end_offset=active.end_offset)

    def _write(self, fresh: Sequence[tuple[LogBatch, WrittenBatch]]) -> None:
        buffers: list[Buffer] = []
        sizes: list[tuple[WrittenBatch, int]] = []
        for batch, written in fresh:
            view = to_view(batch.data)
            head = bytearray(view[:STAMPED_BYTES])
            stamp_log_batch(
                head,
                base_offset=written.base_offset,
                commit_timestamp=written.commit_timestamp,
            )
            buffers += (head, view[STAMPED_BYTES:])
            sizes.append((written, len(view)))
        self._write_buffers(buffers, sizes)
        for batch, written in fresh:
            self.writers.remember(batch.header.writer_id, written)

    def _write_buffers(
        self, buffers: Sequence[Buffer], sizes: Sequence[tuple[WrittenBatch, int]]
    ) -> None:
        self._make_room(sum(size for _, size in sizes), sizes[-1][0].next_offset)
        position = self._active.size
        places: list[Place] = []
        for written, size in sizes:
            places.append(
                Place(
                    position=position,
                    size=size,
                    base_offset=written.base_offset,
                    next_offset=written.next_offset,
                    commit_timestamp=written.commit_timestamp,
                )
            )
            position += size
        self._active.append(buffers, places)
        self._newest_timestamp = sizes[-1][0].commit_timestamp

    # --- segments -------------------------------------------------------------------------------

    def _make_room(self, size: int, next_offset: int) -> None:
        self._check_health()
        if not self._is_on_disk:
            self._make_directory()
        active = self._active
        if active.is_empty:
            return
        too_long = active.size + size > self._segment_bytes
        if too_long or next_offset - active.first_offset > _RELATIVE_OFFSET_MAX:
            self.roll()

    def _check_health(self) -> None:
        # A second sync would succeed without having written what the first one lost.
        if self._failure is not None:
            raise OSError(
                f"{self.directory} takes no more rows because a sync failed ({self._failure}); "
                "restart the server when the disk is well"
            )

    def _make_directory(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        if self._is_durable:
            for each in (self.directory, *self.directory.parents[:3]):
                files.sync_directory(each)
        self._is_on_disk = True

    def roll(self) -> None:
        """Seal the newest segment and begin another one."""
        active = self._active
        if self._is_durable:
            active.sync()
        fresh = Segment(self.directory, active.end_offset)
        self._checkpoints.seal(active, fresh, self.writers.to_bytes(active.end_offset))
        self._segments.append(fresh)
        if self._is_durable:
            fresh.create()
            files.sync_directory(self.directory)
        self._checkpoints.write(self._mark())

    def expire(
        self, *, older_than_ms: int | None, bytes_max: int | None = None, floor: int | None = None
    ) -> int:
        """Delete the oldest segments.

        Args:
            older_than_ms: Segments whose newest batch is older go; None for none of them.
            bytes_max: What is kept at most, in whole segments; None for no limit.
            floor: An offset that has to stay, because not everybody has made use of it yet.

        Returns:
            How many segments were deleted.
        """
        active = self._active
        if older_than_ms is not None and not active.is_empty:
            is_old = active.newest_timestamp < older_than_ms
            if is_old and self.high_watermark == self.end_offset:
                self.roll()
                self.publish()
        surplus = 0 if bytes_max is None else self.size_bytes - bytes_max
        count = 0
        for each in self._segments[:-1]:
            is_old = older_than_ms is not None and each.newest_timestamp < older_than_ms
            if not is_old and surplus <= 0:
                break
            if floor is not None and each.end_offset > floor:
                break
            surplus -= each.size
            count += 1
        gone, self._segments = self._segments[:count], self._segments[count:]
        for each in gone:
            each.delete()
        return count

    def close_files(self) -> None:
        """Give the files back to the system until they are needed again."""
        for each in self._segments:
            each.close_file()

    def close(self) -> None:
        """Write down all that makes the next start quick, and close the files."""
        if self._is_on_disk:
            self.sync()
            self._checkpoints.close(self._active, self.writers.to_bytes(self.end_offset))
        self.close_files()

    # --- reading --------------------------------------------------------------------------------

    def read(self, offset: int, bytes_max: int, *, at_least_one: bool) -> Slice:
        """Whole batches from the one with this offset on, of one segment and published.

        Args:
            offset: Between the start offset and the high watermark.
            bytes_max: How many bytes may come.
            at_least_one: Whether a first batch that is larger comes nevertheless.

        Raises:
            OffsetOutOfRangeError: The offset is not kept any more, or not there yet.
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
        """The segments from an offset on with what is published of them, as positions.

        Raises:
            OffsetOutOfRangeError: The offset is not kept any more, or not there yet.
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
        """The first offset of the first batch that is not older than this, None for none."""
        for segment in self._segments:
            if segment.newest_timestamp >= timestamp:
                found = segment.first_since(timestamp)
                if found is not None and found < self.high_watermark:
                    return found
        return None

    def iter_batches(self, start_offset: int) -> Iterator[LogBatch]:
        """All batches from the one with this offset on, published or not."""
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
            raise refuse(
                ErrorCode.LOG_OFFSET_OUT_OF_RANGE_EXCEPTION,
                f"The offset {offset} of {self.bucket} is not between {self.start_offset} and "
                f"{self.high_watermark}.",
            )

    def _segment_with(self, offset: int) -> Segment:
        return self._segments[segment_of([each.first_offset for each in self._segments], offset)]
