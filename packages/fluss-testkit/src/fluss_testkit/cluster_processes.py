"""The processes of one cluster, and the order in which they start and stop.

ZooKeeper starts first; the other servers find each other through it and start together. A graceful
stop goes the other way: a tablet server hands its buckets over through the coordinator, and all
servers close their ZooKeeper sessions. `java_cluster` is the interface for users.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from fluss.errors import LocalServerError
from fluss_testkit.java_config import ClusterConfig, ConfigFiles
from fluss_testkit.log_tail import tail_logs
from fluss_testkit.ports import PortLease
from fluss_testkit.readiness import Check, check_coordinator, check_port, check_tablet_server
from fluss_testkit.server_process import JavaCommand, Role, RoleConfig, ServerProcess
from fluss_testkit.workspace import Workspace

POLL_S = 0.05
STOP_TIMEOUT_S = 25.0  # a process kills itself after 20 s

ALL_ROLES, ZOOKEEPER, COORDINATOR = "fluss", "zookeeper", "coordinator"


def tablet_name(number: int) -> str:
    """Return the name of a tablet server's process."""
    return f"tablet-{number}"


class ClusterProcesses:
    """All processes of a cluster, with the directory and the ports they use."""

    def __init__(
        self,
        config: ClusterConfig,
        workspace: Workspace,
        lease: PortLease,
        servers: dict[str, ServerProcess],
    ) -> None:
        self.config = config
        self.workspace = workspace
        self._lease = lease
        self._servers: Mapping[str, ServerProcess] = servers

    @property
    def log_paths(self) -> tuple[Path, ...]:
        """The log of each process."""
        return tuple(server.log_path for server in self._servers.values())

    @property
    def coordinator_log(self) -> Path:
        """The log of the process with the coordinator."""
        return self._servers[ALL_ROLES if ALL_ROLES in self._servers else COORDINATOR].log_path

    @property
    def pids(self) -> Mapping[str, int]:
        """The process ids of the running processes by name."""
        pids = {name: server.pid for name, server in self._servers.items()}
        return {name: pid for name, pid in pids.items() if pid is not None}

    def server(self, name: str) -> ServerProcess:
        """Return the process of that name.

        Raises:
            LocalServerError: There is none, or the server shares a process with others.
        """
        found = self._servers.get(name)
        if found is None and ALL_ROLES in self._servers:
            raise LocalServerError(
                f"{name} shares one process with the rest of its cluster.",
                hint="use Profile(separate=True) to control servers one by one.",
                node=name,
            )
        if found is None:
            raise LocalServerError(
                f"there is no {name} in this cluster.",
                hint=f"it consists of {', '.join(self._servers)}.",
                node=name,
            )
        return found

    def start(self, timeout_s: float) -> None:
        """Start all processes and wait until the cluster is ready.

        Raises:
            LocalServerError: A process ended, or the time is over; a note has the ends of the
                logs.
        """
        deadline = time.monotonic() + timeout_s
        for phase, ready in self._phases():
            for server in phase:
                server.start()
            self.await_ready(ready, deadline - time.monotonic())

    def await_ready(self, check: Check, timeout_s: float) -> None:
        """Wait until the check finds nothing missing.

        Raises:
            LocalServerError: A process ended, or the time is over; a note has the ends of the
                logs.
        """
        deadline = time.monotonic() + timeout_s
        while (missing := check()) is not None:
            dead = [server for server in self._servers.values() if server.exit_code is not None]
            if dead:
                raise self._failure(f"{dead[0].name} ended with exit code {dead[0].exit_code}")
            if time.monotonic() > deadline:
                raise self._failure(f"the cluster was not ready in time: {missing}")
            time.sleep(POLL_S)

    def stop(self, *, graceful: bool) -> None:
        """Stop all processes, and release the directory and the ports."""
        try:
            if graceful:
                for phase, _ in reversed(list(self._phases())):
                    self._stop_gracefully(phase)
        finally:
            for server in self._servers.values():
                server.kill()
            self.workspace.leave()
            self._lease.release()

    def start_tablet_server(self, number: int, timeout_s: float) -> None:
        """Start or restart one tablet server, and wait until it is part of the cluster."""
        self.server(tablet_name(number)).start()
        self.await_ready(self._tablet_server_ready(number), timeout_s)

    def start_coordinator(self, timeout_s: float) -> None:
        """Start or restart the coordinator, and wait until it knows its tablet servers."""
        self.server(COORDINATOR).start()
        self.await_ready(self._coordinator_ready, timeout_s)

    def _phases(self) -> Iterator[tuple[list[ServerProcess], Check]]:
        """Iterate over groups of processes, with the check before the next group starts."""
        if ALL_ROLES in self._servers:
            yield [self._servers[ALL_ROLES]], self._cluster_ready
            return
        yield [self._servers[ZOOKEEPER]], lambda: check_port(self.config.zookeeper_port)
        yield [self._servers[COORDINATOR]], lambda: None
        yield (
            [self._servers[tablet_name(i)] for i in range(len(self.config.tablet_servers))],
            self._cluster_ready,
        )

    def _cluster_ready(self) -> str | None:
        checks = [self._tablet_server_ready(i) for i in range(len(self.config.tablet_servers))]
        missing = (check() for check in (self._coordinator_ready, *checks))
        return next((each for each in missing if each is not None), None)

    def _coordinator_ready(self) -> str | None:
        servers = len(self.config.tablet_servers)
        return check_coordinator(self.config.coordinator.plain_address, servers)

    def _tablet_server_ready(self, number: int) -> Check:
        servers = self.config.tablet_servers
        address = servers[number].plain_address
        return lambda: check_tablet_server(address, len(servers))

    def _stop_gracefully(self, servers: list[ServerProcess]) -> None:
        for server in servers:
            server.request_stop()
        deadline = time.monotonic() + STOP_TIMEOUT_S
        for server in servers:
            server.wait(max(0.0, deadline - time.monotonic()))

    def _failure(self, what: str) -> LocalServerError:
        failure = LocalServerError(
            f"{what}.",
            hint=f"the logs are in {self.workspace.logs}; their ends are in the notes.",
            logs=str(self.workspace.logs),
        )
        failure.add_note(tail_logs(self.log_paths))
        return failure


def create_processes(
    config: ClusterConfig,
    files: ConfigFiles,
    workspace: Workspace,
    lease: PortLease,
    command: JavaCommand,
) -> ClusterProcesses:
    """Create the processes of a configuration without starting them."""
    zookeeper = RoleConfig(role=Role.ZOOKEEPER, config=files.zookeeper)
    coordinator = RoleConfig(role=Role.COORDINATOR, config=files.coordinator)
    tablets = [RoleConfig(role=Role.TABLET, config=each) for each in files.tablet_servers]
    if config.separate:
        roles = {ZOOKEEPER: [zookeeper], COORDINATOR: [coordinator]}
        roles |= {tablet_name(i): [tablet] for i, tablet in enumerate(tablets)}
    else:
        roles = {ALL_ROLES: [zookeeper, coordinator, *tablets]}
    # Servers inherit the locks: directory and ports stay locked while one of them runs.
    inherit = (workspace.lock.fileno(), *lease.file_descriptors)
    servers = {
        name: ServerProcess(
            name,
            command.line(each),
            workspace.logs / f"{name}.log",
            plugins=workspace.plugins,
            inherit=inherit,
        )
        for name, each in roles.items()
    }
    return ClusterProcesses(config, workspace, lease, servers)
