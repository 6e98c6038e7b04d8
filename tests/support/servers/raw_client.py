"""A minimal client: one blocking socket for each server, one request at a time.

For conformance tests, which control exactly what goes over the wire. It encodes frames itself, so
that a mistake in the product's framing cannot hide in its tests; messages and their numbers are the
product's. It never retries and never caches; it looks up a server's address each time.
"""

from __future__ import annotations

import socket
import struct
from types import TracebackType
from typing import Any, Self

from google.protobuf.message import Message

from fluss.wire import messages as pb
from fluss.wire.api import ApiKey

SOCKET_TIMEOUT_S = 30.0
ANSWER_BYTES_MAX = 128 << 20
COORDINATOR = "coordinator"

# By the name of the message without "Request".
API_KEYS = {key.message: key for key in ApiKey if key.message is not None}


class RefusedError(Exception):
    """A server answered with an error frame."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code}: {message.splitlines()[0] if message else ''}")
        self.code = code
        self.message = message


class RawConnection:
    """One socket to one server."""

    def __init__(self, address: str, *, timeout_s: float = SOCKET_TIMEOUT_S) -> None:
        host, port = address.rsplit(":", 1)
        self.address = address
        self._socket = socket.create_connection((host, int(port)), timeout_s)
        self._stream = self._socket.makefile("rb")
        self._request_id = 0

    def call(self, request: Message, *, version: int = 0, api_key: int | None = None) -> Any:
        """Send a request and return its response.

        Raises:
            RefusedError: The server answered with an error frame.
            OSError: The server closed the connection, or took too long.
        """
        name = type(request).__name__.removesuffix("Request")
        body = request.SerializeToString()
        answer = getattr(pb, f"{name}Response")()
        answer.ParseFromString(self.call_bytes(api_key or API_KEYS[name], body, version=version))
        return answer

    def call_bytes(self, api_key: int, body: bytes, *, version: int = 0) -> bytes:
        """Send a request whose body is encoded already."""
        self._request_id += 1
        self._socket.sendall(
            struct.pack(">ihhi", 8 + len(body), api_key, version, self._request_id) + body
        )
        kind, request_id, answer = self.read_frame()
        assert request_id == self._request_id, "an answer to another request"
        if kind != 0:
            error = pb.ErrorResponse.FromString(answer)
            raise RefusedError(error.error_code, error.error_message)
        return answer

    def read_frame(self) -> tuple[int, int | None, bytes]:
        """Read the next frame: its type, its request id (none for type 2), its body."""
        (length,) = struct.unpack(">i", self._exactly(4))
        assert 1 <= length <= ANSWER_BYTES_MAX, length
        frame = self._exactly(length)
        if frame[0] == 2:
            return 2, self._request_id, frame[1:]
        return frame[0], struct.unpack_from(">i", frame, 1)[0], frame[5:]

    def log_in(self, user: str, password: str) -> None:
        """Authenticate with SASL/PLAIN.

        Raises:
            RefusedError: The password is wrong; the code is 46.
        """
        token = b"\0".join([b"", user.encode(), password.encode()])
        self.call(pb.AuthenticateRequest(protocol="PLAIN", token=token))

    def close(self) -> None:
        self._stream.close()
        self._socket.close()

    def _exactly(self, length: int) -> bytes:
        data = self._stream.read(length)
        if len(data) != length:
            raise ConnectionResetError(f"{self.address} hung up")
        return data


class RawClient:
    """Connections to all servers of a cluster, discovered from one address."""

    def __init__(
        self,
        bootstrap: str,
        *,
        user: str | None = None,
        password: str = "",
        timeout_s: float = SOCKET_TIMEOUT_S,
    ) -> None:
        self._credentials = None if user is None else (user, password)
        self._timeout_s = timeout_s
        self._connections: dict[str, RawConnection] = {}
        self._bootstrap = bootstrap.split(",", maxsplit=1)[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def call(self, request: Message, *, to: str | int | None = None, version: int = 0) -> Any:
        """Send a request to "coordinator", a tablet server's id, an address, or the bootstrap."""
        return self.connection(to).call(request, version=version)

    def connection(self, to: str | int | None = None) -> RawConnection:
        """Return the connection to a server; the first call opens it and logs in."""
        address = self._address(to)
        found = self._connections.get(address)
        if found is None:
            found = RawConnection(address, timeout_s=self._timeout_s)
            self._connections[address] = found
            if self._credentials is not None:
                found.log_in(*self._credentials)
        return found

    def drop_connection(self, to: str | int | None = None) -> None:
        """Close a connection, for instance because its server was killed."""
        found = self._connections.pop(self._address(to), None)
        if found is not None:
            found.close()

    def metadata(self, *tables: tuple[str, str]) -> pb.MetadataResponse:
        """Return the bootstrap server's metadata of the cluster and these tables."""
        paths = [pb.PbTablePath(database_name=d, table_name=t) for d, t in tables]
        return self.call(pb.MetadataRequest(table_path=paths))

    def leader(self, database: str, table: str, bucket: int = 0) -> int | None:
        """Return the tablet server that leads a bucket; None while there is none."""
        (found,) = self.metadata((database, table)).table_metadata
        buckets = {each.bucket_id: each for each in found.bucket_metadata}
        known = buckets.get(bucket)
        return known.leader_id if known is not None and known.HasField("leader_id") else None

    def _address(self, to: str | int | None) -> str:
        if to is None:
            return self._bootstrap
        if isinstance(to, str) and to != COORDINATOR:
            return to
        cluster = self.metadata()
        if to == COORDINATOR:
            return f"{cluster.coordinator_server.host}:{cluster.coordinator_server.port}"
        for node in cluster.tablet_servers:
            if node.node_id == to:
                return f"{node.host}:{node.port}"
        raise ConnectionError(f"{self._bootstrap} knows no tablet server {to}")
