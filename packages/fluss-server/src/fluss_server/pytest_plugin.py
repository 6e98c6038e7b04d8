"""Fixtures for tests of programs that use Fluss: one server, and a database for each test.

==================  ==============================================================================
`fluss_cluster`     a server in a child process, for the whole session; `bootstrap_servers`, `url`
`fluss_database`    the name of a database of the test's own, dropped afterwards
`fluss`             a session of `fluss.connect` on that server, with that database as its own
==================  ==============================================================================

`pytest --fluss-server real` starts the real Fluss instead of the embedded server, which needs the
package `fluss-testkit`.
"""

from __future__ import annotations

import importlib
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from fluss_server.local_cluster import LocalCluster


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that chooses the server."""
    parser.getgroup("fluss").addoption(
        "--fluss-server",
        choices=("embedded", "real"),
        default="embedded",
        help="the server of the fixture fluss_cluster; real needs fluss-testkit and Java",
    )


@pytest.fixture(scope="session")
def fluss_cluster(pytestconfig: pytest.Config) -> Iterator[LocalCluster]:
    """A server in a child process. Its data is deleted when the tests are over."""
    with LocalCluster(kind=pytestconfig.getoption("--fluss-server")) as cluster:
        yield cluster


@pytest.fixture
def fluss_database(fluss_cluster: LocalCluster) -> Iterator[str]:
    """A database of the test's own."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    with _client().connect(fluss_cluster.url) as session:
        session.create_database(name)
        yield name
        session.drop_database(name, ignore_if_not_exists=True, cascade=True)


@pytest.fixture
def fluss(fluss_cluster: LocalCluster, fluss_database: str) -> Iterator[Any]:
    """A session whose tables are in a database of the test's own."""
    with _client().connect(f"{fluss_cluster.url}/{fluss_database}") as session:
        yield session


def _client() -> Any:
    # By name: this package does not depend on the client; only tests use it.
    return importlib.import_module("fluss")
