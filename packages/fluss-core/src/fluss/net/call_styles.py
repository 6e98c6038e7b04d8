"""Three ways to run work on the engine: blocking, awaitable, and awaitable without a task.

The first two run the waiting part on the engine and the conversion of its result (decoding,
building tables) off it: a blocking call on the caller's own thread, an awaitable on a worker, so
that the caller's event loop is not blocked. Calls that come by thousands (lookups, handles of
written rows) take the third way.
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


def run_blocking(engine: Engine, work: Coroutine[Any, Any, T], convert: Callable[[T], R]) -> R:
    """Run the work, block until it is done, and convert the result on this thread."""
    return convert(engine.run(work))


def run_awaitable(
    engine: Engine, begin: Callable[[], Coroutine[Any, Any, T]], convert: Callable[[T], R]
) -> Awaitable[R]:
    """Start the work; its result is converted on a worker thread and awaited by the caller.

    Args:
        engine: Where the work runs.
        begin: Makes the work, on the engine: work that is cancelled before it begins is never made.
        convert: Makes the caller's result of the result of the work.
    """

    async def converted() -> R:
        return await anyio.to_thread.run_sync(convert, await begin())

    return engine.submit(converted())


def as_awaitable(
    ask: Callable[[ResultSink[Any]], None], convert: Callable[[Any], R]
) -> Awaitable[R]:
    """Send a question that is answered without a task of its own, so that many of them are cheap.

    Args:
        ask: Sends the question without waiting, and has the answer given to the sink.
        convert: Makes the caller's result of the answer, on the caller's event loop: it must be
            cheap.

    Raises:
        RuntimeError: No event loop (asyncio or trio) is running in this thread.
    """
    sink = result_sink_here(convert)
    try:
        ask(sink)
    except FlussError as error:
        # Raised where the answer is awaited: a caller that gathers many gets it with the others.
        sink.fail(error)
    return sink if isinstance(sink, TrioSink) else sink.future
