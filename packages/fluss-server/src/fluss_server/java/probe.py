"""Asks servers, in their own protocol, whether they are ready.

A port that accepts connections proves little: a coordinator listens before it has elected
anybody, and a tablet server before it has heard of the cluster. A cluster is ready when the
coordinator knows every tablet server, every tablet server knows the coordinator and all of its
peers, and the database that a new cluster begins with is there.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator

from fluss_server.java.ports import HOST

ASK_TIMEOUT_S = 2.0
ANSWER_BYTES_MAX = 1 << 20

API_VERSIONS, LIST_DATABASES, GET_METADATA = 1000, 1003, 1012
COORDINATOR_TYPE, TABLET_TYPE = 1, 2
SERVER_ROLES = {COORDINATOR_TYPE: "coordinator", TABLET_TYPE: "tablet server"}
SUCCESS = 0
HEADER_BYTES = 5  # of an answer: its type and the request's id

# Field numbers of the three answers.
SERVER_TYPE = 2
COORDINATOR_SERVER, TABLET_SERVERS = 1, 2
DATABASE_NAME = 1

Message = list[tuple[int, int | bytes]]


Check = Callable[[], str | None]
"""Asks for what is still missing; None when nothing is."""


def listening(port: int) -> str | None:
    """Whether anybody accepts connections there."""
    try:
        socket.create_connection((HOST, port), ASK_TIMEOUT_S).close()
    except OSError as error:
        return f"port {port} does not answer ({error})"
    return None


def coordinator_ready(address: str, tablet_servers: int) -> str | None:
    """Whether the coordinator knows that many tablet servers, and has a database."""
    try:
        _check_member(address, COORDINATOR_TYPE, tablet_servers)
        if not any(field == DATABASE_NAME for field, _ in _ask(address, LIST_DATABASES)):
            return "there is no database yet"
    except _NotReadyError as reason:
        return str(reason)
    return None


def tablet_server_ready(address: str, tablet_servers: int) -> str | None:
    """Whether the tablet server knows the coordinator and that many tablet servers."""
    try:
        _check_member(address, TABLET_TYPE, tablet_servers)
    except _NotReadyError as reason:
        return str(reason)
    return None


class _NotReadyError(Exception):
    """What is missing."""


def _check_member(address: str, server_type: int, tablet_servers: int) -> None:
    # A client must introduce itself: both fields of ApiVersionsRequest are required.
    versions = dict(_ask(address, API_VERSIONS, _text(1, "fluss-server") + _text(2, "probe")))
    if versions.get(SERVER_TYPE) != server_type:
        raise _NotReadyError(f"{address} plays another role than {SERVER_ROLES[server_type]}")
    fields = [field for field, _ in _ask(address, GET_METADATA)]
    if COORDINATOR_SERVER not in fields:
        raise _NotReadyError(f"{address} knows no coordinator")
    known = fields.count(TABLET_SERVERS)
    if known < tablet_servers:
        raise _NotReadyError(f"{address} knows {known} of {tablet_servers} tablet servers")


def _ask(address: str, api_key: int, body: bytes = b"") -> Message:
    """One request on a connection of its own."""
    host, port = address.rsplit(":", 1)
    request_id = 1
    frame = struct.pack(">ihhi", 8 + len(body), api_key, 0, request_id) + body
    try:
        with socket.create_connection((host, int(port)), ASK_TIMEOUT_S) as connection:
            connection.settimeout(ASK_TIMEOUT_S)
            connection.sendall(frame)
            with connection.makefile("rb") as stream:
                (length,) = struct.unpack(">i", _exactly(stream.read(4), 4))
                if not HEADER_BYTES <= length <= ANSWER_BYTES_MAX:
                    raise _NotReadyError(f"{address} answers with a frame of {length} bytes")
                answer = _exactly(stream.read(length), length)
    except OSError as error:
        raise _NotReadyError(f"{address} does not answer ({error})") from error
    kind, answered_id = struct.unpack_from(">bi", answer)
    if kind != SUCCESS or answered_id != request_id:
        raise _NotReadyError(f"{address} refuses request {api_key}")
    return list(_fields(answer[HEADER_BYTES:]))


def _exactly(data: bytes, length: int) -> bytes:
    if len(data) != length:
        raise _NotReadyError("the connection was closed")
    return data


# --- just enough of protobuf --------------------------------------------------------------------


def _text(field: int, value: str) -> bytes:
    data = value.encode("ascii")
    return bytes([field << 3 | 2, len(data)]) + data


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message: numbers as they are, texts and messages as bytes."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, at = _varint(data, at)
        match tag & 7:
            case 0:
                yield tag >> 3, number
            case 2:
                yield tag >> 3, data[at : at + number]
                at += number
            case _:
                raise _NotReadyError(f"an answer has an unexpected field, {tag}")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data):
        value |= (data[at] & 0x7F) << shift
        at += 1
        if not data[at - 1] & 0x80:
            return value, at
        shift += 7
    raise _NotReadyError("an answer ends within a number")
