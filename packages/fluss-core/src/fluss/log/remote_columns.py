"""Reads some columns of the batches of a remote segment, by ranges of its file.

First the head of a batch is read, then the buffers of the columns, and both are put together to
what a server sends for a projected fetch. A batch of which that spares too little is read whole.
Which ranges these are is decided in `log.plan_remote_ranges`; `log.remote_log` reads ahead.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from fluss.errors import CorruptBatchError
from fluss.log import plan_remote_ranges as plan
from fluss.net.remote_files import RemoteFiles
from fluss.records.arrow.projection import Projection
from fluss.records.log.log_header import LENGTH_END, Magic1, read_length

BATCH_BYTES_MAX = 256 * 1024 * 1024
# Heads of batches of one schema are similar; so many bytes more than the longest one are read.
HEAD_SLACK_BYTES = 64

# Returns how to project the batches of a schema; None if they must be read whole.
ProjectionOf = Callable[[int], Awaitable[Projection | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteRecords:
    """Whole batches; `projected` ones hold the requested columns only, with stale checksums."""

    data: memoryview
    projected: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BegunBatch:
    """A batch of which at least the head has been read.

    Attributes:
        at: The position of its first byte in the file.
        size: Its length in bytes.
        begun: Its first bytes.
        head: Its head; None if the batch has no rows.
    """

    at: int
    size: int
    begun: bytes
    head: plan.Head | None


class ColumnReader:
    """Reads the columns of one scan.

    Args:
        files: The remote store.
        magic_1: What a magic byte of 1 means.
        projection_of: How the batches of a schema are projected.
    """

    def __init__(self, files: RemoteFiles, magic_1: Magic1, projection_of: ProjectionOf) -> None:
        self._files = files
        self._magic_1: Magic1 = magic_1
        self._projection_of = projection_of
        self._head_bytes = plan.HEAD_BYTES
        self._knows_heads = False

    async def first_batch(self, path: str, at: int, end: int) -> BegunBatch | None:
        """Start to read the first batch of a segment; None if its batches are read whole."""
        batch = await self._begin(path, at, end)
        projection = await self._projection(batch)
        return None if projection is None else batch

    async def read(
        self, path: str, at: int, end: int, begun: BegunBatch | None
    ) -> list[RemoteRecords]:
        """Read the batches in a range of a file.

        Args:
            path: The file.
            at: Where the first one begins.
            end: Where the last one ends.
            begun: The first one, where its head has been read.

        Raises:
            CorruptBatchError: The range is not made of whole batches.
        """
        found: list[RemoteRecords] = []
        while at < end:
            batch = begun or await self._begin(path, at, end)
            begun = None
            found.append(await self._finish(path, batch))
            at += batch.size
        return found

    async def _begin(self, path: str, at: int, end: int) -> BegunBatch:
        data = await self._files.read_at(path, at, min(self._head_bytes, end - at))
        while isinstance(head := plan.read_head(memoryview(data), self._magic_1), int):
            more = min(head, end - at) - len(data)
            if more <= 0:
                raise cut_off(path, at, end)
            added = await self._files.read_at(path, at + len(data), more)
            if not added:
                raise cut_off(path, at, end)
            data += added
        size = LENGTH_END + read_length(memoryview(data), 0)
        if size > min(end - at, BATCH_BYTES_MAX):
            raise cut_off(path, at, end)
        if head is not None:
            needed = head.body_start + HEAD_SLACK_BYTES
            self._head_bytes = max(needed, self._head_bytes) if self._knows_heads else needed
            self._knows_heads = True
        return BegunBatch(at=at, size=size, begun=data[:size], head=head)

    async def _projection(self, batch: BegunBatch) -> Projection | None:
        """How to read columns of a batch; None if it is read whole."""
        if batch.head is None:
            return None
        projection = await self._projection_of(batch.head.header.schema_id)
        if projection is None:
            return None
        ranges = plan.column_ranges(batch.head, projection)
        return projection if plan.is_worthwhile(batch.head, ranges) else None

    async def _finish(self, path: str, batch: BegunBatch) -> RemoteRecords:
        projection = await self._projection(batch)
        if projection is None or batch.head is None:
            rest = await self._read(path, batch, [(0, batch.size)])
            return RemoteRecords(data=memoryview(rest))
        data = await self._read(path, batch, plan.column_ranges(batch.head, projection))
        made = plan.projected(pa.py_buffer(data), batch.head, projection)
        return RemoteRecords(data=memoryview(made), projected=True)

    async def _read(self, path: str, batch: BegunBatch, needed: Sequence[plan.Range]) -> bytearray:
        """Return bytes of the batch's length; only the head and these ranges are filled."""
        begun = len(batch.begun)
        cut = ((max(start, begun), end) for start, end in needed)
        data = bytearray(batch.size)  # pages of it that are never written take no memory
        data[:begun] = batch.begun
        # One after the other: as many parts are read concurrently as options allow, and no more.
        for start, end in cut:
            if start >= end:
                continue
            piece = await self._files.read_at(path, batch.at + start, end - start)
            if len(piece) != end - start:
                raise cut_off(path, batch.at, batch.at + batch.size)
            data[start:end] = piece
        return data


def cut_off(path: str, at: int, end: int) -> CorruptBatchError:
    """Make the error for a file that ends within a batch."""
    why = f"at byte {at} of {end} there is no whole batch"
    return CorruptBatchError(
        f"The remote segment {path} cannot be read: {why}.", what="remote segment", at=at, why=why
    )
