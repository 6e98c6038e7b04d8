"""Scans by time after the clock of a server was set back: rows are found by their commit times.

A server refuses to look up a time after its own clock, also where its logs hold later rows. The
commit times of a bucket do not run backwards: what is written after the clock was set back gets the
time of the row before it.
"""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

import fluss
from fluss import col
from tests.support.servers.embedded import Clock, running

HOUR_MS = 3_600_000
# Long enough for a log to be cut into several fetches.
TEXT = "x" * 200


def moment(timestamp_ms):
    return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=timestamp_ms)


def ids(table):
    return sorted(table.column("id").to_pylist())


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def session(tmp_path, clock):
    with running(tmp_path, clock=clock) as server, fluss.connect(f"fluss://{server.address}") as s:
        s.create_database("d")
        yield s


def rows(*numbers):
    return pa.table(
        {"id": pa.array(numbers, pa.int64()), "text": pa.array([TEXT] * len(numbers), pa.string())}
    )


@pytest.fixture
def log(session, clock):
    """Rows 0 to 39, one each minute; then the clock is set back by an hour, and 40 is written."""
    table = session.create_table("d.log", rows(), buckets=2, bucket_key=["id"])
    for number in range(40):
        table.append(rows(number))
        clock.now_ms += 60_000
    clock.now_ms -= HOUR_MS
    table.append(rows(40))
    return table


def commit_times(table, **options):
    found = table.scan(with_metadata=["_commit_timestamp"], **options).to_arrow()
    return dict(zip(found["id"].to_pylist(), found["_commit_timestamp"].to_pylist(), strict=True))


@pytest.mark.parametrize("first", [0, 1, 10, 20, 38, 39])
def test_a_scan_since_a_commit_time_has_the_rows_of_that_time(log, first):
    times = commit_times(log)
    since = times[first]
    expected = sorted(number for number, time in times.items() if time >= since)
    assert {*range(first, 40)} <= set(expected)
    assert ids(log.scan(start=since).to_arrow()) == expected
    assert log.scan(start=since).count() == len(expected)
    named = col("_commit_timestamp") >= since
    assert ids(log.scan(filter=named).to_arrow()) == expected
    assert ids(log.scan(start=since, tail=2).to_arrow()) == expected[-2:]
    later = col("_commit_timestamp") > since
    assert ids(log.scan(filter=later).to_arrow()) == sorted(
        number for number, time in times.items() if time > since
    )


@pytest.mark.parametrize("last", [1, 10, 20, 39])
def test_a_scan_up_to_a_commit_time_ends_there_and_its_cursor_goes_on(log, last):
    times = commit_times(log)
    scan = log.scan(end=times[last])
    expected = sorted(number for number, time in times.items() if time < times[last])
    assert ids(scan.to_arrow()) == expected
    rest = log.scan(start=scan.cursor()).to_arrow()
    assert sorted([*expected, *ids(rest)]) == list(range(41))
    assert ids(log.scan(as_of=times[last]).to_arrow()) == expected


def test_a_time_that_is_still_to_come_has_no_rows(log):
    newest = max(commit_times(log).values())
    for later in (newest + timedelta(milliseconds=1), newest + timedelta(days=10_000)):
        assert log.scan(start=later).count() == 0
        assert log.scan(end=later).count() == 41
        assert log.scan(filter=col("_commit_timestamp") >= later).count() == 0


def test_an_empty_table_has_no_rows_of_a_time_to_come(session, clock):
    table = session.create_table("d.empty", rows(), buckets=3)
    assert table.scan(start=moment(clock.now_ms + HOUR_MS)).count() == 0


def test_a_state_as_of_a_commit_time_leaves_out_what_came_later(session, clock):
    table = session.create_table("d.keyed", rows(), primary_key=["id"], buckets=2)
    for number in range(20):
        table.upsert(rows(number))
        clock.now_ms += 60_000
    clock.now_ms -= HOUR_MS
    times = commit_times(table, mode="changelog")
    for last in (1, 10, 19):
        assert ids(table.scan(as_of=times[last]).to_arrow()) == list(range(last))
    assert ids(table.scan(mode="changelog", start=times[15]).to_arrow()) == list(range(15, 20))


def test_a_follower_since_a_commit_time_begins_with_it(log):
    times = commit_times(log)
    expected = sorted(number for number, time in times.items() if time >= times[20])
    with log.follow(start=times[20], columns=["id"]) as follow:
        found = []
        while len(found) < len(expected):
            batches = follow.poll(5.0)
            assert batches, found
            found += [number for batch in batches for number in batch.column("id").to_pylist()]
    assert sorted(found) == expected
