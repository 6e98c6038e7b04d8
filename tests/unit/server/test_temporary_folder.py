"""Folders of servers that keep nothing: which ones the next server removes, and which it leaves."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

import pytest

from fluss_server.directory_lock import DirectoryLock
from fluss_server.temporary_folder import PREFIX, TemporaryFolder, remove_stale_folders


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture(scope="module")
def ended():
    """The id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-S", "-c", ""])
    process.wait()
    return process.pid


def folder_of(within, pid, *, age_s=3_600):
    folder = within / f"{PREFIX}{pid}-abc_123"
    folder.mkdir()
    (folder / "server.log").write_text("")
    os.utime(folder, (time.time() - age_s,) * 2)
    return folder


def test_a_folder_lives_as_long_as_its_object(temporary):
    folder = TemporaryFolder()
    assert folder.path.parent == temporary
    assert f"{PREFIX}{os.getpid()}-" in folder.path.name
    folder.remove()
    folder.remove()
    dropped = TemporaryFolder()
    (dropped.path / "data").write_text("rows")
    del dropped
    assert list(temporary.iterdir()) == []


def test_what_a_killed_process_left_is_removed_by_the_next(temporary, ended):
    stale = folder_of(temporary, ended)
    folder = TemporaryFolder()
    assert not stale.exists()
    assert folder.path.exists()


def test_other_folders_are_left_alone(temporary, ended):
    kept = [
        folder_of(temporary, os.getpid()),
        folder_of(temporary, ended, age_s=5).rename(temporary / f"{PREFIX}{ended}-new"),
        folder_of(temporary, ended).rename(temporary / f"{PREFIX}x-{ended}"),
        folder_of(temporary, ended).rename(temporary / f"{PREFIX}{2**70}-abc"),
    ]
    target = temporary / "target"
    target.mkdir()
    link = temporary / f"{PREFIX}{ended}-link"
    link.symlink_to(target)
    remove_stale_folders()
    assert all(each.exists() for each in [*kept, target, link])


def test_a_folder_that_is_served_is_left_alone(temporary, ended):
    served = folder_of(temporary, ended)
    lock = DirectoryLock(served)
    lock.take()
    os.utime(served, (time.time() - 3_600,) * 2)
    remove_stale_folders()
    assert served.exists()
    lock.release()
    os.utime(served, (time.time() - 3_600,) * 2)
    remove_stale_folders()
    assert not served.exists()


def test_a_directory_that_cannot_be_listed_is_no_error(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    remove_stale_folders()
