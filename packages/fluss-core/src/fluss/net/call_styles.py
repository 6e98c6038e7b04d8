"""The ways in which a door carries out what waits: at once, awaited, or answered.

The first two run the waiting part on the engine and the dressing part (decoding, building tables)
off it: at once on the caller's own thread, awaited on a worker, so that the caller's event loop
runs on. What comes by thousands (lookups, handles of written rows) is answered without a task.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import anyio.to_thread

from fluss.errors import FlussError
from fluss.net.engine_thread import Engine
from fluss.net.handoff import ResultSink, TrioSink, result_sink_here

T = TypeVar("T")
R = TypeVar("R")


def run_blocking(engine: Engine, work: Coroutine[Any, Any, T], dress: Callable[[T], R]) -> R:
    """Run the work, block until it is done, and dress the result here."""
    return dress(engine.run(work))


def run_awaitable(
    engine: Engine, begin: Callable[[], Coroutine[Any, Any, T]], dress: Callable[[T], R]
) -> Awaitable[R]:
    """Start the work; the result is dressed on a worker thread and awaited by the caller.

    Args:
        engine: Where the work runs.
        begin: Makes the work, on the engine: what is cancelled before it has begun leaves nothing.
        dress: Makes the result of what the work gives.
    """

    async def dressed() -> R:
        return await anyio.to_thread.run_sync(dress, await begin())

    return engine.submit(dressed())


def as_awaitable(ask: Callable[[ResultSink[Any]], None], dress: Callable[[Any], R]) -> Awaitable[R]:
    """Ask something that is answered without a task of its own; any number of them is cheap.

    Args:
        ask: Sends the question off without waiting, and has its caller answered.
        dress: Makes the result of the answer; cheap, because it runs on the caller's event loop.

    Raises:
        RuntimeError: No event loop (asyncio or trio) is running in this thread.
    """
    caller = result_sink_here(dress)
    try:
        ask(caller)
    except FlussError as error:
        # Like an error of the answer: whoever gathers many gets it with the others.
        caller.fail(error)
    return caller if isinstance(caller, TrioSink) else caller.future
