"""What runs at the moment, so that it can be pinned, interrupted, and told from what failed.

DuckDB calls a source from threads of its own and does not say for which statement, so statements
are counted here: where one runs, a scan is of that one. It tells errors of sources as texts of its
own, so what a source raised is kept and raised again. And it cannot be interrupted while a source
waits: Python handles signals on the main thread, which is inside DuckDB then, but the operating
system's signal is written to a socket at once (`signal.set_wakeup_fd`), and a thread that reads it
calls the scans off.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

import duckdb
import pyarrow as pa

from fluss.errors import ClosedError, FlussError
from fluss.hints import Door
from fluss.scan import Cancellation, QuerySnapshot
from fluss.waiting import wait_until

T = TypeVar("T")

FAILURES_MAX = 100


class Run:
    """One statement while it runs: what its scans share."""

    def __init__(self) -> None:
        self.pins = QuerySnapshot()
        self.cancellation = Cancellation()
        self.failures: list[BaseException] = []
        self.checked: set[int] = set()
        self.is_interrupted = False

    def note(self, error: BaseException) -> None:
        """Keep what a source raised; DuckDB will make a text of it."""
        if len(self.failures) < FAILURES_MAX and not isinstance(error, GeneratorExit):
            self.failures.append(error)

    def cancel(self) -> None:
        """End its scans. Any thread may call it."""
        self.cancellation.cancel()

    def cause_of(self, error: BaseException) -> BaseException | None:
        """What a source raised that DuckDB's error tells of."""
        text = str(error)
        for each in self.failures:
            first_line = str(each).partition("\n")[0]
            if type(each).__name__ in text and first_line in text:
                return each
        return None


class Statements:
    """The statements that run over one catalog."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: list[Run] = []
        self._here = threading.local()

    def now(self) -> tuple[Run, ...]:
        """Those that run; where there is one, whoever asks is of it."""
        with self._lock:
            return tuple(self._running)

    def begin(self) -> Run:
        """Note that a statement begins."""
        run = Run()
        with self._lock:
            self._running.append(run)
        return run

    def end(self, run: Run) -> None:
        """Note that it has ended. Twice is once."""
        with self._lock:
            if run in self._running:
                self._running.remove(run)
        run.failures.clear()  # their tracebacks hold on to everything

    def cancel(self) -> None:
        """End the scans of all."""
        for each in self.now():
            each.cancel()

    @contextlib.contextmanager
    def running(self, run: Run | None = None) -> Iterator[Run]:
        """What is done inside is a statement, or a part of one; errors come out as they went in."""
        outer: Run | None = getattr(self._here, "run", None)
        if outer is not None and run is None:
            yield outer
            return
        mine = self.begin() if run is None else run
        self._here.run = mine
        try:
            with _watcher.watching(mine):
                yield mine
        except (duckdb.Error, pa.ArrowException, OSError, RuntimeError, ClosedError) as error:
            if mine.is_interrupted:
                raise KeyboardInterrupt from None
            cause = mine.cause_of(error)
            if cause is None or cause is error:
                raise
            if isinstance(cause, FlussError):
                cause.add_context(door=Door.DUCKDB)
            raise cause.with_traceback(None) from None
        except FlussError as error:
            error.add_context(door=Door.DUCKDB)
            raise
        finally:
            self._here.run = outer
            if run is None:
                self.end(mine)


def unless_cancelled(work: Callable[[], T], cancellation: Cancellation) -> T:
    """The result of something that waits, or an error as soon as it is called off.

    It goes on by itself then, in a thread that nobody waits for.
    """
    done = threading.Event()
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            errors.append(error)
        done.set()

    forget = cancellation.listen(done.set)
    try:
        threading.Thread(target=run, name="fluss-duckdb-plan", daemon=True).start()
        wait_until(done.wait)
    finally:
        forget()
    cancellation.check()
    if errors:
        raise errors[0]
    return results[0]


class _Watcher:
    """Tells what the main thread waits for that somebody pressed Ctrl-C."""

    def __init__(self) -> None:
        self._pid = -1
        self._reads: socket.socket
        self._writes: socket.socket
        self._watched: Run | None = None
        self._before = -1

    @contextlib.contextmanager
    def watching(self, run: Run) -> Iterator[None]:
        """Cancel `run` at Ctrl-C; on other threads than the main one, which signals never reach."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        self._ensure_thread()
        outer, self._watched = self._watched, run
        mine = self._writes.fileno()
        before = signal.set_wakeup_fd(mine, warn_on_full_buffer=False)
        if before != mine:  # it is where Ctrl-C came between the lines below
            self._before = before
        try:
            yield
        finally:
            self._watched = outer
            signal.set_wakeup_fd(before)

    def _ensure_thread(self) -> None:
        if self._pid == os.getpid():  # a child of a fork has the sockets, and not the thread
            return
        self._reads, self._writes = socket.socketpair()
        self._writes.setblocking(False)
        threading.Thread(
            target=self._watch, args=(self._reads,), name="fluss-duckdb-signals", daemon=True
        ).start()
        self._pid = os.getpid()

    def _watch(self, reads: socket.socket) -> None:
        while numbers := reads.recv(64):
            if self._before >= 0:
                # Somebody else waits for signals, too: an event loop, for example.
                with contextlib.suppress(OSError):
                    os.write(self._before, numbers)
            run = self._watched
            if run is not None and signal.SIGINT in numbers:
                run.is_interrupted = True
                run.cancel()
            del run  # what it failed with holds on to DuckDB's objects


_watcher = _Watcher()
