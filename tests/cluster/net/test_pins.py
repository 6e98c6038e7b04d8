"""Where buckets begin and end, while retention trims the logs and a new leader lags."""

import threading
import time

import pyarrow as pa
import pytest

import fluss
from fluss.errors import OffsetOutOfRangeError
from fluss.log.extents import TRIMMED_ATTEMPTS_MAX
from fluss.model.offsets import EARLIEST_OFFSET
from fluss.model.options.bounds import Cursor
from fluss.model.paths import TableBucket
from fluss.model.schema.schema import Schema
from fluss.wire import messages as pb
from tests.support.scripted.scripted_cluster import TABLE_ID, ScriptedCluster
from tests.support.scripted.scripted_kv import ScriptedKv

LOG = Schema(pa.schema([("id", pa.int64())]))
KEYED = Schema(pa.schema([pa.field("id", pa.int64(), nullable=False)]), ["id"])
SETTINGS = {"operation_timeout_ms": 20_000, "retry_backoff_ms": 5}
OUT_OF_RANGE = 19
BUCKET = TableBucket(TABLE_ID, 0)
SOON_S = 5.0


@pytest.fixture
def cluster():
    with ScriptedCluster(LOG) as made:
        for number in range(10):
            made.append({"id": [number]})
        yield made


@pytest.fixture
def table(cluster):
    with fluss.connect(f"fluss://{cluster.bootstrap}/db", **SETTINGS) as session:
        yield session.table("t")


def cursor(offset):
    return Cursor.of(TABLE_ID, {BUCKET: offset})


def ids(found):
    return found.column("id").to_pylist()


# --- retention ------------------------------------------------------------------------------------


def trimming(cluster, times):
    """Drop the first rows, and once more each time a caller asks for the first row."""
    left = [times]

    def on_fetch(asked):
        (table,) = asked.tables_req
        (bucket,) = table.buckets_req
        if bucket.fetch_offset != EARLIEST_OFFSET or not left[0]:
            return "as usual"
        left[0] -= 1
        cluster.logs[0].pop(0)
        answer = pb.FetchLogResponse()
        found = answer.tables_resp.add(table_id=table.table_id)
        found.buckets_resp.add(bucket_id=0, error_code=OUT_OF_RANGE)
        return answer

    cluster.logs[0].pop(0)
    cluster.on_fetch = on_fetch


@pytest.mark.parametrize("times", [1, TRIMMED_ATTEMPTS_MAX, TRIMMED_ATTEMPTS_MAX + 2])
def test_a_log_whose_beginning_moves_while_it_is_planned_is_read(cluster, table, times):
    trimming(cluster, times)
    found = ids(table.scan().to_arrow())
    assert found == list(range(10))[-len(found) :]
    assert len(found) >= 10 - 1 - times


def trimmed_after_planning(cluster, scan):
    scan.splits()
    del cluster.logs[0][:4]
    return scan


def test_rows_that_are_trimmed_between_plan_and_read_are_refused_with_a_hint(cluster, table):
    scan = trimmed_after_planning(cluster, table.scan())
    with pytest.raises(OffsetOutOfRangeError, match="rows before 4 have been removed") as refused:
        scan.to_arrow()
    assert "on_trimmed='earliest'" in refused.value.hint
    assert refused.value.earliest_offset == 4


@pytest.mark.parametrize(
    "options", [{}, {"start": 2}, {"order": "bucket"}, {"limit": 100}], ids=str
)
def test_a_scan_that_begins_where_the_log_does_reads_on_there(cluster, table, options):
    scan = trimmed_after_planning(cluster, table.scan(on_trimmed="earliest", **options))
    assert ids(scan.to_arrow()) == [4, 5, 6, 7, 8, 9]
    cluster.append({"id": [10]})
    assert ids(scan.to_arrow()) == [4, 5, 6, 7, 8, 9]


def trimming_at_the_first_read(cluster):
    def on_fetch(asked):
        if asked.max_bytes > 1 and cluster.logs[0][0].base == 0:
            del cluster.logs[0][:4]
        return "as usual"

    cluster.on_fetch = on_fetch


@pytest.mark.parametrize(
    "read",
    [lambda scan: ids(scan.to_arrow()), lambda scan: ids(scan.to_reader().read_all())],
    ids=["to_arrow", "to_reader"],
)
@pytest.mark.parametrize("options", [{}, {"start": "earliest"}], ids=str)
def test_the_reading_that_plans_begins_where_the_log_does_by_then(cluster, table, read, options):
    trimming_at_the_first_read(cluster)
    scan = table.scan(**options)
    assert read(scan) == [4, 5, 6, 7, 8, 9]
    with pytest.raises(OffsetOutOfRangeError, match="on_trimmed"):
        scan.to_arrow()  # it was pinned to more


def test_counting_begins_where_the_log_does_by_then(cluster, table):
    trimming_at_the_first_read(cluster)
    assert table.scan().count() == 6


def test_counting_what_a_filter_leaves_does_too(cluster, table):
    trimming_at_the_first_read(cluster)
    assert table.scan(filter=fluss.col("id") > 5).count() == 4


def test_a_log_as_of_a_moment_that_is_trimmed_is_refused(cluster, table):
    trimming_at_the_first_read(cluster)
    with pytest.raises(OffsetOutOfRangeError, match="have been removed"):
        table.scan(as_of=8).to_arrow()


def test_rows_that_are_trimmed_while_a_bucket_is_read_are_no_silent_gap(cluster, table):
    def on_fetch(asked):
        (bucket,) = asked.tables_req[0].buckets_req
        if bucket.fetch_offset >= 3:
            del cluster.logs[0][:6]
        return "as usual"

    largest = max(len(each.data) for each in cluster.logs[0])
    settings = SETTINGS | {"scanner_log_fetch_max_bytes_for_bucket": largest}
    with fluss.connect(f"fluss://{cluster.bootstrap}/db", **settings) as session:
        scan = session.table("t").scan()
        cluster.on_fetch = on_fetch
        with pytest.raises(OffsetOutOfRangeError, match="have been removed"):
            scan.to_arrow()


def test_a_scan_of_which_all_has_been_trimmed_has_no_rows(cluster, table):
    scan = table.scan(on_trimmed="earliest", end=3)
    assert not ids(trimmed_after_planning(cluster, scan).to_arrow())


# --- the end --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{"start": cursor(9)}, {"end": cursor(9)}], ids=["start", "end"]
)
def test_the_end_that_a_new_leader_names_is_waited_for(cluster, table, options):
    cluster.high_watermarks[0] = 6
    threading.Timer(0.5, cluster.high_watermarks.clear).start()
    expected = [9] if "start" in options else list(range(9))
    assert ids(table.scan(**options).to_arrow()) == expected


@pytest.mark.parametrize("name", ["start", "end", "as_of"])
def test_a_cursor_after_rows_that_were_lost_is_refused_soon(cluster, table, name):
    begin = time.monotonic()
    with pytest.raises(OffsetOutOfRangeError, match="rows were lost") as refused:
        table.scan(**{name: cursor(12)}).to_arrow()
    assert (refused.value.offset, refused.value.end) == (12, 10)
    assert "start='earliest'" in refused.value.hint
    assert time.monotonic() - begin < SOON_S


def test_a_follower_does_not_continue_after_rows_that_were_lost(cluster, table):
    with (
        table.follow(start=cursor(12)) as follow,
        pytest.raises(OffsetOutOfRangeError, match="ends at 10, before the cursor's 12"),
    ):
        follow.poll(0.1)


def test_a_state_as_of_rows_that_were_lost_is_refused_and_a_lagging_end_is_waited_for():
    with ScriptedKv(KEYED) as keyed:
        for number in range(10):
            keyed.append({"id": [number]}, change_types=[1])
        keyed.stored = [(1, {"id": number}) for number in range(10)]
        keyed.stored_at = 10
        with fluss.connect(f"fluss://{keyed.bootstrap}/db", **SETTINGS) as session:
            table = session.table("t")
            with pytest.raises(OffsetOutOfRangeError, match="before the cursor's 12"):
                table.scan(as_of=cursor(12)).to_arrow()
            scan = table.scan(as_of=cursor(8), strategy="scan_kv")
            scan.splits()
            keyed.high_watermarks[0] = 6
            threading.Timer(0.5, keyed.high_watermarks.clear).start()
            assert sorted(ids(scan.to_arrow())) == list(range(8))


@pytest.mark.parametrize("strategy", [None, "changelog"], ids=str)
def test_a_state_whose_changes_are_trimmed_after_planning_is_found_another_way(strategy):
    with ScriptedKv(KEYED) as keyed:
        for number in range(10):
            keyed.append({"id": [number]}, change_types=[1])
        keyed.stored = [(1, {"id": number}) for number in range(10)]
        keyed.stored_at = 10
        with fluss.connect(f"fluss://{keyed.bootstrap}/db", **SETTINGS) as session:
            scan = session.table("t").scan(as_of=cursor(8), strategy=strategy)
            assert scan.splits()[0].state.strategy == "changelog"
            del keyed.logs[0][:4]
            if strategy is None:
                assert sorted(ids(scan.to_arrow())) == list(range(8))
                return
            with pytest.raises(OffsetOutOfRangeError, match="have been removed"):
                scan.to_arrow()
