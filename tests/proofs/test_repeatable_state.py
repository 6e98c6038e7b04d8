"""The same plan gives the same rows under concurrent writes, and no plan waits for rows."""

import threading
import time

import pyarrow as pa
import pytest

from tests.support.hypothesis_profiles import IS_EXHAUSTIVE

DEADLINE_S = 30
ROWS_PER_S = 1_000
ROWS_PER_WRITE = 20
ROUNDS = 10 if IS_EXHAUSTIVE else 2

within_deadline = pytest.mark.timeout(DEADLINE_S, func_only=True)


@pytest.fixture
def write_on(rows):
    """Write a thousand rows a second into tables until the test ends, and count them."""
    stop, threads, written = threading.Event(), [], []

    def write(write_rows):
        began, number = time.monotonic(), 0
        while not stop.is_set():
            start = number * ROWS_PER_WRITE % 900
            write_rows(rows.slice(start, ROWS_PER_WRITE).to_pylist(), number)
            number += 1
            written.append(ROWS_PER_WRITE)
            due = began + number * ROWS_PER_WRITE / ROWS_PER_S
            time.sleep(max(0.0, due - time.monotonic()))

    def begin(write_rows):
        threads.append(threading.Thread(target=write, args=[write_rows]))
        threads[-1].start()
        return written

    yield begin
    stop.set()
    for thread in threads:
        thread.join()


def ordered(table):
    """Sort rows: a state has no order."""
    return table.sort_by("id")


@pytest.mark.timeout(60 + ROUNDS * 20)
@pytest.mark.parametrize("strategy", [None, "limit_scan", "changelog"], ids=str)
def test_a_state_read_twice_under_a_writer_is_the_same(session, keyed, write_on, strategy):
    def write(rows, number):
        if number % 5 == 4:
            keyed.delete([{"id": each["id"]} for each in rows])
        else:
            keyed.upsert([{**each, "x": float(number)} for each in rows])

    written = write_on(write)
    for _ in range(ROUNDS):
        scan = keyed.scan(strategy=strategy)
        pinned = scan.splits()
        first = ordered(scan.to_arrow())
        before = sum(written)
        while sum(written) == before:  # the state has changed
            time.sleep(0.005)
        assert ordered(scan.to_arrow()).equals(first)
        assert scan.count() == first.num_rows
        assert ordered(pa.table(scan)).equals(first)
        assert scan.splits() == pinned
        assert sum(each.rows_max for each in keyed.scan().splits()) > sum(
            each.rows_max for each in pinned
        )


@pytest.mark.timeout(60 + ROUNDS * 20)
@pytest.mark.parametrize("mode", ["changelog", "binlog"])
def test_changes_read_twice_under_a_writer_are_the_same(keyed, write_on, mode):
    write_on(lambda rows, number: keyed.upsert([{**each, "x": float(number)} for each in rows]))
    for _ in range(ROUNDS):
        scan = keyed.scan(mode=mode)
        first = scan.to_arrow()
        assert scan.to_arrow().equals(first)
        assert scan.count() == first.num_rows


@pytest.mark.timeout(60 + ROUNDS * 20)
def test_appended_rows_read_twice_under_a_writer_are_the_same(events, write_on):
    write_on(lambda rows, _: events.append(rows))
    for number in range(ROUNDS):
        scan = events.scan(with_metadata=True, tail=[None, 700][number % 2])
        first = scan.to_arrow()
        assert scan.to_arrow().equals(first)
        assert scan.count() == first.num_rows


# --- nothing waits for rows that do not exist -----------------------------------------------------


def read_in_every_way(table):
    """Return the number of rows by each way to read."""
    found = {
        mode: table.scan(mode=mode).to_arrow().num_rows
        for mode in (["state", "changelog", "binlog"] if table.primary_key else ["log"])
    }
    log = "changelog" if table.primary_key else "log"
    found["count"] = table.scan(mode=log).count()
    found["tail"] = table.scan(mode=log, tail=5).to_arrow().num_rows
    found["by time"] = table.scan(mode=log, start="-1h", order="timestamp").to_arrow().num_rows
    with table.follow(start="earliest") as follow:
        found["follow"] = sum(each.num_rows for _ in range(3) for each in follow.poll(0.2))
    if table.primary_key:
        for strategy in ("limit_scan", "changelog"):
            found[strategy] = table.scan(strategy=strategy).count()
    return found


@within_deadline
def test_empty_tables_and_partitions_have_no_rows_and_no_wait(session, rows):
    for name, options in (
        ("log", {}),
        ("keyed", {"primary_key": ["id"]}),
        ("none_yet", {"partition_by": ["day"]}),
        ("parted", {"partition_by": ["day"], "primary_key": ["id", "day"]}),
    ):
        table = session.create_table(name, rows.schema, buckets=3, **options)
        if name == "parted":
            table.create_partition({"day": "2026-01-01"})
        assert set(read_in_every_way(table).values()) == {0}, name


@within_deadline
def test_idle_buckets_beside_one_with_rows_are_not_waited_for(session, rows):
    one = rows.slice(0, 1)
    for name, options in (("log", {"bucket_key": ["id"]}), ("keyed", {"primary_key": ["id"]})):
        table = session.create_table(name, rows.schema, buckets=16, **options)
        (table.upsert if table.primary_key else table.append)(one)
        assert set(read_in_every_way(table).values()) == {1}, name


@within_deadline
def test_batches_that_changed_nothing_end_where_the_log_does(session, rows):
    """A batch of deletes of missing keys takes an offset in the changelog and has no rows."""
    keyed = session.create_table("keyed", rows.schema, primary_key=["id"], buckets=1)
    for _ in range(3):
        keyed.delete({"id": [1]})
    (split,) = keyed.scan(mode="changelog").splits()
    assert split.stop == 3, "three batches, each with an offset of its own"
    assert set(read_in_every_way(keyed).values()) == {0}
    keyed.upsert(rows.slice(0, 2))
    for _ in range(3):
        keyed.delete({"id": [99]})
    assert set(read_in_every_way(keyed).values()) == {2}
    scan = keyed.scan(mode="changelog", start=scan_end(keyed) - 2)
    assert scan.stats.rows_max == 2
    assert scan.count() == scan.to_arrow().num_rows == 0


def scan_end(table):
    (split,) = table.scan(mode="changelog").splits()
    return split.stop
