"""Paths on this machine: the cache of downloads, and the directories of clusters.

Paths only. `artifact` manages the jars, `workspace` the data directories, and `cluster_keeper` the
kept clusters.
"""

from __future__ import annotations

import getpass
import os
import sys
import tempfile
from pathlib import Path

CACHE_DIR_VARIABLE = "FLUSS_CACHE_DIR"


def cache_dir() -> Path:
    """Return the cache directory; `FLUSS_CACHE_DIR` overrides it."""
    named = os.environ.get(CACHE_DIR_VARIABLE)
    if named:
        return Path(named).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "fluss"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "fluss"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fluss"


def jars_dir() -> Path:
    """Return the directory of downloaded jars."""
    return cache_dir() / "jars"


def kept_dir(name: str) -> Path:
    """Return the home directory of a cluster that outlives the command which started it."""
    return cache_dir() / "clusters" / name


def scratch_dir() -> Path:
    """Return the directory for the data of temporary clusters."""
    return Path(tempfile.gettempdir()) / f"fluss-clusters-{getpass.getuser()}"
