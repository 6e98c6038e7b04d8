"""Ports of the loopback interface, leased so that two clusters never get the same.

Servers are told their ports before they start, so that a server which comes back has the address
it had. A port is taken from below the range that the kernel hands out by itself, is tried by
binding it, and is leased by a lock on a small file, which servers inherit: the lease ends when
the last process that holds it is dead, however it died. Only a program that asks for a fixed port
of ours, between the try and the server's own bind, can still win a race; the server then says so.
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
# Linux hands out ports from 32768 on, macOS and Windows from 49152 on; below 20000 live the
# well-known ones, Fluss's own 9123 among them.
FIRST_PORT = 20_000
LAST_PORT = 22_000  # as many little lock files at most


class PortLease:
    """A number of free ports, ours until `release` or until the last heir of the locks is dead."""

    def __init__(self, locks: dict[int, FileLock]) -> None:
        self._locks = locks

    @property
    def ports(self) -> tuple[int, ...]:
        """The ports, in the order they were asked for."""
        return tuple(self._locks)

    @property
    def file_descriptors(self) -> tuple[int, ...]:
        """What a process must inherit to keep the lease alive."""
        return tuple(lock.fileno() for lock in self._locks.values())

    def release(self) -> None:
        """Give the ports up, as far as this process is concerned."""
        for lock in self._locks.values():
            lock.release()


def lease_ports(
    count: int, directory: Path, *, first: int | None = None, preferred: Iterable[int] = ()
) -> PortLease:
    """Lease `count` free ports.

    Args:
        count: How many.
        directory: Where the locks lie; the same for all who shall not get in each other's way.
        first: What the first one must be.
        preferred: What they should be where that is free, in the same order.

    Raises:
        LocalServerError: `first` is taken, or nothing is free.
    """
    directory.mkdir(parents=True, exist_ok=True)
    wishes = iter(preferred)
    fallback = _candidates()
    locks: dict[int, FileLock] = {}
    try:
        if first is not None:
            next(wishes, None)
            locks[first] = _exactly(first, directory)
        while len(locks) < count:
            wish = next(wishes, None)
            lock = None if wish is None or wish in locks else _try_port(wish, directory)
            if wish is None or lock is None:
                wish, lock = _first_free(fallback, directory)
            locks[wish] = lock
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
    # Chance, not secrecy: neighbours in a row would be neighbours in another cluster's row, too.
    ports = range(FIRST_PORT, LAST_PORT)
    return iter(random.sample(ports, len(ports)))


def _try_port(port: int, directory: Path) -> FileLock | None:
    lock = FileLock(directory / f"{port}.lock")
    if not lock.try_exclusive():
        return None
    with suppress(OSError), socket.socket() as probe:
        # What a stopped server's connections leave behind for a minute does not make it taken.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((HOST, port))
        return lock
    lock.release()
    return None
