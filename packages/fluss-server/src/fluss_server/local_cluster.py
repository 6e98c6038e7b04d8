"""`LocalCluster`: a server on this machine for as long as a `with` block lasts.

By default a child process, which ends with this one however that ends; a thread where asked for,
which starts sooner and shares this process's interpreter; or the real Fluss, where Java is. Where
the directory is served already, that server is used and left alone. Nothing of a server is known
here but how it is started, found and ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Literal, Self

from fluss.errors import ConfigError, LocalServerError, MissingExtraError
from fluss.waiting import join, wait_until
from fluss_server.directory_lock import Holder, is_served, read_holder

if TYPE_CHECKING:
    from fluss_server.server import Server

Kind = Literal["embedded", "real"]

START_TIMEOUT_S: Final = 60.0
STOP_TIMEOUT_S: Final = 30.0
LOG_NAME: Final = "server.log"
ENTRY_POINT_GROUP: Final = "fluss.local_clusters"
_POLL_S: Final = 0.02
_LOG_TAIL_BYTES: Final = 4 * 1024


class LocalCluster:
    """A Fluss of one node on this machine.

        with LocalCluster() as cluster:
            session = fluss.connect(f"fluss://{cluster.bootstrap_servers}")

    Works as an asynchronous context manager, too. An object may be used by one thread at a time.

    Args:
        path: The directory that keeps the data; None is a fresh one that vanishes.
        kind: "embedded", or "real" for Fluss 0.9.1 itself, which `fluss-testkit` starts.
        in_thread: Whether the embedded server runs in a thread of this process.
        port: Its port; a free one by default.
        users: Names and passwords; with some there is a second port that asks for them.
        durability: What an acknowledgement promises: "process", "disk" or "none".
        start_timeout_s: How long the start may take.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        kind: Kind = "embedded",
        in_thread: bool = False,
        port: int = 0,
        users: Mapping[str, str] | None = None,
        durability: str | None = None,
        start_timeout_s: float = START_TIMEOUT_S,
    ) -> None:
        if kind not in {"embedded", "real"}:
            raise ConfigError(
                f"There is no server of the kind {kind!r}.", hint="Use 'embedded' or 'real'."
            )
        if kind == "real" and (in_thread or durability is not None):
            raise ConfigError(
                "The real Fluss is a process of its own and knows no durability modes.",
                hint="Leave in_thread and durability out, or use kind='embedded'.",
            )
        self._path = None if path is None else Path(path).expanduser().resolve()
        self._order = _Order(
            port=port,
            users=dict(users or {}),
            # A directory that vanishes has nothing to sync for.
            durability=durability or ("none" if path is None else "process"),
            timeout_s=start_timeout_s,
        )
        self._kind = kind
        self._in_thread = in_thread
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        self._running: _Running | None = None
        self._owner_pid = os.getpid()

    @property
    def bootstrap_servers(self) -> str:
        """Where clients begin."""
        return self._started.bootstrap_servers

    @property
    def sasl_bootstrap_servers(self) -> str | None:
        """Where users with a password begin, if there is such a port."""
        return self._started.sasl_bootstrap_servers

    @property
    def url(self) -> str:
        """The same as a URL for `fluss.connect`."""
        return f"fluss://{self.bootstrap_servers}"

    @property
    def directory(self) -> Path:
        """Where the data is."""
        return self._started.directory

    @property
    def pid(self) -> int:
        """The process of the server; this one where it is a thread."""
        return self._started.pid

    @property
    def is_attached(self) -> bool:
        """Whether somebody else had started the server, who will also end it."""
        return isinstance(self._started, _Attached)

    def start(self) -> Self:
        """Start the server, or find the one that serves the directory, and return when it is ready.

        Raises:
            LocalServerError: It could not start; the message says what it said last.
            MissingRuntimeError: The real Fluss was asked for, and Java is missing.
        """
        if self._running is not None:
            raise LocalServerError("This cluster runs already.", hint="Stop it first.")
        self._owner_pid = os.getpid()
        if self._kind == "real":
            self._running = _real_server(self._path, self._order)
            return self
        directory = self._path
        if directory is None:
            self._scratch = tempfile.TemporaryDirectory(prefix="fluss-")
            directory = Path(self._scratch.name)
        try:
            self._running = _start_or_attach(directory, self._order, in_thread=self._in_thread)
        except BaseException:
            self._remove_scratch()
            raise
        return self

    def stop(self) -> None:
        """End the server, unless somebody else started it; stopping twice is no mistake."""
        running, self._running = self._running, None
        if running is None or os.getpid() != self._owner_pid:
            return
        try:
            running.stop()
        finally:
            self._remove_scratch()

    def kill(self) -> None:
        """End the server's process on the spot (SIGKILL), to see what survives."""
        self._started.kill()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.start)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.stop)

    @property
    def _started(self) -> _Running:
        if self._running is None:
            raise LocalServerError("The cluster does not run.", hint="Start it first.")
        return self._running

    def _remove_scratch(self) -> None:
        scratch, self._scratch = self._scratch, None
        if scratch is not None:
            scratch.cleanup()


# --- the kinds of servers -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Order:
    """What was asked for, besides the directory."""

    port: int
    users: Mapping[str, str]
    durability: str
    timeout_s: float


class _Running(ABC):
    """A server that is ready."""

    directory: Path
    bootstrap_servers: str
    sasl_bootstrap_servers: str | None = None
    pid: int

    @abstractmethod
    def stop(self) -> None:
        """End it."""

    def kill(self) -> None:
        """End it on the spot."""
        raise LocalServerError("Only a child process can be killed.")


def _start_or_attach(directory: Path, order: _Order, *, in_thread: bool) -> _Running:
    deadline = time.monotonic() + order.timeout_s
    while True:
        if is_served(directory):
            holder = read_holder(directory)
            if holder is not None and holder.bootstrap_servers is not None:
                return _Attached(directory, holder, holder.bootstrap_servers)
            _wait_until(deadline, directory)
            continue
        try:
            return (_Thread if in_thread else _Child)(directory, order)
        except LocalServerError:
            # Somebody else may have been quicker; then theirs is used.
            if not is_served(directory):
                raise
        _wait_until(deadline, directory)


def _wait_until(deadline: float, directory: Path) -> None:
    if time.monotonic() > deadline:
        raise LocalServerError(
            f"{directory} is held by a process that does not become ready.",
            hint="End that process; the file LOCK in the directory names it.",
        )
    time.sleep(_POLL_S)


class _Attached(_Running):
    """A server that somebody else started."""

    def __init__(self, directory: Path, holder: Holder, bootstrap_servers: str) -> None:
        self.directory = directory
        self.bootstrap_servers = bootstrap_servers
        self.sasl_bootstrap_servers = holder.sasl_bootstrap_servers
        self.pid = holder.pid

    def stop(self) -> None:
        """Leave it to those who started it."""


class _Child(_Running):
    """A process of its own; it holds the other end of a pipe, and ends when this end closes."""

    def __init__(self, directory: Path, order: _Order) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._log = directory / LOG_NAME
        with self._log.open("ab") as log:
            begin = log.tell()
            self._process = subprocess.Popen(  # noqa: S603 - our own command, made here
                [sys.executable, "-m", "fluss_server.child_process", str(directory)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for this process, which then ends the server
            )
        self.pid = self._process.pid
        try:
            self._say(order)
            self._await_ready(order.timeout_s, begin)
        except BaseException:
            self._end(graceful=False)
            raise

    def stop(self) -> None:
        """End it as an operator would."""
        self._end(graceful=True)

    def kill(self) -> None:
        """End it on the spot."""
        self._end(graceful=False)

    def _say(self, order: _Order) -> None:
        told = {
            "port": order.port,
            "users": dict(order.users),
            "sasl_port": 0 if order.users else None,
            "durability": order.durability,
        }
        # Passwords go through the pipe: what stands in a command line everybody can read.
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):  # it ended at once; what it said is told below
                self._process.stdin.write(json.dumps(told).encode() + b"\n")
                self._process.stdin.flush()

    def _await_ready(self, timeout_s: float, begin: int) -> None:
        line: list[bytes] = []
        reader = threading.Thread(target=lambda: line.append(self._first_line()), daemon=True)
        reader.start()
        join(reader, timeout_s)
        holder = read_holder(self.directory)
        if not line or not line[0] or holder is None or holder.bootstrap_servers is None:
            said = (
                self._log.read_bytes()[begin:][-_LOG_TAIL_BYTES:].decode(errors="replace").strip()
            )
            raise LocalServerError(
                f"The embedded server for {self.directory} did not become ready. {said}".strip(),
                path=str(self.directory),
            )
        self.bootstrap_servers = holder.bootstrap_servers
        self.sasl_bootstrap_servers = holder.sasl_bootstrap_servers

    def _first_line(self) -> bytes:
        return b"" if self._process.stdout is None else self._process.stdout.readline()

    def _end(self, *, graceful: bool) -> None:
        process = self._process
        if graceful:
            with contextlib.suppress(OSError):
                process.terminate()
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                graceful = False
            except BaseException:
                self._end(graceful=False)  # an interrupted caller does not wait
                raise
        if not graceful:
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


class _Thread(_Running):
    """A thread of this process with an event loop of its own."""

    def __init__(self, directory: Path, order: _Order) -> None:
        from fluss_server.server_config import Durability, ServerConfig

        self.directory = directory
        self.pid = os.getpid()
        self._config = ServerConfig(
            directory=directory,
            port=order.port,
            users=order.users,
            sasl_port=0 if order.users else None,
            durability=Durability(order.durability),
        )
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._told_to_end: asyncio.Event | None = None
        self._is_given_up = False
        self._thread = threading.Thread(target=self._run, name="fluss-server", daemon=True)
        self._thread.start()
        try:
            wait_until(self._ready.wait, order.timeout_s)
        except BaseException:  # an interrupted caller does not wait, and gets no server
            self._is_given_up = True
            self._tell_to_end()
            raise
        if self._failure is not None:
            raise self._failure
        if self._loop is None:
            raise LocalServerError(f"The server for {directory} did not become ready in time.")

    def stop(self) -> None:
        """End it, and wait until everything is written down."""
        if self._tell_to_end():
            join(self._thread, STOP_TIMEOUT_S)

    def _tell_to_end(self) -> bool:
        """Ask the server to end; whether it runs."""
        if self._loop is None or self._told_to_end is None or not self._thread.is_alive():
            return False
        self._loop.call_soon_threadsafe(self._told_to_end.set)
        return True

    def _run(self) -> None:
        from fluss_server.server import new_event_loop

        try:
            with asyncio.Runner(loop_factory=new_event_loop) as runner:
                runner.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - it is raised where the thread was started
            self._failure = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        from fluss_server.server import Server

        async with Server(self._config) as server:
            self._note(server)
            self._told_to_end = asyncio.Event()
            self._loop = asyncio.get_running_loop()
            self._ready.set()
            if not self._is_given_up:
                await self._told_to_end.wait()

    def _note(self, server: Server) -> None:
        self.bootstrap_servers = server.bootstrap_servers
        self.sasl_bootstrap_servers = server.sasl_bootstrap_servers


def _real_server(path: Path | None, order: _Order) -> _Running:
    """The real Fluss, as the package `fluss-testkit` starts it."""
    found = entry_points(group=ENTRY_POINT_GROUP, name="real")
    if not found:
        raise MissingExtraError(
            "The real Fluss is started by the package fluss-testkit, which is not installed.",
            hint="pip install fluss-testkit, or use kind='embedded'.",
        )
    start: Callable[..., _Running] = next(iter(found)).load()
    return start(
        path,
        port=order.port or None,
        users=order.users or None,
        start_timeout_s=order.timeout_s,
    )
