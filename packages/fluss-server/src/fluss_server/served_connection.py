"""One client connection: it reads frames, runs handlers in order, and writes their responses.

Requests start in the order in which they arrive. Each response carries its request's id and is
sent when it is ready, so a waiting fetch blocks no other request. A client that does not read its
responses gets backpressure: the server starts no more of its requests, and then stops to read its
socket. The limits are `server_config.Limits`; the listener checks those that depend on time.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final, cast

from fluss.error_codes import ErrorCode
from fluss.errors import FlussError, LimitExceededError, ProtocolError
from fluss.model.cluster.acls import FlussPrincipal
from fluss.wire import messages as pb
from fluss.wire.api import ApiKey
from fluss.wire.byte_buffers import Buffer
from fluss.wire.frame import (
    RequestHeader,
    ResponseHeader,
    ResponseType,
    read_request,
    write_response,
)
from fluss.wire.messages import write_message
from fluss.wire.splitter import CHUNK_BYTES, FrameSplitter
from fluss_server.auth import ConnectionAuth
from fluss_server.request_handler import Call, Handler
from fluss_server.server_errors import code_and_text, request_error
from fluss_server.server_node import Node

if TYPE_CHECKING:
    from fluss_server.listener import Listener

_LOG = logging.getLogger(__name__)
_ERROR_CHARS_MAX: Final = 4_000
_ANSWER_BYTES_MAX: Final = 2**31 - 1
# How much the server buffers for a connection without a login, besides one short request.
_LOGIN_CHUNK_BYTES: Final = 4 << 10
_LOGIN_BUFFER_BYTES: Final = 64 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionUser:
    """Who is connected, and from where."""

    principal: FlussPrincipal
    host: str


class Connection(asyncio.BufferedProtocol):
    """A client's connection; used on the event loop.

    Args:
        node: The server.
        handlers: The handlers of the API keys.
        listener: The listener that accepted the connection.
    """

    def __init__(self, node: Node, handlers: Mapping[int, Handler], listener: Listener) -> None:
        self._node = node
        self._handlers = handlers
        self._listener = listener
        self._limits = node.config.limits
        self._loop = asyncio.get_running_loop()
        self.auth = ConnectionAuth(listener.passwords)
        self._is_admitted = self.auth.is_complete
        self._splitter = self._new_splitter()
        self._queue: deque[memoryview] = deque()
        self._queued_bytes = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._transport: asyncio.Transport | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._is_reading = True
        self.address = ("", 0)
        self.host = ""
        self.opened_at = self.heard_at = self._loop.time()
        self.frame_began_at: float | None = None

    # --- callbacks of asyncio ---------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register the connection, unless the limit is reached."""
        self._transport = opened = cast("asyncio.Transport", transport)
        self.address = opened.get_extra_info("sockname")[:2]
        self.host = opened.get_extra_info("peername")[0]
        high = self._limits.write_buffer_bytes if self._is_admitted else _LOGIN_BUFFER_BYTES
        opened.set_write_buffer_limits(high=high)
        if not self._listener.add(self):
            self._fail(
                LimitExceededError(
                    f"The server has {self._limits.connections_max} connections, its limit.",
                    hint="Close some, or use one connection for more.",
                )
            )

    def connection_lost(self, exc: Exception | None) -> None:
        """Unregister the connection; its requests in flight still run to their end."""
        del exc
        self._transport = None
        self._queue.clear()
        self._writable.set()
        self._listener.remove(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer for the next bytes."""
        return self._splitter.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        """Process received bytes, and serve the complete requests."""
        now = self._loop.time()
        self.heard_at = now
        try:
            frames = self._splitter.buffer_updated(nbytes)
        except ProtocolError as error:
            self._fail(error if self._is_admitted else self._before_login(error))
            return
        if frames or self.frame_began_at is None:
            self.frame_began_at = now if self._splitter.unfinished_bytes else None
        self._queue.extend(frames)
        self._queued_bytes += sum(map(len, frames))
        self._serve()

    def pause_writing(self) -> None:
        """Start no more requests, because the client reads slowly."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Continue to start requests, because the client has caught up."""
        self._writable.set()
        self._serve()

    # --- for handlers and the listener ------------------------------------------------------------

    @property
    def is_closed(self) -> bool:
        """Whether the connection is closed, or closing."""
        return self._transport is None or self._transport.is_closing()

    @property
    def user(self) -> ConnectionUser:
        """Who is connected, and from where."""
        return ConnectionUser(principal=self.auth.principal, host=self.host)

    @property
    def is_busy(self) -> bool:
        """Whether requests are in flight or queued."""
        return bool(self._tasks or self._queue)

    @property
    def unfinished_bytes(self) -> int:
        """How many bytes of an incomplete request have arrived."""
        return self._splitter.unfinished_bytes

    async def drain(self) -> None:
        """Wait until a slow client has read enough of its responses."""
        await self._writable.wait()

    def close(self) -> None:
        """Close the connection after the written responses have been sent."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close the connection immediately."""
        if self._transport is not None:
            self._transport.abort()

    async def finish(self) -> None:
        """Wait for the requests in flight."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    # --- serving ----------------------------------------------------------------------------------

    def _serve(self) -> None:
        limits = self._limits
        while (
            self._queue
            and self._writable.is_set()
            and len(self._tasks) < limits.requests_in_flight_max
            and not self.is_closed
        ):
            frame = self._queue.popleft()
            self._queued_bytes -= len(frame)
            self._start_request(frame)
        queue_bytes_max = (
            limits.request_queue_bytes_max if self._is_admitted else _LOGIN_BUFFER_BYTES
        )
        self._set_reading(enabled=self._queued_bytes < queue_bytes_max)

    def _set_reading(self, *, enabled: bool) -> None:
        if self._transport is None or enabled == self._is_reading or self._transport.is_closing():
            return
        self._is_reading = enabled
        if enabled:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def _start_request(self, frame: memoryview) -> None:
        try:
            header, body = read_request(frame)
        except ProtocolError as error:
            self._fail(error)
            return
        try:
            handler, answer = self._dispatch(header, body)
            if isinstance(answer, CoroutineType):
                self._start_task(header, handler, answer)
            else:
                self._answer(header, handler.write(answer))
        except Exception as error:  # noqa: BLE001 - the client receives every error
            self._refuse(header, error)
        if not self._is_admitted and self.auth.is_complete:
            self._admit()

    def _new_splitter(self) -> FrameSplitter:
        limits = self._limits
        if self._is_admitted:
            return FrameSplitter(frame_bytes_max=limits.frame_bytes_max)
        return FrameSplitter(
            frame_bytes_max=min(limits.login_frame_bytes_max, limits.frame_bytes_max),
            chunk_bytes=_LOGIN_CHUNK_BYTES,
        )

    def _admit(self) -> None:
        """Apply the limits of a user, because the login is complete."""
        self._is_admitted = True
        self._listener.admit(self)
        self._splitter.change_limits(
            frame_bytes_max=self._limits.frame_bytes_max, chunk_bytes=CHUNK_BYTES
        )
        if self._transport is not None:
            self._transport.set_write_buffer_limits(high=self._limits.write_buffer_bytes)

    def _before_login(self, error: ProtocolError) -> ProtocolError:
        return ProtocolError(
            error.message,
            hint=f"Before the login a request may have {self._limits.login_frame_bytes_max} bytes: "
            "send AUTHENTICATE first.",
            **error.facts,
        )

    def _dispatch(self, header: RequestHeader, body: memoryview) -> tuple[Handler, Any]:
        self.auth.check(header.api_key)
        handler = self._handlers.get(header.api_key)
        if handler is None:
            raise request_error(
                ErrorCode.UNSUPPORTED_VERSION,
                f"The embedded server does not serve {_name_of(header.api_key)}.",
            )
        call = Call(key=handler.key, version=header.api_version, caller=self)
        request = handler.read(body)
        if self._node.access.is_on:
            self._node.access.check_request(self.user, header.api_key, request)
        return handler, handler.run(self._node, call, request)

    def _start_task(self, header: RequestHeader, handler: Handler, answer: Any) -> None:
        task = self._loop.create_task(self._finish(header, handler, answer))
        self._tasks.add(task)
        task.add_done_callback(self._done)

    async def _finish(self, header: RequestHeader, handler: Handler, answer: Any) -> None:
        try:
            self._answer(header, handler.write(await answer))
        except Exception as error:  # noqa: BLE001 - the client receives every error
            self._refuse(header, error)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._serve()

    def _answer(self, header: RequestHeader, body: Sequence[Buffer]) -> None:
        head = ResponseHeader(type=ResponseType.SUCCESS, request_id=header.request_id)
        self._send(write_response(head, body, frame_bytes_max=_ANSWER_BYTES_MAX))

    def _refuse(self, header: RequestHeader, error: Exception) -> None:
        if not isinstance(error, FlussError | OSError):
            _LOG.error("%s failed", _name_of(header.api_key), exc_info=error)
        head = ResponseHeader(type=ResponseType.ERROR, request_id=header.request_id)
        self._send(write_response(head, (_error_body(error),)))
        if self.auth.failures >= self._limits.logins_failed_max:
            self.close()

    def _fail(self, error: Exception) -> None:
        """Report an error of the connection as a whole, and close it."""
        head = ResponseHeader(type=ResponseType.FAILURE, request_id=None)
        self._send(write_response(head, (_error_body(error),)))
        self.close()

    def _send(self, buffers: Sequence[Buffer]) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.writelines(buffers)


def _error_body(error: Exception) -> bytes:
    code, text = code_and_text(error)
    return write_message(pb.ErrorResponse(error_code=code, error_message=text[:_ERROR_CHARS_MAX]))


def _name_of(api_key: int) -> str:
    known = {int(each): each.name for each in ApiKey}
    return f"{known[api_key]} ({api_key})" if api_key in known else f"the API key {api_key}"
