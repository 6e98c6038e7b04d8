"""What one reader has the engine do, one errand after the other, and how it is called off.

A reader that waits for a server that does not answer must still end at once when its scan is
closed. It is therefore not kept until the errand has been undone: that goes on behind its back, on
the engine.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from fluss.errors import ClosedError
from fluss.net.engine_thread import Engine
from fluss.waiting import wait_until

T = TypeVar("T")


class Errands:
    """Runs work on the engine for one thread, until any thread calls it off.

    Args:
        engine: The engine.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._call_off: Callable[[], None] | None = None
        self._closed = False

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` and wait for what it gives; Ctrl-C cancels it.

        Raises:
            ClosedError: It has been called off.
        """
        errand: _Errand[T] = _Errand()
        with self._lock:
            if self._closed:
                work.close()
                raise _closed()
            cancel = self._engine.start(work, errand)

            def call_off() -> None:
                cancel()
                errand.fail(_closed())

            self._call_off = call_off
        try:
            return errand.result()
        except BaseException:
            cancel()  # where it is done already, this does nothing
            raise
        finally:
            self._call_off = None

    def close(self) -> None:
        """Call off what is under way, and refuse what comes. Twice is once."""
        with self._lock:
            self._closed = True
            call_off = self._call_off
        if call_off is not None:
            call_off()


class _Errand(Generic[T]):
    """One piece of work; its first outcome counts, whoever brings it."""

    def __init__(self) -> None:
        self._done = threading.Event()
        self._lock = threading.Lock()
        self._outcome: Callable[[], T] | None = None

    def succeed(self, result: T) -> None:
        self._settle(lambda: result)

    def fail(self, error: BaseException) -> None:
        def raised() -> T:
            raise error

        self._settle(raised)

    def result(self) -> T:
        wait_until(self._done.wait)
        outcome, self._outcome = self._outcome, None
        if outcome is None:
            raise AssertionError("an errand is asked once, and has an outcome when it is done")
        return outcome()

    def _settle(self, outcome: Callable[[], T]) -> None:
        with self._lock:
            if not self._done.is_set():
                self._outcome = outcome
                self._done.set()


def _closed() -> ClosedError:
    return ClosedError("The scan has been closed.", hint="Open it again to read it.")
