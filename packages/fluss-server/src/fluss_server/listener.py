"""A port: accepts connections, limits their number, and closes idle and stalled ones."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from fluss.errors import LocalServerError
from fluss_server.request_handler import Handler
from fluss_server.served_connection import Connection
from fluss_server.server_node import Node

_BACKLOG: Final = 1_024
_IDLE_CHECK_S: Final = 2.0


class Listener:
    """One port of a server.

    Args:
        node: The server.
        handlers: The handlers of the API keys.
        passwords: The users' passwords; None for a port without a login.
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
        self._idle_task: asyncio.Task[None] | None = None
        self.address = ("", 0)

    def __len__(self) -> int:
        return len(self._connections)

    async def open(self, host: str, port: int) -> None:
        """Begin to listen.

        Raises:
            LocalServerError: The port is in use, or the host is not an address of this machine.
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
        self._idle_task = loop.create_task(self._close_idle_forever())

    def add(self, connection: Connection) -> bool:
        """Register a connection; return False where the limit is reached.

        Where too many connections have no login yet, the new one replaces the oldest of them. Users
        log in within milliseconds, so connections that do not log in cannot keep users out.
        """
        limits = self._node.config.limits
        if not connection.auth.is_complete and len(self._pending) >= limits.logins_pending_max:
            oldest = next(iter(self._pending))
            self.remove(oldest)
            oldest.abort()
        if len(self._connections) >= limits.connections_max:
            return False
        self._connections.add(connection)
        if not connection.auth.is_complete:
            self._pending[connection] = None
        return True

    def admit(self, connection: Connection) -> None:
        """Register that a connection has logged in."""
        self._pending.pop(connection, None)

    def remove(self, connection: Connection) -> None:
        """Unregister a closed connection."""
        self._connections.discard(connection)
        self._pending.pop(connection, None)

    async def stop_accepting(self) -> None:
        """Stop to accept connections."""
        if self._idle_task is not None:
            self._idle_task.cancel()
        if self._server is not None:
            self._server.close()

    async def close(self, *, grace_s: float) -> None:
        """Finish the requests in flight, for at most `grace_s`, and close all connections."""
        pending = [
            asyncio.ensure_future(connection.finish())
            for connection in self._connections
            if connection.is_busy
        ]
        if pending:
            await asyncio.wait(pending, timeout=grace_s)
        for connection in list(self._connections):
            connection.close()
        await asyncio.sleep(0)
        for connection in list(self._connections):
            connection.abort()

    async def _close_idle_forever(self) -> None:
        while True:
            await asyncio.sleep(_IDLE_CHECK_S)
            self.close_idle(asyncio.get_running_loop().time())

    def close_idle(self, now: float) -> None:
        """Close connections that have been idle, stalled or without a login for too long."""
        limits = self._node.config.limits
        for connection in list(self._connections):
            if not connection.auth.is_complete and now - connection.opened_at > limits.login_s:
                connection.abort()
            elif connection.frame_began_at is not None:
                # A client that sends a byte now and then gets no more time than one that sends
                # none.
                allowed = limits.frame_s + connection.unfinished_bytes / limits.frame_bytes_per_s
                if now - connection.frame_began_at > allowed:
                    connection.abort()
            elif not connection.is_busy and now - connection.heard_at > limits.idle_s:
                connection.close()


def address_text(address: tuple[str, int]) -> str:
    """Return an address in the notation `host:port`."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
