"""How much may be on its way to the servers before whoever writes more has to wait.

The writers of one connection share the room. Batches take room when they are queued and give it
back when they have come to their end; a writer waits, on its own thread, while none is left. The
engine only ever gives room back, so it never waits here.
"""

from __future__ import annotations

import threading

from fluss.errors import ClosedError, LimitExceededError
from fluss.waiting import wait_on


class WriteMemory:
    """A number of bytes, shared by threads."""

    def __init__(self, bytes_max: int, *, wait_ms_max: int) -> None:
        self.bytes_max = bytes_max
        self.bytes_used = 0
        self._wait_s_max = min(wait_ms_max / 1_000, threading.TIMEOUT_MAX)
        self._wait_ms_max = wait_ms_max
        self._changed = threading.Condition()
        self._closed: ClosedError | None = None

    @property
    def is_left(self) -> bool:
        """Whether there is any room; only a hint, others take it at the same time."""
        return self.bytes_used < self.bytes_max

    def wait(self) -> None:
        """Wait until there is room. Any thread but the engine's may call this.

        One batch may overshoot the limit by its own size, so that one that is larger than all the
        room there is can be written at all.

        Raises:
            LimitExceededError: There was none in time.
            ClosedError: The writers were closed meanwhile.
        """
        if self.is_left and self._closed is None:
            return
        with self._changed:
            if not wait_on(
                self._changed,
                lambda: self.is_left or self._closed is not None,
                self._wait_s_max,
            ):
                raise self._full()
            if self._closed is not None:
                raise ClosedError(self._closed.message, hint=self._closed.hint)

    def take(self, count: int) -> None:
        """Count bytes that are queued."""
        with self._changed:
            self.bytes_used += count

    def give_back(self, count: int) -> None:
        """Count bytes that have come to their end."""
        with self._changed:
            was_full = not self.is_left
            self.bytes_used -= count
            if was_full and self.is_left:
                self._changed.notify_all()

    def close(self, reason: ClosedError) -> None:
        """Send whoever waits away."""
        with self._changed:
            self._closed = reason
            self._changed.notify_all()

    def _full(self) -> LimitExceededError:
        return LimitExceededError(
            f"The write buffer is full: {self.bytes_used} bytes are on their way, the limit is "
            f"{self.bytes_max}, and none came free within {self._wait_ms_max} ms.",
            hint="The servers take rows more slowly than they are written. Write less at a time, or "
            "raise 'writer.buffer.memory-size' or 'writer.buffer.wait-timeout-ms'.",
        )
