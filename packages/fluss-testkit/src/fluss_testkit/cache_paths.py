"""Where things lie on this machine: the cache of downloads, and directories that come and go.

Only names are decided here. What is put into the places, and what may be removed from them, is
the business of `artifact` (jars), `workspace` (data directories) and `keeper` (kept clusters).
"""

from __future__ import annotations

import getpass
import os
import sys
import tempfile
from pathlib import Path

CACHE_DIR_VARIABLE = "FLUSS_CACHE_DIR"


def cache_dir() -> Path:
    """The directory for what is worth keeping; `FLUSS_CACHE_DIR` names another one."""
    named = os.environ.get(CACHE_DIR_VARIABLE)
    if named:
        return Path(named).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "fluss"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "fluss"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fluss"


def jars_dir() -> Path:
    """Where downloaded jars are kept."""
    return cache_dir() / "jars"


def kept_dir(name: str) -> Path:
    """The home of the cluster `name` that outlives the command which started it."""
    return cache_dir() / "clusters" / name


def scratch_dir() -> Path:
    """Where clusters that nobody wants to keep put their data."""
    return Path(tempfile.gettempdir()) / f"fluss-clusters-{getpass.getuser()}"
