"""The temporary files of a run are in memory where there is enough, and leave nothing there."""

import os
import tempfile
from pathlib import Path

import pytest

from fluss_testkit.file_locks import FileLock
from tools import memory_folder
from tools.memory_folder import AVAILABLE_BYTES_MIN, DISK_VARIABLE, LOCK_NAME, temporary_files

ENOUGH = AVAILABLE_BYTES_MIN


@pytest.fixture
def memory(monkeypatch, tmp_path):
    """A folder that stands in for shared memory; the machine's own temporary folder is another."""
    for name in ("memory", "disk"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(memory_folder, "SHARED_MEMORY", tmp_path / "memory")
    monkeypatch.setattr(memory_folder, "FREE_BYTES_MIN", 1)
    monkeypatch.setattr(memory_folder, "MEMORY_INFO", tmp_path / "meminfo")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "disk"))
    monkeypatch.delenv("TMPDIR", raising=False)
    have(tmp_path, ENOUGH)
    return tmp_path / "memory"


def have(folder, available):
    (folder / "meminfo").write_text(f"MemTotal: 9 kB\nMemAvailable:   {available >> 10} kB\nX: 1\n")


def test_files_are_in_memory_and_deleted_at_the_end(memory, tmp_path):
    with temporary_files() as files:
        (folder,) = memory.iterdir()
        assert files.variables == {"TMPDIR": str(folder), DISK_VARIABLE: str(tmp_path / "disk")}
        assert all(os.get_inheritable(each) is False for each in files.descriptors)
        assert not FileLock(folder / LOCK_NAME).try_exclusive()
        assert folder.stat().st_mode & 0o7777 == 0o1777  # other users reach their own directories
        (folder / "run").mkdir()
        (folder / "run" / "file").touch()
    assert not list(memory.iterdir())


def test_ports_are_leased_where_other_runs_lease_them(memory, tmp_path):
    with temporary_files() as files:
        (ports,) = Path(files.variables["TMPDIR"]).glob("fluss-clusters-*/ports")
        (ports / "20000.lock").touch()
    assert len(list((tmp_path / "disk").glob("fluss-clusters-*/ports/20000.lock"))) == 1


def test_folders_of_killed_runs_are_deleted_and_no_others(memory):
    for name in ("fluss-killed", "fluss-running", "fluss-other", "another"):
        (memory / name).mkdir()
    (memory / "fluss-killed" / LOCK_NAME).touch()
    (memory / "another" / LOCK_NAME).touch()
    running = FileLock(memory / "fluss-running" / LOCK_NAME)
    running.exclusive()
    try:
        with temporary_files():
            pass
    finally:
        running.release()
    left = {each.name for each in memory.iterdir()}
    assert left == {"fluss-running", "fluss-other", "another"}


@pytest.mark.parametrize("lack", ["memory", "space", "facts", "shared memory"])
def test_on_a_small_machine_files_stay_on_the_disk(memory, tmp_path, monkeypatch, lack):
    if lack == "memory":
        have(tmp_path, ENOUGH - 4096)
    elif lack == "space":
        monkeypatch.setattr(memory_folder, "FREE_BYTES_MIN", 1 << 62)
    elif lack == "facts":
        (tmp_path / "meminfo").write_text("MemTotal: 9 kB\n")
    else:
        memory.rmdir()
    with temporary_files() as files:
        assert files.variables == {}
        assert files.descriptors == ()
        assert not memory.exists() or not list(memory.iterdir())


def test_a_folder_that_the_user_names_is_used(memory, monkeypatch):
    monkeypatch.setenv("TMPDIR", "/somewhere")
    with temporary_files() as files:
        assert files.variables == {}
    assert not list(memory.iterdir())
