"""One client's way to a cluster: connections, metadata, and requests to the right server.

Lives on the engine's loop. A request is addressed to a role (the coordinator, any server) or to a
tablet server by id. A question that any server can answer goes to another one when one fails or
hangs (`net.hedged_requests`). The leader of a bucket is looked up in `net.plan_routing` and asked
for again when it proved wrong. `net.plan_retry` decides whether and when to retry, and the call's
operation for how long (`net.operation_deadline`). What the answers mean is left to the callers.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

import anyio
from google.protobuf.message import Message

from fluss.errors import (
    ConnectError,
    FlussError,
    PartitionNotFoundError,
    RequestTimeoutError,
    ServerError,
    TableNotFoundError,
)
from fluss.model.paths import PhysicalTablePath, TableBucket, TablePath
from fluss.model.servers import Address
from fluss.net.counters import Counters
from fluss.net.ddl_pacing import DdlPacing
from fluss.net.hedged_requests import first_answer
from fluss.net.network_settings import ConnectionSettings
from fluss.net.operation_deadline import Operation, limited, note_waiting
from fluss.net.plan_retry import decide_retry
from fluss.net.plan_routing import ClusterView, Leader, write_question
from fluss.net.server_connection import ServerConnection
from fluss.net.server_connections import Connections
from fluss.wire import messages
from fluss.wire.api import ApiKey, ServerApis, ServerRole, api_of
from fluss.wire.byte_buffers import Buffer
from fluss.wire.messages import read_message, write_message
from fluss.wire.table_paths import write_table_path

log = logging.getLogger("fluss.cluster")

T = TypeVar("T")
AnswerT = TypeVar("AnswerT", bound=Message)

PATHS_PER_QUESTION_MAX = 500
LEADER_POLL_MS = 50
UNKNOWN_SERVER_ERROR_CODE = -1


class Cluster:
    """The servers of one cluster, as one client sees and reaches them."""

    def __init__(self, settings: ConnectionSettings) -> None:
        self.settings = settings
        self.view = ClusterView()
        self.counters = Counters()
        self.ddl_pacing = DdlPacing()
        # Grows whenever facts of tables that were learned before may have become wrong.
        self.metadata_epoch = 0
        self.retry_policy = settings.retry_policy
        self._connections = Connections(settings, counters=self.counters)
        self._refreshing: dict[PhysicalTablePath | None, asyncio.Task[None]] = {}
        self._closed = False

    async def open(self) -> None:
        """Find a bootstrap server and a tablet server that answer, and learn the cluster from them.

        Fails fast where none can be reached: the addresses may be wrong.

        Raises:
            ConnectError: No bootstrap server, or no tablet server, can be reached.
            AuthenticationError: The server did not accept the user.
        """

        async def look(_: Operation) -> None:
            await self.refresh()
            await self._tablet_server_apis()

        await limited(self.settings.retry_timeout_ms, look)

    async def close(self) -> None:
        """Close every connection; requests in flight fail. Idempotent."""
        self._closed = True
        for task in self._refreshing.values():
            task.cancel()
        self._connections.close()

    async def in_one_call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run work that takes several requests, all of them within one `operation-timeout`.

        Raises:
            RequestTimeoutError: The deadline has passed.
        """
        return await limited(self.settings.retry_timeout_ms, lambda _: work)

    # --- asking -------------------------------------------------------------------------------

    async def ask_coordinator(
        self,
        request: Message,
        answer_type: type[AnswerT],
        *,
        repeatable: bool = True,
        version_min: int = 0,
    ) -> AnswerT:
        """Ask the coordinator, with retries where they can help and do no harm.

        Args:
            request: The request.
            answer_type: The class of the answer.
            repeatable: Whether the request may reach the server twice. One that changes something
                may not: it is sent again only where it has certainly not been received.
            version_min: The lowest version of the API that understands all of the request.

        Raises:
            UnsupportedVersionError: The coordinator does not serve the API, or not this version.
        """
        api = api_of(request)
        is_in_flight = False

        async def attempt() -> AnswerT | FlussError:
            nonlocal is_in_flight
            connection = await self._coordinator()
            connection.apis.check_version(api, version_min)
            answer = await self._send(connection, api, [write_message(request)])
            is_in_flight = True
            try:
                return read_message(answer_type, await answer)
            except (ConnectError, RequestTimeoutError) as error:
                if repeatable:
                    raise
                return _in_doubt(api, error)
            finally:
                is_in_flight = answer.cancelled()

        try:
            found = await self.retrying(attempt)
        except RequestTimeoutError as error:
            if is_in_flight and not repeatable:
                raise _in_doubt(api, error) from error
            raise
        finally:
            if not repeatable:
                # After the answer: what is learned meanwhile may be from before the change.
                self.metadata_epoch += 1
        if isinstance(found, FlussError):
            raise found
        return found

    async def ask_any(self, request: Message, answer: type[AnswerT]) -> AnswerT:
        """Ask any server that answers; for what every server knows."""
        return await self.retrying(lambda: self._ask_any(request, answer))

    async def ask_server(self, server_id: int, request: Message, answer: type[AnswerT]) -> AnswerT:
        """Ask one tablet server, once."""
        return await self._ask(await self.tablet_server(server_id), request, answer)

    async def send(
        self,
        server_id: int,
        api: ApiKey,
        body: Sequence[Buffer],
        *,
        deadline: float | None = None,
        idle_ms: int = 0,
    ) -> memoryview:
        """Send a request that is bytes already to one tablet server, once; the answer is bytes.

        Args:
            server_id: The server.
            api: The API.
            body: The request.
            deadline: When the call ends that needs the answer, on the loop's clock.
            idle_ms: How long the server may wait before it answers with nothing.
        """

        async def send(call: Operation) -> memoryview:
            call.idle_s = idle_ms / 1_000
            connection = await self.tablet_server(server_id)
            return await (await self._send(connection, api, body))

        return await limited(self.settings.retry_timeout_ms, send, deadline=deadline)

    async def offers(self, api: ApiKey) -> bool:
        """Whether all tablet servers that are known offer an API; asks one where none is known."""
        known = self._known_apis() or await self.retrying(self._tablet_server_apis)
        return bool(known) and all(each.offers(api) for each in known)

    def offers_now(self, api: ApiKey) -> bool:
        """The same without asking, as far as is known. Any thread may call it."""
        known = self._known_apis()
        return bool(known) and all(each.offers(api) for each in known)

    def _known_apis(self) -> list[ServerApis]:
        found = self._connections.apis_of(self.view.tablet_servers.values())
        return [each for each in found if each.server_type is not ServerRole.COORDINATOR]

    async def _tablet_server_apis(self) -> list[ServerApis]:
        """The APIs of a tablet server; empty where the cluster names none."""
        if not self.view.tablet_servers:
            await self.refresh()
        if not self.view.tablet_servers:
            return []
        connection = await self._first_answer(
            self.view.tablet_servers.values(), self._tablet_server_at
        )
        return [connection.apis]

    async def retrying(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Repeat an attempt as long as its error is retriable and time is left.

        Raises:
            RequestTimeoutError: The call's deadline passed during an attempt.
            FlussError: The error of the last attempt.
        """
        return await limited(
            self.settings.retry_timeout_ms, lambda begun: self._retrying(attempt, begun)
        )

    async def _retrying(self, attempt: Callable[[], Awaitable[T]], call: Operation) -> T:
        loop = asyncio.get_running_loop()
        number = 0
        while True:
            number += 1
            try:
                result = await attempt()
            except FlussError as error:
                call.last_error = error
                retry = decide_retry(
                    self.retry_policy,
                    error,
                    attempt=number,
                    now=loop.time(),
                    deadline=call.deadline,
                    jitter=random.random(),  # noqa: S311 - spreads clients, hides nothing
                )
                if retry is None or self._closed:
                    raise
                self.counters.retries += 1
                log.debug("retrying after: %s", error.message)
                await anyio.sleep(max(0.0, retry.at - loop.time()))
                if retry.refresh_metadata:
                    await self._refresh_quietly()
            else:
                call.last_error = None
                return result

    # --- leaders ------------------------------------------------------------------------------

    async def leader(self, path: PhysicalTablePath, bucket: TableBucket) -> Leader:
        """The leader of a bucket; waits while there is none.

        Raises:
            ConnectError: No leader was elected in time.
            TableNotFoundError: The table is gone, or another one has its name.
            PartitionNotFoundError: The same of the partition.
        """
        leader = self.view.leader_of(bucket)
        if leader is not None:
            return leader
        return await limited(
            self.settings.retry_timeout_ms, lambda call: self._wait_for_leader(path, bucket, call)
        )

    async def _wait_for_leader(
        self, path: PhysicalTablePath, bucket: TableBucket, call: Operation
    ) -> Leader:
        loop = asyncio.get_running_loop()
        why = "no leader has been elected"
        while (leader := self.view.leader_of(bucket)) is None:
            try:
                await self.refresh([path])
            except FlussError as error:
                if not error.is_retriable:
                    raise
                why = error.message.rstrip(".")
                call.last_error = error
            self._check_is_same(path, bucket)
            if self.view.leader_of(bucket) is None:
                note_waiting(f"a leader of bucket {bucket.bucket_id} of {path}")
                pause_s = LEADER_POLL_MS / 1_000
                leaderless = _leaderless(path, bucket, why, servers=len(self.view.tablet_servers))
                if loop.time() + pause_s >= call.deadline:
                    raise leaderless
                # The time may also end while the servers are asked once more.
                call.last_error = leaderless
                await anyio.sleep(pause_s)
        return leader

    def _check_is_same(self, path: PhysicalTablePath, bucket: TableBucket) -> None:
        """Refuse to wait for a leader where the name belongs to another table by now."""
        table_id = self.view.table_id(path.table_path)
        if table_id is not None and table_id != bucket.table_id:
            raise TableNotFoundError(
                f"Table '{path.table_path}' was dropped and created again.",
                hint="Get the table again: its rows and offsets are others now.",
                table=str(path.table_path),
            )
        partition_id = self.view.partition_id(path)
        if partition_id is not None and partition_id != bucket.partition_id:
            raise PartitionNotFoundError(
                f"Partition '{path.partition_name}' of '{path.table_path}' was dropped and created "
                "again.",
                hint="List the partitions again: its rows and offsets are others now.",
                table=str(path.table_path),
                partition=path.partition_name,
            )

    async def refresh(self, paths: Iterable[PhysicalTablePath] = ()) -> None:
        """Fetch metadata of the cluster and of these tables and partitions.

        Concurrent questions for the same path share one request.
        """
        requested: list[PhysicalTablePath | None] = [*dict.fromkeys(paths)] or [None]
        new = [path for path in requested if path not in self._refreshing]
        for first in range(0, len(new), PATHS_PER_QUESTION_MAX):
            chunk = new[first : first + PATHS_PER_QUESTION_MAX]
            task = asyncio.create_task(self._refresh([path for path in chunk if path is not None]))
            for path in chunk:
                self._refreshing[path] = task
            task.add_done_callback(partial(self._refreshed, chunk))
        tasks = {self._refreshing[path] for path in requested if path in self._refreshing}
        for task in tasks:
            # Shielded: one caller that stops waiting must not cancel the request of the others.
            await asyncio.shield(task)

    async def refresh_partition(self, table: TablePath, partition_id: int) -> None:
        """Fetch metadata of the partition with this id."""
        question = write_question([PhysicalTablePath(table)], partition_ids=[partition_id])
        answer = await self._ask_any(question, messages.MetadataResponse)
        self.view.learn(answer)

    def _refreshed(
        self, chunk: Iterable[PhysicalTablePath | None], task: asyncio.Task[None]
    ) -> None:
        if not task.cancelled():
            # Callers that wait raise it. Without one, asyncio would log it with a traceback.
            task.exception()
        for path in chunk:
            self._refreshing.pop(path, None)

    async def _refresh(self, paths: Sequence[PhysicalTablePath]) -> None:
        self.counters.metadata_refreshes += 1
        try:
            answer = await self._ask_any(write_question(paths), messages.MetadataResponse)
        except PartitionNotFoundError:
            if len(paths) == 1:
                # Its id was given by a server that had not heard yet that it was dropped.
                self.view.forget_partition(paths[0])
            raise
        except ServerError as error:
            self.metadata_epoch += 1
            if error.error_code == UNKNOWN_SERVER_ERROR_CODE:
                # 0.9.1 reports a table that does not exist in this way; another request gets the
                # error with its code.
                await self._find_missing_table(paths)
            raise
        self.view.learn(answer)

    async def _find_missing_table(self, paths: Sequence[PhysicalTablePath]) -> None:
        for table in dict.fromkeys(each.table_path for each in paths):
            request = messages.GetTableInfoRequest(table_path=write_table_path(table))
            await self._ask_any(request, messages.GetTableInfoResponse)

    async def _refresh_quietly(self) -> None:
        try:
            await self.refresh()
        except FlussError as error:
            # The next attempt reports its own error, if it still fails.
            log.debug("metadata could not be refreshed: %s", error.message)

    # --- servers ------------------------------------------------------------------------------

    async def _ask_any(self, request: Message, answer: type[AnswerT]) -> AnswerT:
        """Ask the servers, one after the other, until one answers."""
        known = [*self.view.tablet_servers.values(), self.view.coordinator]

        async def ask(server: Address) -> AnswerT:
            return await self._ask(await self._connections.to(server), request, answer)

        return await self._first_answer([*self.settings.bootstrap, *filter(None, known)], ask)

    async def _first_answer(
        self, servers: Iterable[Address], ask: Callable[[Address], Awaitable[T]]
    ) -> T:
        async def noted(server: Address) -> T:
            answer = await ask(server)
            self._connections.answered(server)
            return answer

        return await first_answer(
            self._connections.in_asking_order(servers), noted, given_up=self._connections.was_late
        )

    async def ask_any_tablet_server(self, request: Message, answer: type[AnswerT]) -> AnswerT:
        """Ask the tablet servers, one after the other, until one answers; one round."""

        async def ask(server: Address) -> AnswerT:
            return await self._ask(await self._tablet_server_at(server), request, answer)

        return await self._first_answer(self.view.tablet_servers.values(), ask)

    async def _ask(
        self, connection: ServerConnection, request: Message, answer: type[AnswerT]
    ) -> AnswerT:
        sent = await self._send(connection, api_of(request), [write_message(request)])
        return read_message(answer, await sent)

    async def _send(
        self, connection: ServerConnection, api: ApiKey, body: Sequence[Buffer]
    ) -> asyncio.Future[memoryview]:
        note_waiting(f"{connection.address} to answer {api.name}")
        return await connection.send(api, body, timeout_ms=self.settings.request_timeout_ms)

    async def _coordinator(self) -> ServerConnection:
        if self.view.coordinator is None:
            await self.refresh()
        if self.view.coordinator is None:
            raise ConnectError(
                "The cluster names no coordinator at the moment.",
                hint="Is the coordinator server running?",
            )
        connection = await self._connections.to(self.view.coordinator)
        connection.apis.check_type(ServerRole.COORDINATOR)
        return connection

    async def tablet_server(self, server_id: int) -> ServerConnection:
        """The connection to a tablet server, opened where it is not.

        Raises:
            ConnectError: The cluster no longer has this server, or it cannot be reached.
        """
        address = self.view.tablet_servers.get(server_id)
        if address is None:
            raise ConnectError(f"Tablet server {server_id} is no longer part of the cluster.")
        return await self._tablet_server_at(address)

    async def _tablet_server_at(self, address: Address) -> ServerConnection:
        connection = await self._connections.to(address)
        connection.apis.check_type(ServerRole.TABLET_SERVER)
        return connection


def _leaderless(
    path: PhysicalTablePath, bucket: TableBucket, why: str, *, servers: int
) -> ConnectError:
    hint = "Is the server running?"
    if servers > 1:
        hint = (
            "Are all tablet servers running? Another replica leads when the cluster has given up "
            "the old leader, after 60 s by default."
        )
    return ConnectError(
        f"Bucket {bucket.bucket_id} of {path} has no leader: {why}.",
        hint=hint,
        table=str(path.table_path),
        bucket=bucket.bucket_id,
    )


def _in_doubt(api: ApiKey, error: FlussError) -> FlussError:
    return FlussError(
        f"No answer to {api.name} came: {error.message} "
        "The server may or may not have carried it out.",
        error.error_code,
        hint="Check whether it has been carried out before you repeat it.",
    )
