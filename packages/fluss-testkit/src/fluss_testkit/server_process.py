"""One server process: its command line, its log, and the signals it can be sent.

Each server is its own process group. So Ctrl-C in a terminal does not reach it before its parent
has decided, and a signal reaches the Java process behind the watchdog, too. Its standard input is a
pipe from this process: when this process ends, however it ends, the pipe breaks and the server
stops. `cluster_processes` decides the order in which servers start and stop.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from fluss.errors import LocalServerError
from fluss_testkit.class_archive import ClassArchive
from fluss_testkit.java_launcher import MAIN_CLASS, WATCHDOG
from fluss_testkit.java_runtime import JavaRuntime

# Servers whose parent was killed stop in the order of their roles, at this interval.
ORPHAN_STEP_S = 1.5
FLUSS = "org.apache.fluss.server"
# Where servers look for plugins: a directory with one of jars for each.
PLUGINS_VARIABLE = "FLUSS_PLUGINS_DIR"
ZOOKEEPER_MAIN = (
    "org.apache.fluss.shaded.zookeeper3.org.apache.zookeeper.server.ZooKeeperServerMain"
)


class Role(Enum):
    """The roles of a server process; the values are the launcher's names."""

    ZOOKEEPER = "zookeeper"
    COORDINATOR = "coordinator"
    TABLET = "tablet"

    @property
    def stops_after(self) -> int:
        """How many other roles must have stopped before this one stops."""
        return [Role.TABLET, Role.COORDINATOR, Role.ZOOKEEPER].index(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleConfig:
    """A role, and its configuration file or directory."""

    role: Role
    config: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaCommand:
    """The common part of the command lines of a cluster's processes."""

    java: JavaRuntime
    jars: tuple[Path, ...]
    launcher: Path | None
    archive: ClassArchive | None
    heap_mb: int
    scratch: Path
    logging: Path

    def line(self, roles: Sequence[RoleConfig]) -> list[str]:
        """Return the command line of a process with these roles; one role without a launcher."""
        if self.launcher is not None:
            words = [
                word
                for role_config in roles
                for word in (role_config.role.value, str(role_config.config))
            ]
            has_all = {each.role for each in roles} == set(Role)
            archive = self.archive.options(has_all_roles=has_all) if self.archive else []
            return [*self._java(self.launcher, options=archive), MAIN_CLASS, *words]
        (role_config,) = roles
        orphan_delay_s = ORPHAN_STEP_S * role_config.role.stops_after
        watchdog = [sys.executable, "-I", "-S", str(WATCHDOG), str(orphan_delay_s)]
        return [*watchdog, *self._java(), *_jar_main(role_config)]

    def _java(self, *classes: Path, options: Sequence[str] = ()) -> list[str]:
        return [
            str(self.java.executable),
            f"-Xmx{self.heap_mb}m",
            # Quick to start and small, rather than fast in the long run.
            *("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"),
            "-XX:+ExitOnOutOfMemoryError",
            *options,
            # Arrow accesses JDK buffers by reflection.
            "--add-opens=java.base/java.nio=ALL-UNNAMED",
            "-Dfile.encoding=UTF-8",
            f"-Djava.io.tmpdir={self.scratch}",
            f"-Djava.util.logging.config.file={self.logging}",
            *("-cp", os.pathsep.join(map(str, [*classes, *self.jars]))),
        ]


def _jar_main(role_config: RoleConfig) -> list[str]:
    """Return the jar's own main class of a role, and its arguments."""
    match role_config.role:
        case Role.ZOOKEEPER:
            return [ZOOKEEPER_MAIN, str(role_config.config)]
        case Role.COORDINATOR:
            return [
                f"{FLUSS}.coordinator.CoordinatorServer",
                "--configDir",
                str(role_config.config),
            ]
        case Role.TABLET:
            return [f"{FLUSS}.tablet.TabletServer", "--configDir", str(role_config.config)]


class ServerProcess:
    """A server process that can be restarted after it has ended."""

    def __init__(
        self,
        name: str,
        command: list[str],
        log_path: Path,
        *,
        plugins: Path,
        inherit: tuple[int, ...],
    ) -> None:
        self.name = name
        self.log_path = log_path
        self._command = command
        self._plugins = plugins
        self._inherit = inherit
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_alive(self) -> bool:
        """Whether the process runs or is paused."""
        return self.pid is not None

    @property
    def exit_code(self) -> int | None:
        """The exit code of an unexpected end; None while it runs, and after a requested stop."""
        return None if self._process is None else self._process.poll()

    @property
    def pid(self) -> int | None:
        """The process id, which is also the process group; None where no process runs."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def start(self) -> None:
        """Start the process; append to its log.

        Raises:
            LocalServerError: It runs already, or the operating system refuses.
        """
        if self.is_alive:
            raise LocalServerError(f"{self.name} runs already.", hint="stop or kill it first.")
        self._forget()
        try:
            with self.log_path.open("ab") as log:
                # `java_runtime` found Java, and the arguments are ours.
                self._process = subprocess.Popen(  # noqa: S603
                    self._command,
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    cwd=self.log_path.parent,
                    env={**os.environ, PLUGINS_VARIABLE: str(self._plugins)},
                    pass_fds=self._inherit,
                    process_group=0,
                )
        except OSError as error:
            raise LocalServerError(
                f"{self._command[0]} cannot be started: {error.strerror}.",
                hint="check that the file can be executed.",
                node=self.name,
            ) from error

    def request_stop(self) -> None:
        """Request a graceful stop; `wait` waits for it."""
        self._close_stdin(b"stop\n")

    def terminate(self) -> None:
        """Send SIGTERM."""
        self._signal(self._running(), signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL, and wait until the process has ended."""
        process = self._process
        if process is not None and process.poll() is None:
            self._signal(process, signal.SIGKILL)
            process.wait()
        self._forget()

    def pause(self) -> None:
        """Send SIGSTOP: the process hangs, its connections remain open."""
        process = self._running()
        self._signal(process, signal.SIGSTOP)
        if hasattr(
            os, "waitid"
        ):  # missing on some macOS versions, where the process stops a moment later
            os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        """Send SIGCONT: the process continues."""
        self._signal(self._running(), signal.SIGCONT)

    def wait(self, timeout_s: float) -> bool:
        """Wait for the end of the process; return whether it ended in time."""
        if self._process is None:
            return True
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        self._forget()
        return True

    def _signal(self, process: subprocess.Popen[bytes], number: signal.Signals) -> None:
        with suppress(ProcessLookupError):  # it ended a moment ago
            os.killpg(process.pid, number)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            raise LocalServerError(
                f"{self.name} does not run.", hint="start it first.", node=self.name
            )
        return self._process

    def _close_stdin(self, last_line: bytes) -> None:
        stdin = None if self._process is None else self._process.stdin
        if stdin is not None and not stdin.closed:
            with suppress(OSError):  # it ended a moment ago
                stdin.write(last_line)
            with suppress(OSError):
                stdin.close()

    def _forget(self) -> None:
        self._close_stdin(b"")
        self._process = None
