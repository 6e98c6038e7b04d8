"""Finds tables that the coordinator of Fluss 0.9.1 overlooked, and shows them to it again.

CREATE_TABLE makes an empty node in ZooKeeper, and then writes the table into it. The coordinator
learns of a table when the data of its node change from empty to something. Where it reads the new
node only after the second step, which happens more often on a busy machine, it sees no such change,
and the table never gets a leader (mended in Fluss 1.0). Both steps are in the servers' log: a table
that was registered and that is not new to the coordinator soon after was overlooked. Its node is
then emptied, and written again when the coordinator has had time to see that.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from fluss_testkit.ports import HOST
from fluss_testkit.zookeeper import ZooKeeper, ZooKeeperError

THREAD_NAME: Final = "fluss-overlooked-tables"
# A coordinator that has not overlooked a table takes milliseconds, and on a slow machine a second
# after its start. An emptied node is a table that does not exist, so a wrong guess breaks a test.
LATEST_S: Final = 2.0
EMPTY_S: Final = 0.1  # how long the node stays empty
TIMES_MAX: Final = 5
RECENT_MAX: Final = 20
_POLL_S: Final = 0.1
_READ_BYTES_MAX: Final = 1 << 22
_NODE: Final = "/fluss/metadata/databases/{database}/tables/{table}"
_REGISTERED: Final = re.compile(rb"Registered table (\S+) for database (\S+)\s")
_NEW: Final = re.compile(rb"New table: (\S+) with id ")

_log = logging.getLogger(__name__)


class RegisteredTables:
    """Which registered tables the coordinator does not know yet, by what a log says.

    Makes no requests and reads no clock.
    """

    def __init__(self) -> None:
        self._since: dict[tuple[str, str], tuple[float, int]] = {}
        # Two threads of the server write the two lines; the second may be logged first.
        self._new: deque[tuple[str, str]] = deque(maxlen=RECENT_MAX)

    def read(self, logged: bytes, now: float) -> None:
        """Take the next whole lines of the log."""
        for line in logged.splitlines():
            registered = _REGISTERED.search(line + b"\n")
            if registered is not None:
                table, database = (each.decode() for each in registered.groups())
                self._note_registered((database, table), now)
                continue
            new = _NEW.search(line)
            if new is not None:
                database, _, table = new.group(1).decode().partition(".")
                self._note_new((database, table))

    def _note_registered(self, key: tuple[str, str], now: float) -> None:
        if key in self._new:
            self._new.remove(key)
        else:
            self._since[key] = (now, 1)

    def _note_new(self, key: tuple[str, str]) -> None:
        if self._since.pop(key, None) is None:
            self._new.append(key)

    def overlooked(self, now: float) -> Iterator[tuple[str, str]]:
        """The database and the name of each table that was overlooked, at most five times each."""
        for key, (since, times) in list(self._since.items()):
            if now - since >= LATEST_S:
                del self._since[key]
                if times < TIMES_MAX:
                    self._since[key] = (now + times * LATEST_S, times + 1)
                yield key


class OverlookedTables:
    """A thread that shows overlooked tables to the coordinator of one cluster, until `stop`."""

    def __init__(self, log_path: Path, zookeeper_port: int) -> None:
        self._log_path = log_path
        self._port = zookeeper_port
        self._begin = _size(log_path)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=THREAD_NAME, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._ended.set()
        self._thread.join(LATEST_S)

    def _run(self) -> None:
        tables = RegisteredTables()
        rest = b""
        while not self._ended.wait(_POLL_S):
            logged = rest + self._next()
            whole, newline, rest = logged.rpartition(b"\n")
            now = time.monotonic()
            tables.read(whole + newline, now)
            for database, table in tables.overlooked(now):
                self._show(_NODE.format(database=database, table=table))

    def _next(self) -> bytes:
        size = _size(self._log_path)
        if size == self._begin:
            return b""
        if size < self._begin:
            self._begin = 0  # a new log
        with self._log_path.open("rb") as file:
            file.seek(self._begin)
            data = file.read(_READ_BYTES_MAX)
        self._begin += len(data)
        return data

    def _show(self, node: str) -> None:
        try:
            with closing(ZooKeeper(HOST, self._port)) as zookeeper:
                show_again(zookeeper.get, zookeeper.set, node)
            _log.info("showed %s to the coordinator again", node)
        except ZooKeeperError as error:
            _log.info("%s: the table was dropped or altered meanwhile", error)
        except OSError as error:
            _log.warning("%s is not known to the coordinator: %s", node, error)


def show_again(
    get: Callable[[str], tuple[bytes, int]], put: Callable[[str, bytes, int], int], node: str
) -> None:
    """Let a node's data change from empty to what they are."""
    data, version = get(node)
    if data:
        emptied = put(node, b"", version)
        time.sleep(EMPTY_S)
        put(node, data, emptied)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
