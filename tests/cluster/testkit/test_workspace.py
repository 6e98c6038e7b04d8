"""Directories and ports: their locks, and their release."""

import socket
import subprocess

import pytest

from fluss.errors import ConfigError, LocalServerError
from fluss_testkit import workspace as workspace_module
from fluss_testkit.file_locks import FileLock
from fluss_testkit.ports import FIRST_PORT, LAST_PORT, lease_ports
from fluss_testkit.workspace import open_workspace


@pytest.fixture(autouse=True)
def scratch(tmp_path, monkeypatch):
    """A separate directory for the temporary clusters of these tests."""
    monkeypatch.setattr(workspace_module, "scratch_dir", lambda: tmp_path / "scratch")
    return tmp_path / "scratch"


def test_a_temporary_directory_is_deleted_when_it_is_closed():
    workspace = open_workspace(None)
    assert workspace.logs.is_dir()
    assert workspace.root.stat().st_mode & 0o077 == 0
    workspace.leave()
    assert not workspace.root.exists()


def test_a_kept_directory_remembers(tmp_path):
    first = open_workspace(tmp_path / "kept")
    first.save_memory({"ports": [1, 2]})
    first.leave()
    second = open_workspace(tmp_path / "kept")
    assert second.load_memory() == {"ports": [1, 2]}
    second.leave()


def test_leftovers_of_a_killed_process_are_removed_and_directories_in_use_are_not(scratch):
    neighbour = open_workspace(None)
    killed = open_workspace(None)
    killed.lock.release()  # as the kernel does for a killed process
    newcomer = open_workspace(None)
    assert not killed.root.exists()
    assert neighbour.root.exists()
    for workspace in (neighbour, newcomer):
        workspace.leave()


def test_a_kept_directory_belongs_to_one_cluster_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(workspace_module, "LOCK_TIMEOUT_S", 0.2)
    first = open_workspace(tmp_path / "kept")
    with pytest.raises(LocalServerError, match="another cluster uses"):
        open_workspace(tmp_path / "kept")
    first.leave()
    open_workspace(tmp_path / "kept").leave()


def test_a_directory_with_other_things_in_it_is_refused(tmp_path):
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(ConfigError, match=r"thesis\.tex"):
        open_workspace(tmp_path)


def test_a_lock_is_held_until_the_last_process_that_inherited_it_ends(tmp_path):
    lock = FileLock(tmp_path / "lock")
    assert lock.try_exclusive()
    heir = subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=(lock.fileno(),))
    lock.release()
    other = FileLock(tmp_path / "lock")
    assert not other.try_exclusive()
    heir.communicate(b"")
    assert other.try_exclusive()
    other.release()


def test_shared_locks_keep_the_exclusive_one_out(tmp_path):
    users = [FileLock(tmp_path / "lock") for _ in range(2)]
    for user in users:
        user.shared()
    keeper = FileLock(tmp_path / "lock")
    for user in users:
        assert not keeper.try_exclusive()
        user.release()
    assert keeper.try_exclusive()
    keeper.release()


def test_two_leases_never_share_a_port(tmp_path):
    leases = [lease_ports(20, tmp_path) for _ in range(3)]
    ports = [port for lease in leases for port in lease.ports]
    assert len(set(ports)) == 60
    assert all(FIRST_PORT <= port < LAST_PORT for port in ports)
    for lease in leases:
        lease.release()


def test_a_lease_gets_its_preferred_ports_where_they_are_free(tmp_path):
    first = lease_ports(3, tmp_path)
    expected = first.ports
    first.release()
    with socket.create_server(("127.0.0.1", expected[1])):
        second = lease_ports(3, tmp_path, preferred=expected)
    assert second.ports[0] == expected[0]
    assert second.ports[1] not in expected
    assert second.ports[2] == expected[2]
    second.release()


def test_a_required_port_that_is_in_use_is_an_error(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(LocalServerError, match=f"port {port} "):
            lease_ports(2, tmp_path, first=port)
    lease = lease_ports(2, tmp_path, first=port)
    assert lease.ports[0] == port
    lease.release()
