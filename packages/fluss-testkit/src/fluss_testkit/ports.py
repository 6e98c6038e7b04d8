"""Leases of loopback ports, so that two clusters never get the same port.

Servers get their ports before they start, so that a restarted server has its old address. A port is
chosen below the range of ephemeral ports, tried by binding it, and leased by a lock on a small
file. Servers inherit the lock: the lease ends when the last process that holds it has ended,
however it ended. Only a program that binds one of these ports between the try and the server's own
bind can win a race; the server then reports it.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from fluss.errors import LocalServerError
from fluss_testkit.file_locks import FileLock

HOST = "127.0.0.1"
# Ephemeral ports begin at 32768 on Linux, at 49152 on macOS and Windows; well-known ones, such as
# Fluss's own 9123, are below 20000.
FIRST_PORT = 20_000
LAST_PORT = 22_000  # limits the number of lock files


class PortLease:
    """Leased ports. The lease ends with `release`, or with the last process that inherited it."""

    def __init__(self, locks: dict[int, FileLock]) -> None:
        self._locks = locks

    @property
    def ports(self) -> tuple[int, ...]:
        """The ports, in the order of the request."""
        return tuple(self._locks)

    @property
    def file_descriptors(self) -> tuple[int, ...]:
        """The descriptors that a process must inherit to keep the lease."""
        return tuple(lock.fileno() for lock in self._locks.values())

    def release(self) -> None:
        """Release this process's locks."""
        for lock in self._locks.values():
            lock.release()


def lease_ports(
    count: int, directory: Path, *, first: int | None = None, preferred: Iterable[int] = ()
) -> PortLease:
    """Lease `count` free ports.

    Args:
        count: The number of ports.
        directory: The directory of the lock files, shared by all clusters that must not collide.
        first: The required first port; None for any.
        preferred: The preferred ports, in order; taken ones are replaced.

    Raises:
        LocalServerError: `first` is taken, or no port is free.
    """
    directory.mkdir(parents=True, exist_ok=True)
    preferences = iter(preferred)
    fallback = _candidates()
    locks: dict[int, FileLock] = {}
    try:
        if first is not None:
            next(preferences, None)
            locks[first] = _exactly(first, directory)
        while len(locks) < count:
            preference = next(preferences, None)
            lock = (
                None
                if preference is None or preference in locks
                else _try_port(preference, directory)
            )
            if preference is None or lock is None:
                preference, lock = _first_free(fallback, directory)
            locks[preference] = lock
    except BaseException:
        PortLease(locks).release()
        raise
    return PortLease(locks)


def _exactly(port: int, directory: Path) -> FileLock:
    lock = _try_port(port, directory)
    if lock is None:
        raise LocalServerError(
            f"port {port} of {HOST} is taken.",
            hint="choose another port, or leave the choice to the cluster.",
            port=port,
        )
    return lock


def _first_free(candidates: Iterator[int], directory: Path) -> tuple[int, FileLock]:
    for port in candidates:
        lock = _try_port(port, directory)
        if lock is not None:
            return port, lock
    raise LocalServerError(
        f"no free port between {FIRST_PORT} and {LAST_PORT} on {HOST}.",
        hint="stop some of the servers that run on this machine.",
    )


def _candidates() -> Iterator[int]:
    # Random order, so that concurrent clusters rarely try the same ports.
    ports = range(FIRST_PORT, LAST_PORT)
    return iter(random.sample(ports, len(ports)))


def _try_port(port: int, directory: Path) -> FileLock | None:
    lock = FileLock(directory / f"{port}.lock")
    if not lock.try_exclusive():
        return None
    with suppress(OSError), socket.socket() as probe:
        # Ignores connections of a stopped server in TIME_WAIT.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((HOST, port))
        return lock
    lock.release()
    return None
