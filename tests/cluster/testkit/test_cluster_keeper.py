"""A cluster that outlives its command, and one that several processes share."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from fluss.errors import LocalServerError
from fluss.wire import messages as pb
from fluss_testkit import cluster_keeper as keeper
from fluss_testkit.cluster_keeper import ClusterSpec, down, share_cluster, status, up
from fluss_testkit.file_locks import FileLock
from tests.support.servers.raw_client import RawClient

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("java")]

USER = """
import pathlib, sys, time
from fluss_testkit.cluster_keeper import ClusterSpec, share_cluster
with share_cluster(pathlib.Path(sys.argv[1]), ClusterSpec(shared=True)) as cluster:
    print(cluster.bootstrap_servers, cluster.pid, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def home(tmp_path):
    """The home of a keeper, which is stopped after the test."""
    yield tmp_path / "home"
    down(tmp_path / "home")


def wait_until(condition, timeout_s):
    give_up = time.monotonic() + timeout_s
    while not condition() and time.monotonic() < give_up:
        time.sleep(0.1)
    return condition()


def is_served(address):
    try:
        with RawClient(address) as client:
            return bool(client.call(pb.ListDatabasesRequest()).database_name)
    except OSError:
        return False


def start_user(home):
    user = subprocess.Popen([sys.executable, "-c", USER, str(home)], stdout=subprocess.PIPE)
    address, pid = user.stdout.readline().decode().split()
    return user, address, int(pid)


def kill(user):
    user.kill()
    user.wait()
    user.stdout.close()


def test_up_and_down_are_idempotent(home):
    assert status(home) is None
    first, started = up(home, ClusterSpec())
    assert started
    assert is_served(first.bootstrap_servers)
    again, started = up(home, ClusterSpec())
    assert (again, started) == (first, False)
    assert status(home) == first
    assert down(home)
    assert not is_served(first.bootstrap_servers)
    assert not down(home)
    assert status(home) is None


def test_a_killed_keeper_is_detected_and_replaced(home):
    first, _ = up(home, ClusterSpec())
    os.kill(first.pid, signal.SIGKILL)
    assert wait_until(lambda: status(home) is None, 5)
    second, started = up(home, ClusterSpec())
    assert started
    assert is_served(second.bootstrap_servers)
    assert wait_until(lambda: not is_served(first.bootstrap_servers), 15)


def test_a_keeper_whose_server_dies_ends(home):
    cluster, _ = up(home, ClusterSpec(profiles=("replicated",)))
    os.kill(cluster.pids["tablet-1"], signal.SIGKILL)
    assert wait_until(lambda: status(home) is None, 10)
    assert "a server ended unexpectedly" in (home / "keeper.log").read_text()


def test_the_error_of_a_failed_start_reaches_the_caller(home):
    order = ClusterSpec(options={"log.segment.file-size": "a few"})
    with pytest.raises(LocalServerError, match="ended with exit code") as caught:
        up(home, order)
    assert "a few" in caught.value.__notes__[0]


def test_processes_share_one_cluster_until_the_last_one_ends(home):
    one, address, pid = start_user(home)
    two, same_address, same_pid = start_user(home)
    assert (address, pid) == (same_address, same_pid)
    kill(one)
    time.sleep(4 * keeper.KEEPER_POLL_S)
    assert is_served(address)
    kill(two)
    assert wait_until(lambda: not is_served(address), 10)
    assert wait_until(lambda: status(home) is None, 10)


def test_a_user_that_arrives_when_the_last_one_leaves_gets_a_running_cluster(home):
    one, _, first_pid = start_user(home)
    kill(one)
    with share_cluster(home, ClusterSpec(shared=True)) as cluster:
        time.sleep(8 * keeper.KEEPER_POLL_S)
        assert is_served(cluster.bootstrap_servers)
        # Either the old keeper had not noticed yet, or a new one was started; never an ending one.
        assert status(home).pid in {first_pid, cluster.pid}


def test_the_lock_decides_whether_a_keeper_runs_not_the_state_file(home):
    home.mkdir()
    (home / "state.json").write_text(json.dumps({"phase": "ready", "pid": os.getpid()}))
    assert status(home) is None
    assert not down(home)
    lock = FileLock(home / "alive.lock")
    assert lock.try_exclusive()
    (home / "state.json").write_text("{")
    assert status(home) is None
    lock.release()


def test_the_command_line_prints_the_addresses(tmp_path):
    def run(*words):
        environment = {**os.environ, "FLUSS_CACHE_DIR": str(tmp_path)}
        return subprocess.run(
            [sys.executable, "-m", "fluss_testkit", *words],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )

    assert run("status").returncode == 1
    try:
        started = run("up", "--option", "auto-partition.check.interval=1s")
        assert started.returncode == 0, started.stderr
        facts = json.loads(run("status", "--json").stdout)
        for name in ("bootstrap_servers", "sasl_bootstrap_servers"):
            assert facts[name] in started.stdout
        assert "it ran already" in run("up").stdout
        assert run("status").returncode == 0
    finally:
        ended = run("down")
    assert ended.stdout == "It has stopped.\n"
    assert run("down").returncode == 0
    refused = run("up", "--option", "data.dir=/elsewhere")
    assert refused.returncode == 2
    assert "set by the cluster itself" in refused.stderr
