"""Asks servers, in their own protocol, whether they are ready.

An open port is not enough: a coordinator listens before it has elected a leader, and a tablet
server before it knows the cluster. A cluster is ready when the coordinator knows every tablet
server, every tablet server knows the coordinator and all its peers, and the default database
exists.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from google.protobuf.message import Message

from fluss.errors import FlussError
from fluss.wire import messages
from fluss.wire.api import ApiKey, ServerApis, ServerRole
from fluss.wire.frame import RequestHeader, ResponseType, read_response, write_request
from fluss.wire.splitter import FrameSplitter
from fluss_testkit.ports import HOST

ASK_TIMEOUT_S = 2.0
ANSWER_BYTES_MAX = 1 << 20
REQUEST_ID = 1

Check = Callable[[], str | None]
"""Returns what is still missing; None when the server is ready."""


def check_port(port: int) -> str | None:
    """Check that a server accepts connections on a port."""
    try:
        socket.create_connection((HOST, port), ASK_TIMEOUT_S).close()
    except OSError as error:
        return f"port {port} does not answer ({error})"
    return None


def check_coordinator(address: str, tablet_servers: int) -> str | None:
    """Check that the coordinator knows that many tablet servers, and has a database."""
    try:
        missing = _missing_member(address, ServerRole.COORDINATOR, tablet_servers)
        if missing is None:
            listed = _ask(address, ApiKey.LIST_DATABASES, messages.ListDatabasesRequest())
            missing = None if listed.database_name else "there is no database yet"
    except (OSError, FlussError) as error:
        return f"{address} does not answer ({error})"
    return missing


def check_tablet_server(address: str, tablet_servers: int) -> str | None:
    """Check that the tablet server knows the coordinator and that many tablet servers."""
    try:
        return _missing_member(address, ServerRole.TABLET_SERVER, tablet_servers)
    except (OSError, FlussError) as error:
        return f"{address} does not answer ({error})"


def _missing_member(address: str, role: ServerRole, tablet_servers: int) -> str | None:
    hello = messages.ApiVersionsRequest(
        client_software_name="fluss-server", client_software_version="probe"
    )
    ServerApis.from_response(_ask(address, ApiKey.API_VERSIONS, hello)).check_type(role)
    known = _ask(address, ApiKey.GET_METADATA, messages.MetadataRequest())
    if not known.HasField("coordinator_server"):
        return f"{address} knows no coordinator"
    if len(known.tablet_servers) < tablet_servers:
        return f"{address} knows {len(known.tablet_servers)} of {tablet_servers} tablet servers"
    return None


def _ask(address: str, key: ApiKey, request: Message) -> Any:
    """Send one request on a new connection."""
    host, port = address.rsplit(":", 1)
    header = RequestHeader(api_key=key, api_version=0, request_id=REQUEST_ID)
    with socket.create_connection((host, int(port)), ASK_TIMEOUT_S) as connection:
        connection.sendall(b"".join(write_request(header, [messages.write_message(request)])))
        answered, body = read_response(_receive(connection))
    if answered.type is not ResponseType.SUCCESS:
        raise messages.read_error(body)
    return messages.read_message(key.response, body)


def _receive(connection: socket.socket) -> memoryview:
    """Receive one frame."""
    splitter = FrameSplitter(frame_bytes_max=ANSWER_BYTES_MAX)
    frames: list[memoryview] = []
    while not frames:
        received = connection.recv_into(splitter.get_buffer())
        if not received:
            raise ConnectionError("the server closed the connection")
        frames = splitter.buffer_updated(received)
    return frames[0]
