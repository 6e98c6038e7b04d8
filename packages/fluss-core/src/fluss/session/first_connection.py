"""Sessions for adapters, and retries of a first connection.

A client fails fast when it connects for the first time, because a wrong address is the likeliest
cause. An engine that starts processes all the time sees short outages as first connections, so its
adapter retries them as long as a request on an open connection: `operation-timeout`.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from fluss.connection.config_sources import Settings, resolve
from fluss.connection.shared_connections import connection_for, share_connection
from fluss.errors import FlussError
from fluss.model.options.config import Config
from fluss.net.plan_retry import RetryPolicy, decide_retry
from fluss.session.session import Session

T = TypeVar("T")


def session_for(config: Settings = None, *, with_active: bool = True) -> Session:
    """Return a session for an adapter, over the connection that the process keeps for adapters.

    It is never the active session, and need not be closed.

    Args:
        config: How to reach the cluster.
        with_active: Whether the active session completes the settings.
    """
    resolved = resolve(config, with_active=with_active).config
    connection_for(resolved)
    return Session(share_connection(resolved), resolved, is_of_adapter=True)


def with_retries(
    connect: Callable[[], T], config: Config, on_retry: Callable[[FlussError, float], None]
) -> T:
    """Call a function that connects, with retries until `operation-timeout`.

    Args:
        connect: The function.
        config: The settings, the timeout among them.
        on_retry: Called before a retry with the error and the time limit in seconds.
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
            on_retry(error, limit_s)
            time.sleep(max(0.0, retry.at - time.monotonic()))
