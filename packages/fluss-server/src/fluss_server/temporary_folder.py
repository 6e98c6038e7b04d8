"""Folders of servers that keep nothing: made for a `LocalCluster`, and removed however it ends.

Three parties remove a folder: the cluster when it stops or is dropped, its server when the process
that started it has ended, and the next cluster where neither could, because both were killed. The
name of a folder has the process that made it, so the next cluster knows whose folders are left.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from fluss_server.directory_lock import is_served

PREFIX: Final = "fluss-embedded-"
_NAME: Final = re.compile(rf"{PREFIX}(\d+)-\w+")
# Another machine that shares the directory for temporary files may be starting a server there.
_AGE_S_MIN: Final = 60.0
STALE_MAX: Final = 100  # removed at a time


class TemporaryFolder:
    """A folder that is removed with its object, or at the end of the process.

    Attributes:
        path: The folder.
    """

    def __init__(self) -> None:
        remove_stale_folders()
        self.path = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
        self._finalizer = weakref.finalize(self, _remove_own, self.path, os.getpid())

    def remove(self) -> None:
        """Remove it. Idempotent."""
        self._finalizer()


def remove_folder(path: Path) -> None:
    """Remove a folder, as far as possible; another party may be removing it as well."""
    shutil.rmtree(path, ignore_errors=True)


def remove_stale_folders() -> None:
    """Remove the folders of clusters that were killed together with their servers."""
    try:
        found = list(_stale_folders(Path(tempfile.gettempdir())))[:STALE_MAX]
    except OSError:  # it cannot be listed
        return
    for folder in found:
        remove_folder(folder)


def _stale_folders(within: Path) -> Iterator[Path]:
    for entry in os.scandir(within):
        named = _NAME.fullmatch(entry.name)
        if named is None or _is_running(int(named[1])):
            continue
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:  # another process has removed it
            continue
        is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == _user()
        is_old = time.time() - status.st_mtime > _AGE_S_MIN  # noqa: TID251 - a file has its own time
        if is_ours and is_old and not is_served(Path(entry.path)):
            yield Path(entry.path)


def _is_running(pid: int) -> bool:
    if os.name == "nt":  # os.kill would end the process there
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # another user's
        return True
    return True


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0


def _remove_own(path: Path, pid: int) -> None:
    if os.getpid() == pid:  # not in a child of a fork
        remove_folder(path)
