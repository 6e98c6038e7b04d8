"""A fair asyncio lock: a request reserves its place in the queue before it waits.

A request reserves its place while it is dispatched, so the requests of one connection work on a
bucket in the order in which they arrived, whether they finish immediately or later. `asyncio.Lock`
does not guarantee that: a task that runs immediately can overtake a task that has not begun to
wait. Requests that only read may share the lock with their neighbours in the queue.
"""

from __future__ import annotations

import asyncio
from collections import deque
from types import TracebackType


class FairLock:
    """The lock of one bucket or scan; used on one event loop."""

    __slots__ = ("_exclusive", "_holders", "_queue")

    def __init__(self) -> None:
        self._holders = 0
        self._exclusive = False  # whether the holder excludes all others
        self._queue: deque[Ticket] = deque()

    @property
    def is_held(self) -> bool:
        """Whether a ticket holds the lock."""
        return self._holders > 0

    def reserve(self, *, is_shared: bool = False) -> Ticket:
        """Join the queue. The ticket must be released, whether it was granted or not.

        Args:
            is_shared: Whether the holder tolerates others with shared tickets. A shared ticket
                does not overtake an earlier one that is not.
        """
        ticket = Ticket(self, is_shared=is_shared)
        self._queue.append(ticket)
        self._grant_next()
        return ticket

    def release(self, ticket: Ticket) -> None:
        """Pass the lock on, or remove a waiting ticket from the queue."""
        if ticket.is_granted:
            ticket.is_granted = False
            self._holders -= 1
        elif ticket in self._queue:
            self._queue.remove(ticket)
        self._grant_next()

    def _grant_next(self) -> None:
        queue = self._queue
        while queue and (not self._holders or (queue[0].is_shared and not self._exclusive)):
            ticket = queue.popleft()
            self._holders += 1
            self._exclusive = not ticket.is_shared
            ticket.grant()


class Ticket:
    """A place in the queue: `async with ticket:` waits for the lock and releases it."""

    __slots__ = ("_granted", "_lock", "is_granted", "is_shared")

    def __init__(self, lock: FairLock, *, is_shared: bool) -> None:
        self._lock = lock
        self._granted: asyncio.Future[None] | None = None
        self.is_shared = is_shared
        self.is_granted = False

    def release(self) -> None:
        """Release the lock, or leave the queue."""
        self._lock.release(self)

    async def __aenter__(self) -> None:
        if not self.is_granted:
            self._granted = asyncio.get_running_loop().create_future()
            try:
                await self._granted
            except BaseException:
                self.release()
                raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def grant(self) -> None:
        """Hold the lock, and wake the task that waits with this ticket."""
        self.is_granted = True
        if self._granted is not None and not self._granted.done():
            self._granted.set_result(None)
