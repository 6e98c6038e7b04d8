"""The life cycle of a server: lock, catalog, recovery, ports, maintenance; stopped in reverse.

`Server` runs on the event loop it is started on. `serve` is the whole program: it creates the loop,
reports when it is ready, and stops on SIGTERM, SIGINT, or when the process that started it ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO, Final, Self

from fluss.errors import LocalServerError
from fluss_server.catalog.catalog import create_default_database
from fluss_server.data_directory import OpenDirectory, open_directory
from fluss_server.directory_lock import DirectoryLock, Holder
from fluss_server.handlers import HANDLERS
from fluss_server.lake.server_lake import open_lake
from fluss_server.listener import Listener, address_text
from fluss_server.maintenance import Maintenance
from fluss_server.server_config import LOOPBACK, ServerConfig
from fluss_server.server_node import Node, clock_ms

_LOG = logging.getLogger(__name__)
STOP_GRACE_S: Final = 5.0


class Server:
    """An embedded server.

    Args:
        config: Its configuration.
        clock: Returns the time in milliseconds since 1970.
    """

    def __init__(self, config: ServerConfig, *, clock: Callable[[], int] = clock_ms) -> None:
        self._config = config
        self._clock = clock
        self._lock = DirectoryLock(config.directory)
        self._node: Node | None = None
        self._listeners: list[Listener] = []
        self._maintenance: Maintenance | None = None
        self._opened: OpenDirectory | None = None
        self._is_recovered = False

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    @property
    def node(self) -> Node:
        """The running node."""
        if self._node is None:
            raise LocalServerError("The server does not run.", hint="Start it first.")
        return self._node

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients on this machine."""
        return address_text(self._listeners[0].address)

    @property
    def sasl_bootstrap_servers(self) -> str | None:
        """The address for users with a password; None where there is no such port."""
        return (
            address_text(self._listeners[1].address) if self._config.sasl_port is not None else None
        )

    async def start(self) -> None:
        """Open the directory and begin to listen.

        Raises:
            LocalServerError: The directory is in use, a file is damaged, or a port is taken.
        """
        directory = self._config.directory
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._lock.take()
        except OSError as error:
            raise _unusable(directory, error) from error
        try:
            await self._open()
        except OSError as error:
            await self.stop()
            raise _unusable(directory, error) from error
        except BaseException:
            await self.stop()
            raise

    async def _open(self) -> None:
        config = self._config
        if config.repair:
            from fluss_server.directory_repair import repair

            await asyncio.to_thread(repair, config)
        opened = self._opened = open_directory(config)
        node = self._node = Node(config, opened, clock=self._clock)
        if not opened.was_clean:
            await node.in_storage(node.tablets.open_all)
        opened.begin()
        self._is_recovered = True
        node.lake = await open_lake(config, node.catalog)
        create_default_database(node.catalog, now_ms=self._clock())
        for table in node.catalog.tables:
            node.update_partitions(table)
        node.delete_files_soon()
        await self._listen(node)
        self._maintenance = Maintenance(node, self._lock)
        self._maintenance.start()
        node.preload()
        self._lock.write(
            Holder(
                pid=os.getpid(),
                bootstrap_servers=self.bootstrap_servers,
                sasl_bootstrap_servers=self.sasl_bootstrap_servers,
                lake=None if node.lake is None else node.lake.place,
            )
        )

    async def _listen(self, node: Node) -> None:
        config = self._config
        plain = Listener(node, HANDLERS)
        await plain.open(LOOPBACK, config.port)
        self._listeners.append(plain)
        if config.sasl_port is not None:
            guarded = Listener(node, HANDLERS, passwords=node.passwords)
            await guarded.open(config.sasl_host, config.sasl_port)
            self._listeners.append(guarded)

    async def stop(self) -> None:
        """Finish the requests in flight, write everything to disk, and release the directory."""
        for listener in self._listeners:
            await listener.stop_accepting()
        if self._maintenance is not None:
            await self._maintenance.stop()
        for listener in self._listeners:
            await listener.close(grace_s=STOP_GRACE_S)
        self._listeners.clear()
        node, self._node = self._node, None
        is_closed = False
        try:
            if node is not None:
                await node.finish_background()
                await asyncio.to_thread(node.close)
                is_closed = True
        except OSError as error:
            raise LocalServerError(
                f"The server stopped, but not everything could be written to disk: {error}.",
                hint="Acknowledged rows are in the logs; the next start recovers them.",
            ) from error
        finally:
            self._close_directory(is_clean=is_closed)
            self._lock.release()

    def _close_directory(self, *, is_clean: bool) -> None:
        opened, self._opened = self._opened, None
        if opened is None:
            return
        try:
            # A start that was broken off before the recovery has not checked the files.
            opened.close(is_clean=is_clean and self._is_recovered)
        except OSError:
            _LOG.exception("the ledger could not be closed; the next start checks all logs")


def _unusable(directory: Path, error: OSError) -> LocalServerError:
    return LocalServerError(
        f"The directory {directory} cannot be used: {error}.",
        hint="Name a directory that this user may write, on a disk with free space.",
        path=str(directory),
    )


# --- the program --------------------------------------------------------------------------------


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return a loop of uvloop where it is installed, of asyncio otherwise."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def serve(
    config: ServerConfig, *, ready: Callable[[Server], None], lifeline: IO[bytes] | None = None
) -> None:
    """Run a server until it is stopped.

    Args:
        config: Its configuration.
        ready: Called when clients can connect.
        lifeline: A pipe from the process that started it; the server stops when the pipe closes.

    Raises:
        LocalServerError: The server could not start.
    """
    _raise_file_limit()
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(_serve(config, ready, lifeline))


async def _serve(
    config: ServerConfig, ready: Callable[[Server], None], lifeline: IO[bytes] | None
) -> None:
    loop = asyncio.get_running_loop()
    stop_requested = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, stop_requested.set)
    if lifeline is not None:
        _watch(lifeline, lambda: loop.call_soon_threadsafe(stop_requested.set))
    async with Server(config) as server:
        ready(server)
        await stop_requested.wait()


def _watch(lifeline: IO[bytes], on_end: Callable[[], object]) -> None:
    """Call back when the other end of a pipe is closed."""
    # `os.read` bypasses the file object: a daemon thread that holds its lock crashes Python at
    # exit.
    descriptor = lifeline.fileno()

    def wait() -> None:
        with contextlib.suppress(OSError, RuntimeError):
            while os.read(descriptor, 1):
                pass
            on_end()

    threading.Thread(target=wait, name="fluss-lifeline", daemon=True).start()


def _raise_file_limit() -> None:
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    requested = 65_536 if hard == resource.RLIM_INFINITY else hard
    if soft < requested:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (requested, hard))
