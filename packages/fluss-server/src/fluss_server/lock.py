"""One server per data directory: a lock that the system releases, with a note of who holds it.

The lock belongs to the open file, so it is gone when the process is, however it ended. The note
says where the server can be reached, for those who want to attach instead of starting another
one.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from fluss.errors import LocalServerError
from fluss_server.places import LOCK


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who serves a directory; the addresses are missing while it is starting."""

    pid: int
    bootstrap_servers: str | None = None
    sasl_bootstrap_servers: str | None = None


class DirectoryLock:
    """The lock of one data directory."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / LOCK
        self._descriptor: int | None = None

    def take(self) -> None:
        """Take the lock.

        Raises:
            LocalServerError: Another process has it; the error names it and where it listens.
            OSError: The directory cannot be written.
        """
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _lock(descriptor)
        except OSError:
            os.close(descriptor)
            raise self._taken() from None
        self._descriptor = descriptor
        self.write(Holder(pid=os.getpid()))

    def write(self, holder: Holder) -> None:
        """Note who holds it."""
        if self._descriptor is not None:
            data = json.dumps(asdict(holder)).encode()
            os.lseek(self._descriptor, _NOTE_AT, os.SEEK_SET)
            os.write(self._descriptor, data)
            os.ftruncate(self._descriptor, _NOTE_AT + len(data))

    def release(self) -> None:
        """Give the lock back."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.ftruncate(descriptor, 0)
            os.close(descriptor)

    def _taken(self) -> LocalServerError:
        holder = read_holder(self._path.parent)
        who = "another process" if holder is None else f"process {holder.pid}"
        where = holder.bootstrap_servers if holder is not None else None
        at = f" at {where}" if where else ""
        return LocalServerError(
            f"{self._path.parent} is served by {who}{at} already.",
            hint=f"Connect to {where}, or stop that server." if where else "Stop that server.",
            path=str(self._path.parent),
            pid=None if holder is None else holder.pid,
            bootstrap_servers=where,
        )


# Windows locks bytes that nobody else may read, so the note stands behind the locked one.
_NOTE_AT = 1


def read_holder(directory: Path) -> Holder | None:
    """Who wrote the note last; whether they still live is known to the lock alone."""
    try:
        data = (directory / LOCK).read_bytes()[_NOTE_AT:]
        return Holder(**json.loads(data))
    except (OSError, ValueError, TypeError):
        return None


def is_served(directory: Path) -> bool:
    """Whether a living process holds the directory's lock."""
    try:
        descriptor = os.open(directory / LOCK, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        _lock(descriptor)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _lock(descriptor: int) -> None:
    if sys.platform == "win32":
        import msvcrt

        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
