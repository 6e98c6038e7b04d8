"""Copying a KV snapshot: the lease around it, and files that are not what they should be."""

import pyarrow as pa
import pytest

from fluss.connection.connection import ClientConnection
from fluss.errors import CorruptDataError, FlussError, SnapshotNotFoundError
from fluss.model.options.config import Config
from fluss.model.paths import PhysicalTablePath, TableBucket
from fluss.model.schema.schema import Schema
from fluss.net.engine_thread import engine
from fluss.net.remote_files import RemoteFiles
from fluss.state.kv_snapshot import copy_snapshot, latest_snapshots
from fluss.state.state_at_offset import read_state
from fluss.state.state_planner import plan_state
from fluss.wire import messages as pb
from fluss.wire.api import ApiKey
from tests.support.scripted.scripted_cluster import PATH, SERVED, TABLE_ID, ScriptedCluster
from tests.support.scripted.scripted_peer import api_versions, success

BUCKET = TableBucket(TABLE_ID, 0)
SNAPSHOT_ID = 4


class SnapshotServer(ScriptedCluster):
    """Names files of the test's own as those of a snapshot, and counts leases."""

    def __post_init__(self):
        super().__post_init__()
        self.files = {}
        self.exists_snapshot = True
        self.held = set()
        self.held_at_metadata = None

    def _answer(self, request):
        if request.api_key == ApiKey.API_VERSIONS:
            return success(request, api_versions(*SERVED, 1023, 1024, 1056, 1058))
        return super()._answer(request)

    def _get_latest_kv_snapshots(self, _):
        answer = pb.GetLatestKvSnapshotsResponse(table_id=TABLE_ID)
        answer.latest_snapshots.add(bucket_id=0, snapshot_id=SNAPSHOT_ID, log_offset=0)
        answer.latest_snapshots.add(bucket_id=1)
        return answer

    def _get_kv_snapshot_metadata(self, asked):
        self.held_at_metadata = set(self.held)
        if not self.exists_snapshot or asked.snapshot_id != SNAPSHOT_ID:
            return 41
        answer = pb.GetKvSnapshotMetadataResponse(log_offset=9)
        for name, path in self.files.items():
            answer.snapshot_files.add(remote_path=str(path), local_file_name=name)
        return answer

    def _acquire_kv_snapshot_lease(self, asked):
        self.held.add(asked.lease_id)
        return pb.AcquireKvSnapshotLeaseResponse()

    def _drop_kv_snapshot_lease(self, asked):
        self.held.discard(asked.lease_id)
        return pb.DropKvSnapshotLeaseResponse()


@pytest.fixture
def server():
    columns = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    with SnapshotServer(schema=Schema(columns, ["id"])) as made:
        yield made


@pytest.fixture
def connection(server):
    made = engine().run(
        ClientConnection.open(engine(), Config({"bootstrap.servers": server.bootstrap}))
    )
    yield made
    engine().run(made.close())


@pytest.fixture
def copy(connection, tmp_path):
    target = tmp_path / "target"
    target.mkdir()

    def run(snapshot_id=SNAPSHOT_ID):
        files = RemoteFiles(connection.cluster)
        work = copy_snapshot(connection.cluster, files, BUCKET, snapshot_id, target)
        return engine().run(work), {each.name: each.read_bytes() for each in target.iterdir()}

    return run


def test_buckets_without_a_snapshot_are_left_out(connection):
    found = engine().run(latest_snapshots(connection.cluster, PhysicalTablePath(PATH)))
    assert list(found) == [0]
    assert found[0].snapshot_id == SNAPSHOT_ID


def test_files_are_copied_under_their_local_names_while_a_lease_is_held(server, copy, tmp_path):
    contents = {"CURRENT": b"MANIFEST-1\n", "000012.sst": bytes(9_000_000), "empty": b""}
    for number, (name, data) in enumerate(contents.items()):
        path = tmp_path / f"remote-{number}"
        path.write_bytes(data)
        server.files[name] = path
    assert copy() == (9, contents)
    assert len(server.held_at_metadata) == 1
    assert not server.held


def test_a_deleted_snapshot_is_reported(server, copy):
    with pytest.raises(SnapshotNotFoundError):
        copy(SNAPSHOT_ID - 1)
    assert not server.held


@pytest.mark.parametrize("name", ["../outside", "/etc/outside", "a/b", "", ".", "..", "a\\b"])
def test_no_file_is_written_outside_the_directory(server, copy, tmp_path, name):
    (tmp_path / "remote").write_bytes(b"x")
    server.files[name] = tmp_path / "remote"
    with pytest.raises(CorruptDataError, match="is to be called"):
        copy()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["remote", "target"]
    assert not server.held


def test_a_file_that_is_missing_is_named(server, copy, tmp_path):
    (tmp_path / "there").write_bytes(b"x")
    server.files = {"one": tmp_path / "there", "two": tmp_path / "missing"}
    with pytest.raises(FlussError, match="missing cannot be read"):
        copy()
    assert not server.held


def test_files_that_are_no_rocksdb_are_corrupt(server, connection, tmp_path, monkeypatch):
    pytest.importorskip("rocksdict")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "remote").write_bytes(b"no such thing")
    server.files = {"CURRENT": tmp_path / "remote", "MANIFEST-1": tmp_path / "remote"}
    server.append({"id": [1]}, change_types=[1])
    table = engine().run(connection.table(PATH))
    path = PhysicalTablePath(PATH)
    plan = engine().run(plan_state(table, path, BUCKET, 1, strategy="snapshot"))
    with pytest.raises(CorruptDataError, match="RocksDB reports"):
        list(read_state(table, plan))
    assert [each.name for each in tmp_path.iterdir()] == ["remote"]
