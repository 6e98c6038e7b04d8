"""The engine thread: one daemon thread with one event loop per process, started on first use.

An anyio portal gives it its beginning and its end. Calls do not go through the portal one by one:
they cross by a queue and at most one wake-up of the loop, and come back by `net.handoff`.

A fork copies the memory but not the thread. The child therefore forgets the engine: it gets a new
one on first use, and calls on the old one raise instead of hanging.
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
# Called with the number of seconds that it may take.
ExitHook = Callable[[float], Coroutine[Any, Any, None]]

# How long the end of the process may wait for rows that are still in flight to a server.
EXIT_WAIT_S_MAX = 30.0
# The same where the user has interrupted the process.
INTERRUPTED_WAIT_S_MAX = 0.5
# How many times Ctrl-C may come during that wait.
INTERRUPTS_MAX = 10
# A hook that has used up its time still closes sockets and reports what was not delivered.
EXIT_HOOK_EXTRA_S = 0.2


class Engine:
    """Runs coroutines on its own thread for callers on any other."""

    def __init__(self) -> None:
        self._jobs: deque[Callable[[], None]] = deque()
        self._awake = False
        self._tasks: set[asyncio.Task[Any]] = set()
        self._at_exit: set[ExitHook] = set()
        self._stopped: str | None = None
        self.loop: asyncio.AbstractEventLoop
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
        if cancellation is not None and cancellation.is_cancelled:
            work.close()
            raise cancellation.error()
        sink: BlockingSink[T] = BlockingSink()
        return sink.wait_for_result(self.start(work, sink), cancellation)

    def submit(self, work: Coroutine[Any, Any, T]) -> Awaitable[T]:
        """Start `work` on the engine thread; the result is awaited in the caller's own loop.

        The work has started when this returns, and goes on if it is never awaited. Cancelling the
        awaiting task cancels it.

        Raises:
            RuntimeError: No event loop (asyncio or trio) is running in this thread.
        """
        return self.submit_and_convert(work, None)

    def submit_and_convert(
        self, work: Coroutine[Any, Any, T], convert: Callable[[T], R] | None
    ) -> Awaitable[R]:
        """The same; `convert` makes the caller's result of the work's, in the caller's own loop.

        It is not called for a caller that has stopped waiting: what it would take stays in place.
        """
        sink: LoopSink[Any] | TrioSink[Any]
        try:
            sink = result_sink_here(convert)
        except RuntimeError:
            work.close()
            raise
        return awaitable_of(sink, self.start(work, sink))

    def start(self, work: Coroutine[Any, Any, T], sink: ResultSink[T]) -> Callable[[], None]:
        """Start `work` whose result goes to `sink`, so that one caller can have several in flight.

        Returns:
            A function that cancels it.
        """
        if self.on_this_thread():
            work.close()
            raise AssertionError("the engine thread must not wait for itself")
        task: asyncio.Task[T] | None = None
        is_interrupted = False

        def begin() -> None:
            nonlocal task
            if is_interrupted:
                work.close()
                return
            task = self.loop.create_task(work)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            task.add_done_callback(lambda done: _answer(sink, done))

        def cancel() -> None:
            with contextlib.suppress(ClosedError):
                self.post(lambda: None if task is None else _cancel(task))

        try:
            self.post(begin)
        except (ClosedError, RuntimeError):
            work.close()
            raise
        except BaseException:
            # A signal handler has raised it, and the engine may work already.
            is_interrupted = True
            with contextlib.suppress(ClosedError):
                self.post(lambda: work.close() if task is None else _cancel(task))
            raise
        return cancel

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
            try:
                self.loop.call_soon_threadsafe(self._work)
            except BaseException:
                # A signal handler has raised it, before or after the engine was woken.
                self._awake = False
                raise

    def post_cleanup(self, job: Callable[[], None]) -> None:
        """`post` a job that only frees what the engine holds; ignored if the engine is gone."""
        # The engine may end at this moment, and its loop with it.
        with contextlib.suppress(ClosedError, RuntimeError):
            self.post(job)

    def run_in_background(self, begin: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start work without waiting for it, unless the engine is gone. Any thread may call this.

        Finalizers may, too, which the interpreter runs on any thread and at any moment.
        """

        def start() -> None:
            task = self.loop.create_task(begin())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            task.add_done_callback(_log_failure)

        self.post_cleanup(start)

    def _work(self) -> None:
        # The flag first: a job posted in between costs one more wake-up and is not lost.
        self._awake = False
        jobs = self._jobs
        while jobs:
            jobs.popleft()()

    # --- life ---------------------------------------------------------------------------------

    def on_this_thread(self) -> bool:
        """Whether the caller is the engine thread."""
        return threading.get_ident() == self._thread.ident

    def at_exit(self, hook: ExitHook) -> Callable[[], None]:
        """Have `hook` run before the process ends; returns a function that takes it back."""
        self._at_exit.add(hook)
        return lambda: self._at_exit.discard(hook)

    def stop(self) -> None:
        """Run the exit hooks, then end the thread. Idempotent.

        Ctrl-C shortens the hooks. Nothing is raised: the process is ending.
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
        self.run(self._run_exit_hooks(wait_s))
        # Not by the portal's own calls, which wait and cannot be interrupted.
        self.run_in_background(lambda: self._portal.stop(cancel_remaining=True))
        self._stopped = "the process is ending"
        join(self._thread, wait_s)

    def disown(self) -> None:
        """Mark it as gone in a forked child: the thread stayed in the parent."""
        self._stopped = "it was made before this process was forked"

    async def _run_exit_hooks(self, wait_s: float) -> None:
        with anyio.move_on_after(wait_s + EXIT_HOOK_EXTRA_S):
            async with anyio.create_task_group() as hooks:
                for hook in list(self._at_exit):
                    hooks.start_soon(hook, wait_s)

    def _live(self, started: threading.Event) -> None:
        uvloop_is_here = importlib.util.find_spec("uvloop") is not None
        anyio.run(
            self._main,
            started,
            backend="asyncio",
            backend_options={"use_uvloop": uvloop_is_here},
        )

    async def _main(self, started: threading.Event) -> None:
        self.loop = asyncio.get_running_loop()
        async with anyio.from_thread.BlockingPortal() as self._portal:
            started.set()
            await self._portal.sleep_until_stopped()
        for task in list(self._tasks):
            task.cancel()


def _answer(sink: ResultSink[Any], task: asyncio.Task[Any]) -> None:
    if task.cancelled():
        sink.fail(asyncio.CancelledError())
        return
    error = task.exception()
    if error is not None:
        sink.fail(error)
    else:
        sink.succeed(task.result())


def _cancel(task: asyncio.Task[Any]) -> None:
    task.cancel()


def _log_failure(task: asyncio.Task[Any]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.debug("background work has failed: %r", error)


def _is_interrupted() -> bool:
    """Whether the process ends because a user has interrupted it."""
    # An event loop waits elsewhere; the interpreter keeps the last exception that it reported.
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
