"""`RealServer`: the real Fluss for `fluss_server.LocalCluster(kind="real")`.

The entry point `real` of the group `fluss.local_clusters` names it, so that neither package imports
the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fluss_testkit.java_cluster import JavaCluster


class RealServer:
    """A running Fluss 0.9.1 of one tablet server.

    Args:
        path: The directory that keeps the data; None for a temporary one.
        port: The port for clients; None for a free one.
        users: Names and passwords for the second port, which requires a login.
        start_timeout_s: The time limit of the start.

    Raises:
        MissingRuntimeError: Java is missing.
        LocalServerError: The server could not start.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        port: int | None,
        users: Mapping[str, str] | None,
        start_timeout_s: float,
    ) -> None:
        self._cluster = JavaCluster(
            data_dir=path, port=port, users=users, start_timeout_s=start_timeout_s
        ).start()
        self.directory = self._cluster.directory
        self.bootstrap_servers = self._cluster.bootstrap_servers
        self.sasl_bootstrap_servers = self._cluster.sasl_bootstrap_servers
        self.pid = next(iter(self._cluster.pids.values()))

    def stop(self) -> None:
        """Stop the server and wait until its processes have ended."""
        self._cluster.stop()

    def kill(self) -> None:
        """Kill the server's processes (SIGKILL)."""
        self._cluster.stop(graceful=False)
