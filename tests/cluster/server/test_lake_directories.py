"""A data directory with a lake: what survives restarts, kills and repairs, and what is refused."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyiceberg.catalog import load_catalog

import fluss
from fluss.errors import ConfigError, FlussError, LocalServerError, MissingExtraError
from fluss.model.paths import TablePath
from fluss_lake.catalogs import open_table
from fluss_server import LocalCluster
from fluss_server.catalog import catalog_store
from fluss_server.data_layout import CATALOG, LAKE_FOLDER
from fluss_server.lake import lake_catalog
from fluss_server.lake.lake_settings import LakeLocation
from fluss_server.retention import expire_log
from tests.support.lake.lake_requests import ENABLED, LakeRequests, local_file
from tests.support.servers.embedded import Clock, running
from tests.support.servers.raw_client import RefusedError

LAKE = LakeLocation()
OFTEN = {**ENABLED, "table.datalake.freshness": "10s"}


def requests_of(server):
    return LakeRequests(server.address, "fluss")


def catalog_of(directory):
    """The lake, opened with nothing of the product."""
    uri = f"sqlite:///{directory.absolute() / LAKE_FOLDER / 'catalog.sqlite'}"
    return load_catalog("fluss-iceberg-catalog", type="sql", uri=uri, init_catalog_tables="false")


# --- what survives --------------------------------------------------------------------------------


def test_a_directory_keeps_its_lake_and_what_has_been_tiered(tmp_path):
    clock = Clock()
    with running(tmp_path, lake=LAKE, clock=clock) as server:
        requests = requests_of(server)
        requests.create("t", properties=OFTEN)
        requests.committed("t", 5, [(None, 0, 3)], keep=-1)
        requests.committed("t", 6, [(None, 1, 4)], keep=-1)
        described = requests.described("t")
        first_epoch = requests.heartbeat().coordinator_epoch
        requests.client.close()
    with running(tmp_path, clock=clock) as server:  # it need not be named again
        requests = requests_of(server)
        assert requests.described("t") == described
        assert requests.snapshot("t") == (6, {(None, 0): 3, (None, 1): 4})
        assert requests.snapshot("t", snapshot_id=5) == (5, {(None, 0): 3})
        requests.create("more")
        # A worker of before the restart is recognised.
        assert requests.heartbeat().coordinator_epoch == first_epoch + 1
        assert not requests.heartbeat(request_table=True).HasField("tiering_table")
        clock.now_ms += 10_000
        assert requests.heartbeat(request_table=True).tiering_table.table_path.table_name == "t"
        requests.client.close()


def test_acknowledged_commits_survive_kill_9(tmp_path):
    with LocalCluster(tmp_path, lake=True) as cluster:
        requests = LakeRequests(cluster.bootstrap_servers, "fluss")
        requests.create("t")
        for snapshot_id in range(1, 6):
            path = requests.committed("t", snapshot_id, [(None, 0, snapshot_id)])
            if snapshot_id == 5:
                cluster.kill()
        requests.client.close()
    with LocalCluster(tmp_path) as cluster:
        requests = LakeRequests(cluster.bootstrap_servers, "fluss")
        assert requests.snapshot("t") == (5, {(None, 0): 5})
        assert local_file(path).exists()
        requests.client.close()


def test_a_lost_catalog_knows_the_lake_s_snapshots_after_a_repair(tmp_path):
    with running(tmp_path, lake=LAKE) as server:
        requests = requests_of(server)
        requests.create("t")
        requests.committed("t", 5, [(None, 0, 3)])
        requests.client.close()
    for name in (CATALOG, f"{CATALOG}-wal", f"{CATALOG}-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    with running(tmp_path, repair=True, lake=LAKE) as server:
        requests = requests_of(server)
        assert requests.snapshot("t") == (5, {(None, 0): 3})
        requests.client.close()


def test_a_directory_that_was_moved_creates_tables_in_its_own_lake(tmp_path):
    with running(tmp_path / "old", lake=LAKE) as server:
        requests_of(server).client.close()
    shutil.move(tmp_path / "old", tmp_path / "new")
    with running(tmp_path / "new") as server:
        requests = requests_of(server)
        requests.create("t")
        requests.client.close()
    assert catalog_of(tmp_path / "new").list_tables("fluss") == [("fluss", "t")]
    assert not (tmp_path / "old").exists()


def test_a_dropped_table_leaves_nothing_but_its_lake(tmp_path):
    with running(tmp_path, lake=LAKE) as server:
        requests = requests_of(server)
        requests.create("t")
        path = local_file(requests.committed("t", 5, [(None, 0, 3)]))
        requests.drop("t")
        server.on_loop(server.node.finish_background)
        assert not path.parent.parent.exists()
        assert server.node.catalog.pending_deletions() == []
        requests.create("t", properties={})
        with pytest.raises(RefusedError, match="53"):
            requests.snapshot("t")
        requests.client.close()
    assert catalog_of(tmp_path).list_tables("fluss") == [("fluss", "t")]


@pytest.mark.parametrize("creates", [True, False], ids=["create", "enable"])
def test_a_creation_that_a_crash_broke_off_is_repeated(tmp_path, creates):
    path = TablePath("fluss", "t")
    with running(tmp_path, lake=LAKE) as server:
        requests = requests_of(server)
        requests.create("other", custom={"left": "yes"})
        if not creates:
            requests.create("t", properties={})
        # As after a kill between the creation in the lake and the one in the server's catalog.
        server.on_loop(lambda: server.node.catalog.lake.begin_creation(path))
        catalog_of(tmp_path).rename_table(("fluss", "other"), ("fluss", "t"))
        requests.client.close()
    with running(tmp_path) as server:
        requests = requests_of(server)
        if creates:
            requests.create("t")
        else:
            requests.alter("t", "table.datalake.enabled", "true")
        assert "fluss.left" not in catalog_of(tmp_path).load_table("fluss.t").properties
        assert server.on_loop(lambda: server.node.catalog.lake.begin_creation(path)) is False
        requests.client.close()


# --- what is refused ------------------------------------------------------------------------------


def test_a_directory_with_tables_in_a_lake_takes_no_other(tmp_path):
    with running(tmp_path / "data", lake=LAKE) as server:
        requests_of(server).client.close()
    other = LakeLocation(url=f"sqlite:///{tmp_path}/other.db")
    with running(tmp_path / "data", lake=other) as server:  # no table is in the first one
        requests = requests_of(server)
        requests.create("t")
        requests.client.close()
    with running(tmp_path / "data", lake=other) as server:
        requests_of(server).client.close()
    again = LakeLocation(url=f"sqlite:///{tmp_path}/third.db")
    with pytest.raises(ConfigError, match="another lake"), running(tmp_path / "data", lake=again):
        pass


def test_without_the_package_a_lake_is_refused_with_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setattr(lake_catalog, "entry_points", lambda **_: ())
    with (
        pytest.raises(MissingExtraError, match="fluss-lake"),
        running(tmp_path, lake=LAKE),
    ):
        pass


def test_without_the_package_the_rest_of_a_directory_is_served(tmp_path, monkeypatch):
    with running(tmp_path, lake=LAKE) as server:
        requests = requests_of(server)
        requests.create("t")
        requests.committed("t", 5, [(None, 0, 3)])
        requests.client.close()
    monkeypatch.setattr(lake_catalog, "entry_points", lambda **_: ())
    with running(tmp_path) as server:
        requests = requests_of(server)
        assert requests.snapshot("t")[0] == 5
        with pytest.raises(RefusedError, match=r"fluss-lake|Iceberg"):
            requests.create("u")
        requests.client.close()


def test_earlier_versions_refuse_a_directory_with_a_lake(tmp_path, monkeypatch):
    with running(tmp_path, lake=LAKE) as server:
        requests_of(server).client.close()
    monkeypatch.setattr(catalog_store, "_NEWEST", catalog_store.FORMAT_WITH_RESCALES)
    with pytest.raises(LocalServerError, match="no catalog that this version"), running(tmp_path):
        pass


@pytest.mark.parametrize(
    ("lake", "what"),
    [
        ("nosuch://x", "not a catalog of Iceberg"),
        ("postgresql://ann@localhost/lake", "warehouse"),
        ({"url": "sqlite:////proc/none/x.db"}, "cannot be opened"),
        ("http://127.0.0.1:1", "cannot be opened"),
    ],
)
def test_a_lake_that_cannot_be_opened_ends_the_start(tmp_path, lake, what):
    with pytest.raises(FlussError, match=what), running(tmp_path, lake=LakeLocation.of(lake)):
        pass


@pytest.mark.parametrize(
    "path",
    ["file:/etc/passwd", "/etc/passwd", "file:{data}/catalog.sqlite", "{other}", "file:x", ""],
)
def test_a_commit_names_files_of_its_table_alone(tmp_path, path):
    with running(tmp_path, lake=LAKE) as server:
        requests = requests_of(server)
        requests.create("t")
        requests.create("u")
        named = path.format(data=tmp_path, other=requests.prepared("u", [(None, 0, 1)]))
        answer = requests.commit(requests.table_id("t"), 5, named)
        assert answer.error_code == -1
        assert "not a file of offsets" in answer.error_message
        with pytest.raises(RefusedError, match="53"):
            requests.snapshot("t")
        requests.client.close()
    assert (tmp_path / CATALOG).exists()


def test_offsets_of_what_the_table_has_not_are_refused(tmp_path):
    with running(tmp_path, lake=LAKE) as server:
        requests = requests_of(server)
        requests.create("t", buckets=2)
        for offset in ((None, 2, 1), (None, -1, 1), (7, 0, 1), (None, 2**31 - 1, 1)):
            assert requests.prepare("t", [offset]).error_code == 21
        assert requests.prepare("t", [], table_id=99).error_code == 7
        assert requests.commit(99, 5, "file:x").error_code == 7
        requests.client.close()


def test_a_lost_file_of_offsets_is_named_and_can_be_replaced(tmp_path):
    with running(tmp_path, lake=LAKE) as server:
        requests = requests_of(server)
        requests.create("t")
        path = local_file(requests.committed("t", 5, [(None, 0, 3)]))
        path.unlink()
        for call in (
            lambda: requests.snapshot("t"),
            lambda: requests.prepared("t", [(None, 0, 4)]),
        ):
            with pytest.raises((RefusedError, AssertionError), match="is missing"):
                call()
        whole = requests.prepared("t", [(None, 0, 4)], ignore_previous_table_offsets=True)
        requests.commit(requests.table_id("t"), 6, whole)
        assert requests.snapshot("t") == (6, {(None, 0): 4})
        requests.client.close()


def test_a_commit_that_is_sent_again_keeps_its_file(tmp_path):
    with running(tmp_path, lake=LAKE) as server:
        requests = requests_of(server)
        requests.create("t")
        path = requests.prepared("t", [(None, 0, 3)])
        for _ in range(2):  # 0.9.1 removes the file, and the table cannot be tiered any more
            assert not requests.commit(requests.table_id("t"), 5, path).error_code
        assert requests.snapshot("t") == (5, {(None, 0): 3})
        requests.client.close()


def test_a_table_that_exists_may_be_created_if_it_does_not(tmp_path):
    with running(tmp_path, lake=LAKE) as server:
        requests = requests_of(server)
        for _ in range(2):  # 0.9.1 answers 54 the second time
            requests.create("t", ignore_if_exists=True)
        requests.client.close()


# --- ways in --------------------------------------------------------------------------------------


def has_lake(session, name):
    session.create_table(name, {"id": "BIGINT"}, buckets=1, properties=ENABLED)
    return "table.datalake.iceberg.uri" in session.table(name).info.properties


def test_embedded_urls_name_a_lake(tmp_path):
    with fluss.connect(f"embedded:{tmp_path}/a?lake") as session:
        assert has_lake(session, "fluss.t")
        with fluss.connect(f"embedded:{tmp_path}/a?lake") as other:
            assert has_lake(other, "fluss.u")
    with fluss.connect(f"embedded:{tmp_path}/a") as session:  # the folder keeps it
        assert has_lake(session, "fluss.v")
    with fluss.connect("embedded:?lake") as session:
        assert has_lake(session, "fluss.t")
    file = tmp_path / "a lake.db"
    url = f"embedded:{tmp_path}/b?lake=sqlite:///{str(file).replace(' ', '%20')}"
    with fluss.connect(f"{url}&warehouse={tmp_path}/files") as session:
        assert has_lake(session, "fluss.t")
        assert (tmp_path / "files" / "fluss" / "t").is_dir()


def test_a_running_server_must_have_the_requested_lake(tmp_path):
    with fluss.connect(f"embedded:{tmp_path}") as session:
        assert session.databases() == ["fluss"]
        with pytest.raises(ConfigError, match="has no lake"):
            fluss.connect(f"embedded:{tmp_path}?lake")
        with pytest.raises(ConfigError, match="has no lake"):
            LocalCluster(tmp_path, lake=True).start()
    with LocalCluster(tmp_path, lake=f"sqlite:///{tmp_path}/one.db"):
        with LocalCluster(tmp_path, lake=f"sqlite:///{tmp_path}/one.db") as same:
            assert same.is_attached
        with pytest.raises(ConfigError, match="another lake"):
            LocalCluster(tmp_path, lake=f"sqlite:///{tmp_path}/two.db").start()


@pytest.mark.parametrize("query", ["laek", "lake&port=3"])
def test_an_unknown_option_is_refused(tmp_path, query):
    with pytest.raises(ConfigError, match="no option"):
        fluss.connect(f"embedded:{tmp_path}?{query}")


def test_the_command_takes_a_bare_lake(tmp_path):
    words = ["-d", str(tmp_path), "--port", "0", "--lake"]
    program = "import sys; from fluss.cli import main; sys.exit(main())"
    with subprocess.Popen(
        [sys.executable, "-c", program, "server", *words], stdout=subprocess.PIPE, text=True
    ) as server:
        line = server.stdout.readline()
        server.terminate()
    assert f"; lake in sqlite:{tmp_path}/iceberg/catalog.sqlite" in line


# --- no request waits for the catalog -------------------------------------------------------------


def test_others_are_served_while_the_catalog_is_locked(tmp_path):
    with running(tmp_path, lake=LAKE) as server:
        requests = requests_of(server)
        requests.create("t")
        file = tmp_path / LAKE_FOLDER / "catalog.sqlite"
        locked = sqlite3.connect(file, isolation_level=None)
        locked.execute("BEGIN IMMEDIATE")
        worker = subprocess.Popen(
            [sys.executable, "-c", _CREATE, server.address], cwd=Path(__file__).parents[3]
        )
        try:
            # Its creation waits for the lock; requests that need no catalog do not.
            deadline = time.monotonic() + 30
            while not server.node.lake.ddl.locked():
                assert time.monotonic() < deadline
                time.sleep(0.01)
            requests.committed("t", 5, [(None, 0, 3)])
            assert requests.snapshot("t")[0] == 5
            assert server.node.lake.ddl.locked()
        finally:
            locked.execute("ROLLBACK")
            locked.close()
        assert worker.wait(60) == 0
        requests.drop("u")
        requests.client.close()


_CREATE = """
import sys
from tests.support.lake.lake_requests import LakeRequests
LakeRequests(sys.argv[1], "fluss").create("u")
"""


# --- retention ------------------------------------------------------------------------------------


def test_expired_rows_stay_until_they_are_in_the_lake(tmp_path):
    clock = Clock()
    with running(tmp_path, lake=LAKE, clock=clock, segment_bytes=2_000) as server:
        url = f"fluss://{server.address}"
        with fluss.connect(url) as session:
            session.create_table(
                "fluss.t",
                {"id": "BIGINT"},
                buckets=1,
                properties={**ENABLED, "table.log.ttl": "1s"},
            )
            table = session.table("fluss.t")
            for start in range(0, 1_000, 100):
                table.append({"id": list(range(start, start + 100))})
            (tablet,) = server.node.tablets
            clock.now_ms += 10_000
            server.on_loop(lambda: expire_log(server.node, tablet))
            assert (tablet.log.start_offset, tablet.log.end_offset) == (0, 1_000)
            requests = requests_of(server)
            path = requests.prepared("t", [(None, 0, 500)])
            assert not requests.commit(requests.table_id("t"), 5, path).error_code
            server.on_loop(server.node.finish_background)
            assert 300 <= tablet.log.start_offset <= 500
            floor = tablet.log.start_offset
            server.on_loop(lambda: expire_log(server.node, tablet))
            assert tablet.log.start_offset == floor
            session.alter_table("fluss.t", set_properties={"table.datalake.enabled": "false"})
            server.on_loop(lambda: expire_log(server.node, tablet))
            assert tablet.log.start_offset == 1_000
            requests.client.close()


def test_after_a_restart_the_floor_is_that_of_the_newest_snapshot(tmp_path):
    clock = Clock()
    with running(tmp_path, lake=LAKE, segment_bytes=2_000, clock=clock) as server:
        with fluss.connect(f"fluss://{server.address}") as session:
            properties = {**ENABLED, "table.log.ttl": "1s"}
            session.create_table("fluss.t", {"id": "BIGINT"}, buckets=1, properties=properties)
            for start in range(0, 1_000, 100):
                session.append("fluss.t", {"id": list(range(start, start + 100))})
        requests = requests_of(server)
        requests.committed("t", 5, [(None, 0, 500)])
        requests.client.close()
    clock.now_ms += 10_000
    with running(tmp_path, segment_bytes=2_000, clock=clock) as server:
        table = server.node.catalog.table(TablePath("fluss", "t"))
        tablet = server.on_loop(lambda: server.node.tablets.find(table.table_id, None, 0))
        server.on_loop(lambda: expire_log(server.node, tablet))
        assert 300 <= tablet.log.start_offset <= 500


def test_the_catalog_is_one_that_readers_of_the_table_open(tmp_path):
    with (
        running(tmp_path, lake=LAKE) as server,
        fluss.connect(f"fluss://{server.address}") as session,
    ):
        session.create_table("fluss.t", {"id": "BIGINT"}, buckets=1, properties=ENABLED)
        found = open_table(session.table("fluss.t").info, {})
    assert Path(found.location().removeprefix("file://")).is_relative_to(tmp_path)
