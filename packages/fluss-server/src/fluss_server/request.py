"""One request on its way: the call as handlers see it, and what a handler is.

A handler is a function of the node, the call and the request. It returns the response, or a
coroutine of it where it has to wait; refusals are raised. How its messages are read and written
stands beside it.
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
from fluss_server.auth import Gate
from fluss_server.server_node import Node


class Caller(Protocol):
    """Whoever sent a request, as far as handlers may know."""

    @property
    def gate(self) -> Gate:
        """Whether they have passed."""

    @property
    def address(self) -> tuple[str, int]:
        """The server's address as the caller reached it."""

    @property
    def is_gone(self) -> bool:
        """Whether nobody waits for an answer any more."""

    async def can_take_more(self) -> None:
        """Wait until a slow reader has taken what it was sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request's circumstances."""

    key: ApiKey
    version: int
    caller: Caller


Run = Callable[[Node, Call, Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """What serves an API key.

    Args:
        key: The key.
        run: What is done; returns the response or a coroutine of it.
        read: Makes a request of a body.
        write: Makes a body of a response.
    """

    key: ApiKey
    run: Run
    read: Callable[[memoryview], Any]
    write: Callable[[Any], Sequence[Buffer]]


Answer = Any | Awaitable[Any]


def plain(key: ApiKey, run: Run) -> Handler:
    """A handler whose messages are protobuf's own."""
    return Handler(key=key, run=run, read=partial(_read, key), write=_write)


def laid_out(
    key: ApiKey,
    run: Run,
    *,
    request: Layout[Any] | None = None,
    response: Layout[Any] | None = None,
) -> Handler:
    """A handler with messages that carry rows, which are not copied."""
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
