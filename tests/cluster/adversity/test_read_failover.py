"""Reading and looking up while leaders and the coordinator of a replicated cluster are killed."""

import threading
import time

import pyarrow as pa
import pytest

import fluss
from fluss.write.writer_pool import append_core, upsert_core
from tests.support.servers.raw_client import RawClient
from tests.support.servers.read_harness import ReadHarness, new_database, poll_rows

SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string())])
KEYED = pa.schema([pa.field("id", pa.int64(), nullable=False), ("s", pa.string())])
REPLICAS = {"table.replication.factor": "3"}


@pytest.fixture(scope="module")
def harness(replicated_cluster):
    servers = replicated_cluster.bootstrap_servers
    made = ReadHarness(servers, new_database(servers))
    yield made
    made.close()


def leader_of(harness, table, bucket=0):
    path = table.info.table_path
    with RawClient(harness.bootstrap) as client:
        return client.leader(path.database_name, path.table_name, bucket)


def rows(numbers):
    return {"id": list(numbers), "s": ["x" * 100 for _ in numbers]}


def write_on(harness, table, stop, written):
    writer = append_core(table)
    while not stop.is_set():
        for _ in range(20):
            writer.append({"id": len(written), "s": "x" * 50})
            written.append(len(written))
        harness.run(writer.flush())
        time.sleep(0.01)


def test_a_tail_and_a_bounded_read_lose_and_duplicate_nothing_when_the_leader_dies(
    harness, replicated_cluster
):
    table = harness.make(SCHEMA, properties=REPLICAS)
    harness.append(table, rows([-1]))
    first = leader_of(harness, table)
    stop, written = threading.Event(), []
    writing = threading.Thread(target=write_on, args=(harness, table, stop, written))
    writing.start()
    killer = threading.Timer(1.0, replicated_cluster.kill_tablet_server, [first])
    killer.start()
    try:
        with harness.scanner(table, gives_batches=False) as scanner:
            records = poll_rows(scanner, 600)
            killer.join()
            records += poll_rows(scanner, 1_000)
            bounded = harness.read(table).column("id").to_pylist()
            stop.set()
            writing.join(90)
            records += poll_rows(scanner, len(written) + 1 - len(records))
        assert leader_of(harness, table) != first
        assert [each.row["id"] for each in records] == [-1, *written]
        assert [each.offset for each in records] == list(range(len(written) + 1))
        assert bounded == list(range(-1, len(bounded) - 1))
    finally:
        stop.set()
        replicated_cluster.restart_tablet_server(first)


def test_a_bounded_read_of_many_buckets_continues_when_a_leader_dies(harness, replicated_cluster):
    table = harness.make(SCHEMA, bucket_count=6, bucket_keys=["id"], properties=REPLICAS)
    for start in range(0, 60_000, 10_000):
        harness.append(table, rows(range(start, start + 10_000)))
    victim = leader_of(harness, table, 0)
    try:
        with harness.scanner(table) as scanner:
            taken = scanner.to_arrow_batch_reader()
            found = taken.read_next_batch().column("id").to_pylist()
            replicated_cluster.kill_tablet_server(victim)
            for batch in taken:
                found += batch.column("id").to_pylist()
        assert sorted(found) == list(range(60_000))
    finally:
        replicated_cluster.restart_tablet_server(victim)


def test_lookups_find_the_new_leader(harness, replicated_cluster):
    table = harness.make(KEYED, primary_keys=["id"], properties=REPLICAS)
    writer = upsert_core(table)
    for number in range(100):
        writer.upsert({"id": number, "s": f"v{number}"})
    harness.run(writer.flush())
    assert harness.lookup(table, {"id": 7}) == {"id": 7, "s": "v7"}
    victim = leader_of(harness, table)
    replicated_cluster.kill_tablet_server(victim)
    try:
        for number in range(100):
            assert harness.lookup(table, [number]) == {"id": number, "s": f"v{number}"}
        assert leader_of(harness, table) != victim
    finally:
        replicated_cluster.restart_tablet_server(victim)


def test_reading_does_not_need_the_coordinator(harness, replicated_cluster):
    table = harness.make(SCHEMA, bucket_count=2, properties=REPLICAS)
    harness.append(table, rows(range(100)))
    replicated_cluster.kill_coordinator()
    try:
        assert sorted(harness.read(table).column("id").to_pylist()) == list(range(100))
        servers = replicated_cluster.bootstrap_servers.split(",")[-1]
        other = ReadHarness(servers, harness.database)
        try:
            again = other.table(table.info.table_path)
            assert len(other.read(again)) == 100
        finally:
            other.close()
    finally:
        replicated_cluster.restart_coordinator()


DEADLINE_S = 60


def sessions_that_scan(harness, replicated_cluster, table, *, seconds):
    """Open sessions for a while, each of which reads a state; return how many."""
    end, count = time.monotonic() + seconds, 0
    servers = replicated_cluster.bootstrap_servers
    while time.monotonic() < end:
        begin = time.monotonic()
        with fluss.connect(
            f"fluss://{servers}", operation_timeout_ms=DEADLINE_S * 1_000
        ) as session:
            state = session.table(str(table.info.table_path)).scan().to_arrow()
            assert state.num_rows == 10
        assert time.monotonic() - begin < DEADLINE_S
        count += 1
    return count


@pytest.fixture(scope="module")
def state(harness):
    table = harness.make(KEYED, bucket_count=3, primary_keys=["id"], properties=REPLICAS)
    writer = upsert_core(table)
    for number in range(10):
        writer.upsert({"id": number, "s": f"v{number}"})
    harness.run(writer.flush())
    return table


@pytest.mark.parametrize("number", [0, 1, 2])
def test_new_sessions_open_and_scan_while_a_server_hangs(
    harness, replicated_cluster, state, number
):
    replicated_cluster.pause_tablet_server(number)
    threading.Timer(3.0, replicated_cluster.resume_tablet_server, [number]).start()
    try:
        assert sessions_that_scan(harness, replicated_cluster, state, seconds=3)
    finally:
        replicated_cluster.resume_tablet_server(number)


def test_new_sessions_open_and_scan_while_the_first_server_is_dead(
    harness, replicated_cluster, state
):
    replicated_cluster.kill_tablet_server(0)
    try:
        assert sessions_that_scan(harness, replicated_cluster, state, seconds=5)
    finally:
        replicated_cluster.restart_tablet_server(0)
