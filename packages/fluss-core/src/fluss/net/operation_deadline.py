"""The time limit of one call: `operation-timeout`, with all its retries and requests in it.

The outermost operation of a public call counts: all requests, retries and waits inside it end with
it. Each step notes what it waits for, so that the error at the end can name it.

Tasks that outlive a call must not be started inside its operation: they would inherit its deadline.
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
    """One call in progress.

    Attributes:
        deadline: When it ends, on the loop's clock.
        limit_ms: How long that was when it began.
        waits_for: What it is waiting for, as a clause: "127.0.0.1:9123 to answer GET_METADATA".
        last_error: The error of its last attempt.
        begun_at: When it began, on the loop's clock.
        idle_s: How long a server may keep it waiting when all is well.
    """

    deadline: float
    limit_ms: int
    waits_for: str | None = None
    last_error: FlussError | None = None
    begun_at: float = 0.0
    idle_s: float = 0.0

    @property
    def trouble(self) -> str | None:
        """The error of its last attempt, in words."""
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


def note_waiting(waits_for: str) -> None:
    """Note what the operation of the running task waits for now."""
    operation = _current.get()
    if operation is not None:
        operation.waits_for = waits_for


@contextmanager
def operation(limit_ms: int, *, deadline: float | None = None) -> Iterator[Operation]:
    """Begin an operation, or join the one in progress.

    Args:
        limit_ms: How long it may take.
        deadline: When it ends, on the loop's clock, where it began earlier.
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
    """Run `work` as an operation of its own, or as part of the one in progress.

    Args:
        limit_ms: How long it may take.
        work: The work; gets the operation.
        deadline: When it ends, on the loop's clock, where it began earlier.

    Raises:
        RequestTimeoutError: The deadline has passed.
    """
    outer = _current.get()
    if outer is not None:
        return await work(outer)
    with operation(limit_ms, deadline=deadline) as begun:
        return await within(begun, work(begun))


async def within(limited: Operation, work: Awaitable[T]) -> T:
    """Await `work` until the operation's deadline.

    Raises:
        RequestTimeoutError: The deadline has passed.
    """
    limit = asyncio.timeout_at(limited.deadline)
    try:
        async with limit:
            return await work
    except TimeoutError:
        if not limit.expired():
            raise
        raise limited.timed_out() from limited.last_error
