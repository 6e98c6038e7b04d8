"""A port: accepts connections, counts them, and closes those that only take up room."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from fluss.errors import LocalServerError
from fluss_server.request import Handler
from fluss_server.served_connection import Connection
from fluss_server.server_node import Node

_BACKLOG: Final = 1_024
_SWEEP_S: Final = 2.0


class Listener:
    """One port of a server.

    Args:
        node: The server.
        handlers: What it serves.
        passwords: The users' passwords; None where everybody may come in.
    """

    def __init__(
        self,
        node: Node,
        handlers: Mapping[int, Handler],
        *,
        passwords: Mapping[str, str] | None = None,
    ) -> None:
        self.passwords = passwords
        self._node = node
        self._handlers = handlers
        self._connections: set[Connection] = set()
        # Connections without a login, the oldest first.
        self._pending: dict[Connection, None] = {}
        self._server: asyncio.Server | None = None
        self._sweeper: asyncio.Task[None] | None = None
        self.address = ("", 0)

    def __len__(self) -> int:
        return len(self._connections)

    async def open(self, host: str, port: int) -> None:
        """Begin to listen.

        Raises:
            LocalServerError: The port is taken, or the host is not this machine's.
        """
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                lambda: Connection(self._node, self._handlers, self), host, port, backlog=_BACKLOG
            )
        except OSError as error:
            raise LocalServerError(
                f"The server cannot listen on {host}:{port}: {error.strerror or error}.",
                hint="Name another port, or 0 for a free one.",
                port=port,
            ) from error
        self.address = self._server.sockets[0].getsockname()[:2]
        self._sweeper = loop.create_task(self._sweep_forever())

    def add(self, connection: Connection) -> bool:
        """Take a connection in; False where there are too many.

        Where too many have no login yet, the new one replaces the oldest of them: a user logs in
        within milliseconds, so a crowd that does not cannot keep users out.
        """
        limits = self._node.config.limits
        if not connection.gate.is_open and len(self._pending) >= limits.logins_pending_max:
            oldest = next(iter(self._pending))
            self.remove(oldest)
            oldest.abort()
        if len(self._connections) >= limits.connections_max:
            return False
        self._connections.add(connection)
        if not connection.gate.is_open:
            self._pending[connection] = None
        return True

    def admit(self, connection: Connection) -> None:
        """Take note of a login."""
        self._pending.pop(connection, None)

    def remove(self, connection: Connection) -> None:
        """Forget a connection that was closed."""
        self._connections.discard(connection)
        self._pending.pop(connection, None)

    async def stop_accepting(self) -> None:
        """Let nobody in any more."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        if self._server is not None:
            self._server.close()

    async def close(self, *, grace_s: float) -> None:
        """Answer what was begun, within a time, and close all connections."""
        pending = [
            asyncio.ensure_future(each.finish()) for each in self._connections if each.is_busy
        ]
        if pending:
            await asyncio.wait(pending, timeout=grace_s)
        for each in list(self._connections):
            each.close()
        await asyncio.sleep(0)
        for each in list(self._connections):
            each.abort()

    async def _sweep_forever(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_S)
            self.sweep(asyncio.get_running_loop().time())

    def sweep(self, now: float) -> None:
        """Close connections that have been silent, unfinished or outside for too long."""
        limits = self._node.config.limits
        for each in list(self._connections):
            if not each.gate.is_open and now - each.opened_at > limits.login_s:
                each.abort()
            elif each.frame_began_at is not None:
                # Whoever sends a byte now and then gets no longer than whoever sends none.
                allowed = limits.frame_s + each.unfinished_bytes / limits.frame_bytes_per_s
                if now - each.frame_began_at > allowed:
                    each.abort()
            elif not each.is_busy and now - each.heard_at > limits.idle_s:
                each.close()


def listening(address: tuple[str, int]) -> str:
    """An address as people write it."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
