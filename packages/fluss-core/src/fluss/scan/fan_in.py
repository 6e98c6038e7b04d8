"""Merges many sources into one stream: read in parallel, ahead of the reader, within bounds.

Each source is iterated by one thread at a time. Its items wait in a buffer that is bounded in
bytes, so that a slow reader slows the sources down. Items come as they are ready, or source by
source, or merged by a key that grows in each source. A reader that stops also stops the threads,
and an error of a source is raised where its item would have come.
"""

from __future__ import annotations

import heapq
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from time import monotonic
from typing import Generic, Protocol, TypeVar

from fluss.errors import ClosedError
from fluss.waiting import join, wait_on

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

JOIN_S_MAX = 5.0


class BatchSource(Protocol[T_co]):
    """A source of items: iterated on one thread, closed from another."""

    def __iter__(self) -> Iterator[T_co]: ...

    def close(self) -> None:
        """Stop; the iterating thread gets an error or the end."""


class FanIn(Generic[T]):
    """Reads sources in parallel; iterate it once, and close it.

    Args:
        sources: Make the sources; each is called once, on the thread that reads it.
        parallel_max: How many are read concurrently.
        bytes_max: How many bytes may lie unread.
        size_of: How many bytes an item counts.
        in_order: Whether all of a source comes before any of the next.
    """

    def __init__(
        self,
        sources: Sequence[Callable[[], BatchSource[T]]],
        *,
        parallel_max: int,
        bytes_max: int,
        size_of: Callable[[T], int],
        in_order: bool,
    ) -> None:
        self._sources = sources
        self._bytes_max = bytes_max
        self._size_of = size_of
        self._in_order = in_order
        # `with` of this lock, not of the condition, whose methods are Python functions: an
        # interrupt as one begins would leave the lock held.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._queues: list[deque[T]] = [deque() for _ in sources]
        self._errors: dict[int, BaseException] = {}
        self._ended: set[int] = set()
        self._open: dict[int, BatchSource[T]] = {}
        self._ready: deque[int] = deque()
        self._bytes = 0
        self._head = 0
        self._next_source = 0
        self._closed = False
        self._threads = [
            threading.Thread(target=self._work, name=f"fluss-scan-{number}", daemon=True)
            for number in range(min(parallel_max, len(sources)))
        ]

    # --- on the thread of the reader --------------------------------------------------------------

    def start(self) -> None:
        """Start the threads; a reader that is never iterated has none."""
        for thread in self._threads:
            thread.start()

    def __iter__(self) -> Iterator[T]:
        self.start()
        try:
            while (item := self._take()) is not None:
                yield item
        finally:
            self.close()

    def take_from(self, index: int) -> T | None:
        """The next item of one source; None after its last."""
        with self._lock:
            self._head = index
            self._changed.notify_all()
            wait_on(
                self._changed,
                lambda: self._queues[index] or index in self._ended or self._closed,
            )
            return self._pop(index)

    def stop(self) -> None:
        """Stop reading, without waiting until the threads have ended. Idempotent."""
        with self._lock:
            self._closed = True
            opened = list(self._open.values())
            for queue in self._queues:
                queue.clear()
            self._changed.notify_all()
        for source in opened:
            source.close()

    def close(self) -> None:
        """Stop reading, and wait until the threads have ended. Idempotent."""
        self.stop()
        current = threading.current_thread()
        end = monotonic() + JOIN_S_MAX
        for thread in self._threads:
            if thread is not current and thread.ident is not None:
                join(thread, max(0.0, end - monotonic()))

    def _take(self) -> T | None:
        if self._in_order:
            while self._head < len(self._sources):
                item = self.take_from(self._head)
                if item is not None:
                    return item
                self._head += 1
            return None
        with self._lock:
            wait_on(
                self._changed,
                lambda: self._ready or self._errors or self._closed or self._is_over,
            )
            for index in list(self._errors):
                self._raise(index)
            if self._closed:
                raise ClosedError("The scan has been closed.", hint="Open it again to read it.")
            return self._pop(self._ready.popleft()) if self._ready else None

    @property
    def _is_over(self) -> bool:
        return len(self._ended) == len(self._sources)

    def _pop(self, index: int) -> T | None:
        if self._closed:
            raise ClosedError("The scan has been closed.", hint="Open it again to read it.")
        queue = self._queues[index]
        if queue:
            item = queue.popleft()
            self._bytes -= self._size_of(item)
            self._changed.notify_all()
            return item
        self._raise(index)
        return None

    def _raise(self, index: int) -> None:
        error = self._errors.pop(index, None)
        if error is not None:
            raise error

    # --- on the threads of the sources ------------------------------------------------------------

    def _work(self) -> None:
        while (index := self._next()) is not None:
            try:
                self._read(index)
            except BaseException as error:  # noqa: BLE001 - raised again where it is read
                with self._lock:
                    if not self._closed:
                        self._errors[index] = error
            with self._lock:
                self._open.pop(index, None)
                self._ended.add(index)
                self._changed.notify_all()

    def _next(self) -> int | None:
        with self._lock:
            if self._closed or self._next_source == len(self._sources):
                return None
            self._next_source += 1
            return self._next_source - 1

    def _read(self, index: int) -> None:
        source = self._sources[index]()
        with self._lock:
            self._open[index] = source
            closed = self._closed
        if closed:
            source.close()
            return
        for item in source:
            if not self._put(index, item):
                return

    def _put(self, index: int, item: T) -> bool:
        size = self._size_of(item)
        with self._lock:
            while self._bytes >= self._bytes_max and not self._is_awaited(index):
                if self._closed:
                    return False
                self._changed.wait()
            if self._closed:
                return False
            self._queues[index].append(item)
            if not self._in_order:
                self._ready.append(index)
            self._bytes += size
            self._changed.notify_all()
            return True

    def _is_awaited(self, index: int) -> bool:
        """Whether the reader waits for this source, however much lies unread of others."""
        return self._in_order and index == self._head and not self._queues[index]


def merged(fan_in: FanIn[T], count: int, key: Callable[[T], tuple[int, ...]]) -> Iterator[T]:
    """Merge the items of all sources by a key that grows in each of them.

    All sources are open concurrently: `fan_in` reads as many in parallel as there are.
    """
    heap: list[tuple[tuple[int, ...], int, T]] = []

    def push(index: int) -> None:
        item = fan_in.take_from(index)
        if item is not None:
            heapq.heappush(heap, (key(item), index, item))

    fan_in.start()
    try:
        for index in range(count):
            push(index)
        while heap:
            _, index, item = heapq.heappop(heap)
            yield item
            push(index)
    finally:
        fan_in.close()
