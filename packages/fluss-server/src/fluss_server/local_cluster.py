"""`LocalCluster`: a server on this machine for the duration of a `with` block.

By default the server is a child process, which ends with this process however that ends. With
`in_thread` it is a thread, which starts sooner and shares this process's interpreter. With
`kind="real"` it is the real Fluss, which needs Java. Where a server runs for the directory
already, it is used and not stopped. This file only starts, finds and stops servers.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from fluss.errors import ConfigError, LocalServerError, MissingExtraError
from fluss.install_hints import how_to_install
from fluss.model.options.units import parse_duration_ms
from fluss.waiting import join, wait_until
from fluss_server.directory_lock import Holder, is_served, read_holder
from fluss_server.lake.lake_settings import LakeLocation
from fluss_server.temporary_folder import TemporaryFolder

if TYPE_CHECKING:
    from fluss_server.server import Server

Kind = Literal["embedded", "real"]

START_TIMEOUT_S: Final = 60.0
STOP_TIMEOUT_S: Final = 30.0
LOG_NAME: Final = "server.log"
ENTRY_POINT_GROUP: Final = "fluss.local_clusters"
_FREE_BYTES_MIN: Final = 1 << 20
_POLL_S: Final = 0.02
_LOG_TAIL_BYTES: Final = 4 * 1024


class LocalCluster:
    """A Fluss of one node on this machine.

        with LocalCluster() as cluster:
            session = fluss.connect(f"fluss://{cluster.bootstrap_servers}")

    It is an asynchronous context manager, too. One thread at a time may use an object.

    Args:
        path: The directory that keeps the data; None for a new one that is deleted at the end.
        kind: "embedded", or "real" for Fluss 0.9.1 itself, which `fluss-testkit` starts.
        in_thread: Whether the embedded server runs in a thread of this process.
        port: Its port; a free one by default.
        users: Names and passwords; where there are some, a second port requires a login.
        super_users: Users who may do everything; where some are named, the others may do what
            access control entries allow. `ANONYMOUS` is the user of the port without a login.
        durability: What an acknowledgement promises: "process", "disk" or "none".
        lake: A lake that tables can be tiered into: True for one in the directory, the URL of a
            catalog of Iceberg (`sqlite:///lake.db`), or a mapping with `url`, `warehouse` and
            `options`. Needs the package fluss-lake. A directory keeps its lake.
        kv_snapshot_interval: The interval of KV snapshots of primary-key tables, as "10 s"; "0 s"
            for none. By default 10 minutes.
        start_timeout_s: The time limit of the start.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        kind: Kind = "embedded",
        in_thread: bool = False,
        port: int = 0,
        users: Mapping[str, str] | None = None,
        super_users: Sequence[str] = (),
        durability: str | None = None,
        lake: bool | str | Mapping[str, Any] | LakeLocation | None = None,
        kv_snapshot_interval: str | None = None,
        start_timeout_s: float = START_TIMEOUT_S,
    ) -> None:
        if kind not in {"embedded", "real"}:
            raise ConfigError(
                f"There is no server of the kind {kind!r}.", hint="Use 'embedded' or 'real'."
            )
        if kind == "real" and super_users:
            raise ConfigError(
                "The access control of the real Fluss is an option of its servers.",
                hint="JavaCluster(options={'authorizer.enabled': 'true', 'super.users': 'User:ann'})",
            )
        if kind == "real" and lake is not None:
            raise ConfigError(
                "The lake of the real Fluss is a plugin of its servers.",
                hint="JavaCluster(iceberg_lake(folder)), of fluss_testkit",
            )
        if kind == "real" and kv_snapshot_interval is not None:
            raise ConfigError(
                "The interval of KV snapshots of the real Fluss is an option of its servers.",
                hint="JavaCluster(options={'kv.snapshot.interval': '10 s'}), of fluss_testkit",
            )
        if kind == "real" and (in_thread or durability is not None):
            raise ConfigError(
                "The real Fluss is a process of its own and knows no durability modes.",
                hint="Leave in_thread and durability out, or use kind='embedded'.",
            )
        self._path = None if path is None else Path(path).expanduser().resolve()
        self._options = _StartOptions(
            port=port,
            users=dict(users or {}),
            super_users=tuple(super_users),
            # A directory that is deleted at the end need not be synced.
            durability=durability or ("none" if path is None else "process"),
            timeout_s=start_timeout_s,
            is_temporary=path is None,
            lake=LakeLocation.of(lake),
            kv_snapshot_interval_ms=_interval_ms(kv_snapshot_interval),
        )
        self._kind = kind
        self._in_thread = in_thread
        self._scratch: TemporaryFolder | None = None
        self._running: _RunningServer | None = None
        self._owner_pid = os.getpid()

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients."""
        return self._started.bootstrap_servers

    @property
    def sasl_bootstrap_servers(self) -> str | None:
        """The address for users with a password; None where there is no such port."""
        return self._started.sasl_bootstrap_servers

    @property
    def url(self) -> str:
        """The address as a URL for `fluss.connect`."""
        return f"fluss://{self.bootstrap_servers}"

    @property
    def directory(self) -> Path:
        """The directory of the data."""
        return self._started.directory

    @property
    def pid(self) -> int:
        """The process id of the server; this process's where the server is a thread."""
        return self._started.pid

    @property
    def is_attached(self) -> bool:
        """Whether another process started the server; this object does not stop it then."""
        return isinstance(self._started, _Attached)

    def check_lake(self, requested: LakeLocation) -> None:
        """Refuse to be used for a lake that the server has not.

        Raises:
            ConfigError: The server has no lake, or another one.
        """
        holder = read_holder(self.directory)
        if holder is not None:
            _check_lake(self.directory, requested, holder)

    def start(self) -> Self:
        """Start the server, or find the one that serves the directory, and return when it is ready.

        Raises:
            LocalServerError: The server could not start; the message ends with its last output.
            MissingRuntimeError: The real Fluss was requested, and Java is missing.
            MissingExtraError: The real Fluss was requested, and `fluss-testkit` is not installed.
        """
        if self._running is not None:
            raise LocalServerError("This cluster runs already.", hint="Stop it first.")
        self._owner_pid = os.getpid()
        if self._kind == "real":
            self._running = _real_server(self._path, self._options)
            return self
        directory = self._path
        if directory is None:
            self._scratch = TemporaryFolder()
            directory = self._scratch.path
        try:
            self._running = _start_or_attach(directory, self._options, in_thread=self._in_thread)
        except BaseException:
            self._remove_scratch()
            raise
        return self

    def stop(self) -> None:
        """Stop the server, unless another process started it. Idempotent."""
        running, self._running = self._running, None
        if running is None or os.getpid() != self._owner_pid:
            return
        try:
            running.stop()
        finally:
            self._remove_scratch()

    def kill(self) -> None:
        """Kill the server's process (SIGKILL), for tests of what survives."""
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
    def _started(self) -> _RunningServer:
        if self._running is None:
            raise LocalServerError("The cluster does not run.", hint="Start it first.")
        return self._running

    def _remove_scratch(self) -> None:
        scratch, self._scratch = self._scratch, None
        if scratch is not None:
            scratch.remove()


# --- the kinds of servers -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _StartOptions:
    """The requested options besides the directory."""

    port: int
    users: Mapping[str, str]
    super_users: tuple[str, ...]
    durability: str
    timeout_s: float
    is_temporary: bool = False
    lake: LakeLocation | None = None
    kv_snapshot_interval_ms: int | None = None


def _interval_ms(text: str | None) -> int | None:
    try:
        return None if text is None else parse_duration_ms(text)
    except ValueError as error:
        raise ConfigError(f"kv_snapshot_interval: {error}.", key="kv_snapshot_interval") from error


class _RunningServer(ABC):
    """A server that is ready."""

    directory: Path
    bootstrap_servers: str
    sasl_bootstrap_servers: str | None = None
    pid: int

    @abstractmethod
    def stop(self) -> None:
        """Stop the server."""

    def kill(self) -> None:
        """Kill the server."""
        raise LocalServerError("Only a child process can be killed.")


def _start_or_attach(directory: Path, options: _StartOptions, *, in_thread: bool) -> _RunningServer:
    deadline = time.monotonic() + options.timeout_s
    while True:
        if is_served(directory):
            holder = read_holder(directory)
            if holder is not None and holder.bootstrap_servers is not None:
                if options.lake is not None:
                    _check_lake(directory, options.lake, holder)
                return _Attached(directory, holder, holder.bootstrap_servers)
            _wait_until(deadline, directory)
            continue
        try:
            return (_Thread if in_thread else _Child)(directory, options)
        except LocalServerError:
            # Another process may have started one in the meantime; then that one is used.
            if not is_served(directory):
                raise
        _wait_until(deadline, directory)


def _check_lake(directory: Path, requested: LakeLocation, holder: Holder) -> None:
    """Refuse a running server that has not the requested lake."""
    if holder.lake is None:
        raise ConfigError(
            f"The server that runs for {directory} (process {holder.pid}) has no lake.",
            hint="Stop it first; the directory keeps the lake that the next one is started with.",
            key="lake",
        )
    file = requested.sqlite_file
    if file is not None and holder.lake != f"sqlite:{file.as_posix()}":
        raise ConfigError(
            f"The server that runs for {directory} (process {holder.pid}) has another lake: "
            f"{holder.lake}.",
            hint="Leave the lake out, or stop that server.",
            key="lake",
        )


def _wait_until(deadline: float, directory: Path) -> None:
    if time.monotonic() > deadline:
        raise LocalServerError(
            f"{directory} is held by a process that does not become ready.",
            hint="End that process; the file LOCK in the directory names it.",
        )
    time.sleep(_POLL_S)


class _Attached(_RunningServer):
    """A server that another process started."""

    def __init__(self, directory: Path, holder: Holder, bootstrap_servers: str) -> None:
        self.directory = directory
        self.bootstrap_servers = bootstrap_servers
        self.sasl_bootstrap_servers = holder.sasl_bootstrap_servers
        self.pid = holder.pid

    def stop(self) -> None:
        """Do nothing: the process that started the server stops it."""


class _Child(_RunningServer):
    """A child process. It holds the other end of a pipe, and ends when this end closes."""

    def __init__(self, directory: Path, options: _StartOptions) -> None:
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
                start_new_session=True,  # Ctrl-C reaches this process, which then stops the server
            )
        self.pid = self._process.pid
        try:
            self._send_settings(options)
            self._await_ready(options.timeout_s, begin)
        except BaseException:
            self._end(graceful=False)
            raise

    def stop(self) -> None:
        """Stop the server with SIGTERM."""
        self._end(graceful=True)

    def kill(self) -> None:
        """Kill the server."""
        self._end(graceful=False)

    def _send_settings(self, options: _StartOptions) -> None:
        settings = {
            "port": options.port,
            "users": dict(options.users),
            "sasl_port": 0 if options.users else None,
            "super_users": options.super_users,
            "durability": options.durability,
            "is_temporary": options.is_temporary,
            "lake": None if options.lake is None else options.lake.fields,
            "kv_snapshot_interval_ms": options.kv_snapshot_interval_ms,
        }
        # Passwords go through the pipe, because every user can read a command line.
        if self._process.stdin is not None:
            with contextlib.suppress(
                OSError
            ):  # it ended already; `_await_ready` reports its output
                self._process.stdin.write(json.dumps(settings).encode() + b"\n")
                self._process.stdin.flush()

    def _await_ready(self, timeout_s: float, begin: int) -> None:
        line: list[bytes] = []
        reader = threading.Thread(target=lambda: line.append(self._first_line()), daemon=True)
        reader.start()
        join(reader, timeout_s)
        holder = read_holder(self.directory)
        if not line or not line[0] or holder is None or holder.bootstrap_servers is None:
            output = (
                self._log.read_bytes()[begin:][-_LOG_TAIL_BYTES:].decode(errors="replace").strip()
            )
            if not output and shutil.disk_usage(self.directory).free < _FREE_BYTES_MIN:
                output = "There is no space left on its disk."
            raise LocalServerError(
                f"The embedded server for {self.directory} did not become ready. {output}".strip(),
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


class _Thread(_RunningServer):
    """A thread of this process with its own event loop."""

    def __init__(self, directory: Path, options: _StartOptions) -> None:
        from fluss_server.server_config import Durability, ServerConfig

        self.directory = directory
        self.pid = os.getpid()
        self._config = ServerConfig(
            directory=directory,
            port=options.port,
            users=options.users,
            sasl_port=0 if options.users else None,
            super_users=options.super_users,
            durability=Durability(options.durability),
            lake=options.lake,
            kv_snapshot_interval_ms=options.kv_snapshot_interval_ms,
        )
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop_requested: asyncio.Event | None = None
        self._is_abandoned = False
        self._thread = threading.Thread(target=self._run, name="fluss-server", daemon=True)
        self._thread.start()
        try:
            wait_until(self._ready.wait, options.timeout_s)
        except BaseException:  # an interrupted caller does not wait, and gets no server
            self._is_abandoned = True
            self._request_stop()
            raise
        if self._failure is not None:
            raise self._failure
        if self._loop is None:
            raise LocalServerError(f"The server for {directory} did not become ready in time.")

    def stop(self) -> None:
        """Stop the server, and wait until everything is on disk."""
        if self._request_stop():
            join(self._thread, STOP_TIMEOUT_S)

    def _request_stop(self) -> bool:
        """Ask the server to stop; return whether it runs."""
        if self._loop is None or self._stop_requested is None or not self._thread.is_alive():
            return False
        self._loop.call_soon_threadsafe(self._stop_requested.set)
        return True

    def _run(self) -> None:
        from fluss_server.server import new_event_loop

        try:
            with asyncio.Runner(loop_factory=new_event_loop) as runner:
                runner.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - the thread that started the server raises it
            self._failure = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        from fluss_server.server import Server

        async with Server(self._config) as server:
            self._set_addresses(server)
            self._stop_requested = asyncio.Event()
            self._loop = asyncio.get_running_loop()
            self._ready.set()
            if not self._is_abandoned:
                await self._stop_requested.wait()

    def _set_addresses(self, server: Server) -> None:
        self.bootstrap_servers = server.bootstrap_servers
        self.sasl_bootstrap_servers = server.sasl_bootstrap_servers


def _real_server(path: Path | None, options: _StartOptions) -> _RunningServer:
    """Start the real Fluss with the package `fluss-testkit`."""
    found = entry_points(group=ENTRY_POINT_GROUP, name="real")
    if not found:
        raise MissingExtraError(
            "The real Fluss is started by the package fluss-testkit, which is not installed.",
            hint=f"Use kind='embedded', or {how_to_install('fluss-testkit')}",
        )
    start: Callable[..., _RunningServer] = next(iter(found)).load()
    return start(
        path,
        port=options.port or None,
        users=options.users or None,
        start_timeout_s=options.timeout_s,
    )
