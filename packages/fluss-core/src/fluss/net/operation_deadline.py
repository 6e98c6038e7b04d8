"""The time limit of one call: `operation-timeout`, with all its retries and requests in it.

The first that is begun on the way down from a public call counts; what is begun inside it ends with
it, however many requests, retries and waits that are. Each step notes what it waits for, so that
the error at the end can name it.

Tasks that outlive a call must not be started inside its operation: they would inherit its end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

from fluss.errors import FlussError, RequestTimeoutError
from fluss.net.wait_notices import notices

T = TypeVar("T")


@dataclass(slots=True, kw_only=True, eq=False)
class Operation:
    """One call that is under way.

    Attributes:
        deadline: When it ends, on the loop's clock.
        limit_ms: How long that was when it began.
        waits_for: What it is waiting for, as a clause: "127.0.0.1:9123 to answer GET_METADATA".
        last_error: What its last attempt failed with.
        begun_at: When it began, on the loop's clock.
        idle_s: How long a server may keep it waiting with nothing being wrong.
    """

    deadline: float
    limit_ms: int
    waits_for: str | None = None
    last_error: FlussError | None = None
    begun_at: float = 0.0
    idle_s: float = 0.0

    @property
    def trouble(self) -> str | None:
        """What its last attempt failed with, in words."""
        return None if self.last_error is None else self.last_error.message

    def timed_out(self) -> RequestTimeoutError:
        """The error at the end of its time."""
        waited = "" if self.waits_for is None else f" It waited for {self.waits_for}."
        last = "" if self.last_error is None else f" Before that: {self.last_error.message}"
        return RequestTimeoutError(
            f"The call was given up after {self.limit_ms / 1_000:g} s.{waited}{last}",
            hint="Is the server overloaded or hung? The limit is 'operation-timeout'.",
            waits_for=self.waits_for,
            limit_ms=self.limit_ms,
        )


_current: ContextVar[Operation | None] = ContextVar("fluss_operation", default=None)


def current_operation() -> Operation | None:
    """The operation that the running task works for, if any."""
    return _current.get()


def note_waiting(waits_for: str) -> None:
    """Note what the operation of the running task waits for from now on."""
    operation = _current.get()
    if operation is not None:
        operation.waits_for = waits_for


@contextmanager
def operation(limit_ms: int, *, deadline: float | None = None) -> Iterator[Operation]:
    """Begin an operation, or take part in the one that has begun.

    Args:
        limit_ms: How long it may take.
        deadline: When it ends, where it began before: on the loop's clock.
    """
    outer = _current.get()
    if outer is not None:
        yield outer
        return
    now = asyncio.get_running_loop().time()
    begun = Operation(
        deadline=now + limit_ms / 1_000 if deadline is None else deadline,
        limit_ms=limit_ms,
        begun_at=now,
    )
    token = _current.set(begun)
    notices.begin(begun)
    try:
        yield begun
    finally:
        notices.end(begun)
        _current.reset(token)


async def limited(
    limit_ms: int, work: Callable[[Operation], Awaitable[T]], *, deadline: float | None = None
) -> T:
    """Do something as an operation of its own, or as part of the one that has begun.

    Args:
        limit_ms: How long it may take.
        work: What to do, given the operation.
        deadline: When it ends, where it began before: on the loop's clock.

    Raises:
        RequestTimeoutError: Its time was over.
    """
    outer = _current.get()
    if outer is not None:
        return await work(outer)
    with operation(limit_ms, deadline=deadline) as begun:
        return await within(begun, work(begun))


async def within(limited: Operation, work: Awaitable[T]) -> T:
    """Do something until the operation's time is over.

    Raises:
        RequestTimeoutError: It is over.
    """
    limit = asyncio.timeout_at(limited.deadline)
    try:
        async with limit:
            return await work
    except TimeoutError:
        if not limit.expired():
            raise
        raise limited.timed_out() from limited.last_error
