"""The state of primary-key tables at offsets of their past, by every strategy, against dicts."""

import importlib.util
import os
import pickle
import threading
import time
import uuid
from urllib.parse import urlsplit

import pyarrow as pa
import pytest

import fluss
from fluss.errors import (
    OffsetOutOfRangeError,
    SnapshotNotFoundError,
    UnsupportedOperationError,
    UnsupportedVersionError,
)
from fluss.model.change_type import ChangeType
from fluss.model.predicates.predicate import col
from fluss.records.filter.row_filter import RowFilter
from fluss.state.log_rows import read_changes
from fluss.state.state_at_offset import read_state
from fluss.state.state_planner import plan_state
from fluss.write.writer_pool import upsert_core
from fluss_server.local_cluster import LocalCluster
from fluss_testkit.cluster_profiles import FAST_SNAPSHOTS
from tests.support.differential.state_model import SCHEMA, StateTable
from tests.support.servers.fix_cluster import server_kinds

STRATEGIES = ["changelog", "limit_scan", None]
SNAPSHOT_WAIT_S = 30
INTERVAL = FAST_SNAPSHOTS.options["kv.snapshot.interval"]
LITTLE_MEMORY = 20_000
HAS_ROCKSDB = importlib.util.find_spec("rocksdict") is not None
needs_rocksdb = pytest.mark.skipif(not HAS_ROCKSDB, reason="needs fluss-core[snapshot]")


def _tables(bootstrap, *, drops=True):
    made = []

    def new(**facts):
        made.append(StateTable(bootstrap, f"states_{uuid.uuid4().hex[:8]}", **facts))
        return made[-1]

    yield new
    for each in made:
        each.close(drops=drops)


@pytest.fixture
def new_table(cluster):
    yield from _tables(cluster.bootstrap)


# --- one past, many moments ----------------------------------------------------------------------


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "partitioned"])
def old_table(request, cluster):
    """A table with a past: upserts, deletes, partial updates, and a column added in between."""
    for new in _tables(cluster.bootstrap):
        table = new(partitioned=request.param, seed=7, bucket_count=2)
        for _ in range(12):
            table.write(40)
        table.add_column("extra")
        table.write(40)  # by a writer that does not know the column
        table.open()
        for _ in range(8):
            table.write(40)
        yield table


def test_every_strategy_gives_the_state_of_any_moment(old_table):
    moments = [*old_table.rng.sample(old_table.moments, 3), old_table.moments[-1]]
    for moment in moments:
        for strategy in STRATEGIES:
            assert old_table.read_at(moment, strategy) == old_table.expected(moment), strategy


def test_memory_that_is_too_small_changes_nothing(old_table):
    moment = old_table.moments[15]
    for strategy in STRATEGIES:
        found = old_table.read_at(moment, strategy, memory_bytes_max=LITTLE_MEMORY)
        assert found == old_table.expected(moment)


def test_columns_and_rows_may_be_chosen(old_table):
    moment = old_table.moments[14]
    schema = old_table.table.info.schema
    predicate = (col("amount") > 0.5) & col("name").is_not_null()
    for strategy in STRATEGIES:
        found = [
            row
            for plan in old_table.plans(moment.pins, strategy)
            for batch in read_state(
                old_table.table,
                plan,
                schema.column_indexes(["extra", "name"]),
                RowFilter(predicate, schema),
            )
            for row in batch.to_pylist()
        ]
        expected = [
            {"extra": row["extra"], "name": row["name"]}
            for row in old_table.expected(moment).values()
            if row["amount"] is not None and row["amount"] > 0.5 and row["name"] is not None
        ]
        assert sorted(found, key=str) == sorted(expected, key=str)


def test_rows_without_columns_can_be_counted(old_table):
    moment = old_table.moments[-1]
    for strategy in STRATEGIES:
        plans = old_table.plans(moment.pins, strategy)
        batches = [batch for plan in plans for batch in read_state(old_table.table, plan, [])]
        assert sum(each.num_rows for each in batches) == len(moment.state)


def test_a_pin_inside_a_batch_and_inside_an_update_is_exact(new_table):
    table = new_table(bucket_count=1, key_space=20)
    for _ in range(4):
        table.write(30)
    (bucket,) = table.places
    end = table.ends()[bucket]
    changes = [
        (offset, kind, row)
        for batch in read_changes(table.table, bucket, 0, end, range(4))
        for offset, kind, row in zip(
            batch.row_offsets(), batch.change_types, batch.batch.to_pylist(), strict=True
        )
    ]
    for pin in table.rng.sample(range(end + 1), 16):
        state = {}
        for offset, kind, row in changes:
            if offset >= pin:
                break
            if kind == ChangeType.Delete:
                state.pop((row["id"],))
            elif kind != ChangeType.UpdateBefore:
                names = ("id", "name", "amount", "place")
                state[row["id"],] = {name: row[name] for name in names}
        for strategy in STRATEGIES:
            assert table.read(table.plans({bucket: pin}, strategy)) == state, (pin, strategy)


def test_a_plan_is_small_and_gives_the_same_rows_under_a_writer(new_table):
    table = new_table(key_space=200)
    for _ in range(5):
        table.write(40)
    moment = table.moments[-1]
    plans = {each: table.plans(moment.pins, each) for each in ("changelog", "limit_scan")}
    assert all(len(pickle.dumps(each)) < 1_000 for found in plans.values() for each in found)
    expected = table.expected(moment)
    done = threading.Event()
    writer = upsert_core(table.table)

    def write():
        number = 0
        while not done.is_set():
            number += 1
            writer.upsert({"id": number % 100, "name": "new", "amount": 1.0, "place": None})
            if number % 50 == 0:
                table.run(writer.flush())
        table.run(writer.flush())

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(4):
            for strategy, found in plans.items():
                assert table.read(found) == expected, strategy
    finally:
        done.set()
        thread.join()


# --- what is refused -----------------------------------------------------------------------------


def test_a_pin_beyond_the_log_is_refused(new_table):
    table = new_table(bucket_count=1)
    table.write(5)
    (bucket,) = table.places
    with pytest.raises(OffsetOutOfRangeError, match="ends at offset"):
        table.plans({bucket: 10_000})


def test_a_strategy_that_the_servers_do_not_have_is_refused(new_table):
    table = new_table(bucket_count=1)
    table.write(5)
    try:
        table.plans(table.moments[-1].pins, "scan_kv")
    except UnsupportedVersionError as error:
        assert "SCAN_KV" in error.message  # noqa: PT017 - newer servers raise nothing
    else:
        pytest.skip("servers since 1.0 have SCAN_KV")


@needs_rocksdb
def test_a_snapshot_that_does_not_exist_yet_is_refused(new_table):
    table = new_table(bucket_count=1)
    table.write(5)
    with pytest.raises(SnapshotNotFoundError, match="no KV snapshot"):
        table.plans(table.moments[-1].pins, "snapshot")


def test_a_changelog_without_images_rolls_forward_only(new_table):
    table = new_table(bucket_count=2, properties={"table.changelog.image": "wal"})
    for _ in range(4):
        table.write(30)
    for moment in table.moments:
        assert table.read_at(moment) == table.expected(moment)
        assert {plan.strategy for plan in table.plans(moment.pins)} == {"changelog"}
    assert table.read_at(table.moments[-1], "limit_scan") == table.expected(table.moments[-1])
    with pytest.raises(UnsupportedOperationError, match="image 'wal'"):
        table.read_at(table.moments[0], "limit_scan")


@pytest.mark.parametrize(
    "properties",
    [
        {"table.kv.format": "INDEXED"},
        {"table.log.format": "COMPACTED"},
        {"table.log.arrow.compression.type": "NONE"},
    ],
    ids=lambda each: "-".join(each.values()),
)
def test_keys_of_several_columns_and_all_formats_are_read(new_table, properties):
    table = new_table(composite=True, bucket_count=2, properties=properties)
    for _ in range(3):
        table.write(40)
    for strategy in STRATEGIES:
        for moment in table.moments:
            found = table.read_at(moment, strategy, memory_bytes_max=LITTLE_MEMORY)
            assert found == table.expected(moment)


@pytest.mark.parametrize("engine", ["first_row", "versioned", "aggregation"])
def test_merge_engines_change_what_is_stored_and_not_how_it_is_read(new_table, engine):
    properties = {"table.merge-engine": engine}
    if engine == "versioned":
        properties["table.merge-engine.versioned.ver-column"] = "version"
    columns = [("version", pa.int64()), ("text", pa.string())]
    table = new_table(
        bucket_count=1, properties=properties, schema=pa.schema([SCHEMA.field("id"), *columns])
    )
    model = {}
    for number in range(120):
        row = {"id": number % 7, "version": table.rng.randrange(50), "text": f"{number}"}
        key, old = (row["id"],), model.get((row["id"],))
        table.writer.upsert(row)
        wins = {
            "first_row": old is None,
            "versioned": old is None or row["version"] >= old["version"],
            "aggregation": True,  # by its default function: the last value
        }
        if wins[engine]:
            model[key] = row
        if number % 20 == 19:
            table.state = model
            table.run(table.writer.flush())
            table.remember()
    for strategy in STRATEGIES:
        for moment in table.moments:
            assert table.read_at(moment, strategy) == table.expected(moment)


def test_an_empty_table_has_no_rows(new_table):
    table = new_table(partitioned=False)
    for strategy in STRATEGIES:
        assert table.read(table.plans(table.ends(), strategy)) == {}


# --- snapshots -----------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=server_kinds())
def snapshot_cluster(request):
    if request.param == "embedded":
        with LocalCluster(
            durability="none", kv_snapshot_interval=INTERVAL, in_thread=True
        ) as running:
            yield running
        return
    with request.getfixturevalue("start_cluster")(FAST_SNAPSHOTS) as running:
        yield running


@pytest.fixture
def snapshot_table(snapshot_cluster):
    yield from _tables(snapshot_cluster.bootstrap_servers, drops=False)  # all of it will go


def wait_for_snapshots(table, pins):
    """Until every bucket that has been written has a snapshot."""
    deadline = time.monotonic() + SNAPSHOT_WAIT_S
    while True:
        try:
            return table.plans({b: pin for b, pin in pins.items() if pin}, "snapshot")
        except SnapshotNotFoundError:
            assert time.monotonic() < deadline, "no snapshot was taken"
            time.sleep(0.2)


@needs_rocksdb
@pytest.mark.slow  # snapshots are taken every two seconds
@pytest.mark.parametrize("partitioned", [False, True])
def test_a_snapshot_is_rolled_to_moments_before_and_after_it(snapshot_table, partitioned):
    table = snapshot_table(partitioned=partitioned, seed=3, bucket_count=2)
    for _ in range(4):
        table.write(60)
    table.add_column("extra")
    table.open()
    table.write(60)
    wait_for_snapshots(table, table.moments[-1].pins)
    for _ in range(3):
        table.write(60)
    for moment in table.moments:
        for memory in (1 << 26, LITTLE_MEMORY):
            found = table.read_at(moment, "snapshot", memory_bytes_max=memory)
            assert found == table.expected(moment)


@needs_rocksdb
@pytest.mark.slow  # snapshots are taken every two seconds
def test_a_plan_outlives_the_snapshot_it_was_made_with(snapshot_table):
    table = snapshot_table(seed=4, bucket_count=1)
    table.write(100)
    plans = wait_for_snapshots(table, table.moments[-1].pins)
    first = plans[0].snapshot_id
    while table.plans(table.moments[0].pins, "snapshot")[0].snapshot_id < first + 3:
        table.write(10)
        time.sleep(0.5)
    assert table.read(plans) == table.expected(table.moments[0])


@needs_rocksdb
@pytest.mark.slow  # snapshots are taken every two seconds
def test_leases_are_dropped_and_nothing_is_left_on_disk(snapshot_table, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    table = snapshot_table(seed=5, bucket_count=1)
    table.write(100)
    plans = wait_for_snapshots(table, table.moments[-1].pins)
    (rows,) = (read_state(table.table, plan) for plan in plans)
    assert isinstance(next(rows), pa.RecordBatch)
    assert list(tmp_path.iterdir())
    rows.close()
    assert not list(tmp_path.iterdir())


@pytest.mark.slow  # snapshots are taken every two seconds
def test_a_lease_keeps_the_files_of_a_snapshot(snapshot_table, snapshot_cluster):
    table = snapshot_table(seed=6, bucket_count=1)
    table.write(100)
    (bucket,) = table.places
    first = wait_for_snapshots(table, table.moments[-1].pins)[0].snapshot_id
    with fluss.connect(f"fluss://{snapshot_cluster.bootstrap_servers}") as session:
        found = session.get_kv_snapshot_metadata(bucket, first)
        assert found.log_offset == table.moments[0].pins[bucket]
        with session.create_kv_snapshot_lease(uuid.uuid4().hex, 60_000) as lease:
            assert lease.acquire_snapshots({bucket: first}) == set()
            while table.plans(table.moments[0].pins, "snapshot")[0].snapshot_id < first + 4:
                table.write(10)
                time.sleep(0.5)
            assert session.get_kv_snapshot_metadata(bucket, first) == found
            files = [urlsplit(each.path).path for each in found.snapshot_files]
            assert all(map(os.path.isfile, files)), found
            with pytest.raises(SnapshotNotFoundError):
                session.get_kv_snapshot_metadata(bucket, first + 1)
            lease.drop_lease()
        deadline = time.monotonic() + SNAPSHOT_WAIT_S
        while any(map(os.path.isfile, files)):
            assert time.monotonic() < deadline, "it is still there"
            table.write(10)
            time.sleep(0.5)
        with pytest.raises(SnapshotNotFoundError):
            session.get_kv_snapshot_metadata(bucket, first)


def test_one_bucket_can_be_planned_alone(new_table):
    table = new_table(bucket_count=1)
    table.write(20)
    ((bucket, path),) = table.places.items()
    pin = table.moments[-1].pins[bucket]
    plan = table.run(plan_state(table.table, path, bucket, pin, is_past=True))
    assert plan.strategy == "changelog"
    assert table.read([plan]) == table.expected(table.moments[-1])
