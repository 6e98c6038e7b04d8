"""Reads and writes single nodes of ZooKeeper, in its own protocol.

Only what `overlooked_tables` needs: one connection, one request at a time, no watches.
"""

from __future__ import annotations

import socket
import struct
from typing import Final

TIMEOUT_S: Final = 10.0
SESSION_MS: Final = 10_000
ANSWER_BYTES_MAX: Final = 1 << 20
_GET_DATA: Final = 4
_SET_DATA: Final = 5
_CLOSE: Final = -11
_PASSWORD_BYTES: Final = 16
_HEADER: Final = struct.Struct(">iqi")  # request, transaction, error
_CONNECT: Final = struct.Struct(">iqiqi")  # protocol, transaction, time limit, session, password
# What is known of a node besides its data: four times and numbers, then the version of the data.
_STAT: Final = struct.Struct(">qqqqi")
_INT: Final = struct.Struct(">i")


class ZooKeeperError(OSError):
    """ZooKeeper refused a request; `code` is its number of the error."""

    def __init__(self, path: str, code: int) -> None:
        super().__init__(f"ZooKeeper refused {path} with error {code}")
        self.code = code


class ZooKeeper:
    """A connection to ZooKeeper; `close` ends it."""

    def __init__(self, host: str, port: int) -> None:
        self._connection = socket.create_connection((host, port), TIMEOUT_S)
        self._connection.settimeout(TIMEOUT_S)
        hello = _CONNECT.pack(0, 0, SESSION_MS, 0, _PASSWORD_BYTES) + bytes(_PASSWORD_BYTES)
        self._send(hello)
        self._receive()

    def close(self) -> None:
        """End the session, and close the connection."""
        try:
            self._send(_INT.pack(1) + _INT.pack(_CLOSE))
            self._receive()
        except OSError:
            pass  # the session ends by itself
        finally:
            self._connection.close()

    def get(self, path: str) -> tuple[bytes, int]:
        """Return the data of a node, and their version.

        Raises:
            ZooKeeperError: There is no such node.
        """
        answer = self._call(_GET_DATA, path, _buffer(path.encode()) + b"\0")
        (length,) = _INT.unpack_from(answer)
        end = _INT.size + max(length, 0)
        return answer[_INT.size : end], _STAT.unpack_from(answer, end)[-1]

    def set(self, path: str, data: bytes, version: int) -> int:
        """Replace the data of a node that still has this version; return the new version.

        Raises:
            ZooKeeperError: The node is gone, or was changed.
        """
        words = _buffer(path.encode()) + _buffer(data) + _INT.pack(version)
        new: int = _STAT.unpack_from(self._call(_SET_DATA, path, words))[-1]
        return new

    def _call(self, operation: int, path: str, words: bytes) -> bytes:
        self._send(_INT.pack(1) + _INT.pack(operation) + words)
        answer = self._receive()
        _, _, error = _HEADER.unpack_from(answer)
        if error:
            raise ZooKeeperError(path, error)
        return answer[_HEADER.size :]

    def _send(self, message: bytes) -> None:
        self._connection.sendall(_buffer(message))

    def _receive(self) -> bytes:
        (length,) = _INT.unpack(self._exactly(_INT.size))
        if not 0 <= length <= ANSWER_BYTES_MAX:
            raise ConnectionError(f"ZooKeeper sent an answer of {length} bytes")
        return self._exactly(length)

    def _exactly(self, count: int) -> bytes:
        found = bytearray()
        while len(found) < count:
            received = self._connection.recv(count - len(found))
            if not received:
                raise ConnectionError("ZooKeeper closed the connection")
            found += received
        return bytes(found)


def _buffer(data: bytes) -> bytes:
    return _INT.pack(len(data)) + data
