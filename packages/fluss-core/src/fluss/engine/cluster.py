"""One client's way to a cluster: connections, metadata, and requests to the right server.

Lives on the engine's loop. A request is addressed to a role (the coordinator, any server) or to a
tablet server by id; connections are opened when first needed, shared, and opened again after they
were lost. Who leads a bucket is looked up in `plan.cluster` and asked for again when it proved
wrong; whether and when to try again is decided in `plan.retry`. What the answers mean is left to
the callers.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar

import anyio
from google.protobuf.message import Message

from fluss.engine.connection import ServerConnection
from fluss.engine.counters import Counters
from fluss.engine.handshake import open_connection
from fluss.engine.metadata import read_facts, write_question
from fluss.engine.newcomers import Newcomers
from fluss.errors import (
    ClosedError,
    ConnectError,
    FlussError,
    PartitionNotFoundError,
    ServerError,
    TableNotFoundError,
)
from fluss.model.cluster import Address
from fluss.model.paths import PhysicalTablePath, TableBucket, TablePath
from fluss.plan.cluster import ClusterView, Leader
from fluss.plan.retry import decide_retry
from fluss.plan.settings import ConnectionSettings
from fluss.wire import messages
from fluss.wire.api import ApiKey, ServerType
from fluss.wire.buffers import Buffer
from fluss.wire.messages import read_message, write_message
from fluss.wire.paths import write_table_path

log = logging.getLogger("fluss.cluster")

T = TypeVar("T")
AnswerT = TypeVar("AnswerT", bound=Message)

PATHS_PER_QUESTION_MAX = 500
LEADER_POLL_MS = 50
UNKNOWN_SERVER_ERROR_CODE = -1


class Cluster:
    """The servers of one cluster, as one client sees and reaches them."""

    def __init__(self, settings: ConnectionSettings, *, version: str) -> None:
        self.settings = settings
        self.view = ClusterView()
        self.counters = Counters()
        self.newcomers = Newcomers()
        self.retry_policy = settings.retry_policy
        self._version = version
        self._connections: dict[Address, ServerConnection] = {}
        self._opening: dict[Address, asyncio.Task[ServerConnection]] = {}
        self._refreshing: dict[PhysicalTablePath | None, asyncio.Task[None]] = {}
        self._closed = False

    async def open(self) -> None:
        """Find a bootstrap server that answers and learn the cluster from it; fails fast.

        Raises:
            ConnectError: No bootstrap server can be reached.
            AuthenticationError: The server did not accept the user.
        """
        await self.refresh()

    async def close(self) -> None:
        """Close every connection; requests under way fail. Twice is once."""
        self._closed = True
        for task in [*self._opening.values(), *self._refreshing.values()]:
            task.cancel()
        for connection in self._connections.values():
            connection.close(ClosedError("The connection to the cluster has been closed."))
        self._connections.clear()

    # --- asking -------------------------------------------------------------------------------

    async def ask_coordinator(
        self, api: ApiKey, request: Message, answer: type[AnswerT], *, repeatable: bool = True
    ) -> AnswerT:
        """Ask the coordinator, again where that can help and does no harm.

        Args:
            api: What to ask.
            request: The request.
            answer: The class of the answer.
            repeatable: Whether the request may reach the server twice. What changes something
                may not: it is sent again only where it has certainly not been received.
        """

        async def attempt() -> AnswerT:
            connection = await self._coordinator()
            try:
                return await self._ask(connection, api, request, answer)
            except ConnectError as error:
                if repeatable:
                    raise
                raise _in_doubt(api, error) from error

        return await self.retrying(attempt)

    async def ask_any(self, api: ApiKey, request: Message, answer: type[AnswerT]) -> AnswerT:
        """Ask whichever server answers; for what every server knows."""

        async def attempt() -> AnswerT:
            return await self._ask(await self._any_server(), api, request, answer)

        return await self.retrying(attempt)

    async def ask_server(
        self, server_id: int, api: ApiKey, request: Message, answer: type[AnswerT]
    ) -> AnswerT:
        """Ask one tablet server, once."""
        return await self._ask(await self.tablet_server(server_id), api, request, answer)

    async def send(
        self, server_id: int, api: ApiKey, body: Sequence[Buffer], *, timeout_ms: int | None = None
    ) -> memoryview:
        """Send a request that is bytes already to one tablet server, once; the answer is bytes."""
        connection = await self.tablet_server(server_id)
        return await connection.ask(
            api, body, timeout_ms=timeout_ms or self.settings.request_timeout_ms
        )

    async def offers(self, api: ApiKey) -> bool:
        """Whether the servers know an API; it decides what a newer server may be asked."""
        if not self.view.tablet_servers:
            await self.refresh()
        server_id = min(self.view.tablet_servers, default=None)
        if server_id is None:
            return False
        return (await self.tablet_server(server_id)).apis.offers(api)

    def offers_now(self, api: ApiKey) -> bool:
        """The same without asking: whether a server that is connected serves it. Any thread."""
        return any(each.apis.offers(api) for each in list(self._connections.values()))

    async def retrying(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Make an attempt again, as long as its error is one that may heal and time is left."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.settings.retry_timeout_ms / 1_000
        number = 0
        while True:
            number += 1
            try:
                return await attempt()
            except FlussError as error:
                retry = decide_retry(
                    self.retry_policy,
                    error,
                    attempt=number,
                    now=loop.time(),
                    deadline=deadline,
                    dice=random.random(),  # noqa: S311 - spreads clients, hides nothing
                )
                if retry is None or self._closed:
                    raise
                self.counters.retries += 1
                log.debug("trying again after: %s", error.message)
                await anyio.sleep(max(0.0, retry.at - loop.time()))
                if retry.refresh_metadata:
                    await self._refresh_quietly()

    # --- leaders ------------------------------------------------------------------------------

    async def leader(
        self, path: PhysicalTablePath, bucket: TableBucket, *, deadline: float | None = None
    ) -> Leader:
        """Who leads a bucket; waits while there is none, until the deadline (of the loop's clock).

        Raises:
            ConnectError: No leader was elected in time.
            TableNotFoundError: The table is gone, or another one has its name.
            PartitionNotFoundError: The same of the partition.
        """
        loop = asyncio.get_running_loop()
        if deadline is None:
            deadline = loop.time() + self.settings.retry_timeout_ms / 1_000
        why = "no leader has been elected"
        while (leader := self.view.leader_of(bucket)) is None:
            try:
                await self.refresh([path])
            except FlussError as error:
                if not error.is_retriable:
                    raise
                why = error.message
            self._check_is_same(path, bucket)
            if self.view.leader_of(bucket) is None:
                if loop.time() >= deadline:
                    raise _leaderless(path, bucket, why)
                await anyio.sleep(LEADER_POLL_MS / 1_000)
        return leader

    def _check_is_same(self, path: PhysicalTablePath, bucket: TableBucket) -> None:
        """Waiting for a leader is in vain where the name belongs to something else by now."""
        table_id = self.view.table_id(path.table_path)
        if table_id is not None and table_id != bucket.table_id:
            raise TableNotFoundError(
                f"Table '{path.table_path}' was dropped and created again.",
                hint="Get the table anew: its rows and offsets are others now.",
                table=str(path.table_path),
            )
        partition_id = self.view.partition_id(path)
        if partition_id is not None and partition_id != bucket.partition_id:
            raise PartitionNotFoundError(
                f"Partition '{path.partition_name}' of '{path.table_path}' was dropped and created "
                "again.",
                hint="List the partitions anew: its rows and offsets are others now.",
                table=str(path.table_path),
                partition=path.partition_name,
            )

    async def refresh(self, paths: Iterable[PhysicalTablePath] = ()) -> None:
        """Fetch metadata of the cluster and of these tables and partitions.

        Questions for the same path at the same time share one request.
        """
        wanted: list[PhysicalTablePath | None] = [*dict.fromkeys(paths)] or [None]
        new = [each for each in wanted if each not in self._refreshing]
        for first in range(0, len(new), PATHS_PER_QUESTION_MAX):
            chunk = new[first : first + PATHS_PER_QUESTION_MAX]
            task = asyncio.create_task(self._refresh([each for each in chunk if each is not None]))
            for path in chunk:
                self._refreshing[path] = task
            task.add_done_callback(partial(self._refreshed, chunk))
        tasks = {self._refreshing[path] for path in wanted if path in self._refreshing}
        for task in tasks:
            # Shielded: one caller who gives up must not take the answer from the others.
            await asyncio.shield(task)

    async def refresh_partition(self, table: TablePath, partition_id: int) -> None:
        """Fetch metadata of the partition with this id."""
        answer = await self._ask(
            await self._any_server(),
            ApiKey.GET_METADATA,
            write_question([PhysicalTablePath(table)], partition_ids=[partition_id]),
            messages.MetadataResponse,
        )
        self.view.learn(read_facts(answer))

    def _refreshed(self, chunk: Iterable[PhysicalTablePath | None], _: asyncio.Task[None]) -> None:
        for path in chunk:
            self._refreshing.pop(path, None)

    async def _refresh(self, paths: Sequence[PhysicalTablePath]) -> None:
        self.counters.metadata_refreshes += 1
        connection = await self._any_server()
        try:
            answer = await self._ask(
                connection, ApiKey.GET_METADATA, write_question(paths), messages.MetadataResponse
            )
        except ServerError as error:
            if error.error_code == UNKNOWN_SERVER_ERROR_CODE:
                # That is how 0.9.1 says that one of the tables does not exist; another question
                # gets the answer that has a code.
                await self._find_missing_table(connection, paths)
            raise
        self.view.learn(read_facts(answer))

    async def _find_missing_table(
        self, connection: ServerConnection, paths: Sequence[PhysicalTablePath]
    ) -> None:
        for table in dict.fromkeys(each.table_path for each in paths):
            request = messages.GetTableInfoRequest(table_path=write_table_path(table))
            await self._ask(
                connection, ApiKey.GET_TABLE_INFO, request, messages.GetTableInfoResponse
            )

    async def _refresh_quietly(self) -> None:
        try:
            await self.refresh()
        except FlussError as error:
            # The attempt that follows will fail in its own words, if it still has to.
            log.debug("metadata could not be refreshed: %s", error.message)

    # --- connections --------------------------------------------------------------------------

    async def _ask(
        self, connection: ServerConnection, api: ApiKey, request: Message, answer: type[AnswerT]
    ) -> AnswerT:
        body = await connection.ask(
            api, [write_message(request)], timeout_ms=self.settings.request_timeout_ms
        )
        return read_message(answer, body)

    async def _coordinator(self) -> ServerConnection:
        if self.view.coordinator is None:
            await self.refresh()
        if self.view.coordinator is None:
            raise ConnectError(
                "The cluster names no coordinator at the moment.",
                hint="Is the coordinator server running?",
            )
        connection = await self._connection(self.view.coordinator)
        connection.apis.check_type(ServerType.COORDINATOR)
        return connection

    async def tablet_server(self, server_id: int) -> ServerConnection:
        """The connection to a tablet server, opened where it is not.

        Raises:
            ConnectError: The cluster has no such server any more, or it cannot be reached.
        """
        address = self.view.tablet_servers.get(server_id)
        if address is None:
            raise ConnectError(f"Tablet server {server_id} is not part of the cluster any more.")
        connection = await self._connection(address)
        connection.apis.check_type(ServerType.TABLET_SERVER)
        return connection

    async def _any_server(self) -> ServerConnection:
        for connection in self._connections.values():
            if connection.is_open:
                return connection
        errors: list[FlussError] = []
        known = [*self.view.tablet_servers.values(), self.view.coordinator]
        for address in dict.fromkeys([*self.settings.bootstrap, *filter(None, known)]):
            try:
                return await self._connection(address)
            except ConnectError as error:
                errors.append(error)
        if len(errors) == 1:
            raise errors[0]
        raise ConnectError(
            "None of the servers can be reached: " + "; ".join(each.message for each in errors),
            hint="Is Fluss running, and do 'bootstrap.servers' name it?",
        )

    async def _connection(self, advertised: Address) -> ServerConnection:
        if self._closed:
            raise ClosedError(
                "The connection to the cluster has been closed.", hint="Open a new one."
            )
        address = self.settings.address_map.get(advertised, advertised)
        connection = self._connections.get(address)
        if connection is not None and connection.is_open:
            return connection
        task = self._opening.get(address)
        if task is None:
            task = self._opening[address] = asyncio.create_task(self._open(address))
            task.add_done_callback(lambda _: self._opening.pop(address, None))
        try:
            return await asyncio.shield(task)
        except ConnectError as error:
            if advertised in self.settings.bootstrap:
                raise
            raise _advertised(advertised, error) from error

    async def _open(self, address: Address) -> ServerConnection:
        connection = await open_connection(
            address, self.settings, counters=self.counters, version=self._version
        )
        if self._closed:
            connection.close()
            raise ClosedError("The connection to the cluster has been closed.")
        self._connections[address] = connection
        return connection


def _leaderless(path: PhysicalTablePath, bucket: TableBucket, why: str) -> ConnectError:
    return ConnectError(
        f"Bucket {bucket.bucket_id} of {path} has no leader: {why}.",
        hint="Are all tablet servers running? A new leader takes as long as the ZooKeeper session "
        "of the old one (60 s by default).",
        table=str(path.table_path),
        bucket=bucket.bucket_id,
    )


def _advertised(address: Address, error: ConnectError) -> ConnectError:
    return ConnectError(
        f"The cluster advertises a server at {address}, which cannot be reached from here: "
        f"{error.message}",
        hint="Where servers advertise addresses that are not reachable (containers), "
        f"'address.map' says how to reach them: {{'{address}': 'host:port'}}.",
        address=str(address),
    )


def _in_doubt(api: ApiKey, error: ConnectError) -> FlussError:
    return FlussError(
        f"The connection ended while {api.name} was under way: {error.message} "
        "The server may or may not have carried it out.",
        error.error_code,
        hint="Look whether it has been done before you do it again.",
    )
