"""Scans by time and by offset read the segments they must, remote or on the server."""

import random
import string
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import fluss
from fluss import Config, col
from fluss.net.remote_files import RemoteFiles
from fluss_testkit.cluster_profiles import SMALL_SEGMENTS
from tests.support.servers.read_harness import eventually
from tests.support.servers.wire_recorder import WireRecorder

ROWS_AT_ONCE = 200
SEGMENTS_AHEAD = Config().scanner_remote_log_prefetch_num
BATCHES = 50
ROWS = ROWS_AT_ONCE * BATCHES


@pytest.fixture(scope="module")
def wire(start_cluster):
    with (
        start_cluster(SMALL_SEGMENTS) as running,
        WireRecorder(running.bootstrap_servers) as recorder,
    ):
        yield recorder


@pytest.fixture(scope="module")
def tiered(wire):
    """A log of one bucket in many segments, of which most are in the remote store only."""
    with fluss.connect(f"fluss://{wire.bootstrap}/segments") as session:
        session.create_database("segments")
        schema = pa.schema([("id", pa.int64()), ("noise", pa.string())])
        table = session.create_table("tiered", schema, buckets=1)
        numbers = random.Random(1)
        for start in range(0, ROWS, ROWS_AT_ONCE):
            noise = ["".join(numbers.choices(string.ascii_letters, k=40)) for _ in range(200)]
            table.append({"id": [*range(start, start + ROWS_AT_ONCE)], "noise": noise})
            time.sleep(0.002)  # so that no two batches have one time
        eventually(lambda: moved(wire, table)[-1][1] > ROWS * 2 // 3)
        yield table


def moved(wire, table):
    """The segments in the remote store, by their first offsets and the offsets behind them."""
    with wire.recording() as seen:
        table.scan(limit=1).to_arrow()
    return max((each.remote_segments for each in seen.reads()), key=len, default=()) or ((0, 0),)


@pytest.fixture
def files(monkeypatch):
    """The first offsets of the remote segments that scans have set about to read.

    Not those that are read in this moment: a scan that has ended sets about nothing any more, but
    what it has read ahead may still be in flight on its threads.
    """
    begun = []
    original = RemoteFiles.prepare

    async def spy(files, path):
        if path.endswith(".log"):
            begun.append(int(Path(path).stem))
        return await original(files, path)

    monkeypatch.setattr(RemoteFiles, "prepare", spy)
    return begun


def times(table):
    """For each offset, which is an id as well, when it was committed."""
    found = table.scan(with_metadata=["_commit_timestamp"]).to_arrow()
    assert found.column("id").to_pylist() == list(range(ROWS))
    return found.column("_commit_timestamp").to_pylist()


def ids(table):
    return table.column("id").to_pylist()


def test_from_a_time_on_only_its_segment_and_later_ones_are_read(tiered, wire, files):
    committed, segments = times(tiered), moved(wire, tiered)
    moment = committed[segments[len(segments) // 2][0] + ROWS_AT_ONCE]
    first = committed.index(moment)
    files.clear()
    scan = tiered.scan(filter=col("_commit_timestamp") >= moment)
    with wire.recording() as seen:
        assert ids(scan.to_arrow()) == list(range(first, ROWS))
    assert len(seen.of("LIST_OFFSETS")) == 1
    must = {start for start, end in segments if end > first}
    assert min(must) <= min(each.fetch_offset for each in seen.reads()) <= first
    assert set(files) == must
    assert len(must) < len(segments)


def test_until_a_time_no_later_segment_is_read(tiered, wire, files):
    committed, segments = times(tiered), moved(wire, tiered)
    moment = committed[segments[len(segments) // 2][0] + ROWS_AT_ONCE]
    stop = committed.index(moment)
    files.clear()
    scan = tiered.scan(filter=col("_commit_timestamp") < moment)
    assert ids(scan.to_arrow()) == list(range(stop))
    must = {start for start, _ in segments if start < stop}
    starts = sorted(start for start, _ in segments)
    # Where the end is, only its batches tell; until then some segments are read ahead.
    assert must <= set(files) <= set(starts[: len(must) + SEGMENTS_AHEAD])
    assert len(must) < len(segments)
    # The server names an entry of its index before the time; no row behind that may be lost.
    for options in ({"end": moment}, {"as_of": moment}):
        assert ids(tiered.scan(**options).to_arrow()) == list(range(stop))
        assert tiered.scan(**options).count() == stop


def test_between_two_offsets_only_their_segments_are_read(tiered, wire, files):
    segments = moved(wire, tiered)
    start, end = segments[2]
    files.clear()
    expected = (col("_log_offset") >= start + 10) & (col("_log_offset") < end - 10)
    assert ids(tiered.scan(filter=expected).to_arrow()) == list(range(start + 10, end - 10))
    assert set(files) == {start}


def test_what_is_on_the_server_still_is_read_from_nowhere_else(tiered, wire, files):
    committed, segments = times(tiered), moved(wire, tiered)
    first = committed.index(committed[segments[-1][1] + 1])
    files.clear()
    with wire.recording() as seen:
        found = tiered.scan(filter=col("_commit_timestamp") >= committed[first]).to_arrow()
    assert ids(found) == list(range(first, ROWS))
    assert files == []
    sent = sum(each.rows_bytes for each in seen.reads())
    assert sent < (ROWS - first + ROWS_AT_ONCE) * 100


def test_of_a_time_to_come_the_last_batch_alone_is_read(tiered, wire, files):
    files.clear()
    later = datetime.now(UTC) + timedelta(days=1)
    with wire.recording() as seen:
        assert tiered.scan(filter=col("_commit_timestamp") >= later).to_arrow().num_rows == 0
    # A server refuses a time after its clock; the last batch shows that no row is as late.
    assert [each.fetch_offset for each in seen.reads()] == [ROWS - 1]
    assert files == []
