"""Tracks running statements, to pin their scans, cancel them, and raise the errors of scans.

DuckDB calls a dataset from threads of its own and does not name the statement: if one statement is
running, a scan belongs to it. DuckDB turns an error of a scan into a text of its own, so the error
is kept and raised again. And DuckDB cannot be interrupted while a scan waits: Python handles
signals on the main thread, which is inside DuckDB. But the interpreter immediately writes the
signal to a socket (`signal.set_wakeup_fd`), and a thread that reads it cancels the scans.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence

import duckdb
import pyarrow as pa

from fluss.errors import ClosedError, FlussError
from fluss.hints import Door
from fluss.scan import Cancellation, Progress, QuerySnapshot
from fluss_duckdb.scan_progress import ScanProgress

FAILURES_MAX = 100
LATE_FAILURES_MAX = 8


class Statement:
    """One running statement: the snapshot and the cancellation that its scans share.

    Args:
        interrupt: Ends what DuckDB computes for it; called by another thread.
    """

    def __init__(self, interrupt: Callable[[], None] = lambda: None) -> None:
        self.interrupt = interrupt
        self.snapshot = QuerySnapshot()
        self.cancellation = Cancellation()
        self.failures: list[BaseException] = []
        self.checked: set[int] = set()
        self.is_interrupted = False

    def note(self, error: BaseException) -> None:
        """Keep an error of a scan, which DuckDB will turn into a text."""
        if len(self.failures) < FAILURES_MAX and not isinstance(error, GeneratorExit):
            self.failures.append(error)

    def cancel(self) -> None:
        """Cancel its scans. Thread-safe."""
        self.cancellation.cancel()

    def cause_of(self, error: BaseException) -> BaseException | None:
        """Return the error of a scan that DuckDB's error was made from."""
        return _cause_among(self.failures, error)


def _cause_among(failures: Sequence[BaseException], error: BaseException) -> BaseException | None:
    """Return the failure whose name and first line are in the text of DuckDB's error."""
    text = str(error)
    for failure in failures:
        first_line = str(failure).partition("\n")[0]
        if type(failure).__name__ in text and first_line in text:
            return failure
    return None


class Statements:
    """The running statements of one catalog.

    Args:
        progress: Whether and how the progress of their scans is shown.
    """

    def __init__(self, progress: Progress = None) -> None:
        self.progress = ScanProgress(progress)
        self._lock = threading.Lock()
        self._running: list[Statement] = []
        # Statements whose scans still give rows, perhaps to a later one.
        self._streaming: list[Statement] = []
        # Errors of scans that DuckDB may report to a later statement: `execute` may end with the
        # first rows, and `fetchall` waits for the others, as a statement of its own.
        self._late: deque[BaseException] = deque(maxlen=LATE_FAILURES_MAX)
        self._here = threading.local()
        # Ends what DuckDB computes: a stream of rows does not look at signals.
        self.interrupt: Callable[[], None] = lambda: None

    def now(self) -> tuple[Statement, ...]:
        """Return those that are running."""
        with self._lock:
            return tuple(self._running)

    def begin(self) -> Statement:
        """Add a statement that starts."""
        statement = Statement(self.interrupt)
        with self._lock:
            self._running.append(statement)
            for earlier in self._streaming:
                statement.cancellation.listen(earlier.cancel)
        return statement

    @contextlib.contextmanager
    def streaming(self, statement: Statement) -> Iterator[None]:
        """Run a block in which a scan of a statement gives rows: a later one ends it by Ctrl-C."""
        with self._lock:
            self._streaming.append(statement)
        try:
            yield
        finally:
            with self._lock:
                self._streaming.remove(statement)

    def end(self, statement: Statement) -> None:
        """Remove a statement that has ended. Idempotent."""
        with self._lock:
            if statement in self._running:
                self._running.remove(statement)
        statement.failures.clear()  # their tracebacks hold on to everything

    def note_late(self, error: BaseException) -> None:
        """Keep an error of a scan for whichever statement meets it."""
        if not isinstance(error, GeneratorExit):
            self._late.append(error)

    def cause_of(self, statement: Statement, error: BaseException) -> BaseException | None:
        """Return the error of a scan that an error in this statement was made from."""
        found = statement.cause_of(error)
        if found is None:
            found = _cause_among(tuple(self._late), error)
        # Their tracebacks hold on to everything.
        self._late.clear()
        return found

    def cancel(self) -> None:
        """Cancel the scans of all."""
        for statement in self.now():
            statement.cancel()

    @contextlib.contextmanager
    def running(self, statement: Statement | None = None) -> Iterator[Statement]:
        """Run a block as a statement or a part of one; errors of scans leave it unchanged."""
        outer: Statement | None = getattr(self._here, "statement", None)
        if outer is not None and statement is None:
            yield outer
            return
        mine = self.begin() if statement is None else statement
        self._here.statement = mine
        try:
            with _watcher.watching(mine), self.progress.shown():
                yield mine
        except (duckdb.Error, pa.ArrowException, OSError, RuntimeError, ClosedError) as error:
            if mine.is_interrupted:
                raise KeyboardInterrupt from None
            cause = self.cause_of(mine, error)
            if cause is None or cause is error:
                raise
            if isinstance(cause, FlussError):
                cause.add_context(door=Door.DUCKDB)
            raise cause.with_traceback(None) from None
        except FlussError as error:
            error.add_context(door=Door.DUCKDB)
            raise
        finally:
            self._here.statement = outer
            if statement is None:
                self.end(mine)


class _Watcher:
    """Cancels the statement that the main thread runs when the user presses Ctrl-C."""

    def __init__(self) -> None:
        self._pid = -1
        self._reads: socket.socket
        self._writes: socket.socket
        self._watched: Statement | None = None
        self._lock = threading.Lock()
        self._before = -1

    @contextlib.contextmanager
    def watching(self, statement: Statement) -> Iterator[None]:
        """Cancel a statement at Ctrl-C, in the main thread; signals reach no other."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        self._ensure_thread()
        with self._lock:
            # The thread may not have read the signals of an earlier statement yet.
            self._take_signals()
            outer, self._watched = self._watched, statement
        mine = self._writes.fileno()
        before = signal.set_wakeup_fd(mine, warn_on_full_buffer=False)
        if before != mine:  # they are equal if Ctrl-C came between the lines below
            self._before = before
        try:
            yield
        finally:
            with self._lock:
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

    def _take_signals(self) -> bytes:
        """Read the numbers of the signals that came, if any, and pass them on. Needs the lock."""
        try:
            numbers = self._reads.recv(64, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return b""
        if self._before >= 0:
            # To the previous receiver, an event loop for example.
            with contextlib.suppress(OSError):
                os.write(self._before, numbers)
        return numbers

    def _watch(self, reads: socket.socket) -> None:
        while reads.recv(1, socket.MSG_PEEK):
            with self._lock:
                numbers = self._take_signals()
                statement = self._watched
            if statement is not None and signal.SIGINT in numbers:
                statement.is_interrupted = True
                statement.cancel()
                # Perhaps the statement has ended meanwhile: DuckDB would interrupt the
                # next one of the connection.
                with self._lock:
                    if self._watched is statement:
                        statement.interrupt()
            del statement  # its errors keep DuckDB's objects alive


_watcher = _Watcher()
