"""The connections of one client: opened when first needed, shared, and reopened when lost.

It knows which servers answer: a question that any server can answer goes to the one that answered
last, and to one that was late only in the end. What is asked, and of which role, is decided in
`net.cluster_client`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial

from fluss.errors import ClosedError, ConnectError
from fluss.model.servers import Address
from fluss.net.counters import Counters
from fluss.net.handshake import open_connection
from fluss.net.network_settings import ConnectionSettings
from fluss.net.operation_deadline import note_waiting
from fluss.net.server_connection import ServerConnection
from fluss.wire.api import ServerApis


class Connections:
    """One connection per server. Lives on the engine's loop."""

    def __init__(self, settings: ConnectionSettings, *, counters: Counters) -> None:
        self._settings = settings
        self._counters = counters
        self._by_address: dict[Address, ServerConnection] = {}
        self._opening: dict[Address, asyncio.Task[ServerConnection]] = {}
        self._late: set[Address] = set()
        self._answered_last: Address | None = None
        self._closed = False

    async def to(self, advertised: Address) -> ServerConnection:
        """The connection to a server, opened where it is not.

        Raises:
            ConnectError: The server cannot be reached.
            ClosedError: All connections have been closed.
        """
        if self._closed:
            raise ClosedError(
                "The connection to the cluster has been closed.", hint="Open a new one."
            )
        address = self._reachable(advertised)
        connection = self._by_address.get(address)
        if connection is not None and connection.is_open:
            return connection
        note_waiting(f"a connection to {address}")
        task = self._opening.get(address)
        if task is None:
            task = self._opening[address] = asyncio.create_task(self._open(address))
            task.add_done_callback(partial(self._opened, address))
        try:
            return await asyncio.shield(task)
        except ConnectError as error:
            if advertised in self._settings.bootstrap:
                raise
            raise _advertised(advertised, error) from error

    def apis_of(self, servers: Iterable[Address]) -> list[ServerApis]:
        """The APIs of those servers to which there is a connection. Any thread may call it."""
        reachable = {self._reachable(each) for each in servers}
        return [each.apis for each in list(self._by_address.values()) if each.address in reachable]

    def in_asking_order(self, servers: Iterable[Address]) -> list[Address]:
        """The servers, those first that are most likely to answer soon."""
        once: dict[Address, Address] = {}
        for server in servers:
            once.setdefault(self._reachable(server), server)
        return sorted(once.values(), key=self._asking_order)

    def answered(self, advertised: Address) -> None:
        """Note that a server has answered."""
        self._answered_last = self._reachable(advertised)
        self._late.discard(self._answered_last)

    def was_late(self, advertised: Address) -> None:
        """Note that a server has not answered for a while."""
        self._late.add(self._reachable(advertised))

    def close(self) -> None:
        """Close all of them; requests in flight fail. Idempotent."""
        self._closed = True
        for task in self._opening.values():
            task.cancel()
        for connection in self._by_address.values():
            connection.close(ClosedError("The connection to the cluster has been closed."))
        self._by_address.clear()

    def _reachable(self, advertised: Address) -> Address:
        return self._settings.address_map.get(advertised, advertised)

    def _asking_order(self, advertised: Address) -> tuple[bool, bool, bool]:
        address = self._reachable(advertised)
        connection = self._by_address.get(address)
        is_open = connection is not None and connection.is_open
        return address in self._late, not is_open, address != self._answered_last

    async def _open(self, address: Address) -> ServerConnection:
        connection = await open_connection(address, self._settings, counters=self._counters)
        if self._closed:
            connection.close()
            raise ClosedError("The connection to the cluster has been closed.")
        self._by_address[address] = connection
        return connection

    def _opened(self, address: Address, task: asyncio.Task[ServerConnection]) -> None:
        self._opening.pop(address, None)
        if not task.cancelled():
            task.exception()  # retrieved: the caller may have stopped waiting for it


def _advertised(address: Address, error: ConnectError) -> ConnectError:
    return ConnectError(
        f"The cluster advertises a server at {address}, which cannot be reached from here: "
        f"{error.message}",
        hint="Where servers advertise addresses that are not reachable (containers), "
        f"'address.map' says how to reach them: {{'{address}': 'host:port'}}.",
        address=str(address),
    )
