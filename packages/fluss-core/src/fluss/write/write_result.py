"""The results of written rows, and the handles through which users wait for them.

Rows that were sealed together form a chunk. A row's handle knows its chunk and its place in it, and
its result is that of the batch that the row went into. Users hold one handle per row, so a handle
is a small object that does nothing until it is asked. How a caller waits is in `net.handoff`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from fluss.errors import FlussError
from fluss.model.paths import TableBucket
from fluss.net.call_styles import as_awaitable
from fluss.net.handoff import ResultSink
from fluss.rows.buffers.columns import Int32Array
from fluss.write.write_batch import WriteBatch


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenBatch:
    """One batch that was written.

    Attributes:
        bucket: Its bucket.
        row_count: How many rows it has, including those of other handles.
        base_offset: The offset of its first row, in a log; None where the server did not report it.
        log_end_offset: The end of the changelog after it, in a primary-key table.
    """

    bucket: TableBucket
    row_count: int
    base_offset: int | None = None
    log_end_offset: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOutcome:
    """The batches that the rows of a handle are in."""

    batches: tuple[WrittenBatch, ...]


class Sealer(Protocol):
    """The buffer that collects the rows of a chunk."""

    def seal_soon(self, chunk: Chunk) -> None:
        """Seal the chunk now if it is still open: a caller waits for it."""

    def post(self, job: Callable[[], None]) -> None:
        """Run a job on the engine thread."""


class Chunk:
    """Rows that are sealed together. Only the engine thread changes one."""

    __slots__ = ("batch_of_row", "batches", "error", "sealer", "when_sealed")

    def __init__(self, sealer: Sealer) -> None:
        self.sealer = sealer
        self.batches: Sequence[WriteBatch] | None = None
        self.batch_of_row: Int32Array | None = None
        self.error: FlussError | None = None
        self.when_sealed: list[Callable[[], None]] = []

    @property
    def is_sealed(self) -> bool:
        """Whether its rows have become batches, or have failed."""
        return self.batches is not None or self.error is not None

    def sealed(self, batches: Sequence[WriteBatch], batch_of_row: Int32Array | None) -> None:
        """Note the batches of its rows."""
        self.batch_of_row = batch_of_row
        self.batches = batches
        self._notify()

    def failed(self, error: FlussError) -> None:
        """Note that its rows could not be encoded."""
        self.error = error
        self._notify()

    def batches_of(self, first: int, stop: int) -> Sequence[WriteBatch]:
        """The batches that these rows are in."""
        batches = self.batches or ()
        if self.batch_of_row is None:
            return batches
        return [batches[each] for each in sorted(set(self.batch_of_row[first:stop].tolist()))]

    def _notify(self) -> None:
        waiting, self.when_sealed = self.when_sealed, []
        for waiter in waiting:
            waiter()


class WriteResultHandle:
    """The result of rows that were taken. It may be ignored, or awaited more than once.

    Args:
        chunk: The chunk of the rows.
        first: The place of the first row in it.
        stop: One past the place of the last row.
    """

    __slots__ = ("_chunk", "_first", "_stop")

    def __init__(self, chunk: Chunk, first: int, stop: int) -> None:
        self._chunk = chunk
        self._first = first
        self._stop = stop

    @property
    def done(self) -> bool:
        """Whether the rows were written or have failed."""
        chunk = self._chunk
        if chunk.error is not None:
            return True
        if chunk.batches is None:
            return False
        return all(each.is_completed for each in chunk.batches_of(self._first, self._stop))

    def wait(self) -> Awaitable[tuple[()]]:
        """Send the rows immediately, and wait until the servers have them. The result is empty.

        Raises:
            FlussError: The rows could not be written.
        """
        return as_awaitable(self.subscribe, _nothing)

    def __await__(self) -> Generator[Any, None, tuple[()]]:
        """The same as `wait()`: `await writer.append(row)`."""
        return self.wait().__await__()

    def __repr__(self) -> str:
        return f"WriteResultHandle({'done' if self.done else 'pending'})"

    def seal_soon(self) -> None:
        """Send the rows now instead of with later ones. May wait for write memory."""
        self._chunk.sealer.seal_soon(self._chunk)

    def subscribe(self, caller: ResultSink[WriteOutcome]) -> None:
        """Send the rows immediately, and resolve `caller` with the outcome or the error."""
        self.seal_soon()
        self._chunk.sealer.post(partial(self._watch, _Watch(caller)))

    def _watch(self, watch: _Watch) -> None:
        chunk = self._chunk
        if not chunk.is_sealed:
            chunk.when_sealed.append(partial(self._watch, watch))
        elif chunk.error is not None:
            watch.end([], chunk.error)
        else:
            watch.over(chunk.batches_of(self._first, self._stop))


class JoinedResult(WriteResultHandle):
    """The handle of rows that are in several chunks."""

    __slots__ = ("_parts",)

    def __init__(self, parts: Sequence[WriteResultHandle]) -> None:
        self._parts = parts

    @property
    def done(self) -> bool:
        return all(each.done for each in self._parts)

    def seal_soon(self) -> None:
        for part in self._parts:
            part.seal_soon()

    def subscribe(self, caller: ResultSink[WriteOutcome]) -> None:
        gather = _Gather(caller, len(self._parts))
        for part in self._parts:
            part.subscribe(gather)


class EmptyWriteResult(WriteResultHandle):
    """The handle of an empty frame."""

    __slots__ = ("_sealer",)

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer

    @property
    def done(self) -> bool:
        return True

    def seal_soon(self) -> None:
        pass

    def subscribe(self, caller: ResultSink[WriteOutcome]) -> None:
        self._sealer.post(partial(caller.succeed, WriteOutcome(batches=())))


class _Watch:
    """Waits, on the engine thread, until all batches of a handle are completed."""

    __slots__ = ("_batches", "_caller", "_left")

    def __init__(self, caller: ResultSink[WriteOutcome]) -> None:
        self._caller = caller
        self._batches: Sequence[WriteBatch] = ()
        self._left = 0

    def over(self, batches: Sequence[WriteBatch]) -> None:
        self._batches = batches
        for batch in batches:
            if not batch.is_completed:
                self._left += 1
                batch.waiters.append(self._completed)
        if not self._left:
            self._finish()

    def _completed(self, _: WriteBatch) -> None:
        self._left -= 1
        if not self._left:
            self._finish()

    def _finish(self) -> None:
        failures = [each.error for each in self._batches if each.error is not None]
        self.end(self._batches, max(failures, key=in_doubt, default=None))

    def end(self, batches: Iterable[WriteBatch], error: FlussError | None) -> None:
        if error is not None:
            self._caller.fail(copy_of(error))
        else:
            written = tuple(_written(each) for each in batches)
            self._caller.succeed(WriteOutcome(batches=written))


class _Gather:
    """Gathers the results of several parts; of several errors, one that is in doubt wins."""

    __slots__ = ("_caller", "_error", "_found", "_left")

    def __init__(self, caller: ResultSink[WriteOutcome], count: int) -> None:
        self._caller = caller
        self._left = count
        self._found: list[WrittenBatch] = []
        self._error: BaseException | None = None

    def succeed(self, result: WriteOutcome) -> None:
        self._found += result.batches
        self._count_down()

    def fail(self, error: BaseException) -> None:
        if self._error is None or (in_doubt(error) and not in_doubt(self._error)):
            self._error = error
        self._count_down()

    def _count_down(self) -> None:
        self._left -= 1
        if self._left:
            return
        if self._error is not None:
            self._caller.fail(self._error)
        else:
            self._caller.succeed(WriteOutcome(batches=tuple(self._found)))


def in_doubt(error: BaseException) -> bool:
    """Whether rows may have been written despite the error."""
    return bool(getattr(error, "in_doubt", False))


def copy_of(error: FlussError) -> FlussError:
    """A copy of the error for one more caller: a raised error collects tracebacks."""
    return error.with_context()


def _nothing(_: object) -> tuple[()]:
    return ()


def _written(batch: WriteBatch) -> WrittenBatch:
    if batch.route.is_kv:
        return WrittenBatch(
            bucket=batch.bucket, row_count=batch.row_count, log_end_offset=batch.offset
        )
    return WrittenBatch(bucket=batch.bucket, row_count=batch.row_count, base_offset=batch.offset)
