"""One server process: its command line, its log, its leash, and the signals it can be given.

A node is a process group of its own, so that Ctrl-C in a terminal does not reach it before its
parent has decided, and so that a signal reaches the Java process behind the watchdog, too. Its
standard input is the leash: when this process dies, however it dies, the pipe breaks and the node
stops by itself. In which order nodes start and stop is decided in `cluster`.
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
from fluss_testkit.java_runtime import JavaRuntime
from fluss_testkit.launcher import MAIN_CLASS, WATCHDOG

# Nodes whose parent was killed stop in the order of their roles, this far apart.
ORPHAN_STEP_S = 1.5
FLUSS = "org.apache.fluss.server"
ZOOKEEPER_MAIN = (
    "org.apache.fluss.shaded.zookeeper3.org.apache.zookeeper.server.ZooKeeperServerMain"
)


class Role(Enum):
    """What a server process can do; the names are the launcher's."""

    ZOOKEEPER = "zookeeper"
    COORDINATOR = "coordinator"
    TABLET = "tablet"

    @property
    def stops_after(self) -> int:
        """How many kinds of server must have stopped before this one does."""
        return [Role.TABLET, Role.COORDINATOR, Role.ZOOKEEPER].index(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Duty:
    """A role, and the file or directory that configures it."""

    role: Role
    config: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaCommand:
    """What the command lines of all nodes of a cluster have in common."""

    java: JavaRuntime
    jars: tuple[Path, ...]
    launcher: Path | None
    heap_mb: int
    scratch: Path
    logging: Path

    def line(self, duties: Sequence[Duty]) -> list[str]:
        """The command line of a node with these duties; without a launcher it can have but one."""
        if self.launcher is not None:
            words = [word for duty in duties for word in (duty.role.value, str(duty.config))]
            return [*self._java(self.launcher), MAIN_CLASS, *words]
        (duty,) = duties
        orphan_delay_s = ORPHAN_STEP_S * duty.role.stops_after
        watchdog = [sys.executable, "-I", "-S", str(WATCHDOG), str(orphan_delay_s)]
        return [*watchdog, *self._java(), *_jar_main(duty)]

    def _java(self, *classes: Path) -> list[str]:
        return [
            str(self.java.executable),
            f"-Xmx{self.heap_mb}m",
            # Small and quick to start, rather than fast for days.
            *("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"),
            "-XX:+ExitOnOutOfMemoryError",
            # Arrow reaches into buffers of the JDK.
            "--add-opens=java.base/java.nio=ALL-UNNAMED",
            "-Dfile.encoding=UTF-8",
            f"-Djava.io.tmpdir={self.scratch}",
            f"-Djava.util.logging.config.file={self.logging}",
            *("-cp", os.pathsep.join(map(str, [*classes, *self.jars]))),
        ]


def _jar_main(duty: Duty) -> list[str]:
    """The main class that the jar itself has for a role, and its arguments."""
    match duty.role:
        case Role.ZOOKEEPER:
            return [ZOOKEEPER_MAIN, str(duty.config)]
        case Role.COORDINATOR:
            return [f"{FLUSS}.coordinator.CoordinatorServer", "--configDir", str(duty.config)]
        case Role.TABLET:
            return [f"{FLUSS}.tablet.TabletServer", "--configDir", str(duty.config)]


class Node:
    """A server process that can be started again after it has ended."""

    def __init__(
        self, name: str, command: list[str], log_path: Path, *, inherit: tuple[int, ...]
    ) -> None:
        self.name = name
        self.log_path = log_path
        self._command = command
        self._inherit = inherit
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_alive(self) -> bool:
        """Whether the process runs (or is paused)."""
        return self.pid is not None

    @property
    def exit_code(self) -> int | None:
        """How it ended by itself; None while it runs, and when its end was asked for."""
        return None if self._process is None else self._process.poll()

    @property
    def pid(self) -> int | None:
        """The process, which is also its process group; None where none runs."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def start(self) -> None:
        """Start the process; its log is continued.

        Raises:
            LocalServerError: It runs already, or the operating system refuses.
        """
        if self.is_alive:
            raise LocalServerError(f"{self.name} runs already.", hint="stop or kill it first.")
        self._forget()
        try:
            with self.log_path.open("ab") as log:
                # Java was found by `runtime`, and the arguments are ours.
                self._process = subprocess.Popen(  # noqa: S603
                    self._command,
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    cwd=self.log_path.parent,
                    pass_fds=self._inherit,
                    process_group=0,
                )
        except OSError as error:
            raise LocalServerError(
                f"{self._command[0]} cannot be started: {error.strerror}.",
                hint="check that the file can be executed.",
                node=self.name,
            ) from error

    def ask_to_stop(self) -> None:
        """Ask for a graceful end; see `wait` for when it has come."""
        self._let_go(b"stop\n")

    def terminate(self) -> None:
        """Send SIGTERM, as an operator would."""
        self._signal(self._running(), signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL, and wait until the process is gone."""
        process = self._process
        if process is not None and process.poll() is None:
            self._signal(process, signal.SIGKILL)
            process.wait()
        self._forget()

    def pause(self) -> None:
        """Send SIGSTOP: the process hangs, its connections stay open."""
        process = self._running()
        self._signal(process, signal.SIGSTOP)
        if hasattr(os, "waitid"):  # not on every macOS, where it hangs a moment later
            os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        """Send SIGCONT: the process goes on."""
        self._signal(self._running(), signal.SIGCONT)

    def wait(self, timeout_s: float) -> bool:
        """Whether the process has ended within that time."""
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

    def _let_go(self, last_words: bytes) -> None:
        leash = None if self._process is None else self._process.stdin
        if leash is not None and not leash.closed:
            with suppress(OSError):  # it ended a moment ago
                leash.write(last_words)
            with suppress(OSError):
                leash.close()

    def _forget(self) -> None:
        self._let_go(b"")
        self._process = None
