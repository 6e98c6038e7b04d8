"""Locks that allow one server per data directory, with a note that names the holder.

There are two locks: one on the file LOCK and one on the directory itself, because the file can be
removed while a server runs. The operating system releases both when the process ends, however it
ends. The note in LOCK has the server's address, for a caller that attaches instead of starting
another server.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from fluss.errors import LocalServerError
from fluss_server.data_layout import LOCK

_LOG = logging.getLogger(__name__)
# File systems that have no locks at all, or none for directories.
_NO_LOCKS: Final = frozenset(
    {errno.EINVAL, errno.EBADF, errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The process that serves a directory; it has no addresses while it starts."""

    pid: int
    bootstrap_servers: str | None = None
    sasl_bootstrap_servers: str | None = None
    lake: str | None = None


class DirectoryLock:
    """The locks of one data directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._path = directory / LOCK
        self._descriptor: int | None = None
        self._directory_descriptor: int | None = None
        self._holder = Holder(pid=os.getpid())

    def take(self) -> None:
        """Take the locks.

        Raises:
            LocalServerError: Another process holds one; the error names it and its address.
            OSError: The directory cannot be written.
        """
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        directory: int | None = None
        try:
            _lock(descriptor)
            directory = _locked_directory(self._directory)
        except OSError:
            os.close(descriptor)
            raise self._taken() from None
        self._descriptor, self._directory_descriptor = descriptor, directory
        self.write(Holder(pid=os.getpid()))

    def write(self, holder: Holder) -> None:
        """Write the note."""
        self._holder = holder
        if self._descriptor is not None:
            # Earlier versions read no note with a key that they do not know.
            noted = {
                key: value
                for key, value in asdict(holder).items()
                if key != "lake" or value is not None
            }
            data = json.dumps(noted).encode()
            os.lseek(self._descriptor, _NOTE_AT, os.SEEK_SET)
            os.write(self._descriptor, data)
            os.ftruncate(self._descriptor, _NOTE_AT + len(data))

    def restore(self) -> None:
        """Create the file LOCK again where it was removed; callers that attach read it.

        The lock on the directory keeps other servers out in the meantime.

        Raises:
            OSError: The directory cannot be written.
        """
        held = self._descriptor
        if held is None or self._directory_descriptor is None or _is_at(held, self._path):
            return
        _LOG.warning("%s was removed while the server runs; it is created again", self._path)
        fresh = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _lock(fresh)
        except BlockingIOError:
            os.close(fresh)  # another server holds it until it is refused by the directory's lock
            return
        self._descriptor = fresh
        os.close(held)
        self.write(self._holder)

    def release(self) -> None:
        """Release the locks."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.ftruncate(descriptor, 0)
            os.close(descriptor)
        directory, self._directory_descriptor = self._directory_descriptor, None
        if directory is not None:
            os.close(directory)

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


# Windows does not let other processes read a locked byte, so the note follows that byte.
_NOTE_AT = 1


def read_holder(directory: Path) -> Holder | None:
    """Read the note. Only the lock tells whether that process still runs."""
    try:
        data = (directory / LOCK).read_bytes()[_NOTE_AT:]
        return Holder(**json.loads(data))
    except (OSError, ValueError, TypeError):
        return None


def is_served(directory: Path) -> bool:
    """Return whether a running process holds one of the directory's locks."""
    try:
        descriptor = os.open(directory / LOCK, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        descriptor = None
    held: int | None = None
    try:
        if descriptor is not None:
            _lock(descriptor)
        held = _locked_directory(directory)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    finally:
        for opened in (descriptor, held):
            if opened is not None:
                os.close(opened)
    return False


def _lock(descriptor: int) -> None:
    if sys.platform == "win32":
        import msvcrt

        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _locked_directory(directory: Path) -> int | None:
    """Lock the directory itself and return its descriptor; None where the system cannot do that.

    Raises:
        OSError: Another process holds the lock, or there is no such directory.
    """
    if sys.platform == "win32":
        return None  # an open file cannot be removed there, so LOCK is enough
    descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _lock(descriptor)
    except OSError as error:
        os.close(descriptor)
        if error.errno in _NO_LOCKS:
            return None
        raise
    return descriptor


def _is_at(descriptor: int, path: Path) -> bool:
    """Return whether an open file is the one that a path names."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False
