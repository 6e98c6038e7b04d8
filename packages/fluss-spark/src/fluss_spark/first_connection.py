"""Retries first connections of a process, like every other request.

A client fails fast when it connects for the first time, because a wrong address is the likeliest
cause. Spark starts processes all the time: what is a first connection to one of them is a short
outage of a server to the query. So here a first connection may take as long as a request on an
open connection: `operation-timeout`.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from typing import TypeVar

from fluss import session
from fluss.connection.config_sources import Settings, resolve
from fluss.connection.connection import ClientConnection
from fluss.connection.shared_connections import connection_for
from fluss.errors import FlussError
from fluss.model.options.config import Config
from fluss.net.plan_retry import RetryPolicy, decide_retry
from fluss.scan import Scan, TableSource
from fluss.session import Table
from fluss_spark.error_context import should_log

T = TypeVar("T")
_LOG = logging.getLogger("fluss.spark")


def shared_connection(settings: Settings) -> ClientConnection:
    """Return the connection that the process shares, opening it if necessary.

    Args:
        settings: How to connect.

    Raises:
        ConnectError: No server could be reached within `operation-timeout`.
        AuthenticationError: The servers did not accept the user.
    """
    config = resolve(settings).config
    return with_retries(lambda: connection_for(config), config)


def open_scan(source: TableSource) -> Scan:
    """Look up a table as it is now, for reading.

    Raises:
        FlussError: There is no such table, or no server could be reached.
    """
    shared_connection(source.config)
    return source.scan()


def open_table(source: TableSource) -> Table:
    """Look up a table as it is now, for writing.

    Raises:
        FlussError: There is no such table, or no server could be reached.
    """
    shared_connection(source.config)
    return session.open_table(source)


def with_retries(connect: Callable[[], T], config: Config) -> T:
    """Call a function that connects, with retries until `operation-timeout`.

    Args:
        connect: The function.
        config: The settings, the timeout among them.
    """
    policy, start_s = RetryPolicy(), time.monotonic()
    limit_s = config.operation_timeout_ms / 1_000
    attempt = 0
    while True:
        attempt += 1
        try:
            return connect()
        except FlussError as error:
            retry = decide_retry(
                policy,
                error,
                attempt=attempt,
                now=time.monotonic(),
                deadline=start_s + limit_s,
                jitter=random.random(),  # noqa: S311 - spreads processes, hides nothing
            )
            if retry is None:
                if attempt > 1:
                    error.sentence += f" It was retried for {limit_s:g} s (operation-timeout)."
                raise
            if should_log("connecting", error.message):
                _LOG.warning("trying to connect for up to %g s: %s", limit_s, error.message)
            time.sleep(max(0.0, retry.at - time.monotonic()))
