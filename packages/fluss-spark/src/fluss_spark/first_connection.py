"""Opens scans, tables and sessions with retries, as a process of Spark connects for the first time.

What is a first connection to a process is a short outage of a server to the query. So a first
connection may take as long as a request on an open one, and retries are logged once an hour.
"""

from __future__ import annotations

import logging
from typing import Any

from fluss import session
from fluss.connection.config_sources import resolve
from fluss.errors import FlussError
from fluss.scan import Scan, TableSource
from fluss.session import Session, Table, session_for, with_retries
from fluss_spark.error_context import should_log

_LOG = logging.getLogger("fluss.spark")


def shared_session(settings: Any, *, with_active: bool = True) -> Session:
    """Return a session over the connection that the process shares.

    Args:
        settings: How to connect.
        with_active: Whether the active session completes the settings.

    Raises:
        ConnectError: No server could be reached within `operation-timeout`.
        AuthenticationError: The servers did not accept the user.
    """
    config = resolve(settings, with_active=with_active).config
    return with_retries(lambda: session_for(config, with_active=False), config, log_retry)


def open_scan(source: TableSource) -> Scan:
    """Look up a table as it is now, for reading.

    Raises:
        FlussError: There is no such table, or no server could be reached.
    """
    return with_retries(source.scan, source.config, log_retry)


def open_table(source: TableSource) -> Table:
    """Look up a table as it is now, for writing.

    Raises:
        FlussError: There is no such table, or no server could be reached.
    """
    return with_retries(lambda: session.open_table(source), source.config, log_retry)


def log_retry(error: FlussError, limit_s: float) -> None:
    """Log that a connection is retried."""
    if should_log("connecting", error.message):
        _LOG.warning("trying to connect for up to %g s: %s", limit_s, error.message)
