"""The interface of request handlers: a handler's arguments, and how its messages are coded.

A handler is a function of the node, the call and the request. It returns the response, or a
coroutine of it where it has to wait; it raises errors. A `Handler` adds the functions that read
its request and write its response.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from fluss.wire.api import ApiKey
from fluss.wire.byte_buffers import Buffer
from fluss.wire.message_layout import Layout
from fluss.wire.messages import read_message, write_message
from fluss_server.access.access_control import User
from fluss_server.auth import ConnectionAuth
from fluss_server.server_node import Node


class Caller(Protocol):
    """The connection of a request, as far as handlers may use it."""

    @property
    def auth(self) -> ConnectionAuth:
        """The authentication state."""

    @property
    def user(self) -> User:
        """Who is connected, and from where."""

    @property
    def address(self) -> tuple[str, int]:
        """The server's address that the client connected to."""

    @property
    def is_closed(self) -> bool:
        """Whether the connection is closed, so that no response is needed."""

    async def drain(self) -> None:
        """Wait until a slow client has read enough of its responses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """The context of one request."""

    key: ApiKey
    version: int
    caller: Caller


Run = Callable[[Node, Call, Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """The handler of one API key.

    Args:
        key: The key.
        run: The function; it returns the response or a coroutine of it.
        read: Decodes the body of a request.
        write: Encodes the body of a response.
    """

    key: ApiKey
    run: Run
    read: Callable[[memoryview], Any]
    write: Callable[[Any], Sequence[Buffer]]


Answer = Any | Awaitable[Any]


def message_handler(key: ApiKey, run: Run) -> Handler:
    """Return a handler whose messages are protobuf."""
    return Handler(key=key, run=run, read=partial(_read, key), write=_write)


def layout_handler(
    key: ApiKey,
    run: Run,
    *,
    request: Layout[Any] | None = None,
    response: Layout[Any] | None = None,
) -> Handler:
    """Return a handler whose messages carry rows, which are not copied."""
    return Handler(
        key=key,
        run=run,
        read=partial(_read, key) if request is None else request.read,
        write=_write if response is None else response.write,
    )


def _read(key: ApiKey, body: memoryview) -> Any:
    return read_message(key.request, body)


def _write(response: Any) -> Sequence[Buffer]:
    return (write_message(response),)
