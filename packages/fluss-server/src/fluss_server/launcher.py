"""Implements `fluss.connect("embedded:./folder")`: starts a server for a folder, or finds one.

The sessions of one process share a server. It stops when the last session is closed, or with the
process. A server that another process started is used and not stopped.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fluss.waiting import InterruptibleLock
from fluss_server.local_cluster import LocalCluster

_lock = InterruptibleLock()
_shared: dict[Path, tuple[LocalCluster, int]] = {}


def launch(folder: str) -> tuple[str, Callable[[], None]]:
    """Start or find the server of a folder.

    Returns:
        Its bootstrap servers, and a function that releases it.

    Raises:
        LocalServerError: The server could not start.
    """
    path = Path(folder).expanduser().resolve()
    with _lock:
        cluster, users = _shared.get(path, (None, 0))
        if cluster is None:
            cluster = LocalCluster(path).start()
        _shared[path] = (cluster, users + 1)
        return cluster.bootstrap_servers, _Release(path)


class _Release:
    """Releases a server; idempotent."""

    def __init__(self, path: Path) -> None:
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
                cluster.stop()
