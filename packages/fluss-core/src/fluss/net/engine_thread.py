"""The engine thread: one daemon thread with one event loop per process, started on first use.

An anyio portal gives it its beginning and its end. Calls do not go through the portal one by one:
they cross by a queue and at most one wake-up of the loop, and come back as `net.handoff` says.

A fork copies the memory but not the thread. The child therefore forgets the engine: it gets a new
one on first use, and what still belongs to the old one says so instead of hanging.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import importlib.util
import logging
import os
import sys
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import anyio
import anyio.from_thread

from fluss.errors import ClosedError
from fluss.net.cancellation import Cancellation
from fluss.net.handoff import (
    BlockingSink,
    LoopSink,
    ResultSink,
    TrioSink,
    awaitable_of,
    result_sink_here,
)
from fluss.waiting import join, wait_until, was_interrupted

log = logging.getLogger("fluss.engine")

T = TypeVar("T")
R = TypeVar("R")
# Called with the number of seconds that there are.
Farewell = Callable[[float], Coroutine[Any, Any, None]]

# How long the end of the process may wait for what is still on its way to a server.
EXIT_WAIT_S_MAX = 30.0
# And how long where the user has interrupted the process.
INTERRUPTED_WAIT_S_MAX = 0.5
# How often Ctrl-C may come while the process waits for that.
INTERRUPTS_MAX = 10
# A farewell that has used up its time still closes sockets and reports what was not delivered.
FAREWELL_EXTRA_S = 0.2


class Engine:
    """Runs coroutines on its own thread for callers on any other."""

    def __init__(self) -> None:
        self._jobs: deque[Callable[[], None]] = deque()
        self._awake = False
        self._tasks: set[asyncio.Task[Any]] = set()
        self._at_exit: set[Farewell] = set()
        self._stopped: str | None = None
        self._loop: asyncio.AbstractEventLoop
        self._portal: anyio.from_thread.BlockingPortal
        started = threading.Event()
        self._thread = threading.Thread(
            target=self._live, args=(started,), name="fluss-engine", daemon=True
        )
        self._thread.start()
        wait_until(started.wait)

    # --- crossing over ------------------------------------------------------------------------

    def run(self, work: Coroutine[Any, Any, T], *, cancellation: Cancellation | None = None) -> T:
        """Run `work` on the engine thread and block until it is done; Ctrl-C cancels it.

        Any thread may call this except the engine's own, which would wait for itself.

        Args:
            work: Is cancelled on the engine when the caller stops waiting for it.
            cancellation: Ends the waiting from another thread, without waiting until the work
                has ended, too.

        Raises:
            ClosedError: It has been cancelled by `cancellation`; the work may not have begun.
        """
        self._refuse_own_thread(work)
        caller: BlockingSink[T] = BlockingSink()
        if cancellation is not None and cancellation.is_cancelled:
            work.close()
            raise cancellation.error()
        cancel = self._start(work, caller)

        def give_up() -> None:
            cancel()
            caller.wake()

        forget = None if cancellation is None else cancellation.listen(give_up)
        try:
            caller.wait()
        except BaseException:
            cancel()
            raise
        finally:
            if forget is not None:
                forget()
        if cancellation is not None:
            cancellation.check()
        return caller.result()

    def submit(self, work: Coroutine[Any, Any, T]) -> Awaitable[T]:
        """Start `work` on the engine thread; the result is awaited in the caller's own loop.

        The work has started when this returns, and goes on if nobody awaits it. Cancelling the
        awaiting task cancels it.

        Raises:
            RuntimeError: No event loop (asyncio or trio) is running in this thread.
        """
        return self._submit(work, None)

    def submit_dressed(self, work: Coroutine[Any, Any, T], dress: Callable[[T], R]) -> Awaitable[R]:
        """The same, and what the caller gets is made of the result in its own loop, at the end.

        A caller who gives up before has `dress` not called: what it would take is left there.
        """
        return self._submit(work, dress)

    def _submit(
        self, work: Coroutine[Any, Any, Any], dress: Callable[[Any], Any] | None
    ) -> Awaitable[Any]:
        self._refuse_own_thread(work)
        caller: LoopSink[Any] | TrioSink[Any]
        try:
            caller = result_sink_here(dress)
        except RuntimeError:
            work.close()
            raise
        return awaitable_of(caller, self._start(work, caller))

    def start(self, work: Coroutine[Any, Any, T], caller: ResultSink[T]) -> Callable[[], None]:
        """Start `work` for a caller who waits by himself, so that several can be under way.

        Returns:
            What cancels it.
        """
        self._refuse_own_thread(work)
        return self._start(work, caller)

    def post(self, job: Callable[[], None]) -> None:
        """Call `job` on the engine thread soon; it must not wait. Any thread may call this."""
        if self._stopped is not None:
            raise ClosedError(
                f"The engine of this connection is gone: {self._stopped}.",
                hint="Connect again.",
            )
        self._jobs.append(job)
        if not self._awake:
            self._awake = True
            self._loop.call_soon_threadsafe(self._work)

    def post_cleanup(self, job: Callable[[], None]) -> None:
        """`post` a job that only frees what the engine holds; one that is gone holds nothing."""
        # It may go in this moment, and take its loop along.
        with contextlib.suppress(ClosedError, RuntimeError):
            self.post(job)

    def let_run(self, begin: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start work for which nobody waits, unless the engine is gone. Any thread may call this.

        Finalizers may, which the interpreter runs on any thread and at any moment.
        """

        def start() -> None:
            task = self._loop.create_task(begin())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            task.add_done_callback(_log_failure)

        self.post_cleanup(start)

    def _start(self, work: Coroutine[Any, Any, T], caller: ResultSink[T]) -> Callable[[], None]:
        task: asyncio.Task[T] | None = None

        def begin() -> None:
            nonlocal task
            task = self._loop.create_task(work)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            task.add_done_callback(lambda done: _answer(caller, done))

        def cancel() -> None:
            with contextlib.suppress(ClosedError):
                self.post(lambda: None if task is None else _cancel(task))

        try:
            self.post(begin)
        except BaseException:
            work.close()
            raise
        return cancel

    def _work(self) -> None:
        # First the flag, then the jobs: one that comes in between costs a wake-up, not a loss.
        self._awake = False
        jobs = self._jobs
        while jobs:
            jobs.popleft()()

    # --- life ---------------------------------------------------------------------------------

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The engine's loop, for the rooms that run on it."""
        return self._loop

    def on_this_thread(self) -> bool:
        """Whether the caller is the engine thread."""
        return threading.get_ident() == self._thread.ident

    def at_exit(self, farewell: Farewell) -> Callable[[], None]:
        """Have `farewell` run before the process ends; returns what takes that back."""
        self._at_exit.add(farewell)
        return lambda: self._at_exit.discard(farewell)

    def stop(self) -> None:
        """Let what asked for a farewell finish, then end the thread. Idempotent.

        Ctrl-C shortens it. Nothing is raised: the process is ending.
        """
        if self._stopped is not None:
            return
        wait_s = INTERRUPTED_WAIT_S_MAX if _is_interrupted() else EXIT_WAIT_S_MAX
        for _ in range(INTERRUPTS_MAX):
            try:
                self._end(wait_s)
            except BaseException:  # noqa: BLE001 - Ctrl-C, or what the program's handler raises
                wait_s = INTERRUPTED_WAIT_S_MAX
            else:
                return

    def _end(self, wait_s: float) -> None:
        self.run(self._say_farewell(wait_s))
        # Not by the portal's own calls, which wait and cannot be interrupted.
        self.let_run(lambda: self._portal.stop(cancel_remaining=True))
        self._stopped = "the process is ending"
        join(self._thread, wait_s)

    def disown(self) -> None:
        """Called in a forked child: the thread stayed in the parent."""
        self._stopped = "it was made before this process was forked"

    async def _say_farewell(self, wait_s: float) -> None:
        with anyio.move_on_after(wait_s + FAREWELL_EXTRA_S):
            async with anyio.create_task_group() as farewells:
                for farewell in list(self._at_exit):
                    farewells.start_soon(farewell, wait_s)

    def _live(self, started: threading.Event) -> None:
        uvloop_is_here = importlib.util.find_spec("uvloop") is not None
        anyio.run(
            self._main,
            started,
            backend="asyncio",
            backend_options={"use_uvloop": uvloop_is_here},
        )

    async def _main(self, started: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        async with anyio.from_thread.BlockingPortal() as self._portal:
            started.set()
            await self._portal.sleep_until_stopped()
        for task in list(self._tasks):
            task.cancel()

    def _refuse_own_thread(self, work: Coroutine[Any, Any, Any]) -> None:
        if self.on_this_thread():
            work.close()
            raise AssertionError("the engine thread must not wait for itself")


def _answer(caller: ResultSink[Any], task: asyncio.Task[Any]) -> None:
    if task.cancelled():
        caller.fail(asyncio.CancelledError())
        return
    error = task.exception()
    if error is not None:
        caller.fail(error)
    else:
        caller.succeed(task.result())


def _cancel(task: asyncio.Task[Any]) -> None:
    task.cancel()


def _log_failure(task: asyncio.Task[Any]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.debug("work for which nobody waits has failed: %r", error)


def _is_interrupted() -> bool:
    """Whether the process ends because a user has interrupted it."""
    # An event loop's waits do not come through here; the interpreter keeps what it reported last.
    return was_interrupted() or getattr(sys, "last_type", None) is KeyboardInterrupt


_engine: Engine | None = None
_engine_lock = threading.Lock()


def engine() -> Engine:
    """The engine of this process, started on first use."""
    global _engine  # noqa: PLW0603 - one engine per process is the point
    if _engine is None:
        with _engine_lock:
            if _engine is None:
                _engine = Engine()
                atexit.register(_engine.stop)
    return _engine


def _forget_in_child() -> None:
    global _engine, _engine_lock  # noqa: PLW0603 - the child starts without an engine
    if _engine is not None:
        atexit.unregister(_engine.stop)
        _engine.disown()
    _engine = None
    _engine_lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
