"""Which start of the operating system this is.

After SIGKILL everything a process wrote is there, because the system keeps it; after a power cut
only what was synced is. The two are told apart by the system's own id of its start, which is
random on Linux and macOS. Where a system has none, every start counts as another one.
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
    """The id of this start of the system, 16 bytes; zeros where it has none."""
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
