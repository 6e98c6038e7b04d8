"""Connections that plans and readers share: one per cluster, user and settings in a process.

Readers of one scan run in several threads of an engine, and a notebook scans the same cluster all
day; neither is to connect each time. A connection that was made before a fork belongs to the parent
and is never used in the child. All are closed when the process ends.
"""

from __future__ import annotations

import os

from fluss.client.connection import ConnectionCore
from fluss.connector.config import Settings, resolve
from fluss.engine.thread import engine
from fluss.model.config import Config
from fluss.waiting import InterruptibleLock

_Key = tuple[int, str, str]
_open: dict[_Key, ConnectionCore] = {}
_lock = InterruptibleLock()


def config_of(settings: Settings) -> Config:
    """The settings given, completed by the active session, the environment and the profile."""
    return settings if isinstance(settings, Config) else resolve(settings).config


def connection_for(config: Config) -> ConnectionCore:
    """A connection with these settings, opened when there is none."""
    # By all settings: who gives another password, or other limits, does not get this connection.
    key = (os.getpid(), repr(config), config.security_sasl_password)
    with _lock:
        found = _open.get(key)
        if found is None or found.is_closed:
            running = engine()
            found = _open[key] = running.run(ConnectionCore.open(running, config))
        return found


def release(connection: ConnectionCore) -> None:
    """Close a connection that nobody shares any more; who asks for it again gets a new one."""
    with _lock:
        for key in [key for key, each in _open.items() if each is connection]:
            del _open[key]
    connection.engine.run(connection.close())


def _forget_in_child() -> None:
    global _lock  # noqa: PLW0603 - the parent's may be held at the moment of the fork
    _lock = InterruptibleLock()
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
