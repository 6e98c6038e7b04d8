"""Limits the encoded bytes that the writers of a connection have queued or in flight.

The writers share the memory. Batches take it when they are queued and release it when they are
completed. While none is left, a writer waits on its own thread. The engine only releases, so it
never waits here.
"""

from __future__ import annotations

import threading

from fluss.errors import ClosedError, LimitExceededError
from fluss.waiting import wait_on


class MemoryClaim:
    """The memory of batches that are being queued; a signal may interrupt that at any step.

    Attributes:
        size_bytes: How much it is.
        is_counted: Whether it is among the bytes used.
        is_kept: Whether the engine has the batches, and releases the memory of each.
    """

    __slots__ = ("is_counted", "is_kept", "size_bytes")

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.is_counted = False
        self.is_kept = False


class WriteMemory:
    """A number of bytes, shared by threads."""

    def __init__(self, bytes_max: int, *, wait_ms_max: int) -> None:
        self.bytes_max = bytes_max
        self.bytes_used = 0
        self._wait_s_max = min(wait_ms_max / 1_000, threading.TIMEOUT_MAX)
        self._wait_ms_max = wait_ms_max
        # `with` of this lock, not of the condition, whose methods are Python functions: an
        # interrupt as one begins would leave the lock held.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._closed: ClosedError | None = None

    @property
    def is_left(self) -> bool:
        """Whether any memory is left; only a hint, because other threads take it too."""
        return self.bytes_used < self.bytes_max

    def wait(self) -> None:
        """Wait until memory is left. Any thread but the engine's may call this.

        One batch may exceed the limit by its own size, so that a batch larger than the limit can be
        written.

        Raises:
            LimitExceededError: None was released in time.
            ClosedError: The writers were closed meanwhile.
        """
        if self.is_left and self._closed is None:
            return
        with self._lock:
            if not wait_on(
                self._changed,
                lambda: self.is_left or self._closed is not None,
                self._wait_s_max,
            ):
                raise self._full()
            if self._closed is not None:
                raise ClosedError(self._closed.message, hint=self._closed.hint)

    def take(self, count: int) -> None:
        """Take memory for bytes that are queued."""
        with self._lock:
            self.bytes_used += count

    def claim(self, claim: MemoryClaim) -> None:
        """Take the memory of batches that are being queued."""
        with self._lock:
            # Signal handlers run after calls and in loops, so none comes between these two.
            self.bytes_used += claim.size_bytes
            claim.is_counted = True

    def keep(self, claim: MemoryClaim) -> None:
        """Note that the batches are queued, and take their memory if it was given back."""
        with self._lock:
            claim.is_kept = True
            if not claim.is_counted:
                self.bytes_used += claim.size_bytes

    def give_back(self, claim: MemoryClaim) -> None:
        """Release the memory of batches that are not queued; otherwise it stays taken."""
        with self._lock:
            if not claim.is_counted or claim.is_kept:
                return
            claim.is_counted = False
        self.release(claim.size_bytes)

    def release(self, count: int) -> None:
        """Release the memory of completed batches."""
        with self._lock:
            was_full = not self.is_left
            self.bytes_used -= count
            if was_full and self.is_left:
                self._changed.notify_all()

    def close(self, reason: ClosedError) -> None:
        """End all waits with an error."""
        with self._lock:
            self._closed = reason
            self._changed.notify_all()

    def _full(self) -> LimitExceededError:
        return LimitExceededError(
            f"The write buffer is full: {self.bytes_used} bytes are in flight, the limit is "
            f"{self.bytes_max}, and none came free within {self._wait_ms_max} ms.",
            hint="The servers take rows more slowly than they are written. Write less at a time, or "
            "raise 'writer.buffer.memory-size' or 'writer.buffer.wait-timeout-ms'.",
        )
