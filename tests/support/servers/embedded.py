"""An embedded server on its own event loop in this process, with a test's clock and limits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fluss_server.server import Server
from fluss_server.server_config import Durability, ServerConfig

PATIENCE_S = 20.0


class Clock:
    """A clock that the test sets."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms


class RunningServer:
    """A server, and access to its event loop."""

    def __init__(self, server: Server, loop: asyncio.AbstractEventLoop) -> None:
        self.server = server
        self.loop = loop
        self.address = server.bootstrap_servers
        self.sasl_address = server.sasl_bootstrap_servers

    @property
    def node(self) -> Any:
        return self.server.node

    def on_loop(self, work: Callable[[], Any]) -> Any:
        """Call a function on the server's loop, and await its result where it is awaitable."""

        async def call() -> Any:
            outcome = work()
            return await outcome if asyncio.iscoroutine(outcome) else outcome

        return asyncio.run_coroutine_threadsafe(call(), self.loop).result(PATIENCE_S)


@contextmanager
def running(
    directory: Path, *, clock: Clock | None = None, **config: Any
) -> Iterator[RunningServer]:
    """Run a server for the duration of the block."""
    config.setdefault("durability", Durability.NONE)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    arguments = {} if clock is None else {"clock": clock}
    server = Server(ServerConfig(directory=directory, **config), **arguments)
    try:
        asyncio.run_coroutine_threadsafe(server.start(), loop).result(PATIENCE_S)
        try:
            yield RunningServer(server, loop)
        finally:
            asyncio.run_coroutine_threadsafe(server.stop(), loop).result(PATIENCE_S)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE_S)
        loop.close()
