"""Takes an idle wait of 40 ms out of each test under pytest-xdist.

pytest-rerunfailures keeps its counts in the main process, and a worker asks for them before each
test: it sends two small messages, one after the other. With Nagle's algorithm the second one
waits until the main process acknowledges the first, which takes 40 ms on Linux: two minutes of
`./dev test quick`, and three of `./dev test`.
"""

from __future__ import annotations

import socket

import pytest


@pytest.hookimpl(trylast=True)  # after pytest-rerunfailures has connected
def pytest_configure(config: pytest.Config) -> None:
    """Send each message of a worker when it is written."""
    connection = find_connection(config)
    if connection is not None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def find_connection(config: pytest.Config) -> socket.socket | None:
    """Find the worker's connection to the counts of pytest-rerunfailures; None without xdist."""
    if not hasattr(config, "workerinput"):
        return None
    found = getattr(getattr(config, "failures_db", None), "sock", None)
    return found if isinstance(found, socket.socket) else None
