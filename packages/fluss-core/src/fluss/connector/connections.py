"""Connections that plans and readers share: one per cluster, user and settings in a process.

Readers of one scan run in several threads of an engine, and a notebook scans the same cluster all
day; neither is to connect each time. A connection that was made before a fork belongs to the parent
and is never used in the child. All are closed when the process ends.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Any

from fluss.client.connection import ConnectionCore
from fluss.engine.thread import engine
from fluss.model.config import Config

BOOTSTRAP_VARIABLE = "FLUSS_BOOTSTRAP_SERVERS"

Settings = Config | Mapping[str, Any] | None

_Key = tuple[int, str, str]
_open: dict[_Key, ConnectionCore] = {}
_lock = threading.Lock()


def config_of(config: Settings) -> Config:
    """The settings given, or those of the environment, or the defaults."""
    if isinstance(config, Config):
        return config
    settings = dict(config or {})
    if "bootstrap.servers" not in settings and BOOTSTRAP_VARIABLE in os.environ:
        settings["bootstrap.servers"] = os.environ[BOOTSTRAP_VARIABLE]
    return Config(settings)


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


def _forget_in_child() -> None:
    global _lock  # noqa: PLW0603 - the parent's may be held at the moment of the fork
    _lock = threading.Lock()
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
