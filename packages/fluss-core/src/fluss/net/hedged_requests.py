"""Asking several servers for what any of them knows, without waiting long for one that hangs.

The first server is asked alone. When it fails, or has not answered for a while, the next one is
asked as well; the first answer counts, and requests that are still in flight are cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from fluss.errors import ConnectError, FlussError, RequestTimeoutError

T = TypeVar("T")
ServerT = TypeVar("ServerT")

# A working server answers within milliseconds, a busy one within this time; one more request to
# another server is cheap.
HEDGE_AFTER_S: Final = 1.0


async def first_answer(
    servers: Sequence[ServerT],
    ask: Callable[[ServerT], Awaitable[T]],
    *,
    after_s: float = HEDGE_AFTER_S,
    given_up: Callable[[ServerT], None] = lambda _: None,
) -> T:
    """Return the first answer of several servers.

    Args:
        servers: The servers, the most promising first.
        ask: Asks one of them. An error other than ConnectError and RequestTimeoutError is an
            answer, too.
        after_s: How long one is waited for before the next one is asked as well.
        given_up: Called with each server that had not answered by then.

    Raises:
        ConnectError: None of them can be reached.
        FlussError: What the first one to answer refused with.
    """
    waiting = list(servers)
    errors: list[FlussError] = []
    asked: dict[asyncio.Future[T], ServerT] = {}
    try:
        while waiting or asked:
            if waiting:
                server = waiting.pop(0)
                task = asyncio.ensure_future(ask(server))
                task.add_done_callback(_mark_retrieved)
                asked[task] = server
            done, late = await asyncio.wait(
                asked, timeout=after_s if waiting else None, return_when=asyncio.FIRST_COMPLETED
            )
            if not done:
                for waiting_for in late:
                    given_up(asked[waiting_for])
            for answered in done:
                del asked[answered]
                error = answered.exception()
                if error is None:
                    return answered.result()
                if not isinstance(error, ConnectError | RequestTimeoutError):
                    raise error
                errors.append(error)
    finally:
        for left in asked:
            left.cancel()
    raise _none_reached(errors)


def _mark_retrieved(task: asyncio.Future[T]) -> None:
    """Keep asyncio from logging an error that comes after another server's answer."""
    if not task.cancelled():
        task.exception()


def _none_reached(errors: Sequence[FlussError]) -> FlussError:
    if not errors:
        return ConnectError("The cluster names no server that could be asked.")
    if len(errors) == 1:
        return errors[0]
    return ConnectError(
        "None of the servers can be reached: " + "; ".join(each.message for each in errors),
        hint=errors[0].hint or "Is Fluss running, and do 'bootstrap.servers' name it?",
    )
