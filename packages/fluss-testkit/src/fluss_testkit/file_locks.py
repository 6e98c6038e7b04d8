"""A lock on a file, which the kernel releases when the last process that holds it is gone.

The lock belongs to the open file, not to the process: a child that inherits the descriptor holds
it, too. That is what makes it the truth about who is alive, where a number in a pid file is only
a memory of it. Needs a POSIX system.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


class FileLock:
    """One open file with, or without, a lock on it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None

    @property
    def held(self) -> bool:
        """Whether this object holds the file open."""
        return self._file is not None

    def fileno(self) -> int:
        """The descriptor, to be handed to a child that shall hold the lock as well."""
        if self._file is None:
            raise ValueError(f"{self.path} is not locked")
        return self._file

    def try_exclusive(self) -> bool:
        """Lock against everybody, unless somebody holds any lock on it."""
        try:
            self._lock(fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def exclusive(self) -> None:
        """Lock against everybody; waits for those who hold it."""
        self._lock(fcntl.LOCK_EX)

    def shared(self) -> None:
        """Lock against those who want it for themselves; waits for one who has it."""
        self._lock(fcntl.LOCK_SH)

    def release(self) -> None:
        """Close the file: the lock is gone, unless a child has inherited it."""
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
