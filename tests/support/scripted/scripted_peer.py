"""A scripted server, and a proxy that disturbs the connections between a client and a server.

Both use loopback sockets on their own threads, and are independent of the client under test: they
encode frames themselves, so that a mistake in `fluss.wire` cannot hide in both.
"""

import contextlib
import socket
import struct
import threading
import time
from collections import deque
from dataclasses import dataclass, field

SUCCESS, ERROR, FAILURE = 0, 1, 2


@dataclass(frozen=True)
class Request:
    api_key: int
    api_version: int
    request_id: int
    body: bytes


def success(request, body=b""):
    return struct.pack(">ibi", 5 + len(body), SUCCESS, request.request_id) + body


def error(request, error_code, message):
    text = message.encode()
    body = b"\x08" + varint(error_code) + b"\x12" + varint(len(text)) + text
    return struct.pack(">ibi", 5 + len(body), ERROR, request.request_id) + body


def varint(number):
    number &= (1 << 64) - 1
    out = bytearray()
    while True:
        out.append(number & 0x7F | (0x80 if number > 0x7F else 0))
        number >>= 7
        if not number:
            return bytes(out)


def api_versions(*keys, server_type=None):
    """Return an ApiVersionsResponse that offers version 0 of each key."""
    body = b""
    for key in keys:
        entry = b"\x08" + varint(key) + b"\x10\x00\x18\x00"
        body += b"\x0a" + varint(len(entry)) + entry
    return body if server_type is None else body + b"\x10" + varint(server_type)


@dataclass
class ScriptedPeer:
    """Responds to each request with the bytes of `script(request)`; None for no response."""

    script: object
    requests: list = field(default_factory=list)

    def __enter__(self):
        self._server = socket.create_server(("127.0.0.1", 0))
        self.host, self.port = self._server.getsockname()
        self._sockets = []
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        close(self._server)
        self.hang_up()

    def hang_up(self):
        for opened in self._sockets:
            close(opened)

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._server.accept()
                self._sockets.append(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with contextlib.suppress(OSError), connection, connection.makefile("rb") as stream:
            while head := stream.read(12):
                length, api_key, api_version, request_id = struct.unpack(">ihhi", head)
                request = Request(api_key, api_version, request_id, stream.read(length - 8))
                self.requests.append(request)
                answer = self.script(request)
                if answer is not None:
                    connection.sendall(answer)


class Proxy:
    """Forwards bytes between a client and a server, until a test disturbs it."""

    def __init__(self, host, port):
        self._target = (host, port)
        self._flowing = threading.Event()
        self._flowing.set()
        self.bytes_at_once_max = 1 << 16
        self.pause_s = 0.0
        # One number per future connection, which is cut after so many bytes of responses.
        self.cut_after = deque()
        self._sockets = []

    def __enter__(self):
        self._server = socket.create_server(("127.0.0.1", 0))
        self.host, self.port = self._server.getsockname()
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._flowing.set()
        close(self._server)
        self.cut()

    def cut(self):
        """Cut every connection."""
        sockets, self._sockets = self._sockets, []
        for opened in sockets:
            close(opened)

    def refuse(self):
        """Stop to listen, and cut every connection."""
        close(self._server)
        self.cut()

    def stall(self):
        """Keep connections open and forward nothing."""
        self._flowing.clear()

    def flow(self):
        """Forward bytes again."""
        self._flowing.set()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._server.accept()
                try:
                    far = socket.create_connection(self._target, timeout=5)
                except OSError:
                    close(near)
                    continue
                far.settimeout(None)
                self._sockets += [near, far]
                budget = self.cut_after.popleft() if self.cut_after else None
                for arguments in ((near, far, None), (far, near, budget)):
                    threading.Thread(target=self._pass, args=arguments, daemon=True).start()

    def _pass(self, source, target, budget):
        with contextlib.suppress(OSError):
            while data := source.recv(self.bytes_at_once_max):
                self._flowing.wait()
                if self.pause_s:
                    time.sleep(self.pause_s)
                if budget is None:
                    target.sendall(data)
                    continue
                target.sendall(data[:budget])
                budget -= len(data)
                if budget <= 0:
                    break
        close(source)
        close(target)


def close(connection):
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
