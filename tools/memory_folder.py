"""Keeps the temporary files of a test run in memory, on machines that have enough of it.

Servers of tests create thousands of tables, each with directories, logs and stores that are synced
to the disk and deleted a moment later. In memory nothing waits for the disk. What needs the disk
itself, such as environments that are linked to uv's cache, finds the usual folder in
FLUSS_TEST_DISK. A TMPDIR of the user's is respected.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fluss_testkit.file_locks import FileLock
from fluss_testkit.workspace import own_scratch_dir

SHARED_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - a folder of its own is made in it
MEMORY_INFO: Final = Path("/proc/meminfo")
PREFIX: Final = "fluss-"
LOCK_NAME: Final = "in-use.lock"
# Files of a whole run take 2 GB, and its processes up to 10 GB.
FREE_BYTES_MIN: Final = 4 << 30
AVAILABLE_BYTES_MIN: Final = 14 << 30
DISK_VARIABLE: Final = "FLUSS_TEST_DISK"
# PostgreSQL refuses to run as root, so it runs as another user, who has to reach its directory.
_MODE_OF_TMP: Final = 0o1777


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporaryFiles:
    """Where a run keeps its temporary files.

    Args:
        variables: What its processes find in their environment.
        descriptors: What its first process inherits, so that the folder is kept while it runs.
    """

    variables: dict[str, str] = field(default_factory=dict)
    descriptors: tuple[int, ...] = ()


@contextmanager
def temporary_files() -> Iterator[TemporaryFiles]:
    """Make a folder in memory for a run, and delete it at the end; nothing where that is not wise.

    Folders of earlier runs that were killed are deleted as well.
    """
    if "TMPDIR" in os.environ or not _is_roomy():
        yield TemporaryFiles()
        return
    _delete_unused()
    disk = tempfile.gettempdir()
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=SHARED_MEMORY))
    folder.chmod(_MODE_OF_TMP)
    lock = FileLock(folder / LOCK_NAME)
    try:
        lock.exclusive()
        _share_ports(folder)
        yield TemporaryFiles(
            variables={"TMPDIR": str(folder), DISK_VARIABLE: disk}, descriptors=(lock.fileno(),)
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        lock.release()


def _is_roomy() -> bool:
    try:
        words = MEMORY_INFO.read_text().partition("MemAvailable:")[2].split()
        available = int(words[0]) << 10
        free = shutil.disk_usage(SHARED_MEMORY).free
    except (OSError, ValueError, IndexError):
        return False
    is_enough = available >= AVAILABLE_BYTES_MIN and free >= FREE_BYTES_MIN
    return is_enough and os.access(SHARED_MEMORY, os.W_OK)


def _delete_unused() -> None:
    for path in SHARED_MEMORY.glob(f"{PREFIX}*/{LOCK_NAME}"):
        lock = FileLock(path)
        try:
            if lock.try_exclusive():
                shutil.rmtree(path.parent, ignore_errors=True)
        except OSError:
            continue  # another user's, or just deleted
        finally:
            lock.release()


def _share_ports(folder: Path) -> None:
    """Let servers of this run, and others of this machine, lease ports in one place."""
    shared = own_scratch_dir() / "ports"
    shared.mkdir(exist_ok=True)
    own = folder / shared.parent.name
    own.mkdir(mode=0o700)
    (own / shared.name).symlink_to(shared)
