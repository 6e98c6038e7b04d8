"""A token with which any thread ends work that other threads wait for.

The one mechanism for giving up before a result has come: `Engine.run` takes a token, and so does
everything above that blocks for longer than one request. Ctrl-C needs none, it ends a wait by
itself; a token is for engines that stop a query from a thread of their own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from fluss.errors import ClosedError


class Cancellation:
    """Ends the work that was started with it. Any thread may use it; no method waits."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_cancelled = False
        self._listeners: list[Callable[[], None]] = []

    @property
    def is_cancelled(self) -> bool:
        """Whether `cancel` has been called."""
        return self._is_cancelled

    def cancel(self) -> None:
        """End all work that was started with this token, and refuse new work. Idempotent."""
        with self._lock:
            self._is_cancelled = True
            listeners, self._listeners = self._listeners, []
        for listener in listeners:
            listener()

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` on cancellation, immediately where that has happened already.

        Args:
            listener: Runs on the thread that cancels, and must not wait.

        Returns:
            A function that removes the listener.
        """
        with self._lock:
            if not self._is_cancelled:
                self._listeners.append(listener)
                return lambda: self._forget(listener)
        listener()
        return lambda: None

    def check(self) -> None:
        """Raise if it has been cancelled.

        Raises:
            ClosedError: `cancel` has been called.
        """
        if self._is_cancelled:
            raise self.error()

    @staticmethod
    def error() -> ClosedError:
        """The error of work that was cancelled."""
        return ClosedError("The operation was cancelled.", hint="Start a new one.")

    def _forget(self, listener: Callable[[], None]) -> None:
        with self._lock:
            if listener in self._listeners:
                self._listeners.remove(listener)
