"""One connection: frames in, handlers begun in order, answers out as they are ready.

Requests begin in the order in which they came; each is answered by its id when it is done, so a
parked fetch holds nobody up. A reader who does not take its answers gets no more of them: its
requests wait, then its socket. Limits are those of `config.Limits`; which of them has run out
over time is looked at by the listener.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Mapping, Sequence
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final, cast

from fluss.error_codes import ErrorCode
from fluss.errors import FlussError, LimitExceededError, ProtocolError
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
from fluss_server.auth import Gate
from fluss_server.request import Call, Handler
from fluss_server.server_errors import code_and_text, refuse
from fluss_server.server_node import Node

if TYPE_CHECKING:
    from fluss_server.listener import Listener

_LOG = logging.getLogger(__name__)
_ERROR_CHARS_MAX: Final = 4_000
_ANSWER_BYTES_MAX: Final = 2**31 - 1
# What a connection without a login may make the server keep, besides one short request.
_LOGIN_CHUNK_BYTES: Final = 4 << 10
_LOGIN_BUFFER_BYTES: Final = 64 << 10


class Connection(asyncio.BufferedProtocol):
    """A client's connection; lives on the event loop.

    Args:
        node: The server.
        handlers: What it serves.
        listener: Where the connection came in.
    """

    def __init__(self, node: Node, handlers: Mapping[int, Handler], listener: Listener) -> None:
        self._node = node
        self._handlers = handlers
        self._listener = listener
        self._limits = node.config.limits
        self._loop = asyncio.get_running_loop()
        self.gate = Gate(listener.passwords)
        self._is_admitted = self.gate.is_open
        self._splitter = self._new_splitter()
        self._queue: deque[memoryview] = deque()
        self._queued_bytes = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._transport: asyncio.Transport | None = None
        self._room = asyncio.Event()
        self._room.set()
        self._is_reading = True
        self.address = ("", 0)
        self.opened_at = self.heard_at = self._loop.time()
        self.frame_began_at: float | None = None

    # --- what asyncio calls -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection, if there is room for one more."""
        self._transport = opened = cast("asyncio.Transport", transport)
        self.address = opened.get_extra_info("sockname")[:2]
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
        """Forget the connection; what it asked for is done to its end all the same."""
        del exc
        self._transport = None
        self._queue.clear()
        self._room.set()
        self._listener.remove(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the next bytes go."""
        return self._splitter.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        """Take bytes, and serve what is complete."""
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
        """The reader is slow: nothing more is begun for it."""
        self._room.clear()

    def resume_writing(self) -> None:
        """The reader has caught up."""
        self._room.set()
        self._serve()

    # --- what handlers and the listener use -------------------------------------------------------

    @property
    def is_gone(self) -> bool:
        """Whether the connection is closed, or closing."""
        return self._transport is None or self._transport.is_closing()

    @property
    def is_busy(self) -> bool:
        """Whether something it asked for is being worked on."""
        return bool(self._tasks or self._queue)

    @property
    def unfinished_bytes(self) -> int:
        """How much of a request has come that is not complete."""
        return self._splitter.unfinished_bytes

    async def can_take_more(self) -> None:
        """Wait until a slow reader has taken what it was sent."""
        await self._room.wait()

    def close(self) -> None:
        """Close the connection when what was answered has been sent."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    async def finish(self) -> None:
        """Wait until everything that was begun is answered."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    # --- serving ----------------------------------------------------------------------------------

    def _serve(self) -> None:
        limits = self._limits
        while (
            self._queue
            and self._room.is_set()
            and len(self._tasks) < limits.requests_in_flight_max
            and not self.is_gone
        ):
            frame = self._queue.popleft()
            self._queued_bytes -= len(frame)
            self._begin(frame)
        queue_bytes_max = (
            limits.request_queue_bytes_max if self._is_admitted else _LOGIN_BUFFER_BYTES
        )
        self._read_on_if(self._queued_bytes < queue_bytes_max)

    def _read_on_if(self, wanted: bool) -> None:  # noqa: FBT001 - the one thing it is told
        if self._transport is None or wanted == self._is_reading or self._transport.is_closing():
            return
        self._is_reading = wanted
        if wanted:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def _begin(self, frame: memoryview) -> None:
        try:
            header, body = read_request(frame)
        except ProtocolError as error:
            self._fail(error)
            return
        try:
            handler, answer = self._ask(header, body)
            if isinstance(answer, CoroutineType):
                self._follow(header, handler, answer)
            else:
                self._answer(header, handler.write(answer))
        except Exception as error:  # noqa: BLE001 - whatever it is, the client is told
            self._refuse(header, error)
        if not self._is_admitted and self.gate.is_open:
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
        """Give the connection the room of a user, because its login is complete."""
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

    def _ask(self, header: RequestHeader, body: memoryview) -> tuple[Handler, Any]:
        self.gate.check(header.api_key)
        handler = self._handlers.get(header.api_key)
        if handler is None:
            raise refuse(
                ErrorCode.UNSUPPORTED_VERSION,
                f"The embedded server does not serve {_name_of(header.api_key)}.",
            )
        call = Call(key=handler.key, version=header.api_version, caller=self)
        return handler, handler.run(self._node, call, handler.read(body))

    def _follow(self, header: RequestHeader, handler: Handler, answer: Any) -> None:
        task = self._loop.create_task(self._finish(header, handler, answer))
        self._tasks.add(task)
        task.add_done_callback(self._done)

    async def _finish(self, header: RequestHeader, handler: Handler, answer: Any) -> None:
        try:
            self._answer(header, handler.write(await answer))
        except Exception as error:  # noqa: BLE001 - whatever it is, the client is told
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
        if self.gate.failures >= self._limits.logins_failed_max:
            self.close()

    def _fail(self, error: Exception) -> None:
        """Tell the client that the connection is of no more use, and close it."""
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
