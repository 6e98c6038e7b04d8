"""`JavaCluster`: a real Apache Fluss on this machine, with methods that make servers fail.

`cluster_profiles` and `java_config` decide the servers of a cluster. This file starts their
processes in order, waits until they are ready, and stops them so that nothing is left behind.
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
from fluss_testkit.class_archive import ClassArchive
from fluss_testkit.cluster_processes import (
    ALL_ROLES,
    COORDINATOR,
    ClusterProcesses,
    create_processes,
    tablet_name,
)
from fluss_testkit.cluster_profiles import Profile, merge
from fluss_testkit.java_config import (
    ClusterConfig,
    ServerPorts,
    configure,
    ports_needed,
    write_files,
)
from fluss_testkit.java_launcher import compiled_launcher
from fluss_testkit.java_runtime import JavaRuntime, find_java
from fluss_testkit.log_tail import LogSizes, mark_logs, tail_logs
from fluss_testkit.overlooked_tables import OverlookedTables
from fluss_testkit.ports import PortLease, lease_ports
from fluss_testkit.server_process import JavaCommand
from fluss_testkit.workspace import Workspace, open_workspace, own_scratch_dir

START_TIMEOUT_S = 90.0
STOP_TIMEOUT_S = 30.0
DEFAULT_USER = "admin"


class JavaCluster:
    """A real Apache Fluss 0.9.1: ZooKeeper, a coordinator and one or more tablet servers.

        with JavaCluster() as cluster:
            connect(cluster.bootstrap_servers)

    With a JDK and one tablet server, everything runs in one JVM; otherwise each server is a
    process. Each server has its own loopback ports, a plain one and one that requires a login
    (SASL/PLAIN). All servers stop with this process, however it ends.

    **In Fluss 0.9.1 a killed server without replicas loses acknowledged rows.** After SIGKILL the
    server cuts its log back to a checkpoint that is written every 5 s, and offsets go backwards.
    Stop such a cluster gracefully (`stop`, or leaving the `with` block), or give it replicas.

    One thread at a time may use an object. In a process forked from the one that started the
    cluster, `stop` does nothing.

    Args:
        profiles: Its profiles (`fluss_testkit.cluster_profiles`); later ones override earlier ones.
        data_dir: A directory that keeps the data; None for a temporary one.
        options: Options of the servers, as in Fluss's server.yaml; they override the profiles'.
        users: Names and passwords for the SASL listener; by default `admin` and a random password.
        port: The coordinator's plain port; by default a free one, which a kept directory keeps.
        server_jar: Another build of the server than the published one.
        java: The Java to use; by default that of JAVA_HOME or the PATH.
        start_timeout_s: The time limit of the start.
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
        self._processes: ClusterProcesses | None = None
        self._overlooked: OverlookedTables | None = None
        self._archive: ClassArchive | None = None
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
            ConfigError: The profiles or options are invalid.
            LocalServerError: The servers did not become ready; a note has the ends of their logs.
        """
        if self._processes is not None:
            raise LocalServerError("this cluster runs already.", hint="stop it first.")
        java = self._java or find_java()
        jars = (self._server_jar or find_jar(FLUSS_SERVER), find_jar(LOG_BINDING))
        plugins = {
            name: [find_jar(each) for each in artifacts]
            for name, artifacts in self._profile.plugins.items()
        }
        workspace = open_workspace(self._data_dir)
        try:
            workspace.install_plugins(plugins)
            processes = self._create_processes(workspace, java, jars)
        except BaseException:
            workspace.leave()
            raise
        try:
            processes.start(self._start_timeout_s)
            self._archive_classes(processes)
        except BaseException:
            processes.stop(graceful=False)
            raise
        self._processes = processes
        self._overlooked = OverlookedTables(
            processes.coordinator_log, processes.config.zookeeper_port
        )
        self._owner_pid = os.getpid()
        return self

    def stop(self, *, graceful: bool | None = None) -> None:
        """Stop the servers. Idempotent.

        Args:
            graceful: Whether the servers shut down gracefully, which takes 4 s. By default only
                where
                the directory is kept.
        """
        processes = self._processes
        if processes is None or os.getpid() != self._owner_pid:
            return
        self._processes = None
        overlooked, self._overlooked = self._overlooked, None
        if overlooked is not None:
            overlooked.stop()
        processes.stop(graceful=processes.workspace.kept if graceful is None else graceful)

    @property
    def bootstrap_servers(self) -> str:
        """The addresses for clients: the coordinator, and separate tablet servers as well."""
        return ",".join(each.plain_address for each in self._client_endpoints())

    @property
    def sasl_bootstrap_servers(self) -> str:
        """The addresses for clients with a user and a password."""
        return ",".join(each.sasl_address for each in self._client_endpoints())

    @property
    def users(self) -> Mapping[str, str]:
        """Names and passwords for the SASL listener."""
        return self.config.users

    @property
    def config(self) -> ClusterConfig:
        """The resolved configuration, with each server's addresses."""
        return self._started().config

    @property
    def directory(self) -> Path:
        """The directory of data, configuration and logs."""
        return self._started().workspace.root

    @property
    def pids(self) -> Mapping[str, int]:
        """The process ids of the running servers by name."""
        return self._started().pids

    @property
    def log_paths(self) -> tuple[Path, ...]:
        """The log of each process."""
        return self._started().log_paths

    def mark_logs(self) -> LogSizes:
        """Return the sizes of the logs now, for `log_tail`."""
        return mark_logs(self.log_paths)

    def log_tail(self, since: LogSizes | None = None) -> str:
        """Return the ends of the logs, at most what was written since the mark."""
        return tail_logs(self.log_paths, since=since)

    # --- failures -----------------------------------------------------------------------------

    def kill_tablet_server(self, number: int) -> None:
        """Kill a tablet server (SIGKILL)."""
        self._started().server(tablet_name(number)).kill()

    def stop_tablet_server(self, number: int) -> None:
        """Stop a tablet server (SIGTERM), and wait until it has ended."""
        server = self._started().server(tablet_name(number))
        server.terminate()
        if not server.wait(STOP_TIMEOUT_S):
            server.kill()

    def pause_tablet_server(self, number: int) -> None:
        """Pause a tablet server (SIGSTOP)."""
        self._started().server(tablet_name(number)).pause()

    def resume_tablet_server(self, number: int) -> None:
        """Resume a paused tablet server (SIGCONT)."""
        self._started().server(tablet_name(number)).resume()

    def restart_tablet_server(self, number: int) -> None:
        """Restart a tablet server at its old address, and wait until it is ready.

        After a kill it can register only when the ZooKeeper session of its predecessor has
        expired.
        """
        self._started().start_tablet_server(number, self._start_timeout_s)

    def kill_coordinator(self) -> None:
        """Kill the coordinator (SIGKILL)."""
        self._started().server(COORDINATOR).kill()

    def restart_coordinator(self) -> None:
        """Restart a killed coordinator at its old address, and wait until it is ready."""
        self._started().start_coordinator(self._start_timeout_s)

    # --- creation -------------------------------------------------------------------------------

    def _create_processes(
        self, workspace: Workspace, java: JavaRuntime, jars: tuple[Path, ...]
    ) -> ClusterProcesses:
        memory = workspace.load_memory()
        launcher = compiled_launcher(java, jars)
        self._archive = ClassArchive.of(java, launcher, jars)
        lease = self._lease_ports(memory.get("ports", ()))
        try:
            users = self._users or memory.get("users") or {DEFAULT_USER: secrets.token_urlsafe(12)}
            config = configure(self._profile, lease.ports, users, can_share=launcher is not None)
            _check_memory(memory, config, workspace)
            command = JavaCommand(
                java=java,
                jars=jars,
                launcher=launcher,
                archive=self._archive,
                heap_mb=config.heap_mb,
                scratch=workspace.scratch,
                logging=workspace.config / "logging.properties",
            )
            files = write_files(config, workspace)
            workspace.save_memory(
                {"ports": lease.ports, "users": users, "tablet_servers": len(config.tablet_servers)}
            )
            return create_processes(config, files, workspace, lease, command)
        except BaseException:
            lease.release()
            raise

    def _archive_classes(self, processes: ClusterProcesses) -> None:
        """Keep the classes of the first process that has loaded those of all roles."""
        pid = processes.pids.get(ALL_ROLES)
        if pid is not None and self._archive is not None:
            self._archive.write(pid)

    def _lease_ports(self, remembered: tuple[int, ...]) -> PortLease:
        return lease_ports(
            ports_needed(self._profile),
            own_scratch_dir() / "ports",
            first=self._port,
            preferred=remembered,
        )

    def _client_endpoints(self) -> tuple[ServerPorts, ...]:
        config = self.config
        return (config.coordinator, *(config.tablet_servers if config.separate else ()))

    def _started(self) -> ClusterProcesses:
        if self._processes is None:
            raise LocalServerError("the cluster does not run.", hint="start it first.")
        return self._processes


def _check_memory(memory: Mapping[str, object], config: ClusterConfig, at: Workspace) -> None:
    """Refuse to start fewer servers than have the data."""
    before = memory.get("tablet_servers", 0)
    now = len(config.tablet_servers)
    if isinstance(before, int) and now < before:
        raise ConfigError(
            f"the data in {at.root} is on {before} tablet servers, but {now} would start.",
            hint="start it with the profile it was created with, or name another directory.",
            path=str(at.root),
        )
