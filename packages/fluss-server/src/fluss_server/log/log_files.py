"""File operations of the log: append, read, sync and truncate, on every operating system.

Only this file handles the differences between systems. Directories are synced where the system
supports that, so that a file created before a crash of the machine exists after it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from fluss.wire.byte_buffers import Buffer, count_bytes

_BUFFERS_MAX: Final = 512  # below every system's limit for one gathered write
_OPEN_FLAGS: Final = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0) | os.O_CLOEXEC
# Without pwrite all users of a descriptor share one position.
_POSITION: Final = threading.Lock()
_HAS_POSITIONS: Final = hasattr(os, "pwrite")
_sync = getattr(os, "fdatasync", os.fsync)


def open_file(path: Path) -> int:
    """Open a file for reading and writing; create it where it is missing."""
    return os.open(path, _OPEN_FLAGS, 0o644)


def open_existing(path: Path) -> int:
    """Open an existing file for reading and writing.

    Raises:
        OSError: The file is missing, or the disk refused.
    """
    return os.open(path, _OPEN_FLAGS & ~os.O_CREAT)


def is_unlinked(descriptor: int) -> bool:
    """Return whether an open file was removed, so that writes to it are lost."""
    return os.fstat(descriptor).st_nlink == 0


def write_at(descriptor: int, position: int, data: bytes | bytearray) -> None:
    """Overwrite bytes of a file. Any thread may call it, even while others use the file.

    Raises:
        OSError: The disk refused.
    """
    if _HAS_POSITIONS:
        written = os.pwrite(descriptor, data, position)
    else:
        with _POSITION:
            os.lseek(descriptor, position, os.SEEK_SET)
            written = os.write(descriptor, data)
    if written != len(data):
        raise OSError(f"only {written} of {len(data)} bytes could be written")


def append(descriptor: int, size: int, buffers: Sequence[Buffer]) -> int:
    """Append buffers to a file of `size` bytes, all of them or none.

    Returns:
        The file's new size.

    Raises:
        OSError: The disk refused; the file is as long as it was, unless even that failed.
    """
    total = count_bytes(buffers)
    try:
        if hasattr(os, "pwritev"):
            written = os.pwritev(descriptor, buffers[:_BUFFERS_MAX], size)
            if written < total:
                _write_rest(descriptor, buffers, size=size, written=written)
        else:
            _write_rest(descriptor, buffers, size=size, written=0)
    except OSError:
        os.ftruncate(descriptor, size)
        raise
    return size + total


def _write_rest(descriptor: int, buffers: Sequence[Buffer], *, size: int, written: int) -> None:
    # After a short write, writing the rest either succeeds or raises the reason.
    rest = memoryview(b"".join(buffers))[written:]
    os.lseek(descriptor, size + written, os.SEEK_SET)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def read(descriptor: int, position: int, size: int) -> bytes:
    """Read bytes; return fewer where the file ends."""
    if hasattr(os, "pread"):
        return os.pread(descriptor, size, position)
    os.lseek(descriptor, position, os.SEEK_SET)
    return os.read(descriptor, size)


def sync(descriptor: int) -> None:
    """Wait until the file's bytes are on the disk."""
    _sync(descriptor)


def sync_directory(path: Path) -> None:
    """Wait until the names in a directory are on the disk, where the system supports that."""
    if os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_file(path: Path, data: bytes, *, durable: bool) -> None:
    """Create or replace a file atomically."""
    fresh = path.with_name(path.name + ".new")
    descriptor = os.open(fresh, _OPEN_FLAGS | os.O_TRUNC, 0o644)
    try:
        _write_rest(descriptor, [data], size=0, written=0)
        if durable:
            sync(descriptor)
    finally:
        os.close(descriptor)
    fresh.replace(path)
