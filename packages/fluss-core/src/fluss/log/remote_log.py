"""Reads log segments that have moved to the remote store, ahead of the reader.

A FETCH_LOG answer names the segments, from the one with the requested offset to the last that has
moved; after them the log continues at the tablet server. Files are read in parts, several
concurrently and across segments, and passed on in their order, cut after whole batches.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass

from fluss.errors import CorruptBatchError
from fluss.net.remote_files import RemoteFiles
from fluss.records.log.log_batch import iter_log_places
from fluss.records.log.log_header import LENGTH_END, read_length
from fluss.records.log.segment import segment_file_name
from fluss.wire.zero_copy.fetch_log import RemoteLogFetchInfo, RemoteLogSegment

PIECE_BYTES = 4 * 1024 * 1024
BATCH_BYTES_MAX = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Some bytes of a segment's file; `number` counts the segments."""

    number: int
    path: str
    at: int
    size: int
    file_size: int

    @property
    def is_last(self) -> bool:
        """Whether the file ends with it."""
        return self.at + self.size == self.file_size


class RemoteLogReader:
    """Reads segments for the scanners of one connection.

    Args:
        files: The remote store.
        parts_ahead_max: How many parts one scanner reads concurrently.
        segments_ahead_max: How many segments these parts may belong to.
    """

    def __init__(
        self,
        files: RemoteFiles,
        *,
        parts_ahead_max: int,
        segments_ahead_max: int,
    ) -> None:
        self._files = files
        self._parts_ahead_max = parts_ahead_max
        self._segments_ahead_max = segments_ahead_max

    async def read(
        self, info: RemoteLogFetchInfo, offset: int, stop: int | None = None
    ) -> AsyncGenerator[memoryview, None]:
        """Read the batches of the requested segments, from `first_start_pos` on.

        Args:
            info: The segments, from the answer of the tablet server.
            offset: The first requested offset; segments that end before it are skipped.
            stop: One past the last requested offset; later segments are not read ahead either.

        Raises:
            CorruptBatchError: A file is not made of whole batches.
        """
        left = deque(_parts(info, offset, stop))
        reading: deque[tuple[_Part, asyncio.Task[bytes]]] = deque()
        batches = _WholeBatches()
        try:
            await self._read_ahead(left, reading)
            while reading:
                part, task = reading[0]
                data = await task
                reading.popleft()
                await self._read_ahead(left, reading)
                found = batches.add(part, data)
                if found is not None:
                    yield found
        finally:
            for _, task in reading:
                task.cancel()

    async def _read_ahead(
        self, left: deque[_Part], reading: deque[tuple[_Part, asyncio.Task[bytes]]]
    ) -> None:
        while left and len(reading) < self._parts_ahead_max:
            first = reading[0][0] if reading else left[0]
            if left[0].number - first.number >= self._segments_ahead_max:
                return
            part = left.popleft()
            file = await self._files.prepare(part.path)
            task = asyncio.ensure_future(self._files.read(file, part.at, part.size))
            # An error of a part that is not read any more must not be logged as unhandled.
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
            reading.append((part, task))


def _parts(info: RemoteLogFetchInfo, offset: int, stop: int | None) -> Iterator[_Part]:
    start = info.first_start_pos or 0
    directory = info.remote_log_tablet_dir.rstrip("/")
    for number, segment in enumerate(info.remote_log_segments):
        if segment.remote_log_end_offset <= offset:
            continue
        if stop is not None and segment.remote_log_start_offset >= stop:
            return
        size = segment.segment_size_in_bytes
        for at in range(start if number == 0 else 0, size, PIECE_BYTES):
            yield _Part(
                number=number,
                path=_path(directory, segment),
                at=at,
                size=min(PIECE_BYTES, size - at),
                file_size=size,
            )


def _path(directory: str, segment: RemoteLogSegment) -> str:
    name = segment_file_name(segment.remote_log_start_offset, "log")
    return f"{directory}/{segment.remote_log_segment_id}/{name}"


class _WholeBatches:
    """Joins the parts of each file, and cuts them after whole batches."""

    def __init__(self) -> None:
        self._parts: list[bytes | memoryview] = []
        self._size = 0
        self._needed = 0

    def add(self, part: _Part, data: bytes) -> memoryview | None:
        """Return all whole batches; None where not even one is complete.

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
            why = f"at byte {begun_at} of {part.file_size} there is no whole batch"
            raise CorruptBatchError(
                f"The remote segment {part.path} cannot be read: {why}.",
                what="remote segment",
                at=begun_at,
                why=why,
            )
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
