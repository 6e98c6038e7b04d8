"""A real Apache Fluss on this machine: started, stopped, and hurt on purpose.

What a cluster consists of is decided in `profiles` and `config`; here processes are started in
order, watched until they are ready, and stopped so that nothing is left behind.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from fluss.errors import ConfigError, LocalServerError
from fluss_testkit.artifact import FLUSS_SERVER, LOG_BINDING, find_jar
from fluss_testkit.assembly import COORDINATOR, Assembly, assemble, tablet_name
from fluss_testkit.cluster_profiles import Profile, merge
from fluss_testkit.java_config import (
    ClusterConfig,
    ServerPorts,
    configure,
    ports_needed,
    write_files,
)
from fluss_testkit.java_runtime import JavaRuntime, find_java
from fluss_testkit.launcher import compiled_launcher
from fluss_testkit.ports import PortLease, lease_ports
from fluss_testkit.server_logs import LogMark, mark_logs, tail_logs
from fluss_testkit.server_process import JavaCommand
from fluss_testkit.workspace import Workspace, open_workspace, own_scratch_dir

START_TIMEOUT_S = 90.0
STOP_TIMEOUT_S = 30.0
DEFAULT_USER = "admin"


class JavaCluster:
    """A real Apache Fluss 0.9.1: ZooKeeper, a coordinator and one or more tablet servers.

        with JavaCluster() as cluster:
            connect(cluster.bootstrap_servers)

    Where a JDK is at hand and one tablet server is wanted, everything runs in one JVM; otherwise
    each server is a process. All of them listen on loopback ports of their own, one plain and one
    that asks for user and password (SASL/PLAIN), and all end with this process, however it ends.

    One warning that belongs to Fluss and not to this helper: **a server whose rows have no second
    replica loses acknowledged rows when it is killed.** After SIGKILL a 0.9.1 server cuts its log
    back to a checkpoint that is written every 5 s, and offsets go backwards. Stop such a cluster
    gracefully (`stop`, or leaving the `with` block), or give it replicas.

    An object may be used by one thread at a time. In a process forked from the one that started
    the cluster, `stop` does nothing.

    Args:
        profiles: Its shape; later ones win over earlier ones (see
        `fluss_testkit.cluster_profiles`). data_dir: A directory whose data survives; None is a
        fresh one that vanishes. options: Options of the servers, as in Fluss's server.yaml; they
        win over the profiles'. users: Names and passwords for the SASL listener; by default `admin`
        and a random password. port: The coordinator's plain port; by default a free one, in a kept
        directory the same
            one again.
        server_jar: Another build of the server than the published one.
        java: The Java to use; by default that of JAVA_HOME or the PATH.
        start_timeout_s: How long the start may take.
    """

    def __init__(
        self,
        *profiles: Profile,
        data_dir: Path | None = None,
        options: Mapping[str, str] | None = None,
        users: Mapping[str, str] | None = None,
        port: int | None = None,
        server_jar: Path | None = None,
        java: JavaRuntime | None = None,
        start_timeout_s: float = START_TIMEOUT_S,
    ) -> None:
        self._profile = merge([*profiles, Profile(options=options or {})])
        self._data_dir = data_dir
        self._users = dict(users) if users is not None else None
        self._port = port
        self._server_jar = server_jar
        self._java = java
        self._start_timeout_s = start_timeout_s
        self._assembly: Assembly | None = None
        self._owner_pid = os.getpid()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> Self:
        """Start the servers and return when they are ready.

        Raises:
            MissingRuntimeError: Java, or the server's jar, is missing.
            ConfigError: The profiles or options make no sense.
            LocalServerError: The servers did not become ready; a note holds the ends of their logs.
        """
        if self._assembly is not None:
            raise LocalServerError("this cluster runs already.", hint="stop it first.")
        java = self._java or find_java()
        jars = (self._server_jar or find_jar(FLUSS_SERVER), find_jar(LOG_BINDING))
        workspace = open_workspace(self._data_dir)
        try:
            assembly = self._assemble(workspace, java, jars)
        except BaseException:
            workspace.leave()
            raise
        try:
            assembly.start(self._start_timeout_s)
        except BaseException:
            assembly.stop(graceful=False)
            raise
        self._assembly = assembly
        self._owner_pid = os.getpid()
        return self

    def stop(self, *, graceful: bool | None = None) -> None:
        """End the servers; stopping twice is no mistake.

        Args:
            graceful: Whether the servers may tidy up, which takes 4 s. By default they may when
                the directory is kept; one that vanishes needs no tidying.
        """
        assembly = self._assembly
        if assembly is None or os.getpid() != self._owner_pid:
            return
        self._assembly = None
        assembly.stop(graceful=assembly.workspace.kept if graceful is None else graceful)

    @property
    def bootstrap_servers(self) -> str:
        """Where clients begin: the coordinator, and with replicas the tablet servers as well."""
        return ",".join(each.plain_address for each in self._entrances())

    @property
    def sasl_bootstrap_servers(self) -> str:
        """The same for clients that give a user and a password."""
        return ",".join(each.sasl_address for each in self._entrances())

    @property
    def users(self) -> Mapping[str, str]:
        """Names and passwords for the SASL listener."""
        return self.config.users

    @property
    def config(self) -> ClusterConfig:
        """All that was decided before the start, each server's addresses among it."""
        return self._started().config

    @property
    def directory(self) -> Path:
        """Where data, configuration and logs are."""
        return self._started().workspace.root

    @property
    def pids(self) -> Mapping[str, int]:
        """The living server processes by name."""
        return self._started().pids

    @property
    def log_paths(self) -> tuple[Path, ...]:
        """The log of each process."""
        return self._started().log_paths

    def mark_logs(self) -> LogMark:
        """Remember how long the logs are now, for `log_tail`."""
        return mark_logs(self.log_paths)

    def log_tail(self, since: LogMark | None = None) -> str:
        """The ends of the logs, no more than was written since the mark."""
        return tail_logs(self.log_paths, since=since)

    # --- hurting it ---------------------------------------------------------------------------

    def kill_tablet_server(self, number: int) -> None:
        """Kill a tablet server on the spot (SIGKILL)."""
        self._started().node(tablet_name(number)).kill()

    def stop_tablet_server(self, number: int) -> None:
        """Stop a tablet server as an operator would (SIGTERM), and wait until it has ended."""
        node = self._started().node(tablet_name(number))
        node.terminate()
        if not node.wait(STOP_TIMEOUT_S):
            node.kill()

    def pause_tablet_server(self, number: int) -> None:
        """Let a tablet server hang (SIGSTOP)."""
        self._started().node(tablet_name(number)).pause()

    def resume_tablet_server(self, number: int) -> None:
        """Let a hanging tablet server go on (SIGCONT)."""
        self._started().node(tablet_name(number)).resume()

    def restart_tablet_server(self, number: int) -> None:
        """Start a killed or stopped tablet server at its old address, and wait until it is back.

        After a kill it is let in only when ZooKeeper has given up its predecessor.
        """
        self._started().start_tablet_server(number, self._start_timeout_s)

    def kill_coordinator(self) -> None:
        """Kill the coordinator on the spot (SIGKILL)."""
        self._started().node(COORDINATOR).kill()

    def restart_coordinator(self) -> None:
        """Start a killed coordinator at its old address, and wait until it is back."""
        self._started().start_coordinator(self._start_timeout_s)

    # --- putting it together --------------------------------------------------------------------

    def _assemble(
        self, workspace: Workspace, java: JavaRuntime, jars: tuple[Path, ...]
    ) -> Assembly:
        memory = workspace.recall()
        launcher = compiled_launcher(java, jars)
        lease = self._lease_ports(memory.get("ports", ()))
        try:
            users = self._users or memory.get("users") or {DEFAULT_USER: secrets.token_urlsafe(12)}
            config = configure(self._profile, lease.ports, users, can_share=launcher is not None)
            _check_memory(memory, config, workspace)
            command = JavaCommand(
                java=java,
                jars=jars,
                launcher=launcher,
                heap_mb=config.heap_mb,
                scratch=workspace.scratch,
                logging=workspace.config / "logging.properties",
            )
            files = write_files(config, workspace)
            workspace.remember(
                {"ports": lease.ports, "users": users, "tablet_servers": len(config.tablet_servers)}
            )
            return assemble(config, files, workspace, lease, command)
        except BaseException:
            lease.release()
            raise

    def _lease_ports(self, remembered: tuple[int, ...]) -> PortLease:
        return lease_ports(
            ports_needed(self._profile),
            own_scratch_dir() / "ports",
            first=self._port,
            preferred=remembered,
        )

    def _entrances(self) -> tuple[ServerPorts, ...]:
        config = self.config
        return (config.coordinator, *(config.tablet_servers if config.separate else ()))

    def _started(self) -> Assembly:
        if self._assembly is None:
            raise LocalServerError("the cluster does not run.", hint="start it first.")
        return self._assembly


def _check_memory(memory: Mapping[str, object], config: ClusterConfig, at: Workspace) -> None:
    """Refuse to start fewer servers than the data lies on."""
    before = memory.get("tablet_servers", 0)
    now = len(config.tablet_servers)
    if isinstance(before, int) and now < before:
        raise ConfigError(
            f"the data in {at.root} lies on {before} tablet servers, but {now} shall start.",
            hint="start it with the profile it was made with, or name another directory.",
            path=str(at.root),
        )
