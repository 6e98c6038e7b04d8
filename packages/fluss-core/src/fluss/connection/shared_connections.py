"""Connections that sessions and adapters share: one per cluster, user and settings in a process.

Readers of one scan run in several threads of an engine, and a notebook scans the same cluster all
day; neither should connect each time. A session shares a connection until it is closed, and the
last session closes the connection. A connection that an adapter has used stays open for the next
scan; of those that no session shares, the least recently used beyond `IDLE_MAX` are dropped, and
close when nothing refers to them any more.

A connection that was made before a fork belongs to the parent and is never used in the child. All
are closed when the process ends.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from typing import Final

from fluss.connection.config_sources import Settings, resolve
from fluss.connection.connection import ClientConnection
from fluss.model.options.config import Config
from fluss.model.options.secrets import Secret
from fluss.net.engine_thread import engine
from fluss.waiting import InterruptibleLock

IDLE_MAX: Final = 16

_Key = tuple[int, str, tuple[Secret, ...]]


class _Entry:
    """A connection that can be shared; the first caller opens it.

    Attributes:
        sessions: How many sessions share it.
        is_of_adapters: Whether an adapter has used it.
    """

    def __init__(self, key: _Key, config: Config) -> None:
        self.key = key
        self.sessions = 0
        self.is_of_adapters = False
        self._config = config
        self._opening = InterruptibleLock()
        self._connection: ClientConnection | None = None

    def opened(self) -> ClientConnection:
        """Return the connection; opens one if needed, while others with this key wait."""
        with self._opening:
            found = self._connection
            if found is None or found.is_closed:
                running = engine()
                found = running.run(ClientConnection.open(running, self._config))
                self._connection = found
            return found


class Share:
    """One session's share of a connection."""

    def __init__(self, entry: _Entry) -> None:
        self._entry = entry
        self._is_over = False
        self.connection = entry.opened()

    def end(self, *, closes: bool = True) -> None:
        """Return the share. Idempotent; any thread may call it.

        Args:
            closes: Whether the last share closes the connection, and waits for that. Otherwise it
                closes when nothing refers to it any more.
        """
        with _lock:
            if self._is_over:
                return
            self._is_over = True
            is_last = _end_share(self._entry)
        if is_last and closes:
            connection = self.connection
            connection.engine.run(connection.close())


# Held for the time of a change, never during a request.
_lock = threading.Lock()
_entries: OrderedDict[_Key, _Entry] = OrderedDict()


def config_of(settings: Settings) -> Config:
    """Complete settings by the active session, the environment and the profile."""
    return settings if isinstance(settings, Config) else resolve(settings).config


def connection_for(config: Config) -> ClientConnection:
    """Return a connection with these settings for an adapter; opens one if needed."""
    with _lock:
        entry = _entry_of(config)
        entry.is_of_adapters = True
        _forget_idle()
    return entry.opened()


def share_connection(config: Config) -> Share:
    """Return a share of a connection with these settings; opens one if needed."""
    with _lock:
        # Counted before it is opened, so that no other session closes it in between.
        entry = _entry_of(config)
        entry.sessions += 1
    try:
        return Share(entry)
    except BaseException:
        with _lock:
            _end_share(entry)
        raise


def _entry_of(config: Config) -> _Entry:
    # By all settings: another password, or other limits, mean another connection.
    secrets = (config.value_of(each) for each in Config.OPTIONS.values() if each.secret)
    key = (os.getpid(), repr(config), tuple(map(Secret, secrets)))
    entry = _entries.get(key)
    if entry is None:
        entry = _entries[key] = _Entry(key, config)
    _entries.move_to_end(key)
    return entry


def _end_share(entry: _Entry) -> bool:
    """Count one session less; whether no session shares the connection any more."""
    entry.sessions -= 1
    if entry.sessions or entry.is_of_adapters:
        _forget_idle()
        return False
    if _entries.get(entry.key) is entry:
        del _entries[entry.key]
    return True


def _forget_idle() -> None:
    idle = [entry for entry in _entries.values() if not entry.sessions]
    for entry in idle[: max(0, len(idle) - IDLE_MAX)]:
        del _entries[entry.key]


def _forget_in_child() -> None:
    global _lock  # noqa: PLW0603 - the parent's may be held at the moment of the fork
    _lock = threading.Lock()
    _entries.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
