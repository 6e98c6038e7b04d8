"""First connections, which are tried again like every other request.

A client fails fast where it connects for the first time, because a wrong address is the likeliest
cause. Spark starts processes all the time, and what is a first connection to one of them is a
server that is away for a moment to the query. So here a first connection has as long as a request
on a connection that is there: `operation-timeout`.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from typing import TypeVar

from fluss.connection.config_sources import Settings, resolve
from fluss.connection.connection import ClientConnection
from fluss.connection.shared_connections import connection_for
from fluss.errors import FlussError
from fluss.model.options.config import Config
from fluss.net.plan_retry import RetryPolicy, decide_retry
from fluss.session.source import TableSource
from fluss.session.table import Table
from fluss_spark.error_context import is_news

T = TypeVar("T")
_LOG = logging.getLogger("fluss.spark")


def connected(settings: Settings) -> ClientConnection:
    """The connection that a process shares, opened unless it is open; waits for servers.

    Args:
        settings: How to connect.

    Raises:
        ConnectError: No server could be reached within `operation-timeout`.
        AuthenticationError: The servers did not accept the user.
    """
    config = resolve(settings).config
    return patiently(lambda: connection_for(config), config)


def opened(source: TableSource) -> Table:
    """The table that was named, as it is now; waits for servers.

    Raises:
        FlussError: There is no such table, or no server could be reached.
    """
    connected(source.config)
    return source.open()


def patiently(connect: Callable[[], T], config: Config) -> T:
    """What a call that connects returns, as soon as it can.

    Args:
        connect: The call.
        config: The settings, of which one says how long to wait.
    """
    policy, began_s = RetryPolicy(), time.monotonic()
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
                deadline=began_s + limit_s,
                jitter=random.random(),  # noqa: S311 - spreads processes, hides nothing
            )
            if retry is None:
                if attempt > 1:
                    error.sentence += f" It was tried for {limit_s:g} s (operation-timeout)."
                raise
            if is_news("connecting", error.message):
                _LOG.warning("trying to connect for up to %g s: %s", limit_s, error.message)
            time.sleep(max(0.0, retry.at - time.monotonic()))
