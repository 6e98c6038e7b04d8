"""Reads log segments that have moved to the remote store, ahead of the reader.

A FETCH_LOG answer names the segments, from the one with the requested offset to the last that has
moved; after them the log continues at the tablet server. Files are read in parts, several
concurrently and across segments, and passed on in their order, cut after whole batches. Which bytes
of a segment are read is decided in `log.plan_remote_ranges`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fluss.errors import RemoteFileNotFoundError
from fluss.log import plan_remote_ranges as ranges
from fluss.log.remote_columns import (
    BATCH_BYTES_MAX,
    BegunBatch,
    ColumnReader,
    ProjectionOf,
    RemoteRecords,
    cut_off,
)
from fluss.net.remote_files import RemoteFiles
from fluss.records.log.log_batch import iter_log_places
from fluss.records.log.log_header import LENGTH_END, Magic1, read_length
from fluss.records.log.segment import IndexEntry, read_offset_index, segment_file_name
from fluss.wire.zero_copy.fetch_log import RemoteLogFetchInfo, RemoteLogSegment

PIECE_BYTES = 4 * 1024 * 1024
# An entry takes eight bytes and stands for four kilobytes at least: enough for a gigabyte.
INDEX_BYTES_MAX = 2 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class _Segment:
    """A segment, and the bytes of it that may be needed; `number` counts the segments."""

    number: int
    directory: str
    info: RemoteLogSegment
    start: int
    end: int

    def path(self, suffix: str) -> str:
        """Return the path of one of its files."""
        name = segment_file_name(self.info.remote_log_start_offset, suffix)
        return f"{self.directory}/{self.info.remote_log_segment_id}/{name}"

    @property
    def may_be_large(self) -> bool:
        """Whether so many bytes remain that sparing some may be worth another request."""
        return self.end - self.start >= ranges.SPARED_BYTES_MIN


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A range of a segment's file, read as whole batches or as some of their columns."""

    number: int
    path: str
    at: int
    size: int
    file_size: int
    has_columns: bool = False
    begun: BegunBatch | None = None

    @property
    def is_last(self) -> bool:
        """Whether the file ends with it."""
        return self.at + self.size == self.file_size


class RemoteLogReader:
    """Reads segments for the scanners of one connection.

    Args:
        files: The remote store.
        magic_1: What a magic byte of 1 means.
        parts_ahead_max: How many parts one scanner reads concurrently.
        segments_ahead_max: How many segments these parts may belong to.
    """

    def __init__(
        self,
        files: RemoteFiles,
        *,
        magic_1: Magic1,
        parts_ahead_max: int,
        segments_ahead_max: int,
    ) -> None:
        self._files = files
        self._magic_1: Magic1 = magic_1
        self._parts_ahead_max = parts_ahead_max
        self._segments_ahead_max = segments_ahead_max

    async def read(
        self,
        info: RemoteLogFetchInfo,
        offset: int,
        stop: int | None = None,
        projection_of: ProjectionOf | None = None,
    ) -> AsyncGenerator[RemoteRecords, None]:
        """Read the batches of the requested segments, from `first_start_pos` on.

        Args:
            info: The segments, from the answer of the tablet server.
            offset: The first requested offset; segments that end before it are skipped.
            stop: One past the last requested offset; later rows are not read ahead either.
            projection_of: How to read some columns only; None for all.

        Raises:
            CorruptBatchError: A file is not made of whole batches.
        """
        ahead = _ReadAhead(self._parts_ahead_max, self._segments_ahead_max)
        columns = None
        if projection_of is not None:
            columns = ColumnReader(self._files, self._magic_1, projection_of)
        producer = asyncio.ensure_future(
            self._read_ahead(_segments(info, offset, stop), stop, columns, ahead)
        )
        producer.add_done_callback(_was_awaited)
        producer.add_done_callback(ahead.notice)
        batches = _WholeBatches()
        try:
            while (first := await ahead.first(producer)) is not None:
                part, task = first
                data = await task
                ahead.leave_first()
                if isinstance(data, bytes):
                    found = batches.add(part, data)
                    data = [] if found is None else [RemoteRecords(data=found)]
                for records in data:
                    yield records
        finally:
            producer.cancel()
            ahead.cancel()

    async def _read_ahead(
        self,
        segments: Iterator[_Segment],
        stop: int | None,
        columns: ColumnReader | None,
        ahead: _ReadAhead,
    ) -> None:
        for segment in segments:
            await ahead.room(segment.number)
            for part in await self._plan(segment, stop, columns):
                await ahead.room(segment.number)
                ahead.begin(part, self._read_part(part, columns))

    # --- what is read of a segment --------------------------------------------------------------

    async def _plan(
        self, segment: _Segment, stop: int | None, columns: ColumnReader | None
    ) -> list[_Part]:
        path, end = segment.path("log"), segment.end
        ends_within = stop is not None and stop < segment.info.remote_log_end_offset
        entries: Sequence[IndexEntry] = ()
        first = None
        if columns is not None and segment.may_be_large:
            first = await columns.first_batch(path, segment.start, end)
        if segment.may_be_large and (first is not None or ends_within):
            entries = await self._index(segment)
        if stop is not None and ends_within:
            end = ranges.end_of_rows(entries, stop, file_size=end)
        start, most = segment.start, PIECE_BYTES
        if first is None:
            pieces = ranges.pieces_of_batches(start, end, piece_bytes=most)
        else:
            pieces = ranges.pieces_of_columns(entries, start, end, piece_bytes=most)
        return [
            _Part(
                number=segment.number,
                path=path,
                at=piece.start,
                size=piece.end - piece.start,
                file_size=piece.last,
                has_columns=piece.has_columns,
                begun=first if piece.start == segment.start else None,
            )
            for piece in pieces
        ]

    async def _index(self, segment: _Segment) -> Sequence[IndexEntry]:
        try:
            data = await self._files.read_at(segment.path("index"), 0, INDEX_BYTES_MAX)
        except RemoteFileNotFoundError:
            return ()  # without an index, more is read
        return read_offset_index(
            data, first_offset=segment.info.remote_log_start_offset, file_size=segment.end
        )

    # --- reading --------------------------------------------------------------------------------

    async def _read_part(
        self, part: _Part, columns: ColumnReader | None
    ) -> bytes | list[RemoteRecords]:
        if columns is None or not part.has_columns:
            return await self._files.read_at(part.path, part.at, part.size)
        return await columns.read(part.path, part.at, part.at + part.size, part.begun)


class _ReadAhead:
    """The parts that are being read, or have been, in their order."""

    def __init__(self, parts_max: int, segments_max: int) -> None:
        self._parts_max = parts_max
        self._segments_max = segments_max
        self._reading: deque[tuple[_Part, asyncio.Task[bytes | list[RemoteRecords]]]] = deque()
        self._changed = asyncio.Event()

    async def room(self, number: int) -> None:
        """Wait until a part of the segment with this number may be read."""
        while self._reading and (
            len(self._reading) >= self._parts_max
            or number - self._reading[0][0].number >= self._segments_max
        ):
            self._changed.clear()
            await self._changed.wait()

    def begin(self, part: _Part, work: Coroutine[Any, Any, bytes | list[RemoteRecords]]) -> None:
        """Start to read a part."""
        task = asyncio.ensure_future(work)
        task.add_done_callback(_was_awaited)
        self._reading.append((part, task))
        self._changed.set()

    async def first(
        self, producer: asyncio.Future[None]
    ) -> tuple[_Part, asyncio.Task[bytes | list[RemoteRecords]]] | None:
        """The first part; None after the last one.

        Raises:
            FlussError: What ended the producer.
        """
        while not self._reading:
            self._changed.clear()
            if producer.done():
                producer.result()
                return None
            await self._changed.wait()
        return self._reading[0]

    def notice(self, _: object) -> None:
        """Wake the reader: the producer has ended."""
        self._changed.set()

    def leave_first(self) -> None:
        """Make room for another part: the first one has been taken."""
        self._reading.popleft()
        self._changed.set()

    def cancel(self) -> None:
        """Stop reading."""
        for _, task in self._reading:
            task.cancel()


def _was_awaited(task: asyncio.Future[Any]) -> None:
    # The error of a part that is no longer needed must not be logged as unhandled.
    if not task.cancelled():
        task.exception()


def _segments(info: RemoteLogFetchInfo, offset: int, stop: int | None) -> Iterator[_Segment]:
    for number, segment in enumerate(info.remote_log_segments):
        if segment.remote_log_end_offset <= offset:
            continue
        if stop is not None and segment.remote_log_start_offset >= stop:
            return
        yield _Segment(
            number=number,
            directory=info.remote_log_tablet_dir.rstrip("/"),
            info=segment,
            start=(info.first_start_pos or 0) if number == 0 else 0,
            end=segment.segment_size_in_bytes,
        )


class _WholeBatches:
    """Joins the parts of each file, and cuts them after whole batches."""

    def __init__(self) -> None:
        self._parts: list[bytes | memoryview] = []
        self._size = 0
        self._needed = 0

    def add(self, part: _Part, data: bytes) -> memoryview | None:
        """Return all whole batches; None if not even one is complete.

        Raises:
            CorruptBatchError: The file ends within a batch, or a batch is longer than the file.
        """
        self._parts.append(data)
        self._size += len(data)
        found = None
        if self._size >= self._needed:
            found = self._cut()
        end = part.at + len(data)
        begun_at = end - self._size  # where the incomplete batch begins
        room = min(part.file_size - begun_at, BATCH_BYTES_MAX)
        is_cut = len(data) < part.size or (part.is_last and self._size > 0)
        if is_cut or (self._size and self._needed > room):
            raise cut_off(part.path, begun_at, part.file_size)
        return found

    def _cut(self) -> memoryview | None:
        joined = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        view = memoryview(joined)
        end = 0
        for at, size in iter_log_places(view):
            end = at + size
        rest = view[end:]
        self._parts = [rest] if rest else []
        self._size = len(rest)
        self._needed = LENGTH_END
        if len(rest) >= LENGTH_END:
            self._needed += read_length(rest, 0)
        return view[:end] if end else None
