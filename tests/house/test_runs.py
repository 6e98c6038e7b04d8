"""The rules of a test run itself: no test waits for the plugins."""

from __future__ import annotations

import socket

import pytest

from tests.support.fix_reruns import find_connection


def test_a_worker_does_not_wait_for_acknowledgements(pytestconfig: pytest.Config) -> None:
    if not hasattr(pytestconfig, "workerinput"):
        pytest.skip("tests run without pytest-xdist, so no worker waits")
    connection = find_connection(pytestconfig)
    assert connection is not None, "pytest-rerunfailures keeps its connection elsewhere"
    assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
