"""Implements `fluss.connect("embedded:./folder")`: starts a server for a folder, or finds one.

The sessions of one process share a server. It stops when the last session is closed, or with the
process. A server that another process started is used and not stopped. `embedded:` without a folder
is a server in a temporary directory, which is deleted when it stops. `?lake` behind the folder
gives it a lake, `?lake=sqlite:///lake.db` that one.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from fluss.errors import ConfigError
from fluss.model.did_you_mean import did_you_mean
from fluss.waiting import InterruptibleLock
from fluss_server.lake.lake_settings import LakeLocation
from fluss_server.local_cluster import LocalCluster

_OPTIONS: Final = {"lake": "url", "warehouse": "warehouse"}
_lock = InterruptibleLock()
# The servers with the numbers of their users, by folder; None is the temporary one.
_shared: dict[Path | None, tuple[LocalCluster, int]] = {}


def launch(folder: str) -> tuple[str, Callable[[], None]]:
    """Start or find the server of a folder.

    Args:
        folder: Its path, empty for a temporary directory, and after a question mark its options:
            `lake`, `lake=URL`, `warehouse=PLACE`, separated by `&`, and percent-encoded.

    Returns:
        Its bootstrap servers, and a function that releases it.

    Raises:
        LocalServerError: The server could not start.
        ConfigError: An option is unknown, or the running server of the folder contradicts it.
        MissingExtraError: A lake is requested, and `fluss-lake` is not installed.
    """
    folder, _, query = folder.partition("?")
    lake = _lake_of(query)
    path = Path(folder).expanduser().resolve() if folder else None
    with _lock:
        cluster, users = _shared.get(path, (None, 0))
        if cluster is not None and lake is not None:
            cluster.check_lake(lake)
        if cluster is None:
            cluster = LocalCluster(path, lake=lake).start()
            if path is None:
                # The server must stop before its directory is deleted, which happens at exit, too.
                atexit.register(cluster.stop)
        _shared[path] = (cluster, users + 1)
        return cluster.bootstrap_servers, _Release(path)


def _lake_of(query: str) -> LakeLocation | None:
    """Return the lake that the options behind a folder name."""
    if not query:
        return None
    found: dict[str, str] = {}
    for name, _, value in (part.partition("=") for part in query.split("&")):
        key = _OPTIONS.get(name)
        if key is None:
            raise ConfigError(
                f"An embedded server has no option {name!r}.",
                hint=did_you_mean(name, _OPTIONS) or f"It has {' and '.join(_OPTIONS)}.",
                key=name,
            )
        found[key] = unquote(value)
    return LakeLocation(url=found.get("url", ""), warehouse=found.get("warehouse"))


class _Release:
    """Releases a server; idempotent."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._is_done = False

    def __call__(self) -> None:
        with _lock:
            if self._is_done or self._path not in _shared:
                return
            self._is_done = True
            cluster, users = _shared.pop(self._path)
            if users > 1:
                _shared[self._path] = (cluster, users - 1)
            else:
                atexit.unregister(cluster.stop)
                cluster.stop()
