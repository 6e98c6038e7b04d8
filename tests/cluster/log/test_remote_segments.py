"""Reading rows that have moved to the remote store, on a server with small segments."""

import itertools
import random
import string

import pyarrow as pa
import pytest

from fluss.errors import FlussError
from fluss.net.remote_files import RemoteFile
from fluss.wire import messages as pb
from fluss_testkit.cluster_profiles import SMALL_SEGMENTS
from tests.support.servers.raw_client import RawClient
from tests.support.servers.read_harness import ReadHarness, eventually, new_database, poll_rows

SCHEMA = pa.schema([("id", pa.int64()), ("noise", pa.string())])
ROWS_AT_ONCE = 200
BATCHES = 60
ROWS = ROWS_AT_ONCE * BATCHES


@pytest.fixture(scope="module")
def small(start_cluster):
    with start_cluster(SMALL_SEGMENTS) as running:
        yield running


@pytest.fixture(scope="module")
def harness(small):
    made = ReadHarness(small.bootstrap_servers, new_database(small.bootstrap_servers))
    yield made
    made.close()


@pytest.fixture(scope="module")
def tiered(harness):
    """A table of which the beginning is in the remote store only."""
    table = harness.make(SCHEMA)
    numbers = random.Random(1)
    for start in range(0, ROWS, ROWS_AT_ONCE):
        noise = ["".join(numbers.choices(string.ascii_letters, k=40)) for _ in range(ROWS_AT_ONCE)]
        harness.append(table, {"id": range(start, start + ROWS_AT_ONCE), "noise": noise})
    eventually(lambda: moved_until(harness, table, 0) > ROWS // 2)
    return table


def moved_until(harness, table, offset):
    """Where the segments end that an answer to a fetch of this offset names; 0 for none."""
    path = table.info.table_path
    with RawClient(harness.bootstrap) as client:
        request = pb.FetchLogRequest(follower_server_id=-1, max_bytes=1 << 20)
        asked = request.tables_req.add(
            table_id=table.info.table_id, projection_pushdown_enabled=False
        )
        asked.buckets_req.add(bucket_id=0, fetch_offset=offset, max_fetch_bytes=1 << 20)
        leader = client.leader(path.database_name, path.table_name)
        (bucket,) = client.call(request, to=leader).tables_resp[0].buckets_resp
    segments = bucket.remote_log_fetch_info.remote_log_segments
    return max((each.remote_log_end_offset for each in segments), default=0)


def ids(table):
    return table.column("id").to_pylist()


def test_a_log_is_read_without_a_gap_over_the_end_of_what_has_moved(harness, tiered):
    assert ids(harness.read(tiered)) == list(range(ROWS))


def test_columns_are_projected_by_the_client_where_no_server_does_it(harness, tiered):
    assert harness.read(tiered, [0]).to_pydict() == {"id": list(range(ROWS))}


def test_records_are_polled_without_a_gap(harness, tiered):
    with harness.scanner(tiered, gives_batches=False) as scanner:
        assert [each.offset for each in poll_rows(scanner, ROWS)] == list(range(ROWS))


def test_reading_begins_anywhere_around_the_end_of_what_has_moved(harness, tiered):
    end = moved_until(harness, tiered, 0)
    places = {0, 1, ROWS_AT_ONCE - 1, ROWS_AT_ONCE, end // 2, end - 1, end, end + 1, ROWS - 1}
    for start in sorted(places):
        assert ids(harness.read(tiered, start=start)) == list(range(start, ROWS)), start


def test_a_tail_continues_where_the_moved_rows_end(harness):
    table = harness.make(SCHEMA)
    noise = ["n" * 300] * ROWS_AT_ONCE
    read, written = [], 0
    with harness.scanner(table) as scanner:
        for _ in range(20):
            numbers = range(written, written + ROWS_AT_ONCE)
            harness.append(table, {"id": numbers, "noise": noise})
            written += ROWS_AT_ONCE
            read += ids(scanner.poll_arrow(2_000))
        while len(read) < written:
            read += ids(scanner.poll_arrow(2_000))
    assert read == list(range(written))


def test_a_column_that_came_later_is_null_in_moved_rows(harness):
    table = harness.make(SCHEMA)
    for start in range(0, 10 * ROWS_AT_ONCE, ROWS_AT_ONCE):
        numbers = random.Random(start)
        noise = ["".join(numbers.choices(string.ascii_letters, k=200)) for _ in range(ROWS_AT_ONCE)]
        harness.append(table, {"id": range(start, start + ROWS_AT_ONCE), "noise": noise})
    eventually(lambda: moved_until(harness, table, 0) > 0)
    newer = harness.add_column(table, "extra", {"type": "STRING"})
    harness.append(newer, {"id": [-1], "noise": ["x"], "extra": ["e"]})
    count = 10 * ROWS_AT_ONCE
    found = harness.read(newer, [2, 0])
    assert found.column("extra").to_pylist() == [*itertools.repeat(None, count), "e"]
    assert ids(found) == [*range(count), -1]


def test_a_remote_file_that_is_not_reachable_is_named(harness, tiered, monkeypatch):

    monkeypatch.setattr(RemoteFile, "read", _unreachable)
    with pytest.raises(FlussError, match="nowhere"):
        harness.read(tiered)


def _unreachable(file, start, size):
    raise FlussError(f"{file.path} is nowhere: {start}, {size}")
