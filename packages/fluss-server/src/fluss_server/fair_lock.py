"""A fair asyncio lock: a request reserves its place in the queue before it waits.

A request reserves its place while it is dispatched, so the requests of one connection work on a
bucket in the order in which they arrived, whether they finish immediately or later. `asyncio.Lock`
does not guarantee that: a task that runs immediately can overtake a task that has not begun to
wait.
"""

from __future__ import annotations

import asyncio
from collections import deque
from types import TracebackType


class FairLock:
    """The lock of one bucket or scan; used on one event loop."""

    __slots__ = ("_queue", "holder")

    def __init__(self) -> None:
        self.holder: Ticket | None = None
        self._queue: deque[Ticket] = deque()

    @property
    def is_held(self) -> bool:
        """Whether a ticket holds the lock."""
        return self.holder is not None

    def reserve(self) -> Ticket:
        """Join the queue. The ticket must be released, whether it was granted or not."""
        ticket = Ticket(self)
        if self.holder is None:
            self.holder = ticket
        else:
            self._queue.append(ticket)
        return ticket

    def release(self, ticket: Ticket) -> None:
        """Pass the lock to the next ticket, or remove a waiting ticket from the queue."""
        if ticket is not self.holder:
            if ticket in self._queue:
                self._queue.remove(ticket)
            return
        self.holder = self._queue.popleft() if self._queue else None
        if self.holder is not None:
            self.holder.grant()


class Ticket:
    """A place in the queue: `async with ticket:` waits for the lock and releases it."""

    __slots__ = ("_granted", "_lock")

    def __init__(self, lock: FairLock) -> None:
        self._lock = lock
        self._granted: asyncio.Future[None] | None = None

    @property
    def is_granted(self) -> bool:
        """Whether this ticket holds the lock."""
        return self._lock.holder is self

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
        """Wake the task that waits with this ticket."""
        if self._granted is not None and not self._granted.done():
            self._granted.set_result(None)
