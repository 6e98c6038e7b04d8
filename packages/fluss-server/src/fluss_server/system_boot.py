"""Identifies the current boot of the operating system.

After SIGKILL all writes of a process are still there, because the page cache keeps them; after a
power cut only synced data is. The boot id tells the two apart; it is random on Linux and macOS.
Where a system has none, every start counts as another boot.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import sys
import uuid
from pathlib import Path
from typing import Final

_LINUX: Final = Path("/proc/sys/kernel/random/boot_id")
_MACOS: Final = b"kern.bootsessionuuid"
NO_BOOT: Final = bytes(16)


def boot_id() -> bytes:
    """Return the id of the current boot, 16 bytes; zeros where the system has none."""
    try:
        text = _sysctl(_MACOS) if sys.platform == "darwin" else _LINUX.read_text()
        return uuid.UUID(text.strip()).bytes
    except (OSError, ValueError):
        return NO_BOOT


def _sysctl(name: bytes) -> str:
    library = ctypes.CDLL(ctypes.util.find_library("c"))
    size = ctypes.c_size_t(64)
    value = ctypes.create_string_buffer(size.value)
    if library.sysctlbyname(name, value, ctypes.byref(size), None, ctypes.c_size_t(0)):
        raise OSError(f"sysctl {name.decode()} failed")
    return value.value.decode()
