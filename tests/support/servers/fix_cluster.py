"""The fixtures `cluster`, `database` and `replicated_cluster`: servers to test against.

`cluster` is a real Apache Fluss, and then the embedded server, so that a test that uses it runs on
both: one of each for each xdist worker, or the one that FLUSS_TEST_BOOTSTRAP names. Without Java
its tests are skipped with the remedy, unless FLUSS_TEST_REQUIRE_REAL=1 requires it. The report of
a failed test has the servers' logs of its time.

A coordinator of 0.9.1 may stop to elect leaders until it is restarted. The cluster is restarted
after a test that failed for this reason ("no leader"), and pytest runs the test once more. Tables
that it overlooks are mended by the testkit (`fluss_testkit.overlooked_tables`).

==========================  ====================================================================
FLUSS_TEST_CLUSTER          `real`, `embedded` for our own server, `both` (default) for each in turn
FLUSS_TEST_BOOTSTRAP        the address of another cluster, used instead of one of our own
FLUSS_TEST_SASL_BOOTSTRAP   its address for users with a password, if it has one
FLUSS_TEST_USER             such a user
FLUSS_TEST_PASSWORD         and the password
FLUSS_TEST_REQUIRE_REAL     1: a missing Java is a failure
==========================  ====================================================================
"""

from __future__ import annotations

import os
import re
import subprocess
import time
import uuid
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import pytest

from fluss.errors import LocalServerError, MissingRuntimeError
from fluss.model.options.config_options import ClientOptions
from fluss.wire import messages as pb
from fluss_server.local_cluster import LOG_NAME, LocalCluster
from fluss_testkit.artifact import FLUSS_SERVER, LOG_BINDING, find_jar
from fluss_testkit.cluster_profiles import REPLICATED, Profile
from fluss_testkit.java_cluster import JavaCluster
from fluss_testkit.java_runtime import JavaRuntime, find_java
from fluss_testkit.log_tail import LogSizes, mark_logs, tail_logs
from tests.support.servers.embedded_differences import difference
from tests.support.servers.raw_client import COORDINATOR, RawClient

LOG_BYTES_MAX = 16 * 1024
# A table that a server of 0.9.1 overlooked (see `_heal`) is given up after this time, and not after
# two minutes: by whatever a test of `cluster` opens, and by sessions of fixtures that live longer.
PATIENCE_MS = 25_000
IMPATIENT = {"operation_timeout_ms": str(PATIENCE_MS)}
REAL_FIXTURES = {
    "cluster",
    "database",
    "java",
    "replicated_cluster",
    "s3_cluster",
    "start_cluster",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterUnderTest:
    """The addresses and the login of the cluster; a missing address skips the test."""

    bootstrap: str
    sasl: tuple[str, str, str] | None

    @property
    def sasl_bootstrap(self) -> str:
        """The address that requires a login."""
        return self._sasl[0]

    @property
    def user(self) -> str:
        """A user who may do everything."""
        return self._sasl[1]

    @property
    def password(self) -> str:
        """The user's password."""
        return self._sasl[2]

    @property
    def _sasl(self) -> tuple[str, str, str]:
        if self.sasl is None:
            pytest.skip("the cluster has no known SASL address; set FLUSS_TEST_SASL_BOOTSTRAP")
        return self.sasl


_KINDS = {"real": ["real"], "embedded": ["embedded"], "both": ["real", "embedded"]}


def server_kinds() -> list[str]:
    """Return the kinds of servers that tests run on."""
    return _KINDS[os.environ.get("FLUSS_TEST_CLUSTER", "both")]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    has_own = hasattr(metafunc.module, "cluster")
    if "cluster" in metafunc.fixturenames and not has_own and len(server_kinds()) > 1:
        is_for_one = metafunc.definition.get_closest_marker("one_server") is not None
        # Parametrized as well: the fixture must not restart between them.
        kinds = server_kinds()[:1] if is_for_one else server_kinds()
        metafunc.parametrize("cluster", kinds, scope="session", indirect=True)


# The kind is a parameter of the fixture itself and not of one that it depends on: pytest compares
# the parameter whenever a test requests the fixture. A dependent fixture is only ended by a
# finalizer, which pytest-rerunfailures can lose, and tests then run on the wrong server.
@pytest.fixture(scope="session")
def cluster(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    pytestconfig: pytest.Config,
) -> Iterator[ClusterUnderTest]:
    """The cluster of this worker; its tests share it, so each works in its own `database`."""
    if getattr(request, "param", server_kinds()[0]) == "embedded":
        yield from _embedded_cluster(tmp_path_factory, pytestconfig)
        return
    named = os.environ.get("FLUSS_TEST_BOOTSTRAP")
    if named:
        yield _named_cluster(named)
        with RawClient(named) as client:
            _drop_databases(client, _shelves.pop(named, _Shelf()))
        return
    # Its directory is kept between starts, so that it can be restarted.
    running = JavaCluster(data_dir=tmp_path_factory.mktemp("real"))
    with _or_skip():
        running.start()
    pytestconfig.stash[_REAL] = running
    user, password = next(iter(running.users.items()))
    try:
        with _watching(pytestconfig, lambda: running.log_paths):
            yield ClusterUnderTest(
                bootstrap=running.bootstrap_servers,
                sasl=(running.sasl_bootstrap_servers, user, password),
            )
    finally:
        del pytestconfig.stash[_REAL]
        running.stop(graceful=False)


@pytest.fixture
def database(cluster: ClusterUnderTest) -> Iterator[str]:
    """A database of the test's own, dropped with all its tables some tests later."""
    shelf = _shelves.setdefault(cluster.bootstrap, _Shelf())
    if not shelf.spare:
        with RawClient(cluster.bootstrap) as client:
            _change_databases(client, shelf)
        time.sleep(CHANGED_DATABASES_REST_S)
    name = shelf.spare.pop()
    yield name
    shelf.used.append(name)


# A coordinator of 0.9.1 may miss a table that is created directly after its database (`admin.admin`
# waits for that reason), or while others are dropped. So databases are created in advance and
# dropped later, many at a time.
SPARE_DATABASES = 50
CHANGED_DATABASES_REST_S = 1.0


@dataclass(slots=True)
class _Shelf:
    """The databases of one cluster: unused ones, and used ones that must be dropped."""

    spare: list[str] = field(default_factory=list)
    used: list[str] = field(default_factory=list)


_shelves: dict[str, _Shelf] = {}


def drop_later(bootstrap: str, name: str) -> None:
    """Drop a database later, together with other used ones."""
    _shelves.setdefault(bootstrap, _Shelf()).used.append(name)


def _change_databases(client: RawClient, shelf: _Shelf) -> None:
    _drop_databases(client, shelf)
    shelf.used.clear()
    shelf.spare += [_create_database(client) for _ in range(SPARE_DATABASES)]


def _drop_databases(client: RawClient, shelf: _Shelf) -> None:
    for name in shelf.used:
        drop = pb.DropDatabaseRequest(database_name=name, ignore_if_not_exists=True, cascade=True)
        client.call(drop, to=COORDINATOR)


def _create_database(client: RawClient) -> str:
    name = f"test_{uuid.uuid4().hex[:12]}"
    create = pb.CreateDatabaseRequest(database_name=name, ignore_if_exists=False)
    client.call(create, to=COORDINATOR)
    return name


@pytest.fixture(scope="session")
def java() -> JavaRuntime:
    """The Java of this machine, for tests that start it; the server's jar is available as well."""
    with _or_skip():
        for artifact in (FLUSS_SERVER, LOG_BINDING):
            find_jar(artifact)
        return find_java()


StartCluster = Callable[..., Any]


@pytest.fixture(scope="session")
def start_cluster(pytestconfig: pytest.Config, java: JavaRuntime) -> StartCluster:
    """A function that starts another cluster, with the arguments of `JavaCluster`."""

    @contextmanager
    def start(*profiles: Profile, **arguments: Any) -> Iterator[JavaCluster]:
        with (
            JavaCluster(*profiles, **{"java": java, **arguments}) as running,
            _watching(pytestconfig, lambda: running.log_paths),
        ):
            yield running

    return start


@pytest.fixture(scope="module")
def replicated_cluster(start_cluster: StartCluster) -> Iterator[JavaCluster]:
    """Three tablet servers that a test may kill; each test restarts what it kills."""
    with start_cluster(REPLICATED) as running:
        yield running


def _embedded_cluster(
    tmp_path_factory: pytest.TempPathFactory, config: pytest.Config
) -> Iterator[ClusterUnderTest]:
    users = {"admin": uuid.uuid4().hex}
    directory = tmp_path_factory.mktemp("embedded")
    with LocalCluster(directory, users=users, durability="none") as running:
        log = running.directory / LOG_NAME
        with _watching(config, lambda: (log,)):
            assert running.sasl_bootstrap_servers is not None
            yield ClusterUnderTest(
                bootstrap=running.bootstrap_servers,
                sasl=(running.sasl_bootstrap_servers, "admin", users["admin"]),
            )


def _named_cluster(bootstrap: str) -> ClusterUnderTest:
    sasl = os.environ.get("FLUSS_TEST_SASL_BOOTSTRAP")
    user, password = os.environ.get("FLUSS_TEST_USER"), os.environ.get("FLUSS_TEST_PASSWORD")
    known = sasl and user and password
    return ClusterUnderTest(bootstrap=bootstrap, sasl=(sasl, user, password) if known else None)


@contextmanager
def _or_skip() -> Iterator[None]:
    try:
        yield
    except MissingRuntimeError as error:
        _skip(error)


def _skip(error: MissingRuntimeError) -> NoReturn:
    if os.environ.get("FLUSS_TEST_REQUIRE_REAL") == "1":
        pytest.fail(f"FLUSS_TEST_REQUIRE_REAL=1, but: {error}")
    pytest.skip(str(error))


# --- a coordinator that no longer elects leaders --------------------------------------------------

# Errors of a bucket without a leader; pyproject.toml lists them for reruns, too.
NO_LEADER = re.compile("no leader|is not leader or follower")
# A server of 0.9.1 logs this each time a client asks for the leader of a bucket without one: once
# or twice for every new table, and each second for one that never gets a leader.
LEADERLESS = re.compile(r"Failed to get leader and isr for path (\S+): NONODE")
LEADERLESS_TIMES = 10
# A table that the coordinator overlooked is assigned to servers, and none of them ever leads it.
ASSIGNED = re.compile(r"Registered table assignment .* for table id (\d+)")
LED = re.compile(r"becomes leader for bucket TableBucket\{tableId=(\d+)")
_REAL = pytest.StashKey[JavaCluster]()
_IS_SUSPECT = pytest.StashKey[bool]()


def _heal(config: pytest.Config) -> None:
    """Restart the real cluster at its old address and with its tables, if it is needed."""
    running = config.stash.get(_REAL, None)
    if running is not None and config.stash.get(_IS_SUSPECT, False):
        running.stop(graceful=True)
        running.start()
    config.stash[_IS_SUSPECT] = False


class LeaderlessError(Exception):
    """A test failed, and the servers' logs show that it waited for a leader in vain."""


def _blame_the_leaderless(error: BaseException, logged: str) -> None:
    """Name the missing leader in an error that does not, such as the timeout of a program."""
    asked = Counter(LEADERLESS.findall(logged)).most_common(1)
    overlooked = sorted(set(ASSIGNED.findall(logged)) - set(LED.findall(logged)))
    which = ""
    if asked and asked[0][1] >= LEADERLESS_TIMES:
        which = asked[0][0]
    elif overlooked and isinstance(error, subprocess.TimeoutExpired):
        which = f"table {overlooked[0]}"
    if which:
        first = error
        while (before := first.__cause__ or first.__context__) is not None:
            first = before
        first.__cause__ = LeaderlessError(f"no leader: {which}, as the servers say")


# --- the logs of the servers in the report of a failed test ---------------------------------------

_LOGS = pytest.StashKey[list[Callable[[], tuple[Path, ...]]]]()
_MARK = pytest.StashKey[LogSizes]()


@contextmanager
def _watching(config: pytest.Config, paths: Callable[[], tuple[Path, ...]]) -> Iterator[None]:
    config.stash[_LOGS].append(paths)
    try:
        yield
    finally:
        config.stash[_LOGS].remove(paths)


def _watched(config: pytest.Config) -> list[Path]:
    found: list[Path] = []
    for paths in config.stash[_LOGS]:
        # A cluster whose restart failed has no logs here; the error of its start shows them.
        with suppress(LocalServerError):
            found += paths()
    return found


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_LOGS] = []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        used = set(getattr(item, "fixturenames", ()))
        reason = difference(item.nodeid) if _is_on_embedded(item) else None
        if reason is not None:
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
        if used & REAL_FIXTURES:
            item.add_marker("real")
        if "replicated_cluster" in used:
            item.add_marker(
                "slow"
            )  # it waits until the ZooKeeper session of a killed server expires


def _is_on_embedded(item: pytest.Item) -> bool:
    called = getattr(item, "callspec", None)
    default = server_kinds()[0]
    kind = default if called is None else called.params.get("cluster", default)
    return kind == "embedded"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    option = ClientOptions.operation_timeout_ms
    default = option.default
    if "cluster" in getattr(item, "fixturenames", ()):
        option.default = PATIENCE_MS
    try:
        return (yield)
    finally:
        option.default = default


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    _heal(item.config)
    item.stash[_MARK] = mark_logs(_watched(item.config))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    text = ""
    if call.excinfo is not None and item.get_closest_marker("real") is not None:
        since = item.stash.get(_MARK, {})
        text = tail_logs(_watched(item.config), since=since, bytes_max=LOG_BYTES_MAX)
        _blame_the_leaderless(call.excinfo.value, text)
    report = yield
    if report.failed and item.get_closest_marker("real") is not None:
        report.sections.append(("what the servers logged since the test began", text or "nothing"))
        if NO_LEADER.search(report.longreprtext):
            item.config.stash[_IS_SUSPECT] = True
    return report
