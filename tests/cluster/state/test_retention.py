"""States of the past where the log has been trimmed: exact while it can be, and refused after that.

Segments of these servers are small and given up after three seconds, so the beginning of a log is
gone while the test looks on. Snapshots are taken every two.
"""

import importlib.util
import random
import time
from dataclasses import dataclass, field

import pyarrow as pa
import pytest

import fluss
from fluss.errors import (
    FlussError,
    OffsetOutOfRangeError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from fluss.session import Table
from fluss_testkit.cluster_profiles import FAST_SNAPSHOTS, SMALL_SEGMENTS

SCHEMA = pa.schema([("id", pa.int64()), ("x", pa.string())])
TRIMMED_S_MAX = 60
KEYS = 500
PROPERTIES = {
    "table.log.ttl": "3s",
    "table.log.tiered.local-segments": "1",
    "table.log.arrow.compression.type": "none",
}
STRATEGIES = (None, "limit_scan", "snapshot")
within_deadline = pytest.mark.timeout(60, func_only=True)
pytestmark = [
    pytest.mark.slow,  # logs are trimmed after seconds
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        importlib.util.find_spec("rocksdict") is None, reason="needs fluss-core[snapshot]"
    ),
]


@dataclass
class Trimmed:
    """A table whose log has lost its beginning; what it held when, by where the logs ended then."""

    table: Table
    rng: random.Random
    state: dict = field(default_factory=dict)
    moments: list = field(default_factory=list)

    def write(self):
        keys = [self.rng.randrange(KEYS) for _ in range(100)]
        rows = {key: f"{self.rng.random():0200f}" for key in keys}
        self.table.upsert({"id": list(rows), "x": list(rows.values())})
        self.state |= rows
        gone = [self.rng.randrange(KEYS) for _ in range(10)]
        self.table.delete({"id": gone})
        for key in gone:
            self.state.pop(key, None)
        self.moments.append((self.offsets("end"), dict(self.state)))

    def offsets(self, name):
        found = self.table.offsets()
        pairs = zip(found.column("bucket").to_pylist(), found.column(name).to_pylist(), strict=True)
        return dict(pairs)

    def scanned(self, **options):
        found = self.table.scan(**options).to_arrow()
        return dict(zip(found.column("id").to_pylist(), found.column("x").to_pylist(), strict=True))

    def is_there(self, offsets):
        earliest = self.offsets("earliest")
        return all(earliest[bucket] <= offset for bucket, offset in offsets.items())


@pytest.fixture(scope="module")
def session(start_cluster):
    with (
        start_cluster(SMALL_SEGMENTS, FAST_SNAPSHOTS) as running,
        fluss.connect(f"fluss://{running.bootstrap_servers}/past") as opened,
    ):
        opened.create_database("past")
        yield opened


def trimmed(session, name, **properties):
    table = session.create_table(
        name, SCHEMA, primary_key=["id"], buckets=2, properties=PROPERTIES | properties
    )
    made = Trimmed(table=table, rng=random.Random(3))
    deadline = time.monotonic() + TRIMMED_S_MAX
    while True:
        for _ in range(5):
            made.write()
        if min(made.offsets("earliest").values()) > 0:
            return made
        assert time.monotonic() < deadline, "no log was trimmed"
        time.sleep(0.2)


@pytest.fixture(scope="module")
def full(session):
    return trimmed(session, "full")


@pytest.fixture(scope="module")
def wal(session):
    return trimmed(session, "wal", **{"table.changelog.image": "wal"})


@within_deadline
@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
def test_a_moment_that_the_log_still_has_is_rolled_back_from_a_later_state(full, strategy):
    for _ in range(3):
        full.write()
    reached = [each for each in full.moments if full.is_there(each[0])][-3:]
    assert reached
    for offsets, state in reached:
        scan = full.table.scan(as_of=offsets, strategy=strategy)
        try:
            found = full.scanned(as_of=offsets, strategy=strategy)
        except OffsetOutOfRangeError:
            assert not full.is_there(offsets)  # trimmed meanwhile
            continue
        assert found == state, scan.explain()


@within_deadline
@pytest.mark.parametrize("strategy", [*STRATEGIES, "changelog"], ids=str)
def test_a_moment_before_retention_is_refused_with_a_hint(full, strategy):
    offsets, _ = full.moments[0]
    assert not full.is_there(offsets)
    for moment in (offsets, 1, "-1h"):
        with pytest.raises(OffsetOutOfRangeError, match="log begins at") as refused:
            full.table.scan(as_of=moment, strategy=strategy).splits()
        assert refused.value.hint


@within_deadline
def test_a_log_that_begins_later_is_read_from_there_or_not_at_all(full):
    end = sum(full.offsets("end").values())
    assert 0 < full.table.scan(mode="changelog").count() < end
    assert full.table.scan(mode="changelog").to_arrow().num_rows > 0
    assert full.table.scan(mode="binlog").to_arrow().num_rows > 0
    assert full.table.scan(mode="changelog", start=0, on_trimmed="earliest").count() > 0
    assert full.table.scan(mode="changelog", tail=3).count() == 3
    for options in ({"mode": "changelog", "start": 0}, {"strategy": "changelog"}):
        with pytest.raises(OffsetOutOfRangeError, match="log begins at") as refused:
            full.table.scan(**options).splits()
        assert refused.value.hint
    with full.table.follow(start="earliest") as follow:
        assert follow.poll(5.0)


def wait_for_snapshots(table):
    """Until there are some whose changes the log still has."""
    deadline = time.monotonic() + TRIMMED_S_MAX
    while True:
        try:
            return table.scan(strategy="snapshot").splits()
        except FlussError:
            assert time.monotonic() < deadline, "no snapshot was taken"
            time.sleep(0.2)


@within_deadline
@pytest.mark.parametrize("strategy", [None, "snapshot"], ids=str)
def test_without_images_a_snapshot_is_rolled_forward_and_not_back(wal, strategy):
    wait_for_snapshots(wal.table)
    assert wal.scanned(strategy=strategy) == wal.state
    scan = wal.table.scan(strategy=strategy)
    assert "snapshot" in scan.explain()
    planned = min(each.state.pin for each in scan.splits())
    assert planned > 0
    offsets, _ = wal.moments[0]
    with pytest.raises(FlussError, match=r"trimmed|log begins at") as refused:
        wal.table.scan(as_of=offsets, strategy=strategy).splits()
    assert refused.value.hint


@within_deadline
def test_without_images_nothing_is_rolled_back(wal):
    offsets, _ = wal.moments[-1]
    for _ in range(2):
        wal.write()
    with pytest.raises((UnsupportedOperationError, OffsetOutOfRangeError)) as refused:
        wal.scanned(as_of=offsets, strategy="limit_scan")
    assert refused.value.hint


@within_deadline
def test_offsets_of_another_incarnation_are_refused(session):
    def made():
        return session.create_table("reborn", SCHEMA, primary_key=["id"], buckets=1)

    table = made()
    table.upsert({"id": [1, 2], "x": ["a", "b"]})
    cursor = table.scan(mode="changelog").cursor()
    scans = [table.scan(strategy=each) for each in ("limit_scan", "changelog")]
    for each in scans:
        each.splits()
    session.drop_table("reborn")
    again = made()
    again.upsert({"id": [3], "x": ["c"]})
    for options in ({"as_of": cursor}, {"mode": "changelog", "start": cursor}):
        with pytest.raises(TableNotFoundError, match="created again") as refused:
            again.scan(**options).splits()
        assert refused.value.hint
    with pytest.raises(TableNotFoundError, match="created again"):
        fluss.scan.open_split(scans[0].splits())
    for each in scans:
        with pytest.raises(FlussError):
            each.to_arrow()
