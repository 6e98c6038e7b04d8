"""The processes of one cluster: which there are, in what order they start and stop.

Separate servers need ZooKeeper first; the others find each other through it and start together.
A graceful stop goes the other way: a tablet server hands its buckets over through the
coordinator, and everybody takes leave of ZooKeeper. Made for `cluster`, which is what users hold.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from fluss.errors import LocalServerError
from fluss_testkit.java_config import ClusterConfig, ConfigFiles
from fluss_testkit.ports import PortLease
from fluss_testkit.readiness import Check, coordinator_ready, listening, tablet_server_ready
from fluss_testkit.server_logs import tail_logs
from fluss_testkit.server_process import Duty, JavaCommand, Node, Role
from fluss_testkit.workspace import Workspace

POLL_S = 0.05
STOP_TIMEOUT_S = 25.0  # a node cuts itself off after 20

WHOLE, ZOOKEEPER, COORDINATOR = "fluss", "zookeeper", "coordinator"


def tablet_name(number: int) -> str:
    """What the node of a tablet server is called."""
    return f"tablet-{number}"


class Assembly:
    """All nodes of a cluster, with the directory and the ports they use."""

    def __init__(
        self, config: ClusterConfig, workspace: Workspace, lease: PortLease, nodes: dict[str, Node]
    ) -> None:
        self.config = config
        self.workspace = workspace
        self._lease = lease
        self._nodes: Mapping[str, Node] = nodes

    @property
    def log_paths(self) -> tuple[Path, ...]:
        """One log for each node."""
        return tuple(node.log_path for node in self._nodes.values())

    @property
    def pids(self) -> Mapping[str, int]:
        """The living nodes and their processes."""
        pids = {name: node.pid for name, node in self._nodes.items()}
        return {name: pid for name, pid in pids.items() if pid is not None}

    def node(self, name: str) -> Node:
        """The node of that name.

        Raises:
            LocalServerError: There is none, or it shares its process with others.
        """
        found = self._nodes.get(name)
        if found is None and WHOLE in self._nodes:
            raise LocalServerError(
                f"{name} shares one process with the rest of its cluster.",
                hint="ask for Profile(separate=True) to handle servers one by one.",
                node=name,
            )
        if found is None:
            raise LocalServerError(
                f"there is no {name} in this cluster.",
                hint=f"it consists of {', '.join(self._nodes)}.",
                node=name,
            )
        return found

    def start(self, timeout_s: float) -> None:
        """Start every node and wait until the cluster is ready.

        Raises:
            LocalServerError: A node ended, or the time is over; the logs' ends are its note.
        """
        give_up = time.monotonic() + timeout_s
        for phase, ready in self._phases():
            for node in phase:
                node.start()
            self.await_ready(ready, give_up - time.monotonic())

    def await_ready(self, check: Check, timeout_s: float) -> None:
        """Wait until the check finds nothing missing.

        Raises:
            LocalServerError: A node ended, or the time is over; the logs' ends are its note.
        """
        give_up = time.monotonic() + timeout_s
        while (missing := check()) is not None:
            dead = [node for node in self._nodes.values() if node.exit_code is not None]
            if dead:
                raise self._failure(f"{dead[0].name} ended with exit code {dead[0].exit_code}")
            if time.monotonic() > give_up:
                raise self._failure(f"the cluster was not ready in time: {missing}")
            time.sleep(POLL_S)

    def stop(self, *, graceful: bool) -> None:
        """End every node and give up the directory and the ports."""
        try:
            if graceful:
                for phase, _ in reversed(list(self._phases())):
                    self._stop_gracefully(phase)
        finally:
            for node in self._nodes.values():
                node.kill()
            self.workspace.leave()
            self._lease.release()

    def start_tablet_server(self, number: int, timeout_s: float) -> None:
        """Start one tablet server (again) and wait until it is part of the cluster."""
        self.node(tablet_name(number)).start()
        self.await_ready(self._tablet_server_ready(number), timeout_s)

    def start_coordinator(self, timeout_s: float) -> None:
        """Start the coordinator (again) and wait until it knows its tablet servers."""
        self.node(COORDINATOR).start()
        self.await_ready(self._coordinator_ready, timeout_s)

    def _phases(self) -> Iterator[tuple[list[Node], Check]]:
        """Groups of nodes in their order, and what must be true before the next group starts."""
        if WHOLE in self._nodes:
            yield [self._nodes[WHOLE]], self._cluster_ready
            return
        yield [self._nodes[ZOOKEEPER]], lambda: listening(self.config.zookeeper_port)
        yield [self._nodes[COORDINATOR]], lambda: None
        yield (
            [self._nodes[tablet_name(i)] for i in range(len(self.config.tablet_servers))],
            self._cluster_ready,
        )

    def _cluster_ready(self) -> str | None:
        checks = [self._tablet_server_ready(i) for i in range(len(self.config.tablet_servers))]
        missing = (check() for check in (self._coordinator_ready, *checks))
        return next((each for each in missing if each is not None), None)

    def _coordinator_ready(self) -> str | None:
        servers = len(self.config.tablet_servers)
        return coordinator_ready(self.config.coordinator.plain_address, servers)

    def _tablet_server_ready(self, number: int) -> Check:
        servers = self.config.tablet_servers
        address = servers[number].plain_address
        return lambda: tablet_server_ready(address, len(servers))

    def _stop_gracefully(self, nodes: list[Node]) -> None:
        for node in nodes:
            node.ask_to_stop()
        give_up = time.monotonic() + STOP_TIMEOUT_S
        for node in nodes:
            node.wait(max(0.0, give_up - time.monotonic()))

    def _failure(self, what: str) -> LocalServerError:
        failure = LocalServerError(
            f"{what}.",
            hint=f"the logs are in {self.workspace.logs}; their ends are in the notes.",
            logs=str(self.workspace.logs),
        )
        failure.add_note(tail_logs(self.log_paths))
        return failure


def assemble(
    config: ClusterConfig,
    files: ConfigFiles,
    workspace: Workspace,
    lease: PortLease,
    command: JavaCommand,
) -> Assembly:
    """The nodes that a configuration asks for; nothing is started yet."""
    zookeeper = Duty(role=Role.ZOOKEEPER, config=files.zookeeper)
    coordinator = Duty(role=Role.COORDINATOR, config=files.coordinator)
    tablets = [Duty(role=Role.TABLET, config=each) for each in files.tablet_servers]
    if config.separate:
        duties = {ZOOKEEPER: [zookeeper], COORDINATOR: [coordinator]}
        duties |= {tablet_name(i): [tablet] for i, tablet in enumerate(tablets)}
    else:
        duties = {WHOLE: [zookeeper, coordinator, *tablets]}
    # A server holds the locks as well: directory and ports are taken as long as one lives.
    inherit = (workspace.lock.fileno(), *lease.file_descriptors)
    nodes = {
        name: Node(name, command.line(each), workspace.logs / f"{name}.log", inherit=inherit)
        for name, each in duties.items()
    }
    return Assembly(config, workspace, lease, nodes)
