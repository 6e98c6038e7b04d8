"""Servers start from an archive of classes; without a usable one they start as before."""

import dataclasses
import os
import shutil

import pytest

from fluss.wire import messages as pb
from fluss_testkit.artifact import FLUSS_SERVER, LOG_BINDING, find_jar
from fluss_testkit.cache_paths import CACHE_DIR_VARIABLE, jars_dir
from fluss_testkit.class_archive import FREE_BYTES_MIN, ClassArchive
from fluss_testkit.file_locks import FileLock
from fluss_testkit.java_launcher import compiled_launcher
from tests.support.servers.raw_client import RawClient

# Each test starts JVMs of its own.
pytestmark = [pytest.mark.slow, pytest.mark.real]

ARCHIVED = "source: shared objects file (top)"


@pytest.fixture
def cache(java, tmp_path, monkeypatch):
    """A cache with the jars and the compiled launcher, without an archive."""
    launcher = compiled_launcher(java, class_path())
    kept = tmp_path / "cache" / "launcher" / launcher.parent.name
    kept.mkdir(parents=True)
    shutil.copy(launcher, kept)
    (tmp_path / "cache" / "jars").symlink_to(jars_dir())
    monkeypatch.setenv(CACHE_DIR_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def archive(java, cache):
    return archive_of(java)


def class_path():
    return (find_jar(FLUSS_SERVER), find_jar(LOG_BINDING))


def archive_of(java):
    return ClassArchive.of(java, compiled_launcher(java, class_path()), class_path())


def started_classes(start_cluster, tmp_path, monkeypatch, *arguments):
    """Start a cluster, and return what its JVM says about the classes that it loads."""
    said = tmp_path / "classes.txt"
    with monkeypatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", f"-Xlog:class+load:file={said}:none")
        with start_cluster(*arguments) as running, RawClient(running.bootstrap_servers) as client:
            databases = client.call(pb.ListDatabasesRequest()).database_name
            log = running.log_tail()
    assert list(databases) == ["fluss"]
    assert "shared class" not in log
    assert "SharedArchiveFile" not in log
    return said.read_text()


def test_the_second_server_starts_from_the_classes_of_the_first(
    start_cluster, archive, tmp_path, monkeypatch
):
    arguments = (start_cluster, tmp_path, monkeypatch)
    assert ARCHIVED not in started_classes(*arguments)
    assert archive.is_written
    written = archive.path.stat()
    classes = started_classes(*arguments)
    assert f"FlussNode {ARCHIVED}" in classes
    assert f"org.apache.fluss.server.tablet.TabletServer {ARCHIVED}" in classes
    assert archive.path.stat().st_mtime_ns == written.st_mtime_ns


def test_a_java_that_cannot_write_the_archive_is_asked_once(start_cluster, java, cache, tmp_path):
    home = tmp_path / "jdk"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "javac").symlink_to(java.compiler)
    writer = home / "bin" / "jcmd"
    writer.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\necho part > "$4"\nexit 1\n')
    writer.chmod(0o755)
    broken = dataclasses.replace(java, home=home)
    archive = archive_of(broken)
    with start_cluster(java=broken) as running:
        pids = list(running.pids.values())
    asked = (tmp_path / "asked").read_text().splitlines()
    assert [line.split()[:3] for line in asked] == [[str(pids[0]), "VM.cds", "dynamic_dump"]]
    assert archive.path.exists()
    assert not archive.is_written
    assert archive.options(has_all_roles=True) == []
    archive.write(os.getpid())
    assert (tmp_path / "asked").read_text().splitlines() == asked
    assert not [each for each in archive.path.parent.iterdir() if each.name.startswith(".")]


def test_one_process_writes_the_archive(archive):
    other = FileLock(archive.path.with_suffix(".lock"))
    other.exclusive()
    try:
        archive.write(os.getpid())
        assert not archive.path.exists()
    finally:
        other.release()


def test_no_archive_is_written_on_a_full_disk(archive, monkeypatch):
    full = shutil.disk_usage(archive.path.parent)._replace(free=FREE_BYTES_MIN - 1)
    monkeypatch.setattr("fluss_testkit.class_archive.shutil.disk_usage", lambda _: full)
    archive.write(os.getpid())
    assert not archive.path.exists()


def test_only_a_process_with_all_classes_writes_it(archive):
    assert "-XX:+RecordDynamicDumpInfo" in archive.options(has_all_roles=True)
    assert archive.options(has_all_roles=False) == []
    archive.path.write_bytes(b"classes")
    used = archive.options(has_all_roles=False)
    assert f"-XX:SharedArchiveFile={archive.path}" in used
    assert used == archive.options(has_all_roles=True)


def test_another_class_path_and_an_old_java_have_no_archive_in_common(java, archive, tmp_path):
    launcher = archive.path.with_name("launcher.jar")
    other = tmp_path / "other.jar"
    other.touch()
    assert ClassArchive.of(java, launcher, (find_jar(FLUSS_SERVER), other)).path != archive.path
    assert ClassArchive.of(dataclasses.replace(java, version=16), launcher, ()) is None
    assert ClassArchive.of(dataclasses.replace(java, home=tmp_path), launcher, ()) is None
    assert ClassArchive.of(java, None, ()) is None
