"""The two ways in which a door carries out what waits: at once, or awaited.

Both run the waiting part on the engine and the dressing part (decoding, building tables) off it:
at once on the caller's own thread, awaited on a worker, so that the caller's event loop runs on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import anyio.to_thread

from fluss.engine.thread import Engine

T = TypeVar("T")
R = TypeVar("R")


def at_once(engine: Engine, work: Coroutine[Any, Any, T], dress: Callable[[T], R]) -> R:
    """Run the work, block until it is done, and dress the result here."""
    return dress(engine.run(work))


def awaited(engine: Engine, work: Coroutine[Any, Any, T], dress: Callable[[T], R]) -> Awaitable[R]:
    """Start the work; the result is dressed on a worker thread and awaited by the caller."""

    async def dressed() -> R:
        return await anyio.to_thread.run_sync(dress, await work)

    try:
        return engine.submit(dressed())
    except BaseException:
        work.close()
        raise
