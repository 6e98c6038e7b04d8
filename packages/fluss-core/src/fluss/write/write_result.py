"""The results of written rows, and the handles through which users wait for them.

Rows that were sealed together form a chunk. A row's handle knows its chunk and its place in it, and
its result is that of the batch that the row went into. Users hold one handle per row, so a handle
is a small object that does nothing until it is asked. How a caller waits is in `net.handoff`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from fluss.errors import FlussError
from fluss.net.handoff import ResultSink, as_awaitable
from fluss.rows.buffers.columns import Int32Array
from fluss.write.write_batch import WriteBatch

if TYPE_CHECKING:
    from fluss.write.write_buffer import WriteBuffer

# The written batches that the rows of a handle are in; they may have rows of other handles, too.
Written: TypeAlias = tuple[WriteBatch, ...]


@dataclass(slots=True, eq=False)
class Chunk:
    """Rows that are sealed together. Only the engine thread changes one."""

    sealer: WriteBuffer
    batches: Sequence[WriteBatch] | None = None
    batch_of_row: Int32Array | None = None
    error: FlussError | None = None
    when_sealed: list[Callable[[], None]] = field(default_factory=list)

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
    """The result of rows that were taken. It may be ignored, or awaited more than once."""

    # There is one for each appended row, and `write.row_taker` makes it without `__init__`
    # (measured: 35 instead of 75 ns).
    __slots__ = ("_chunk", "_first")
    _chunk: Chunk
    _first: int

    @classmethod
    def of_row(cls, chunk: Chunk, place: int) -> WriteResultHandle:
        """The handle of one row, at its place in its chunk."""
        made = WriteResultHandle()
        made._chunk = chunk
        made._first = place
        return made

    @property
    def _stop(self) -> int:
        """One past the place of the last row."""
        return self._first + 1

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

    def subscribe(self, caller: ResultSink[Written]) -> None:
        """Send the rows immediately, and resolve `caller` with their batches or the error."""
        self.seal_soon()
        self._chunk.sealer.post(partial(self._watch, caller))

    def _watch(self, caller: ResultSink[Written]) -> None:
        chunk = self._chunk
        if chunk.error is not None:
            caller.fail(copy_of(chunk.error))
        elif chunk.batches is None:
            chunk.when_sealed.append(partial(self._watch, caller))
        else:
            batches = chunk.batches_of(self._first, self._stop)
            countdown = _Countdown(caller, len(batches))
            for batch in batches:
                if batch.is_completed:
                    countdown.completed(batch)
                else:
                    batch.waiters.append(countdown.completed)


class FrameResult(WriteResultHandle):
    """The handle of rows that follow each other in one chunk.

    Args:
        chunk: The chunk of the rows.
        first: The place of the first row in it.
        stop: One past the place of the last row.
    """

    __slots__ = ("_end",)

    def __init__(self, chunk: Chunk, first: int, stop: int) -> None:
        self._chunk = chunk
        self._first = first
        self._end = stop

    @property
    def _stop(self) -> int:
        return self._end


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

    def subscribe(self, caller: ResultSink[Written]) -> None:
        countdown = _Countdown(caller, len(self._parts))
        for part in self._parts:
            part.subscribe(countdown)


class EmptyWriteResult(WriteResultHandle):
    """The handle of an empty frame."""

    __slots__ = ("_sealer",)

    def __init__(self, sealer: WriteBuffer) -> None:
        self._sealer = sealer

    @property
    def done(self) -> bool:
        return True

    def seal_soon(self) -> None:
        pass

    def subscribe(self, caller: ResultSink[Written]) -> None:
        self._sealer.post(partial(caller.succeed, ()))


class _Countdown:
    """Reports to a caller when all batches, or all parts, of a handle are completed.

    Of several errors, one that leaves a doubt is reported. Lives on the engine thread.
    """

    __slots__ = ("_batches", "_caller", "_error", "_left")

    def __init__(self, caller: ResultSink[Written], count: int) -> None:
        self._caller = caller
        self._left = count
        self._batches: Written = ()
        self._error: BaseException | None = None

    def completed(self, batch: WriteBatch) -> None:
        """Note the end of one batch."""
        if batch.error is None:
            self.succeed((batch,))
        else:
            self.fail(copy_of(batch.error))

    def succeed(self, result: Written) -> None:
        self._batches += result
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
            self._caller.succeed(self._batches)


def in_doubt(error: BaseException) -> bool:
    """Whether rows may have been written despite the error."""
    return bool(getattr(error, "in_doubt", False))


def copy_of(error: FlussError) -> FlussError:
    """A copy of the error for one more caller: a raised error collects tracebacks."""
    return error.with_context()


def _nothing(_: object) -> tuple[()]:
    return ()
