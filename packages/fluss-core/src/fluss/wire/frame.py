"""Frames: the headers of requests and responses, read and written.

All numbers are big-endian (Java: MessageCodec, ResponseType).

======  ====  ==============================  ======  ====  ========================================
offset  size  request                         offset  size  response
======  ====  ==============================  ======  ====  ========================================
0       4     length of what follows          0       4     length of what follows
4       2     API key                         4       1     type: 0 success, 1 error, 2 failure
6       2     API version                     5       4     request id; a failure has none
8       4     request id, echoed              9 or 5        body: a message, or an ErrorResponse
12            body: a protobuf message
======  ====  ==============================  ======  ====  ========================================

An error (1) ends one request; a failure (2) concerns the connection, which is closed after it.
`wire.splitter` cuts a stream of bytes into frames, `wire.messages` reads the bodies.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from fluss.errors import LimitExceededError, ProtocolError
from fluss.wire.byte_buffers import Buffer, count_bytes

FRAME_BYTES_MAX = 100 * 1024 * 1024  # what a server accepts (netty.server.max-request-size)

_REQUEST = struct.Struct(">ihhi")
_RESPONSE = struct.Struct(">ibi")
_FAILURE = struct.Struct(">ib")
_LENGTH_BYTES = 4
_REQUEST_HEADER = struct.Struct(">hhi")
_REQUEST_ID = struct.Struct(">i")


class ResponseType(IntEnum):
    """How a request ended."""

    SUCCESS = 0
    ERROR = 1
    FAILURE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestHeader:
    """The API of a request, which this package may not know."""

    api_key: int
    api_version: int
    request_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseHeader:
    """How a request ended; a failure belongs to no request."""

    type: ResponseType
    request_id: int | None

    def __post_init__(self) -> None:
        if (self.request_id is None) != (self.type is ResponseType.FAILURE):
            raise ValueError("every response carries a request id, except a failure")


def write_request(
    header: RequestHeader, body: Sequence[Buffer], *, frame_bytes_max: int = FRAME_BYTES_MAX
) -> list[Buffer]:
    """Put the header before a request's body, which is not copied.

    Raises:
        LimitExceededError: The frame would be longer than `frame_bytes_max`.
    """
    length = _REQUEST.size - _LENGTH_BYTES + count_bytes(body)
    _check_limit(length, frame_bytes_max)
    head = _REQUEST.pack(length, header.api_key, header.api_version, header.request_id)
    return [head, *body]


def write_response(
    header: ResponseHeader, body: Sequence[Buffer], *, frame_bytes_max: int = FRAME_BYTES_MAX
) -> list[Buffer]:
    """Put the header before a response's body, which is not copied.

    Raises:
        LimitExceededError: The frame would be longer than `frame_bytes_max`.
    """
    size = count_bytes(body)
    if header.request_id is None:
        length = _FAILURE.size - _LENGTH_BYTES + size
        head = _FAILURE.pack(length, header.type)
    else:
        length = _RESPONSE.size - _LENGTH_BYTES + size
        head = _RESPONSE.pack(length, header.type, header.request_id)
    _check_limit(length, frame_bytes_max)
    return [head, *body]


def read_request(frame: memoryview) -> tuple[RequestHeader, memoryview]:
    """Split a request's frame (without its length) into header and body."""
    if len(frame) < _REQUEST_HEADER.size:
        raise _too_short("a request", frame)
    api_key, api_version, request_id = _REQUEST_HEADER.unpack_from(frame)
    header = RequestHeader(api_key=api_key, api_version=api_version, request_id=request_id)
    return header, frame[_REQUEST_HEADER.size :]


def read_response(frame: memoryview) -> tuple[ResponseHeader, memoryview]:
    """Split a response's frame (without its length) into header and body."""
    if not frame:
        raise _too_short("a response", frame)
    if frame[0] == ResponseType.FAILURE:
        return ResponseHeader(type=ResponseType.FAILURE, request_id=None), frame[1:]
    if frame[0] > ResponseType.FAILURE:
        why = f"its type is {frame[0]}, which is none of 0, 1 and 2"
        raise ProtocolError(f"A response cannot be read: {why}.", what="a response", at=0, why=why)
    if len(frame) < 1 + _REQUEST_ID.size:
        raise _too_short("a response", frame)
    (request_id,) = _REQUEST_ID.unpack_from(frame, 1)
    header = ResponseHeader(type=ResponseType(frame[0]), request_id=request_id)
    return header, frame[1 + _REQUEST_ID.size :]


def _check_limit(length: int, frame_bytes_max: int) -> None:
    if length > frame_bytes_max:
        raise LimitExceededError(
            f"A frame of {length} bytes is longer than the {frame_bytes_max} bytes "
            f"that one may have.",
            hint="Send less in one request, or raise the limit here and on the server.",
            size=length,
            limit=frame_bytes_max,
        )


def _too_short(what: str, frame: memoryview) -> ProtocolError:
    why = f"a frame of {len(frame)} bytes is too short for a header"
    return ProtocolError(
        f"{what.capitalize()} cannot be read: {why}.", what=what, at=len(frame), why=why
    )
