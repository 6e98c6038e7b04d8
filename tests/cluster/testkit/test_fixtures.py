"""The fixture `cluster` itself: one per worker, skipped or failed, with logs in reports."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

SHARED = """
import pathlib, time
import pytest

@pytest.mark.parametrize("number", range(4))
def test_share(cluster, number):
    pathlib.Path(__file__).with_name(f"seen-{number}").write_text(cluster.bootstrap)
    time.sleep(0.5)  # so that both workers get their share
"""

FAILING = """
import time
from fluss.wire import messages as pb
from tests.support.servers.raw_client import RawClient
from tests.support.servers.raw_table import append_nothing, create_log_table

def test_passes(cluster):
    pass

def test_fails(cluster, database):
    with RawClient(cluster.bootstrap) as client:
        table_id = create_log_table(client, database, "noise")
        for _ in range(300):  # the servers do it when they get round to it
            if not append_nothing(client, table_id, to=0).HasField("error_code"):
                break
            time.sleep(0.1)
    assert False
"""

NEVER_AGAIN = """
from fluss.errors import LocalServerError
from fluss_testkit.java_cluster import JavaCluster
from tests.support.servers import fix_cluster

class StartsOnce(JavaCluster):
    users, bootstrap_servers, sasl_bootstrap_servers = {"u": "p"}, "nowhere:1", "nowhere:2"
    starts = 0

    def start(self):
        self.starts += 1
        if self.starts > 1:
            raise LocalServerError("the servers did not become ready.")
        return self

fix_cluster.JavaCluster = StartsOnce

def test_loses_its_leader(cluster):
    raise AssertionError("no leader")

def test_comes_next(cluster):
    pass
"""

LEADERLESS = """
import pathlib
import subprocess
from fluss_testkit.java_cluster import JavaCluster
from tests.support.servers import fix_cluster

class Logs(JavaCluster):
    users, bootstrap_servers, sasl_bootstrap_servers = {"u": "p"}, "nowhere:1", "nowhere:2"
    starts = 0
    log = pathlib.Path("server.log")

    def start(self):
        self.starts += 1
        return self

    def stop(self, *, graceful):
        pass

    @property
    def log_paths(self):
        return (self.log,)

    def write(self, times):
        place = "/tabletservers/tables/36/buckets/0/leader_isr"
        with self.log.open("a") as log:
            log.write(f"Failed to get leader and isr for path {place}: NONODE\\n" * times)

fix_cluster.JavaCluster = Logs

def running(config):
    return config.stash[fix_cluster._REAL]

def test_of_a_program_whose_table_was_overlooked(cluster, pytestconfig):
    if running(pytestconfig).starts == 1:
        with running(pytestconfig).log.open("a") as log:
            log.write("Registered table assignment {0=[0]} for table id 76.\\n")
            log.write("TabletServer 0 becomes leader for bucket TableBucket{tableId=76, bucket=0}\\n")
            log.write("Registered table assignment {0=[0]} for table id 77.\\n")
        raise subprocess.TimeoutExpired("program", 100)

def test_of_a_program_that_waits(cluster, pytestconfig):
    if running(pytestconfig).starts == 2:
        running(pytestconfig).write(times=100)
        try:
            raise KeyError("in between")
        except KeyError:
            raise TimeoutError("the program has not ended")

def test_that_fails_by_itself(cluster, pytestconfig):
    running(pytestconfig).write(times=2)
    raise TimeoutError("the program has not ended")
"""

TRIVIAL = "def test_it(cluster):\n    pass\n"


def run_pytest(directory, source, *arguments, **environment):
    (directory / "test_inner.py").write_text(source)
    # The settings of the outer run are not for the inner one.
    outer = ("PYTEST_", "FLUSS_TEST_")
    variables = {name: v for name, v in os.environ.items() if not name.startswith(outer)}
    command = [
        *(sys.executable, "-m", "pytest", "-p", "tests.support.servers.fix_cluster", "-q", "-ra"),
        *("-c", os.devnull, "-o", "markers=real: x", "-p", "no:cacheprovider"),
        *("--basetemp", str(directory / "tmp"), "--rootdir", str(directory)),
        *arguments,
        str(directory / "test_inner.py"),
    ]
    return subprocess.run(
        command,
        cwd=directory,
        env={
            **variables,
            "PYTHONPATH": str(ROOT),
            "FLUSS_TEST_CLUSTER": "real",
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.usefixtures("java")
def test_each_worker_has_a_cluster_of_its_own(tmp_path):
    done = run_pytest(tmp_path, SHARED, "-p", "xdist", "-n", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    seen = {path.read_text() for path in tmp_path.glob("seen-*")}
    assert len(list(tmp_path.glob("seen-*"))) == 4
    assert len(seen) == 2


@pytest.mark.usefixtures("java")
def test_a_failing_test_shows_the_server_logs_of_its_time(tmp_path):
    done = run_pytest(tmp_path, FAILING)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "what the servers logged since the test began" in done.stdout
    assert "LogManager - Loaded log for bucket" in done.stdout
    assert "Created default database" not in done.stdout  # which was before the first test


def test_a_cluster_that_cannot_be_started_again_fails_tests_and_not_pytest(tmp_path):
    done = run_pytest(tmp_path, NEVER_AGAIN)
    assert "INTERNALERROR" not in done.stdout
    assert "LocalServerError: the servers did not become ready." in done.stdout
    assert "1 failed, 1 error" in done.stdout


def test_a_program_that_waited_for_a_leader_in_vain_is_run_again_on_servers_started_again(tmp_path):
    done = run_pytest(tmp_path, LEADERLESS, "--reruns=1", "--only-rerun=no leader")
    assert "1 failed, 2 passed, 2 rerun" in done.stdout, done.stdout + done.stderr
    assert "FAILED test_inner.py::test_that_fails_by_itself" in done.stdout


def test_a_cluster_named_in_the_environment_is_used(tmp_path):
    source = (
        "def test_it(cluster):\n    assert cluster.bootstrap == 'somewhere:1'\n"
        "def test_sasl(cluster):\n    cluster.sasl_bootstrap\n"
    )
    done = run_pytest(tmp_path, source, FLUSS_TEST_BOOTSTRAP="somewhere:1")
    assert "1 passed, 1 skipped" in done.stdout
    assert "set FLUSS_TEST_SASL_BOOTSTRAP" in done.stdout


def test_without_java_the_test_is_skipped_with_the_remedy(tmp_path):
    done = run_pytest(tmp_path, TRIVIAL, PATH="/nowhere", JAVA_HOME="", FLUSS_TEST_BOOTSTRAP="")
    assert "1 skipped" in done.stdout
    assert "install a JDK" in done.stdout


def test_without_java_the_test_fails_where_java_is_required(tmp_path):
    done = run_pytest(
        tmp_path,
        TRIVIAL,
        PATH="/nowhere",
        JAVA_HOME="",
        FLUSS_TEST_BOOTSTRAP="",
        FLUSS_TEST_REQUIRE_REAL="1",
    )
    assert done.returncode == 1
    assert "install a JDK" in done.stdout
