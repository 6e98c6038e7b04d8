"""`RealServer`: the real Fluss as `fluss_server.LocalCluster(kind="real")` starts it.

Found by the entry point `real` of the group `fluss.local_clusters`, so that the embedded server and
this package do not import each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fluss_testkit.java_cluster import JavaCluster


class RealServer:
    """A running Fluss 0.9.1 of one tablet server.

    Args:
        path: The directory that keeps the data; None is a fresh one that vanishes.
        port: The port for clients; None for a free one.
        users: Names and passwords; with some there is a second port that asks for them.
        start_timeout_s: How long the start may take.

    Raises:
        MissingRuntimeError: Java is missing.
        LocalServerError: It could not start.
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
        """End it and wait until its processes are gone."""
        self._cluster.stop()
