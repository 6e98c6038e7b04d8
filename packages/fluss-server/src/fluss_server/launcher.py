"""Implements `fluss.connect("embedded:./folder")`: starts a server for a folder, or finds one.

The sessions of one process share a server. It stops when the last session is closed, or with the
process. A server that another process started is used and not stopped. `embedded:` without a folder
is a server in a temporary directory, which is deleted when it stops.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable
from pathlib import Path

from fluss.waiting import InterruptibleLock
from fluss_server.local_cluster import LocalCluster

_lock = InterruptibleLock()
# The servers with the numbers of their users, by folder; None is the temporary one.
_shared: dict[Path | None, tuple[LocalCluster, int]] = {}


def launch(folder: str) -> tuple[str, Callable[[], None]]:
    """Start or find the server of a folder.

    Args:
        folder: Its path; empty for a temporary directory.

    Returns:
        Its bootstrap servers, and a function that releases it.

    Raises:
        LocalServerError: The server could not start.
    """
    path = Path(folder).expanduser().resolve() if folder else None
    with _lock:
        cluster, users = _shared.get(path, (None, 0))
        if cluster is None:
            cluster = LocalCluster(path).start()
            if path is None:
                # The server must stop before its directory is deleted, which happens at exit, too.
                atexit.register(cluster.stop)
        _shared[path] = (cluster, users + 1)
        return cluster.bootstrap_servers, _Release(path)


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
