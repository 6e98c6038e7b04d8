"""Lets each worker of pytest-xdist count the reruns of its own tests.

pytest-rerunfailures keeps its counts in the main process, and a worker asks for them before each
test: two messages, which the main process reads byte by byte, and between which a worker waits for
an acknowledgement (40 ms). That is 2 s of processor time for 5 000 tests. The counts serve to run a
test again after its worker has crashed; here such a test fails, because a crash is not among the
reasons for a rerun that pyproject.toml lists.
"""

from __future__ import annotations

import pytest
from pytest_rerunfailures import StatusDB


class OwnCounts(StatusDB):
    """What one worker knows of its tests."""

    def __init__(self) -> None:
        super().__init__()
        self._counts: dict[tuple[str, str], int] = {}

    def _set(self, i: str, k: str, v: int) -> None:
        self._counts[i, k] = v

    def _get(self, i: str, k: str) -> int:
        return self._counts.get((i, k), 0)


@pytest.hookimpl(trylast=True)  # after pytest-rerunfailures has connected
def pytest_configure(config: pytest.Config) -> None:
    """Replace the connection to the main process; nothing without pytest-xdist."""
    connection = getattr(getattr(config, "failures_db", None), "sock", None)
    if hasattr(config, "workerinput") and connection is not None:
        connection.close()
        config.failures_db = OwnCounts()  # type: ignore[attr-defined]
