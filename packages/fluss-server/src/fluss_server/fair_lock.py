"""Whose turn it is: a fair lock whose line is joined at once, before anybody waits.

A request takes its place in line while it is being dispatched, so that requests of one connection
work on a bucket in the order in which they came, whether they are done at once or after a while.
asyncio's own lock would let one that is done at once overtake one that has not begun to wait.
"""

from __future__ import annotations

import asyncio
from collections import deque
from types import TracebackType


class FairLock:
    """The line in front of one bucket; used on one event loop."""

    __slots__ = ("_line", "holder")

    def __init__(self) -> None:
        self.holder: Ticket | None = None
        self._line: deque[Ticket] = deque()

    @property
    def is_taken(self) -> bool:
        """Whether somebody holds it."""
        return self.holder is not None

    def enter(self) -> Ticket:
        """Join the line; the ticket must be left in the end, whether its turn came or not."""
        ticket = Ticket(self)
        if self.holder is None:
            self.holder = ticket
        else:
            self._line.append(ticket)
        return ticket

    def leave(self, ticket: Ticket) -> None:
        """Give the turn on, or a place in line up."""
        if ticket is not self.holder:
            if ticket in self._line:
                self._line.remove(ticket)
            return
        self.holder = self._line.popleft() if self._line else None
        if self.holder is not None:
            self.holder.come()


class Ticket:
    """A place in line: `async with ticket:` waits for the turn and gives it on."""

    __slots__ = ("_called", "_turn")

    def __init__(self, turn: FairLock) -> None:
        self._turn = turn
        self._called: asyncio.Future[None] | None = None

    @property
    def is_due(self) -> bool:
        """Whether the turn has come."""
        return self._turn.holder is self

    def leave(self) -> None:
        """Give the turn on, or the place in line up."""
        self._turn.leave(self)

    async def __aenter__(self) -> None:
        if not self.is_due:
            self._called = asyncio.get_running_loop().create_future()
            try:
                await self._called
            except BaseException:
                self.leave()
                raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.leave()

    def come(self) -> None:
        """The turn has come: wake whoever waits with this ticket."""
        if self._called is not None and not self._called.done():
            self._called.set_result(None)
