"""Reads log segments that have moved to the remote store, in pieces, ahead of whoever reads.

A FETCH_LOG answer names the segments, from the one the wanted offset is in to the last that has
moved; behind them the log goes on at the tablet server. A piece is as many whole batches as fit;
the next piece is read while this one is passed on.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass

import anyio.to_thread

from fluss.engine.remote_files import RemoteFile, RemoteFiles
from fluss.errors import CorruptBatchError
from fluss.records.log_batch import iter_log_headers
from fluss.records.log_header import LENGTH_END, Magic1, read_length
from fluss.records.segment import segment_file_name
from fluss.wire.envelope.fetch import RemoteLogFetchInfo, RemoteLogSegment

PIECE_BYTES = 4 * 1024 * 1024
BATCH_BYTES_MAX = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    data: bytes
    size: int  # of the whole batches in it


class RemoteLogReader:
    """Reads segments for the scanners of one connection, so many at once as the limiter allows."""

    def __init__(self, files: RemoteFiles, *, reads_at_once_max: int, magic_1: Magic1) -> None:
        self._files = files
        self._limiter = anyio.CapacityLimiter(reads_at_once_max)
        self._magic_1: Magic1 = magic_1

    async def read(self, info: RemoteLogFetchInfo, offset: int) -> AsyncGenerator[memoryview, None]:
        """The batches of all segments, from `first_start_pos` on.

        Args:
            info: What the tablet server said.
            offset: The offset wanted; segments that end before it are passed over.
        """
        start = info.first_start_pos or 0
        for index, segment in enumerate(info.remote_log_segments):
            if segment.remote_log_end_offset <= offset:
                continue
            name = segment_file_name(segment.remote_log_start_offset, "log")
            directory = info.remote_log_tablet_dir.rstrip("/")
            file = await self._files.prepare(f"{directory}/{segment.remote_log_segment_id}/{name}")
            async for piece in self._pieces(file, segment, start if index == 0 else 0):
                yield piece

    async def _pieces(
        self, file: RemoteFile, segment: RemoteLogSegment, start: int
    ) -> AsyncGenerator[memoryview, None]:
        size = segment.segment_size_in_bytes
        at = start
        reading = asyncio.ensure_future(self._piece(file, at, size))
        try:
            while at < size:
                piece = await reading
                at += piece.size
                if at < size:
                    reading = asyncio.ensure_future(self._piece(file, at, size))
                yield memoryview(piece.data)[: piece.size]
        finally:
            reading.cancel()

    async def _piece(self, file: RemoteFile, at: int, size: int) -> _Piece:
        """Whole batches from `at` on; at least one, however large."""
        wanted = min(PIECE_BYTES, size - at)
        while True:
            data = await anyio.to_thread.run_sync(file.read, at, wanted, limiter=self._limiter)
            whole = 0
            for place, header in iter_log_headers(data, magic_1=self._magic_1):
                whole = place + header.size_bytes
            if whole:
                return _Piece(data=data, size=whole)
            needed = (
                LENGTH_END + read_length(memoryview(data), 0)
                if len(data) >= LENGTH_END
                else LENGTH_END
            )
            if needed > size - at or needed <= wanted or needed > BATCH_BYTES_MAX:
                why = f"at byte {at} of {size} there is no whole batch"
                raise CorruptBatchError(
                    f"The remote segment {file.path} cannot be read: {why}.",
                    what="remote segment",
                    at=at,
                    why=why,
                )
            wanted = needed
