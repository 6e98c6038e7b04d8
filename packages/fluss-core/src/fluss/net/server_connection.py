"""One TCP connection to one server: many requests in flight, each with its deadline.

Frames are received directly into the splitter's memory and matched to their requests by id; bodies
are passed on undecoded. What is not here: opening a connection with its handshake
(`net.handshake`), choosing a server and trying again (`net.cluster_client`).
"""

from __future__ import annotations

import asyncio
import copy
import logging
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import cast

import anyio

from fluss.errors import ConnectError, FlussError, ProtocolError, RequestTimeoutError
from fluss.model.servers import Address
from fluss.net.counters import Counters
from fluss.wire.api import ApiKey, ServerApis
from fluss.wire.byte_buffers import Buffer, count_bytes
from fluss.wire.frame import RequestHeader, ResponseType, read_response, write_request
from fluss.wire.messages import read_error
from fluss.wire.splitter import FrameSplitter
from fluss.wire.zero_copy.fetch_log import find_first_records

log = logging.getLogger("fluss.connection")

REQUESTS_IN_FLIGHT_MAX = 1_024
# Servers send large answers 8 KiB at a time. Waking up for each of these costs more than all other
# work of receiving them; a few wake-ups per megabyte are enough to keep the readers busy.
WAKE_UP_BYTES_MAX = 256 * 1024
_REQUEST_IDS = 2**31 - 1


@dataclass(slots=True, eq=False)
class _Pending:
    api: ApiKey
    answer: asyncio.Future[memoryview]
    sent_at: float
    receipts_before: int
    timer: asyncio.TimerHandle


class ServerConnection(asyncio.BufferedProtocol):
    """Sends requests to one server and returns the answers. Lives on the engine's loop."""

    def __init__(self, address: Address, *, counters: Counters, frame_bytes_max: int) -> None:
        self.address = address
        # The server's APIs, as the handshake learns them. Until then only those of the handshake.
        self.apis = ServerApis.of([ApiKey.API_VERSIONS, ApiKey.AUTHENTICATE])
        self._counters = counters
        self._loop = asyncio.get_running_loop()
        self._splitter = FrameSplitter(frame_bytes_max=frame_bytes_max, aligned_at=self._aligned_at)
        self._transport: asyncio.Transport | None = None
        self._socket: socket.socket | None = None
        self._wake_up_bytes = 1
        self._pending: dict[int, _Pending] = {}
        self._last_id = 0
        self._receipts = 0  # how often bytes have been received
        self._is_writable = True
        self._room = asyncio.Event()  # set when there may be room again
        self._end: FlussError | None = None

    @property
    def is_open(self) -> bool:
        """Whether requests can be sent."""
        return self._end is None and self._transport is not None

    async def ask(self, api: ApiKey, body: Sequence[Buffer], *, timeout_ms: int) -> memoryview:
        """Send one request and wait for its answer, undecoded.

        Raises:
            UnsupportedVersionError: The server does not know the API; it would not answer at all.
            ConnectError: The connection ended before the answer came.
            RequestTimeoutError: No answer came in time. A server does not answer a request that
                it does not know or cannot read at all.
            FlussError: The server's error, by its code.
        """
        return await (await self.send(api, body, timeout_ms=timeout_ms))

    async def send(
        self, api: ApiKey, body: Sequence[Buffer], *, timeout_ms: int
    ) -> asyncio.Future[memoryview]:
        """Send one request; where this raises, nothing of the request has been sent.

        Returns:
            The answer to come, undecoded, or the error of `ask`.

        Raises:
            UnsupportedVersionError: The server does not know the API.
            ConnectError: The connection has ended.
            RequestTimeoutError: There was no room for the request in time.
        """
        version = self.apis.version(api)
        if not self._has_room():
            await self._wait_for_room(api, timeout_ms)
        return self._send(api, version, body, timeout_ms)

    def close(self, error: FlussError | None = None) -> None:
        """End the connection; requests in flight fail."""
        self._finish(error or ConnectError(f"The connection to {self.address} has been closed."))
        if self._transport is not None:
            self._transport.abort()

    # --- sending ------------------------------------------------------------------------------

    def _has_room(self) -> bool:
        return self._end is not None or (
            self._is_writable and len(self._pending) < REQUESTS_IN_FLIGHT_MAX
        )

    async def _wait_for_room(self, api: ApiKey, timeout_ms: int) -> None:
        with anyio.move_on_after(timeout_ms / 1_000) as limit:
            while not self._has_room():
                self._room.clear()
                await self._room.wait()
        if limit.cancelled_caught:
            self._counters.of(api.name).timed_out += 1
            raise self._timed_out(api, timeout_ms)

    def _timed_out(self, api: ApiKey, timeout_ms: int) -> RequestTimeoutError:
        return RequestTimeoutError(
            f"{self.address} did not answer {api.name} within {timeout_ms} ms.",
            hint="Is the server overloaded or hung? The limit is 'request-timeout'.",
            address=str(self.address),
        )

    def _send(
        self, api: ApiKey, version: int, body: Sequence[Buffer], timeout_ms: int
    ) -> asyncio.Future[memoryview]:
        if self._end is not None:
            # An error that is raised more than once must not collect tracebacks.
            raise copy.copy(self._end)
        if self._transport is None:
            raise AssertionError("a request before the connection was made")
        request_id = self._next_id()
        header = RequestHeader(api_key=api, api_version=version, request_id=request_id)
        frame = write_request(header, body)
        now = perf_counter()
        timer = self._loop.call_later(timeout_ms / 1_000, self._expire, request_id, timeout_ms)
        answer = self._loop.create_future()
        self._pending[request_id] = _Pending(api, answer, now, self._receipts, timer)
        answer.add_done_callback(
            lambda done: self._forget(request_id) if done.cancelled() else None
        )
        self._transport.writelines(frame)
        self._counters.of(api.name).sent += 1
        self._counters.bytes_sent += count_bytes(frame)
        if log.isEnabledFor(logging.DEBUG):
            log.debug("%s v%d #%d -> %s", api.name, version, request_id, self.address)
        return answer

    def _next_id(self) -> int:
        self._last_id = self._last_id % _REQUEST_IDS + 1
        return self._last_id

    def _forget(self, request_id: int) -> _Pending | None:
        pending = self._pending.pop(request_id, None)
        if pending is not None:
            pending.timer.cancel()
            self._room.set()
        return pending

    def _expire(self, request_id: int, timeout_ms: int) -> None:
        pending = self._forget(request_id)
        if pending is None or pending.answer.done():
            return
        self._counters.of(pending.api.name).timed_out += 1
        log.debug("%s #%d to %s timed out", pending.api.name, request_id, self.address)
        pending.answer.set_exception(self._timed_out(pending.api, timeout_ms))
        if self._receipts == pending.receipts_before:
            # Not a byte since the request was sent: the server hangs, or the network drops all.
            # The next caller must not wait for it as long.
            self.close(ConnectError(f"The connection to {self.address} is dead: no answer at all."))

    # --- receiving (asyncio.BufferedProtocol) -------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Always a stream here; uvloop's does not derive from asyncio's class.
        self._transport = cast("asyncio.Transport", transport)
        if sys.platform == "linux":  # others may wait for more than fits into their buffers
            self._socket = transport.get_extra_info("socket")
        self._counters.connections_opened += 1

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._splitter.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        self._receipts += 1
        self._counters.bytes_received += nbytes
        try:
            for frame in self._splitter.buffer_updated(nbytes):
                self._take(frame)
        except ProtocolError as error:
            self.close(error)
            return
        missing = self._splitter.missing_bytes
        if missing < self._wake_up_bytes or (missing and self._wake_up_bytes == 1):
            self._wake_up_at(missing // -(-missing // WAKE_UP_BYTES_MAX) if missing else 1)

    def _wake_up_at(self, count: int) -> None:
        """Ask the kernel to wake the loop when `count` bytes have come, or at the end."""
        if count == self._wake_up_bytes:
            return
        self._wake_up_bytes = count
        if self._socket is not None:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, count)

    def _aligned_at(self, head: memoryview) -> int:
        """Where in a large frame the first log batch begins, which Arrow reads in place."""
        try:
            header, body = read_response(head)
        except ProtocolError:
            return 0  # too little has come, or it is no frame, which is found later
        pending = self._pending.get(header.request_id or 0)
        if pending is None or pending.api is not ApiKey.FETCH_LOG:
            return 0
        found = find_first_records(body)
        return len(head) - len(body) + found if found else 0

    def eof_received(self) -> bool | None:
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        if self._end is None:
            self._counters.connections_lost += 1
        reason = "the server closed it" if exc is None else str(exc) or type(exc).__name__
        self._finish(
            ConnectError(
                f"The connection to {self.address} is lost: {reason}.", address=str(self.address)
            )
        )

    def pause_writing(self) -> None:
        self._is_writable = False

    def resume_writing(self) -> None:
        self._is_writable = True
        self._room.set()

    def _take(self, frame: memoryview) -> None:
        header, body = read_response(frame)
        if header.type is ResponseType.FAILURE or header.request_id is None:
            self.close(_error_in(body))
            return
        pending = self._forget(header.request_id)
        if pending is None or pending.answer.done():
            # Its request has been cancelled; the answer comes too late.
            return
        counters = self._counters.of(pending.api.name)
        if header.type is ResponseType.ERROR:
            counters.failed += 1
            pending.answer.set_exception(_error_in(body))
        else:
            counters.answer(perf_counter() - pending.sent_at)
            pending.answer.set_result(body)

    def _finish(self, error: FlussError) -> None:
        if self._end is not None:
            return
        self._end = error
        self._room.set()
        log.debug("connection to %s ended: %s", self.address, error.message)
        for request_id in list(self._pending):
            pending = self._forget(request_id)
            if pending is not None and not pending.answer.done():
                pending.answer.set_exception(copy.copy(error))


def _error_in(body: memoryview) -> FlussError:
    """The error of an error answer; one that cannot be read is an error as well."""
    try:
        return read_error(body)
    except ProtocolError as error:
        return error
