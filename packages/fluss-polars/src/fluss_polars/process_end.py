"""Lets the process end while threads of Polars still run our code.

An abandoned query goes on: Polars pulls its sources, or is in a decoder, on threads of its own. A
thread that returns to Polars when the interpreter is gone aborts the process. So a process that
ends cancels queries that wait, refuses further calls, and waits for those that run.
"""

from __future__ import annotations

import atexit
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from fluss.scan import Cancellation

# How long a process that ends waits for calls.
END_S_MAX: Final = 0.5
# How long a thread may take from our code back into Polars, on a busy machine.
RETURN_S: Final = 0.1
_POLL_S: Final = 0.01


class CallsOfPolars:
    """The calls of Polars' threads that run now.

    There is no lock: Ctrl-C may interrupt a call anywhere, and one operation of a set is atomic.
    """

    def __init__(self) -> None:
        self._running: set[object] = set()
        self._is_closed = False
        self._left_at: float | None = None

    @contextmanager
    def one(self) -> Iterator[None]:
        """Count one call while it runs.

        Raises:
            RuntimeError: The process ends.
        """
        if self._is_closed:
            raise RuntimeError("the process ends")
        call = object()
        self._running.add(call)
        try:
            yield
        except GeneratorExit:  # Polars drops a source whose rows it does not want any more
            self._left_at = time.monotonic()
            raise
        finally:
            self._running.discard(call)

    def close(self) -> None:
        """Refuse further calls, and wait until none runs or until the time is over.

        A thread that has just dropped a source has not returned to Polars yet. After a query that
        has ended by itself, all threads have.
        """
        self._is_closed = True
        if self._running:
            deadline = time.monotonic() + END_S_MAX
            while self._running and time.monotonic() < deadline:
                time.sleep(_POLL_S)
            self._left_at = time.monotonic()
        if self._left_at is not None:
            time.sleep(max(0.0, self._left_at + RETURN_S - time.monotonic()))


calls_of_polars: Final = CallsOfPolars()
_tokens: weakref.WeakSet[Cancellation] = weakref.WeakSet()


def cancelled_at_exit() -> Cancellation:
    """Return a token that is cancelled when the process ends, if the query still runs then."""
    token = Cancellation()
    _tokens.add(token)
    return token


def _end() -> None:
    for token in list(_tokens):
        token.cancel()
    calls_of_polars.close()


atexit.register(_end)
