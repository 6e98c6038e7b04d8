"""The state of a table with a primary key, read from its KV snapshot in S3."""

import pyarrow as pa
import pytest

import fluss
from fluss.errors import RemoteAccessError, SnapshotNotFoundError
from tests.cluster.objects.conftest import FAST
from tests.support.objects.s3_gate import BUCKET, Fault
from tests.support.servers.fix_cluster import IMPATIENT
from tests.support.servers.read_harness import eventually

pytest.importorskip("rocksdict")
pytestmark = pytest.mark.slow  # a server takes snapshots every two seconds
ROWS = 5_000


@pytest.fixture(scope="module")
def keyed(s3_cluster):
    """The URL of a database with a table that has a snapshot, and changes after it."""
    url = f"fluss://{s3_cluster.bootstrap_servers}/keyed"
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("value", pa.string())])
    with fluss.connect(url, **IMPATIENT) as session:
        session.create_database("keyed")
        table = session.create_table("states", schema, primary_key=["id"], buckets=1)
        values = [f"value {number}" for number in range(ROWS)]
        table.upsert({"id": list(range(ROWS)), "value": values})

        def has_snapshot():
            try:
                return table.scan(strategy="snapshot").to_arrow().num_rows == ROWS
            except SnapshotNotFoundError:
                return False

        eventually(has_snapshot)
        table.upsert({"id": [3, ROWS], "value": ["changed", "new"]})
        table.delete({"id": [4]})
    return url


@pytest.fixture
def states(keyed, gate):
    gate.reset()
    with fluss.connect(keyed, **{**IMPATIENT, **FAST}) as session:
        yield session.table("states")
    gate.reset()


def read(states, **options):
    found = states.scan(**options).to_arrow()
    return dict(zip(found["id"].to_pylist(), found["value"].to_pylist(), strict=True))


def expected():
    return {number: f"value {number}" for number in range(ROWS)} | {3: "changed", ROWS: "new"}


def test_a_state_is_read_from_the_files_of_its_snapshot_and_the_changes_after_it(states, gate):
    remaining = expected()
    del remaining[4]
    assert read(states, strategy="snapshot") == remaining
    names = {get.path.rsplit("/", 1)[1] for get in gate.gets}
    assert len(names) >= 4, names
    assert all(get.path.startswith(f"{BUCKET}/remote/kv/keyed/states-") for get in gate.gets)
    assert len(gate.gets) == len(names), "each file is asked for once"


@pytest.mark.parametrize(
    "fault", [Fault(status=503, code="SlowDown"), Fault(body_bytes_max=10)], ids=["503", "cut"]
)
def test_a_copy_that_fails_for_a_while_goes_on(states, gate, fault):
    gate.fail_next(fault, fault, fault)
    assert len(read(states, strategy="snapshot")) == ROWS


def test_a_snapshot_that_may_not_be_read_is_reported(states, gate):
    gate.fault_of = lambda _: Fault(status=403, code="AccessDenied")
    with pytest.raises(RemoteAccessError, match=r"s3://fluss/remote/kv/.* AccessDenied"):
        read(states, strategy="snapshot")
