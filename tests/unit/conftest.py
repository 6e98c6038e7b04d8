"""A unit test reaches no network and starts no Java: it fails where it tries.

What needs either belongs to `tests/cluster` or `tests/java`. The guard is an audit hook of the
interpreter, so it also sees what a library does on a thread of its own. A Python that a test starts
is not watched, and neither is a socket of uvloop. A real server that this process keeps for other
tests has a thread, which may go on meanwhile.
"""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from fluss_testkit.overlooked_tables import THREAD_NAME

_REMEDY = "a test that needs it belongs to tests/cluster or tests/java"
_is_unit_test = False


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    if not _is_unit_test:
        return
    if event in {"socket.bind", "socket.connect"}:
        opened = arguments[0]
        if threading.current_thread().name == THREAD_NAME:
            return
        if isinstance(opened, socket.socket) and opened.family != socket.AF_UNIX:
            raise AssertionError(f"a unit test opened {arguments[1]}; {_REMEDY}")
    elif event == "subprocess.Popen" and Path(str(arguments[0])).name in {"java", "mvn"}:
        raise AssertionError(f"a unit test started {arguments[0]}; {_REMEDY}")


sys.addaudithook(_refuse)


@pytest.fixture(autouse=True)
def _without_network_and_java() -> Iterator[None]:
    global _is_unit_test  # noqa: PLW0603 - an audit hook cannot be taken back, only switched
    _is_unit_test = True
    yield
    _is_unit_test = False
