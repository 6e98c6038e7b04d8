"""How a result comes back from the engine thread to whoever asked for it.

Three kinds of caller wait in three ways: a plain thread blocks on a lock, an asyncio task awaits a
future of its own loop, a trio task awaits an event of its own run. Each gets its answer without
the engine ever waiting for the caller. Many answers for one asyncio loop share one wake-up of that
loop, because the wake-up is what costs. What turns an answer into what the caller wants to see (its
*dress*: decoding a row, say) runs on the caller's thread, so that the engine is free for the next.

What is not here: the engine thread itself (`net.engine_thread`).
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import weakref
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Generic, Protocol, TypeVar

from fluss.waiting import acquire

T = TypeVar("T")
Answer_contra = TypeVar("Answer_contra", contravariant=True)


class ResultSink(Protocol[Answer_contra]):
    """Somebody outside the engine thread who waits for one result."""

    def succeed(self, result: Answer_contra) -> None:
        """Hand over the result; called once, on the engine thread."""

    def fail(self, error: BaseException) -> None:
        """Hand over the error; called once, on the engine thread."""


Dress = Callable[[Any], T]


class BlockingSink(Generic[T]):
    """A thread that blocks until its answer is there; Ctrl-C interrupts it."""

    __slots__ = ("_answered", "_dress", "_error", "_result")

    def __init__(self, dress: Dress[T] | None = None) -> None:
        self._dress = dress
        # A lock that starts locked is the cheapest one-shot event there is.
        self._answered = threading.Lock()
        self._answered.acquire()
        self._result: Any = None
        self._error: BaseException | None = None

    def succeed(self, result: Any) -> None:
        self._result = result
        self.wake()

    def fail(self, error: BaseException) -> None:
        self._error = error
        self.wake()

    def wake(self) -> None:
        """End the waiting, with or without an answer. Any thread may call this."""
        # The lock is free already where an answer and a cancellation come in the same moment.
        with contextlib.suppress(RuntimeError):
            self._answered.release()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Block until there is an answer; False when the time is over before."""
        return acquire(self._answered, timeout_s)

    def result(self) -> T:
        """The answer, after `wait` returned True."""
        if self._error is not None:
            try:
                raise self._error
            finally:
                # The traceback refers to this frame; without this the error would keep itself.
                self._error = None
        answer: T = self._result if self._dress is None else self._dress(self._result)
        return answer


class LoopSink(Generic[T]):
    """A task of an asyncio loop; its future is already started and may be ignored."""

    __slots__ = ("_dress", "_mailbox", "future")

    def __init__(self, loop: asyncio.AbstractEventLoop, dress: Dress[T] | None = None) -> None:
        self._dress = dress
        self.future: asyncio.Future[T] = loop.create_future()
        self._mailbox = mailbox_of(loop)

    def succeed(self, result: Any) -> None:
        if self._dress is None:
            self._mailbox.post(_set_result, self.future, result)
        else:
            self._mailbox.post(_set_dressed, self.future, (self._dress, result))

    def fail(self, error: BaseException) -> None:
        self._mailbox.post(_set_error, self.future, error)


class TrioSink(Generic[T]):
    """A task of a trio run: started already, awaited at most once."""

    def __init__(self, dress: Dress[T] | None = None) -> None:
        import trio

        self._dress = dress

        self._token = trio.lowlevel.current_trio_token()
        self._answered = trio.Event()
        self._result: Any = None
        self._error: BaseException | None = None
        self.cancel: Callable[[], None] | None = None

    def succeed(self, result: Any) -> None:
        self._result = result
        self._wake()

    def fail(self, error: BaseException) -> None:
        self._error = error
        self._wake()

    def _wake(self) -> None:
        # The run may be over: then nobody is left to be told.
        with contextlib.suppress(Exception):
            self._token.run_sync_soon(self._answered.set)

    def __await__(self) -> Generator[Any, Any, T]:
        return self._wait().__await__()

    async def _wait(self) -> T:
        try:
            await self._answered.wait()
        except BaseException:
            if self.cancel is not None:
                self.cancel()
            raise
        if self._error is not None:
            raise self._error
        answer: T = self._result if self._dress is None else self._dress(self._result)
        return answer


class Mailbox:
    """Answers on their way to one asyncio loop; however many there are, one wake-up brings them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = weakref.ref(loop)
        self._letters: deque[tuple[Callable[[asyncio.Future[Any], Any], None], Any, Any]] = deque()
        self._announced = False

    def post(
        self,
        deliver: Callable[[asyncio.Future[Any], Any], None],
        future: asyncio.Future[Any],
        content: Any,
    ) -> None:
        """Deliver `content` to `future` on its own loop; callable from any thread."""
        self._letters.append((deliver, future, content))
        if self._announced:
            return
        self._announced = True
        loop = self._loop()
        try:
            if loop is not None:
                loop.call_soon_threadsafe(self._deliver)
        except RuntimeError:
            # The loop is closed: its tasks are gone, and so is everybody who waited.
            self._letters.clear()

    def _deliver(self) -> None:
        # First the flag, then the letters: a letter posted in between costs a wake-up, not a loss.
        self._announced = False
        letters = self._letters
        while letters:
            deliver, future, content = letters.popleft()
            if not future.done():
                deliver(future, content)


_mailboxes: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Mailbox] = (
    weakref.WeakKeyDictionary()
)


def mailbox_of(loop: asyncio.AbstractEventLoop) -> Mailbox:
    """The mailbox of a loop, made on first use; call it on the loop's own thread."""
    mailbox = _mailboxes.get(loop)
    if mailbox is None:
        mailbox = _mailboxes[loop] = Mailbox(loop)
    return mailbox


def result_sink_here(dress: Dress[T] | None = None) -> LoopSink[T] | TrioSink[T]:
    """The caller that fits the running event loop; `dress` makes its result of the answer.

    Raises:
        RuntimeError: No event loop is running in this thread.
    """
    try:
        return LoopSink(asyncio.get_running_loop(), dress)
    except RuntimeError:
        if _in_trio():
            return TrioSink(dress)
        raise


def awaitable_of(caller: LoopSink[T] | TrioSink[T], cancel: Callable[[], None]) -> Awaitable[T]:
    """What the caller awaits; giving up on it calls `cancel`."""
    if isinstance(caller, TrioSink):
        caller.cancel = cancel
        return caller
    caller.future.add_done_callback(lambda future: cancel() if future.cancelled() else None)
    return caller.future


def _in_trio() -> bool:
    try:
        import sniffio
    except ImportError:
        return False
    try:
        return sniffio.current_async_library() == "trio"
    except sniffio.AsyncLibraryNotFoundError:
        return False


def _set_result(future: asyncio.Future[Any], result: Any) -> None:
    future.set_result(result)


def _set_dressed(future: asyncio.Future[Any], dressed: Any) -> None:
    dress, result = dressed
    try:
        future.set_result(dress(result))
    except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to who awaits it
        future.set_exception(error)


def _set_error(future: asyncio.Future[Any], error: Any) -> None:
    if isinstance(error, asyncio.CancelledError):
        future.cancel()
    else:
        future.set_exception(error)
