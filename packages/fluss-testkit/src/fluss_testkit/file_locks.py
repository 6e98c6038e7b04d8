"""A lock on a file, which the kernel releases when the last process that holds it has ended.

The lock belongs to the open file, not to the process: a child that inherits the descriptor holds
it, too. Therefore it is a reliable sign that a process runs, which a pid file is not. Needs a POSIX
system.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


class FileLock:
    """One file that can be opened and locked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None

    @property
    def held(self) -> bool:
        """Whether this object has the file open."""
        return self._file is not None

    def fileno(self) -> int:
        """Return the descriptor; a child that inherits it holds the lock as well."""
        if self._file is None:
            raise ValueError(f"{self.path} is not locked")
        return self._file

    def try_exclusive(self) -> bool:
        """Take an exclusive lock; return False where any lock is held."""
        try:
            self._lock(fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def exclusive(self) -> None:
        """Take an exclusive lock; wait for all holders."""
        self._lock(fcntl.LOCK_EX)

    def shared(self) -> None:
        """Take a shared lock; wait for an exclusive holder."""
        self._lock(fcntl.LOCK_SH)

    def release(self) -> None:
        """Close the file, which releases the lock unless a child has inherited it."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _lock(self, operation: int) -> None:
        opened = self._file
        if opened is None:
            opened = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(opened, operation)
        except BaseException:
            if self._file is None:
                os.close(opened)
            raise
        self._file = opened
