"""A real Fluss starts quickly, does not disturb others, and leaves nothing behind."""

import dataclasses
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fluss.errors import LocalServerError
from fluss.wire import messages as pb
from fluss_testkit.artifact import FLUSS_SERVER, find_jar
from fluss_testkit.cluster_profiles import Profile
from fluss_testkit.java_cluster import JavaCluster
from tests.support.servers.raw_client import COORDINATOR, RawClient

# Each test starts JVMs of its own.
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("java")]

START_S_MAX = 30
# Servers without a parent may take 8 s to stop, after at most two steps of 1.5 s.
ORPHAN_S_MAX = 25

PARENT = """
import sys, time
from fluss_testkit.java_cluster import JavaCluster
from fluss_testkit.cluster_profiles import Profile
with JavaCluster(Profile(separate=sys.argv[1] != "shared")) as cluster:
    if sys.argv[1] == "hanging":
        cluster.pause_tablet_server(0)
    try:
        print(*cluster.pids.values(), cluster.directory, flush=True)
        time.sleep(600)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


def alive(pid):
    """Return whether the process runs; a zombie does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not status.exists() or status.read_text().rsplit(")", 1)[1].split()[0] != "Z"


def wait_until(condition, timeout_s):
    give_up = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > give_up:
            return False
        time.sleep(0.1)
    return True


def start_parent(shape):
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, shape], stdout=subprocess.PIPE, text=True
    )
    *pids, directory = parent.stdout.readline().split()
    return parent, [int(pid) for pid in pids], Path(directory)


def finish(parent):
    rest = parent.stdout.read()
    parent.stdout.close()
    parent.wait()
    return rest


def databases(address):
    with RawClient(address) as client:
        return set(client.call(pb.ListDatabasesRequest()).database_name)


def test_it_is_ready_in_time_and_answers_on_all_its_addresses(start_cluster):
    begin = time.monotonic()
    with start_cluster() as running:
        assert time.monotonic() - begin < START_S_MAX
        assert databases(running.bootstrap_servers) == {"fluss"}
        with RawClient(running.bootstrap_servers) as client:
            (tablet,) = client.metadata().tablet_servers
            assert client.call(pb.ListDatabasesRequest(), to=tablet.node_id).database_name


def test_a_fresh_cluster_leaves_neither_process_nor_file(start_cluster):
    with start_cluster() as running:
        pids, directory = list(running.pids.values()), running.directory
        assert directory.exists()
    assert not any(alive(pid) for pid in pids)
    assert not directory.exists()


def test_two_concurrent_clusters_do_not_collide(start_cluster):
    with start_cluster() as one, start_cluster() as two:
        assert one.directory != two.directory
        with RawClient(one.bootstrap_servers) as client:
            create = pb.CreateDatabaseRequest(database_name="mine", ignore_if_exists=False)
            client.call(create, to=COORDINATOR)
        assert databases(one.bootstrap_servers) == {"fluss", "mine"}
        assert databases(two.bootstrap_servers) == {"fluss"}


@pytest.mark.parametrize("shape", ["shared", "separate"])
def test_killing_the_parent_ends_the_servers(shape):
    parent, pids, directory = start_parent(shape)
    assert len(pids) == (1 if shape == "shared" else 3)
    assert all(alive(pid) for pid in pids)
    parent.kill()
    finish(parent)
    assert wait_until(lambda: not any(alive(pid) for pid in pids), ORPHAN_S_MAX)
    # The next cluster removes what the killed parent could not.
    with JavaCluster():
        assert not directory.exists()


def test_killing_the_parent_ends_even_a_server_that_hangs():
    parent, pids, _ = start_parent("hanging")
    parent.kill()
    finish(parent)
    assert wait_until(lambda: not any(alive(pid) for pid in pids), ORPHAN_S_MAX)


def test_ctrl_c_ends_the_servers_after_the_parent_has_handled_it():
    parent, pids, directory = start_parent("shared")
    parent.send_signal(signal.SIGINT)
    assert finish(parent) == "interrupted\n"
    assert not any(alive(pid) for pid in pids)
    assert not directory.exists()


def test_sigterm_ends_the_servers():
    parent, pids, _ = start_parent("shared")
    parent.terminate()
    finish(parent)
    assert wait_until(lambda: not any(alive(pid) for pid in pids), ORPHAN_S_MAX)


def test_without_a_compiler_each_role_is_a_process_of_the_jars_own(start_cluster, java, tmp_path):
    jre = dataclasses.replace(java, home=tmp_path)
    with start_cluster(java=jre) as running:
        assert set(running.pids) == {"zookeeper", "coordinator", "tablet-0"}
        assert databases(running.bootstrap_servers.split(",", maxsplit=1)[0]) == {"fluss"}
        children = [child for pid in running.pids.values() for child in children_of(pid)]
        assert len(children) == 3
        running.kill_tablet_server(0)
        assert wait_until(lambda: sum(map(alive, children)) == 2, 5)
    assert wait_until(lambda: not any(map(alive, children)), 5)


def children_of(pid):
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True
    )
    pairs = (map(int, line.split()) for line in listed.stdout.splitlines())
    return [child for child, parent in pairs if parent == pid]


def test_a_server_that_cannot_start_reports_why_immediately():
    begin = time.monotonic()
    with pytest.raises(LocalServerError) as caught:
        JavaCluster(options={"log.segment.file-size": "a few"}).start()
    assert time.monotonic() - begin < START_S_MAX
    assert "ended with exit code" in caught.value.message
    assert "a few" in caught.value.__notes__[0]


def test_a_server_that_is_not_ready_in_time_is_given_up():
    cluster = JavaCluster(start_timeout_s=0.2)
    with pytest.raises(LocalServerError, match="not ready in time"):
        cluster.start()
    cluster.stop()  # idempotent: nothing is left to stop


def test_servers_that_share_a_process_cannot_be_killed_one_by_one(start_cluster):
    with start_cluster() as running:
        with pytest.raises(LocalServerError, match="shares one process"):
            running.kill_tablet_server(0)
        with pytest.raises(LocalServerError, match="runs already"):
            running.start()


def test_a_cluster_that_does_not_run_raises_an_error():
    with pytest.raises(LocalServerError, match="does not run"):
        _ = JavaCluster().bootstrap_servers


def test_another_build_of_the_server_can_be_named(start_cluster, tmp_path):
    jar = tmp_path / "fluss-server-mine.jar"
    jar.symlink_to(find_jar(FLUSS_SERVER))
    with start_cluster(Profile(heap_mb=512), server_jar=jar) as running:
        assert databases(running.bootstrap_servers) == {"fluss"}
