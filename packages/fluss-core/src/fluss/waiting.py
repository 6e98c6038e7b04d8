"""Blocking waits that a signal can end, whatever handler the process has.

CPython runs signal handlers when the main thread is back in the interpreter. A signal interrupts
the system call in which a thread waits, unless the handler was installed with SA_RESTART: then the
kernel resumes the wait and the handler never runs. Polars 2.1 installs such a handler when it is
imported. So nothing here waits for longer than a slice of time without coming back.

Inside an asyncio task Ctrl-C cancels a task of the loop and raises nothing. A call that blocks the
loop would never see that, so a wait also ends when a task of its own loop is cancelled meanwhile.

Locks that are held only for an assignment need no slices and are not here.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import signal
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, wait as wait_for_futures
from contextvars import Context
from functools import partial
from time import monotonic
from typing import Any, Final, Protocol, Self, TypeVar

T = TypeVar("T")

# Ctrl-C must be noticed within a second. Nearly all waits end within the first slice.
FIRST_SLICE_S: Final = 0.02
SLICE_S: Final = 0.2
# How many threads wait for the next work, and for how long.
SPARE_THREADS_MAX: Final = 8
SPARE_S: Final = 10.0
# For this long after an interrupt, closing does not wait for servers that do not answer.
INTERRUPT_LASTS_S: Final = 30.0

_interrupted_at = -INTERRUPT_LASTS_S


class Lockable(Protocol):
    """A lock that can be waited for with a time limit."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool: ...  # noqa: FBT001, FBT002 - threading's own signature


def wait_until(attempt: Callable[[float], object], timeout_s: float | None = None) -> bool:
    """Call `attempt` with a number of seconds until it returns true.

    Args:
        attempt: Waits at most so many seconds, as `Event.wait` does. Not `Condition.wait`, which
            misses what is notified between two slices: see `wait_on`.
        timeout_s: How long to go on; None for as long as it takes.

    Returns:
        Whether it became true in time.

    Raises:
        KeyboardInterrupt: Or what else a signal handler raises.
        CancelledError: A signal handler has cancelled a task of the event loop of this thread.
    """
    first_s = FIRST_SLICE_S if timeout_s is None else min(timeout_s, FIRST_SLICE_S)
    try:
        return bool(attempt(first_s)) or _wait_in_slices(attempt, timeout_s)
    except BaseException:
        _note_interrupt()
        raise


def wait_on(
    condition: threading.Condition, predicate: Callable[[], object], timeout_s: float | None = None
) -> bool:
    """Wait on a condition, whose lock the caller holds, until a predicate is true.

    The predicate is evaluated again after each slice, so a notification that falls between two of
    them costs a moment and not the whole wait.
    """
    return wait_until(partial(condition.wait_for, predicate), timeout_s)


def acquire(lock: Lockable, timeout_s: float | None = None) -> bool:
    """Acquire a lock that may be held for long; see `wait_until`.

    A signal handler that raises may leave the lock acquired. For a lock that protects something
    use `InterruptibleLock`.
    """
    return wait_until(lambda seconds: lock.acquire(timeout=seconds), timeout_s)


def join(thread: threading.Thread, timeout_s: float | None = None) -> bool:
    """Wait until a thread has ended; whether it has in time."""

    def ended(seconds: float) -> bool:
        thread.join(seconds)
        return not thread.is_alive()

    return wait_until(ended, timeout_s)


def result_of(future: Future[T]) -> T:
    """Return the result of a future of a thread pool."""
    if not future.done():
        wait_until(partial(is_done, future))
    return future.result()


def in_thread(work: Callable[[], T], name: str) -> Future[T]:
    """Run `work` on a daemon thread, which a caller that gives up need not wait for.

    Threads that have ended their work take that of the next calls.
    """
    future: Future[T] = Future()

    def run() -> None:
        if not future.set_running_or_notify_cancel():
            return
        threading.current_thread().name = name
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised again for the reader of the result
            future.set_exception(error)

    try:
        _spare_threads.run(run)
    except BaseException:
        # A signal handler has raised it, maybe before a thread was found: no other may find it.
        future.cancel()
        raise
    return future


def is_done(future: Future[Any], timeout_s: float) -> bool:
    """Return whether a future has its result within this time. One slice: for short times."""
    return bool(wait_for_futures([future], timeout=timeout_s).done)


def was_interrupted() -> bool:
    """Return whether a signal has just ended a wait of this process, or a run of asyncio."""
    return monotonic() - _interrupted_at < INTERRUPT_LASTS_S or _has_interrupted_runner()


class _SpareThreads:
    """Daemon threads that work for one caller after another.

    Every request to a server from a thread that is new takes longer: a query of Polars over two
    rows, which needs four such threads, took 6.9 ms of processor time with new ones and 4.8 with
    these. There is no lock that an interrupt could leave held: the deque and its queues are in C.
    An interrupt between finding a thread and giving it work costs no more than that thread.
    """

    def __init__(self) -> None:
        # Where each thread that is idle waits for its next work.
        self._idle: deque[queue.SimpleQueue[Callable[[], None]]] = deque()

    def run(self, work: Callable[[], None]) -> None:
        """Run `work`, which must not raise, on a thread that is idle, or on a new one."""
        try:
            works = self._idle.pop()
        except IndexError:
            works = queue.SimpleQueue()
            works.put(work)
            threading.Thread(
                target=self._live, args=(works,), name="fluss-spare", daemon=True
            ).start()
        else:
            works.put(work)

    def _live(self, works: queue.SimpleQueue[Callable[[], None]]) -> None:
        work: Callable[[], None] | None = works.get()
        while work is not None:
            # Nothing that one caller sets in its context is seen by the next.
            Context().run(work)
            work = None  # it may refer to a connection, which closes when nothing refers to it
            threading.current_thread().name = "fluss-spare"
            if len(self._idle) >= SPARE_THREADS_MAX:
                return
            self._idle.append(works)
            work = self._next(works)

    def _next(self, works: queue.SimpleQueue[Callable[[], None]]) -> Callable[[], None] | None:
        """The next work; None if no caller had any for a while."""
        while True:
            try:
                return works.get(timeout=SPARE_S)
            except queue.Empty:
                try:
                    self._idle.remove(works)
                except ValueError:
                    continue  # a caller has found this thread
                return None


_spare_threads = _SpareThreads()


def _forget_in_child() -> None:
    global _spare_threads  # noqa: PLW0603 - its threads stayed in the parent
    _spare_threads = _SpareThreads()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)


class InterruptibleLock(type(threading.RLock())):  # type: ignore[misc] # has no public name
    """A re-entrant lock for `with` that may be held during a request to a server.

    A signal handler may raise after each call, and when a Python function begins. So `__exit__` is
    that of the lock itself, which is no Python function: an interrupt at its beginning would leave
    the lock acquired for ever.
    """

    __slots__ = ()

    @property
    def is_free(self) -> bool:
        """Return whether the lock is free or held by the calling thread."""
        try:
            if not self.acquire(blocking=False):
                return False
        except BaseException:
            self._release_if_acquired()
            raise
        self.release()
        return True

    def __enter__(self) -> Self:
        try:
            if not self.acquire(blocking=False):
                acquire(self)
        except BaseException:
            self._release_if_acquired()
            raise
        return self

    def _release_if_acquired(self) -> None:
        # The handler may have run between the acquiring and the return. Then this thread is the
        # owner, and release() does not raise.
        with contextlib.suppress(RuntimeError):
            self.release()


def _wait_in_slices(attempt: Callable[[float], object], timeout_s: float | None) -> bool:
    end = None if timeout_s is None else monotonic() + timeout_s - FIRST_SLICE_S
    cancellations = _cancellations()
    while True:
        left_s = SLICE_S if end is None else min(SLICE_S, end - monotonic())
        if left_s <= 0:
            return False
        if attempt(left_s):
            return True
        if _cancellations() > cancellations:
            raise asyncio.CancelledError


def _cancellations() -> int:
    """Return how often tasks of this thread's event loop have been cancelled; 0 without a loop."""
    if threading.current_thread() is not threading.main_thread():
        return 0  # only the main thread runs signal handlers
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return 0
    return sum(task.cancelling() for task in asyncio.all_tasks(loop))


def _has_interrupted_runner() -> bool:
    # asyncio.run() answers the first Ctrl-C by cancelling its task, and counts it. There is no
    # public way to ask; where the attribute is missing, closing takes its usual time.
    handler = signal.getsignal(signal.SIGINT)
    runner = getattr(getattr(handler, "func", None), "__self__", None)
    return isinstance(runner, asyncio.Runner) and getattr(runner, "_interrupt_count", 0) > 0


def _note_interrupt() -> None:
    global _interrupted_at  # noqa: PLW0603 - signals are the process's
    _interrupted_at = monotonic()
