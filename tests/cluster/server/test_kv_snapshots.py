"""KV snapshots of the embedded server: when they are made, what keeps them, what a crash leaves.

What they contain is compared with a model in tests/cluster/state/test_state_at_offset.py, and with
what Java reads in test_kv_snapshots_in_java.py.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
import time
from contextlib import closing, contextmanager

import pyarrow as pa
import pytest

import fluss
from fluss.errors import AuthorizationError, FlussError, LocalServerError, SnapshotNotFoundError
from fluss.model.paths import TableBucket
from fluss.wire import messages as pb
from fluss_server.catalog import catalog_store
from fluss_server.data_layout import DATA
from fluss_server.local_cluster import LocalCluster
from fluss_server.server_config import ServerConfig
from fluss_server.snapshots.snapshot_files import METADATA
from tests.support.servers.embedded import Clock, running
from tests.support.servers.raw_client import RawConnection, RefusedError

rocksdict = pytest.importorskip("rocksdict")

INTERVAL_MS = 60_000
TTL_MS = 3_600_000
COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("x", pa.string())])
SNAPSHOT_NOT_EXIST = 41


class Opened:
    """A server with a clock of the test's, and a session."""

    def __init__(self, server, session, clock):
        self.server, self.session, self.clock = server, session, clock
        self.admin = session

    def table(self, name="t", **options):
        options = {"primary_key": ["id"], "buckets": 1} | options
        return self.session.create_table(name, COLUMNS, **options)

    def wait(self, millis=INTERVAL_MS):
        """Let time pass, and what is due be made."""
        self.run_round()
        self.clock.now_ms += millis
        self.run_round()

    def run_round(self):
        async def run():
            await self.server.server._maintenance.run_round()
            task = self.server.node.snapshots._task
            if task is not None:
                await task

        self.server.on_loop(run)

    def expire(self, tablet):
        self.server.on_loop(lambda: self.server.server._maintenance._expire(tablet))

    def latest(self, name="t", partition=None):
        found = self.admin.get_latest_kv_snapshots(name, partition)
        return {
            bucket: (found.get_snapshot_id(bucket), found.get_log_offset(bucket))
            for bucket in found.bucket_ids
            if found.get_snapshot_id(bucket) is not None
        }

    def ids(self, name="t"):
        table_id = self.session.table(name).info.table_id
        return dict(self.admin.list_kv_snapshots(table_id).snapshot_ids_by_bucket)

    def folder(self, name="t"):
        (found,) = (self.server.node.config.directory / DATA / "fluss").glob(f"{name}-*")
        return found


@contextmanager
def opened(directory, clock=None, **config):
    clock = clock or Clock()
    config = {"kv_snapshot_interval_ms": INTERVAL_MS} | config
    with (
        running(directory, clock=clock, **config) as server,
        fluss.connect(f"fluss://{server.address}/fluss") as session,
    ):
        yield Opened(server, session, clock)


@pytest.fixture
def one(tmp_path):
    with opened(tmp_path / "data") as made:
        yield made


def put(table, ids, x="x"):
    table.upsert({"id": list(ids), "x": [x for _ in ids]})


def rows_of(table, **options):
    found = table.scan(strategy="snapshot", **options).to_arrow().to_pydict()
    return dict(zip(found["id"], found["x"], strict=True))


# --- when they are made ---------------------------------------------------------------------------


def test_a_bucket_that_changed_gets_one_in_each_interval(one):
    table = one.table()
    one.wait()
    assert one.latest() == {}, "nothing was written"
    put(table, range(5))
    one.wait()
    assert one.latest() == {0: (0, 5)}
    for _ in range(3):
        one.wait()
    assert one.latest() == {0: (0, 5)}, "nothing has changed"
    put(table, range(3), "y")
    one.wait(INTERVAL_MS // 2)
    assert one.latest() == {0: (0, 5)}, "it is not due"
    one.wait(INTERVAL_MS // 2)
    assert one.latest() == {0: (1, 11)}
    assert rows_of(table) == dict.fromkeys(range(5), "x") | dict.fromkeys(range(3), "y")


def test_rows_before_and_after_a_snapshot_are_read(one):
    table = one.table(buckets=3)
    put(table, range(100))
    one.wait()
    put(table, range(50, 150), "y")
    table.delete({"id": list(range(10))})
    expected = dict.fromkeys(range(10, 50), "x") | dict.fromkeys(range(50, 150), "y")
    assert rows_of(table) == expected
    assert "snapshot" in table.scan(strategy="snapshot").explain()


def test_partitions_and_added_columns(one):
    columns = pa.schema([*COLUMNS, pa.field("day", pa.string(), nullable=False)])
    table = one.session.create_table(
        "t", columns, primary_key=["id", "day"], partition_by=["day"], buckets=2
    )
    for day in ("d1", "d2"):
        table.upsert({"id": list(range(20)), "x": [day] * 20, "day": [day] * 20})
    table = one.session.alter_table("t", add_columns=pa.schema([("more", pa.int64())]))
    table.upsert({"id": [1], "x": ["new"], "day": ["d2"], "more": [7]})
    one.wait()
    assert set(one.latest(partition="d1")) == set(one.latest(partition="d2")) == {0, 1}
    found = table.scan(strategy="snapshot").to_arrow().to_pylist()
    expected = {(each, day): (day, None) for each in range(20) for day in ("d1", "d2")}
    expected[1, "d2"] = ("new", 7)
    assert {(row["id"], row["day"]): (row["x"], row["more"]) for row in found} == expected


def test_the_interval_can_be_changed_while_the_server_runs(one):
    table = one.table()
    put(table, range(5))
    one.wait()
    one.admin.alter_cluster_configs([fluss.AlterConfig.set("kv.snapshot.interval", "2 s")])
    put(table, range(5, 7))
    one.wait(2_000)
    assert one.latest() == {0: (1, 7)}
    with pytest.raises(FlussError, match="can not be negative or zero"):
        one.admin.alter_cluster_configs([fluss.AlterConfig.set("kv.snapshot.interval", "0 s")])
    one.admin.alter_cluster_configs([fluss.AlterConfig.delete("kv.snapshot.interval")])
    put(table, range(7, 9))
    one.wait(2_000)
    assert one.latest() == {0: (1, 7)}


def test_a_server_for_other_machines_makes_none_by_default(tmp_path):
    def interval(**config):
        return ServerConfig(directory=tmp_path, **config).snapshot_interval_ms

    login = {"sasl_port": 0, "users": {"ann": "secret"}}
    assert interval() == interval(**login) == 600_000
    assert interval(**login, sasl_host="0.0.0.0") == 0
    assert interval(**login, sasl_host="0.0.0.0", kv_snapshot_interval_ms=5) == 5
    assert interval(kv_snapshot_interval_ms=0) == 0


def test_merge_engines_and_images_are_no_matter(one):
    for name, properties, count in (
        ("first", {"table.merge-engine": "first_row"}, 5),
        ("wal", {"table.changelog.image": "wal"}, None),
    ):
        table = one.table(name, properties=properties)
        put(table, range(5))
        put(table, range(2), "y")
        one.wait()
        ((_, log_offset),) = one.latest(name).values()
        (path,) = one.folder(name).glob("snapshots-0/snap-*")
        metadata = json.loads((path / METADATA).read_bytes())
        assert metadata["log_offset"] == log_offset
        assert metadata.get("row_count") == count
        later = "x" if name == "first" else "y"
        assert rows_of(table) == dict.fromkeys(range(5), "x") | dict.fromkeys(range(2), later)


def test_rows_with_a_time_to_live_are_read_by_clients_that_know_their_layout(one):
    table = one.table(properties={"table.kv.ttl": "1 d"})
    put(table, range(5))
    one.wait()
    put(table, [7], "y")
    assert rows_of(table) == dict.fromkeys(range(5), "x") | {7: "y"}
    request = pb.GetKvSnapshotMetadataRequest(
        table_id=table.info.table_id, bucket_id=0, snapshot_id=0
    )
    with closing(RawConnection(one.server.address)) as connection:
        assert connection.call(request, version=1).log_offset == 5
        with pytest.raises(RefusedError, match="layout 2") as refused:
            connection.call(request)
    assert refused.value.code == fluss.ErrorCode.UNSUPPORTED_VERSION


# --- what keeps them ------------------------------------------------------------------------------


def make(one, table, number):
    put(table, range(number, number + 3), f"{number}")
    one.wait()


def test_the_newest_two_are_kept(one):
    table = one.table()
    for number in range(5):
        make(one, table, number)
    assert one.ids() == {0: {3, 4}}
    assert sorted(each.name for each in (one.folder() / "snapshots-0").iterdir()) == [
        "snap-3", "snap-4",
    ]  # fmt: skip
    with pytest.raises(SnapshotNotFoundError):
        one.admin.get_kv_snapshot_metadata(TableBucket(table.info.table_id, 0), 2)


def test_a_lease_keeps_one_until_it_ends(one):
    table = one.table()
    bucket = TableBucket(table.info.table_id, 0)
    make(one, table, 0)
    first = one.admin.get_kv_snapshot_metadata(bucket, 0)
    lease = one.admin.create_kv_snapshot_lease("job", 10 * INTERVAL_MS)
    assert lease.acquire_snapshots({bucket: 0}) == set()
    assert lease.acquire_snapshots({bucket: 9}) == {bucket}, "it does not exist"
    for number in range(1, 5):
        make(one, table, number)
    assert one.ids() == {0: {0, 3, 4}}
    assert one.admin.get_kv_snapshot_metadata(bucket, 0).snapshot_files == first.snapshot_files
    lease.drop_lease()
    one.run_round()
    assert one.ids() == {0: {3, 4}}


@pytest.mark.parametrize("end", ["release", "time", "restart and time"])
def test_a_lease_ends(tmp_path, end):
    clock = Clock()
    with opened(tmp_path, clock) as one:
        table = one.table()
        bucket = TableBucket(table.info.table_id, 0)
        make(one, table, 0)
        lease = one.admin.create_kv_snapshot_lease("job", 5 * INTERVAL_MS)
        lease.acquire_snapshots({bucket: 0})
        for number in range(1, 4):
            make(one, table, number)
        assert one.ids() == {0: {0, 2, 3}}
        if end == "release":
            lease.release_snapshots([bucket])
            one.run_round()
            assert one.ids() == {0: {2, 3}}
            return
        if end == "time":
            lease.renew()
            one.wait(4 * INTERVAL_MS)
            assert one.ids() == {0: {0, 2, 3}}
            one.wait(2 * INTERVAL_MS)
            assert one.ids() == {0: {2, 3}}
            return
    with opened(tmp_path, clock) as one:
        assert one.ids() == {0: {0, 2, 3}}
        one.run_round()
        assert one.ids() == {0: {0, 2, 3}}
        one.wait(6 * INTERVAL_MS)
        assert one.ids() == {0: {2, 3}}


def test_a_dropped_table_takes_its_snapshots_and_leases_along(one):
    table = one.table()
    make(one, table, 0)
    folder = one.folder()
    lease = one.admin.create_kv_snapshot_lease("job", INTERVAL_MS)
    lease.acquire_snapshots({TableBucket(table.info.table_id, 0): 0})
    one.session.drop_table("t")
    deadline = time.monotonic() + 10
    while folder.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert len(one.server.node.snapshots._leases) == 0
    with pytest.raises(FlussError):
        lease.acquire_snapshots({TableBucket(table.info.table_id, 0): 0})
    table = one.table()
    put(table, range(3))
    assert one.latest() == {}


def test_leases_need_a_primary_key_table(one):
    log = one.session.create_table("log", COLUMNS, buckets=1)
    lease = one.admin.create_kv_snapshot_lease("job", INTERVAL_MS)
    with pytest.raises(FlussError, match="not a primary key table"):
        lease.acquire_snapshots({TableBucket(log.info.table_id, 0): 0})


def test_leases_need_rights(tmp_path):
    users = {"ann": "secret-1", "bob": "secret-2"}
    config = {"users": users, "super_users": ["ann"], "sasl_port": 0}
    with running(tmp_path, **config) as server:
        address = server.sasl_address
        with (
            fluss.connect(f"fluss://ann:secret-1@{address}/fluss") as ann,
            fluss.connect(f"fluss://bob:secret-2@{address}/fluss") as bob,
        ):
            table = ann.create_table("t", COLUMNS, primary_key=["id"], buckets=1)
            put(table, range(3))
            (tablet,) = server.node.tablets
            server.on_loop(lambda: server.node.snapshots.make(tablet))
            bucket = TableBucket(table.info.table_id, 0)
            assert not ann.create_kv_snapshot_lease("job", 60_000).acquire_snapshots({bucket: 0})
            stranger = bob.create_kv_snapshot_lease("job", 60_000)
            for attempt in (
                lambda: stranger.acquire_snapshots({bucket: 0}),
                lambda: stranger.release_snapshots([bucket]),
                stranger.drop_lease,
            ):
                with pytest.raises(AuthorizationError):
                    attempt()
            assert server.node.snapshots.tables_of_lease("job") == {bucket.table_id}


# --- the log they lead into -----------------------------------------------------------------------


def test_a_log_expires_up_to_its_newest_snapshot(one):
    table = one.table(properties={"table.log.ttl": f"{TTL_MS} ms"})
    put(table, range(10))
    one.clock.now_ms += TTL_MS + 1
    (tablet,) = one.server.node.tablets
    one.expire(tablet)
    assert one.latest() == {0: (0, 10)}, "it was made before the log was deleted"
    assert tablet.log.start_offset == 10
    put(table, [100])
    expected = dict.fromkeys([*range(10), 100], "x")
    assert rows_of(table) == expected


def test_a_log_that_began_too_late_gets_a_snapshot_when_it_is_asked_for(tmp_path):
    clock = Clock()
    properties = {"table.log.ttl": f"{TTL_MS} ms"}
    with opened(tmp_path, clock, kv_snapshot_interval_ms=0) as one:
        table = one.table(properties=properties)
        put(table, range(10))
        one.clock.now_ms += TTL_MS + 1
        (tablet,) = one.server.node.tablets
        assert one.latest() == {}
        one.server.on_loop(lambda: one.server.node.in_storage(tablet.state.flush))
        one.expire(tablet)
        put(table, [100])
        assert tablet.log.start_offset == 10
        with pytest.raises(SnapshotNotFoundError, match="begins at offset 10") as refused:
            one.latest()
        assert refused.value.error_code == SNAPSHOT_NOT_EXIST
        assert "--kv-snapshot-interval" in str(refused.value)
        assert sorted(one.session.table("t").scan().to_arrow()["id"].to_pylist()) == [
            *range(10), 100,
        ]  # fmt: skip
    with opened(tmp_path, clock) as one:
        assert one.latest() == {0: (0, 11)}
        assert rows_of(one.session.table("t")) == dict.fromkeys([*range(10), 100], "x")


def test_where_a_snapshot_fails_old_rows_go_all_the_same(one, monkeypatch, caplog):
    table = one.table(properties={"table.log.ttl": f"{TTL_MS} ms"})
    put(table, range(10))
    one.clock.now_ms += TTL_MS + 1
    (tablet,) = one.server.node.tablets
    one.server.on_loop(lambda: one.server.node.in_storage(tablet.state.flush))

    def refused(_, target):
        raise OSError(28, "No space left on device", str(target))

    with monkeypatch.context() as patched:
        patched.setattr("fluss_server.kv.kv_store.KvStore.copy_to", refused)
        one.expire(tablet)
        assert tablet.log.start_offset == 10
        assert "there is no KV snapshot" in caplog.text
        one.wait()
        assert "the KV snapshot of" in caplog.text
    assert one.latest() == {0: (0, 10)}
    assert sorted(each.name for each in (one.folder() / "snapshots-0").iterdir()) == ["snap-0"]


# --- crashes and other directories ----------------------------------------------------------------


def test_snapshots_outlive_a_restart_and_a_moved_directory(tmp_path):
    with opened(tmp_path / "here") as one:
        table = one.table()
        make(one, table, 0)
        make(one, table, 10)
        expected = rows_of(table)
    (tmp_path / "here").rename(tmp_path / "a place of 100% #1")
    with opened(tmp_path / "a place of 100% #1") as one:
        assert one.ids() == {0: {0, 1}}
        table = one.session.table("t")
        assert rows_of(table) == expected
        make(one, table, 20)
        assert one.ids() == {0: {1, 2}}


def test_a_snapshot_of_changes_that_the_log_lost_is_removed(tmp_path):
    with opened(tmp_path) as one:
        table = one.table()
        put(table, range(5))
    kept = tmp_path.with_name("kept")
    shutil.copytree(tmp_path, kept)
    with opened(tmp_path) as one:
        make(one, one.session.table("t"), 10)
        snapshots = one.folder() / "snapshots-0"
        target = kept / snapshots.relative_to(tmp_path)
    shutil.copytree(snapshots, target)
    with opened(kept) as one:
        one.session.table("t").to_arrow()
        assert one.ids() == {}
        assert not list(target.iterdir())


def test_earlier_versions_refuse_the_new_stores(tmp_path, monkeypatch):
    with opened(tmp_path) as one:
        one.session.create_table("log", COLUMNS, buckets=1)
    monkeypatch.setattr(catalog_store, "_NEWEST", catalog_store.FORMAT_WITH_LAKE)
    with opened(tmp_path):
        pass  # without rows by key it is no other directory
    monkeypatch.undo()
    with opened(tmp_path) as one:
        put(one.table(), range(3))
    monkeypatch.setattr(catalog_store, "_NEWEST", catalog_store.FORMAT_WITH_LAKE)
    with pytest.raises(LocalServerError, match="no catalog that this version"), opened(tmp_path):
        pass


@pytest.mark.slow  # a server is killed six times while it makes snapshots without a pause
def test_a_killed_server_leaves_whole_snapshots(tmp_path):
    expected, number = {}, 0
    for _ in range(6):
        with (
            LocalCluster(tmp_path, kv_snapshot_interval="1 ms") as cluster,
            fluss.connect(cluster.url) as session,
        ):
            if number == 0:
                session.create_database("db")
                session.create_table("db.t", COLUMNS, primary_key=["id"], buckets=4)
            table = session.table("db.t")
            assert rows_of_any(table) == expected
            end = time.monotonic() + 1.5
            while time.monotonic() < end:
                ids = [number % 400 + each for each in range(40)]
                put(table, ids, f"{number}")
                expected |= dict.fromkeys(ids, f"{number}")
                number += 1
            cluster.kill()
        for path in tmp_path.glob(f"{DATA}/db/t-*/snapshots-*/snap-*"):
            check_opens(path)
    assert list(tmp_path.glob(f"{DATA}/db/t-*/snapshots-*/snap-*"))


def rows_of_any(table):
    """By snapshots, where every bucket has one."""
    try:
        return rows_of(table)
    except SnapshotNotFoundError:
        found = table.to_arrow().to_pydict()
        return dict(zip(found["id"], found["x"], strict=True))


def check_opens(path):
    metadata = json.loads((path / METADATA).read_bytes())
    copy = path.parents[4] / "opened"
    shutil.copytree(path, copy)
    access = rocksdict.AccessType.read_only()
    database = rocksdict.Rdict(str(copy), rocksdict.Options(raw_mode=True), access_type=access)
    assert len(list(database.keys())) == metadata["row_count"]
    database.close()
    shutil.rmtree(copy)


def test_requests_go_on_while_a_snapshot_is_finished(one, monkeypatch):
    table = one.table()
    put(table, range(5))
    begun, may_end = threading.Event(), threading.Event()
    from fluss_server.kv import plain_files

    plain = plain_files.make_plain

    def slow(folder):
        begun.set()
        assert may_end.wait(20)
        return plain(folder)

    monkeypatch.setattr(plain_files, "make_plain", slow)
    (tablet,) = one.server.node.tablets
    making = asyncio.run_coroutine_threadsafe(
        one.server.node.snapshots.make(tablet), one.server.loop
    )
    assert begun.wait(20)
    put(table, range(5, 10))
    assert table.lookup([{"id": 7}]) is not None
    assert one.latest() == {}, "it is not complete"
    may_end.set()
    making.result(20)
    assert one.latest() == {0: (0, 5)}


def test_unchanged_files_are_shared(one):
    table = one.table()
    put(table, range(1_000))
    one.wait()
    put(table, range(3), "y")
    one.wait()
    folders = [one.folder() / "snapshots-0" / f"snap-{number}" for number in range(2)]
    first = {each.name: each.stat().st_ino for each in folders[0].glob("*.sst")}
    second = {each.name: each.stat().st_ino for each in folders[1].glob("*.sst")}
    assert first.items() & second.items()
