"""Scans on a real cluster: pinned, exact, repeatable, and explained."""

import pickle
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

import fluss.scan
from fluss import col
from fluss.errors import (
    ClosedError,
    FlussError,
    InvalidSchemaError,
    InvalidValueError,
    OffsetOutOfRangeError,
    PartitionNotFoundError,
    SchemaMismatchError,
    TableNotFoundError,
    UnsupportedOperationError,
)

DAYS = ("2026-01-01", "2026-01-02", "2026-01-03")


def ids(table):
    return sorted(table.column("id").to_pylist())


def test_a_scan_gives_every_row_once_and_again_the_same(events, rows):
    scan = events.scan()
    first = scan.to_arrow()
    assert ids(first) == list(range(1_000))
    events.append(rows.slice(0, 50))
    assert scan.to_arrow().equals(first)
    assert scan.to_reader().read_all().num_rows == 1_000
    assert pa.table(scan).num_rows == 1_000
    assert pl.DataFrame(scan).height == 1_000
    assert len(scan.to_pandas()) == 1_000
    assert events.scan().count() == 1_050


def test_a_scan_under_a_writer_is_the_same_twice(events, rows):
    stop = threading.Event()

    def write():
        while not stop.is_set():
            events.append(rows.slice(0, 100))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        scan = events.scan(with_metadata=True)
        assert scan.to_arrow().equals(scan.to_arrow())
        assert scan.count() == scan.to_arrow().num_rows
    finally:
        stop.set()
        writer.join()


@pytest.mark.parametrize("order", ["none", "bucket", "timestamp"])
def test_splits_that_were_cut_are_read_together(events, order):
    whole = events.scan().splits()
    cut = [
        replace(each, start=start, stop=stop)
        for each in whole
        for start, stop in ((each.start, 7), (7, 7), (7, 90), (90, each.stop))
    ]
    config = events.to_source().config
    read = fluss.scan.open_split(cut, config=config, order=order).read_all()
    assert ids(read) == list(range(1_000))


def test_columns_metadata_and_order(events):
    scan = events.scan(columns=["x", "_bucket"], with_metadata=["_log_offset"])
    assert scan.schema.names == ["x", "_bucket", "_log_offset"]
    assert scan.to_arrow().schema == scan.schema
    ordered = events.scan(order="timestamp", with_metadata=True).to_arrow()
    keys = zip(
        *(
            ordered.column(each).to_pylist()
            for each in ("_commit_timestamp", "_bucket", "_log_offset")
        ),
        strict=True,
    )
    listed = list(keys)
    assert listed == sorted(listed)
    by_bucket = events.scan(order="bucket", with_metadata=["_bucket"]).to_arrow()
    buckets = by_bucket.column("_bucket").to_pylist()
    assert buckets == sorted(buckets)
    assert events.scan(columns=[]).to_arrow().num_rows == 1_000
    assert events.scan(columns=[]).to_reader().read_all().num_rows == 1_000


@pytest.mark.parametrize("tail", [0, 1, 99, 100, 101, 555, 5_000])
def test_a_tail_is_the_last_rows_by_time_bucket_and_offset(events, tail):
    whole = events.scan(with_metadata=True).to_arrow().to_pylist()
    place = ("_commit_timestamp", "_bucket", "_log_offset")
    whole.sort(key=lambda row: tuple(row[each] for each in place))
    expected = sorted(row["id"] for row in whole[max(0, len(whole) - tail) :]) if tail else []
    assert ids(events.scan(tail=tail).to_arrow()) == expected
    assert events.scan(tail=tail).count() == len(expected)


def test_a_limit_cuts_the_same_rows_each_time_after_the_filter(events):
    scan = events.scan(filter=col("id") >= 500, limit=37)
    assert scan.to_arrow().num_rows == 37
    assert min(ids(scan.to_arrow())) >= 500
    assert scan.to_arrow().equals(scan.to_arrow())
    assert scan.count() == 37
    assert events.scan(limit=0).to_arrow().num_rows == 0
    assert events.head(3).num_rows == 3


def test_offsets_and_times_bound_a_scan(events):
    offsets = events.scan(start=10, end=20, with_metadata=["_log_offset"]).to_arrow()
    assert set(offsets.column("_log_offset").to_pylist()) == set(range(10, 20))
    assert events.scan(start={0: 5, 2: -1}).count() < 1_000
    assert events.scan(start="-1h").count() == 1_000
    assert events.scan(end="-1h").count() == 0
    assert events.scan(start="latest").to_arrow().num_rows == 0
    stamped = events.scan(with_metadata=["_commit_timestamp"]).to_arrow()
    times = sorted(set(stamped.column("_commit_timestamp").to_pylist()))
    middle = times[len(times) // 2]
    expected = [each for each in stamped.column("_commit_timestamp").to_pylist() if each >= middle]
    assert events.scan(start=middle).count() == len(expected)
    assert events.scan(end=middle).count() == 1_000 - len(expected)
    assert events.scan(start=middle, end=middle).count() == 0


def test_a_filter_answers_the_same_pushed_and_not(events):
    whole = events.scan(with_metadata=True).to_arrow().to_pandas()
    middle = whole["_commit_timestamp"].sort_values().iloc[500]
    cases = [
        (col("id") == 77, whole["id"] == 77),
        (col("_bucket") == 2, whole["_bucket"] == 2),
        ((col("_log_offset") >= 100) & (col("x") > 1), (whole["_log_offset"] >= 100) & (whole["x"] > 1)),
        ((col("_bucket") == 1) | (col("id") < 5), (whole["_bucket"] == 1) | (whole["id"] < 5)),
        (col("_commit_timestamp") >= middle.to_pydatetime(), whole["_commit_timestamp"] >= middle),
        (col("_commit_timestamp") < middle.to_pydatetime(), whole["_commit_timestamp"] < middle),
        (col("_change_type") == "insert", whole["id"] >= 0),
        (col("_partition").is_null(), whole["id"] >= 0),
        ((col("day") == "2026-01-02") & (col("_log_offset") < 50),
         (whole["day"] == "2026-01-02") & (whole["_log_offset"] < 50)),
    ]  # fmt: skip
    for predicate, expected in cases:
        scan = events.scan(filter=predicate, columns=["id"])
        assert ids(scan.to_arrow()) == sorted(whole["id"][expected]), str(predicate)
        assert scan.count() == int(expected.sum())


def test_filters_of_arrow_mean_the_same(events):
    assert events.scan(filter=pc.field("id") < 10).count() == 10
    assert events.scan(filter=(pc.field("id") >= 990) & (pc.field("_bucket") >= 0)).count() == 10
    assert "id < 10" in events.scan(filter=pc.field("id") < 10).explain()
    with pytest.raises(UnsupportedOperationError):
        events.scan(filter=pc.field("id") + 1 < 10)


def requests(session):
    sent = session.counters()["requests"]
    return {api: each["sent"] for api, each in sent.items()}


def asked_by(session, work):
    """How many requests of each kind some work costs."""
    before = requests(session)
    work()
    after = requests(session)
    return {
        api: after[api] - before.get(api, 0) for api in after if after[api] > before.get(api, 0)
    }


def test_a_whole_key_costs_one_lookup_and_no_fetch(session, keyed):
    keyed.scan(filter=col("id") == 6).to_arrow()
    asked = asked_by(session, lambda: keyed.scan(filter=col("id") == 7).to_arrow())
    assert asked == {"LOOKUP": 1}


def test_a_plan_is_one_round_of_requests(session, parted):
    parted.scan().splits()
    asked = asked_by(session, lambda: parted.scan().splits())
    assert asked.pop("FETCH_LOG") == 1
    assert set(asked) <= {"GET_TABLE_INFO", "LIST_PARTITION_INFOS"}


def test_one_partition_is_pinned_where_one_can_have_rows(session, parted):
    scan = parted.scan(filter=col("day") == "2026-01-02")
    assert {each.partition_name for each in scan.splits()} == {"2026-01-02"}
    bytes_read = scan.to_arrow().nbytes
    assert bytes_read
    assert scan.stats.rows_read == 333


def test_partitions_are_pruned(parted):
    scan = parted.scan(filter=col("day") == "2026-01-02")
    assert {each.partition_name for each in scan.splits()} == {"2026-01-02"}
    assert scan.stats.partitions_pruned == 2
    assert scan.to_arrow().num_rows == 333
    assert parted.scan(partitions="2026-01-01").count() == 334
    assert parted.scan(partitions={"day": ["2026-01-01", "2026-01-03"]}).count() == 667
    found = parted.scan(partitions=["day=2026-01-03"], with_metadata=["_partition"]).to_arrow()
    assert set(found.column("_partition").to_pylist()) == {"2026-01-03"}
    with pytest.raises(PartitionNotFoundError, match="did you mean"):
        parted.scan(partitions="2026-01-0").count()
    assert parted.scan(partitions="2027-01-01", missing_partitions="skip").count() == 0


def read_until_it_is_gone(scan):
    """Read it again and again: a real server serves what was dropped for a moment longer."""
    for _ in range(200):
        scan.to_arrow()
        time.sleep(0.02)


def test_a_partition_that_is_dropped_is_an_error_unless_it_may_be(parted):
    strict, lenient = parted.scan(), parted.scan(missing_partitions="skip")
    assert len(strict.splits()) == len(lenient.splits()) == 6
    parted.drop_partition({"day": "2026-01-02"})
    with pytest.raises(FlussError):
        read_until_it_is_gone(strict)
    assert lenient.to_arrow().num_rows == 667


def test_counting_reads_headers_only(session, rows):
    wide = rows.append_column("text", pa.array([f"{each:01000d}" for each in range(1_000)]))
    table = session.create_table(
        "wide", wide, buckets=1, properties={"table.log.arrow.compression.type": "none"}
    )
    table.append(wide)
    scan = table.scan()
    assert scan.count() == 1_000
    assert scan.stats.bytes_read < 20_000
    assert scan.stats.rows_max == 1_000
    assert scan.stats.rows_returned == 0


def test_statistics_say_what_was_read_and_returned(events):
    scan = events.scan(filter=col("id") < 10)
    scan.to_arrow()
    assert (scan.stats.rows_read, scan.stats.rows_returned) == (1_000, 10)
    assert scan.stats.batches_read >= 10
    assert scan.stats.splits == 4


def test_a_cursor_makes_the_next_scan_read_only_what_came_later(events, rows):
    scan = events.scan()
    cursor = scan.cursor()
    assert events.scan(start=cursor).count() == 0
    events.append(rows.slice(0, 30))
    later = events.scan(start=cursor.to_json())
    assert ids(later.to_arrow()) == list(range(30))
    assert events.scan(start=later.cursor()).count() == 0
    with pytest.raises(InvalidValueError, match="limit"):
        events.scan(limit=5).cursor()


def test_a_cursor_and_splits_of_a_table_made_again_are_refused(session, events, rows):
    scan = events.scan()
    cursor, splits = scan.cursor(), scan.splits()
    session.drop_table("events")
    again = session.create_table("events", rows, buckets=4)
    with pytest.raises(TableNotFoundError, match="created again"):
        again.scan(start=cursor).count()
    with pytest.raises(TableNotFoundError, match="created again"):
        fluss.scan.open_split(splits)


def test_offsets_that_are_not_there_are_refused(events):
    with pytest.raises(OffsetOutOfRangeError, match="beyond the end"):
        events.scan(start={0: 100_000}).count()
    with pytest.raises(InvalidValueError, match="not part of the scan"):
        events.scan(start={9: 1}).count()


def test_splits_travel_without_secrets_and_read_the_same_rows(cluster, database, events):
    config = {"bootstrap.servers": cluster.bootstrap}
    splits = fluss.scan.open_scan(
        f"{database}.events", config=config, filter=col("id") >= 10
    ).splits()
    travelled = pickle.loads(pickle.dumps(splits))  # noqa: S301 - our own, a moment ago
    assert travelled == splits
    assert len(pickle.dumps(splits[0])) < 2_000
    assert cluster.bootstrap.encode() not in pickle.dumps(splits)
    found = fluss.scan.open_split(travelled, config=config).read_all()
    assert ids(found) == list(range(10, 1_000))
    one_by_one = [fluss.scan.open_split(each, config=config).read_all() for each in splits]
    assert ids(pa.concat_tables(one_by_one)) == list(range(10, 1_000))
    with pytest.raises(InvalidValueError, match="no split"):
        fluss.scan.open_split([], config=config)


def test_small_batches_are_joined(session, rows):
    table = session.create_table("small", rows, buckets=1)
    for start in range(0, 1_000, 20):
        table.append(rows.slice(start, 20))
    batches = list(table.scan())
    assert [each.num_rows for each in batches] == [1_000]


def test_cancelling_ends_a_reader_in_another_thread(events):
    scan = events.scan()
    reader = scan.to_reader()
    scan.cancel()
    with pytest.raises((ClosedError, pa.ArrowInvalid, OSError), match="cancelled"):
        reader.read_all()
    with pytest.raises(ClosedError, match="cancelled"):
        scan.to_arrow()


def test_a_scan_explains_itself(parted):
    text = parted.scan(filter=(col("day") == "2026-01-02") & (col("x") > 5)).explain()
    for part in ("mode: log", "1 of 3 partitions", "x > 5", "partitions: 1 of 3", "4 more are left out",
                 "pinned", "rows: at most 333", "splits: 2"):  # fmt: skip
        assert part in text, text
    last = parted.scan(filter=col("x") > 5, tail=10).explain()
    for part in ("the last 10 rows", "rows: at most 10", "splits: 6", "partitions: 3 of 3"):
        assert part in last, last


def test_a_scan_is_a_dataset(events):
    dataset = events.scan().to_dataset()
    assert isinstance(dataset, ds.Dataset)
    assert dataset.schema == events.schema
    assert ids(dataset.to_table(columns=["id"], filter=ds.field("x") < 1)) == list(range(8))
    assert dataset.to_table(columns=["x"]).column_names == ["x"]
    spared = dataset.to_table(columns=["x"], filter=(ds.field("id") + 1 < 5) & (ds.field("x") > 0))
    assert sorted(spared.column("x").to_pylist()) == [1 / 8, 2 / 8, 3 / 8]
    assert dataset.count_rows() == 1_000
    assert dataset.count_rows(filter=ds.field("id") < 7) == 7
    assert dataset.head(5).num_rows == 5
    assert dataset.take([0, 1]).num_rows == 2
    assert sum(each.num_rows for each in dataset.to_batches()) == 1_000
    computed = dataset.to_table(columns={"twice": ds.field("id") + ds.field("id")})
    assert computed.column_names == ["twice"]
    with pytest.raises(UnsupportedOperationError):
        pickle.dumps(dataset)
    assert dataset.to_table(columns=[]).num_rows == 1_000
    assert dataset.to_table(columns=["x", "id"], filter=ds.field("day") == DAYS[0]).shape == (
        334,
        2,
    )
    assert dataset.filter(ds.field("id") < 7).count_rows() == 7
    assert dataset.sort_by("id").head(2).column("id").to_pylist() == [0, 1]
    names = ds.dataset(pa.table({"id": [3, 4], "name": ["c", "d"]}))
    assert dataset.join(names, "id", join_type="inner").to_table().num_rows == 2
    with pytest.raises(InvalidValueError, match="did you mean 'day'"):
        dataset.to_table(columns=["dayy"])


def test_a_filter_of_a_dataset_comes_behind_the_limit_of_its_scan(events):
    first = events.scan(limit=50).to_arrow()
    expected = [each for each in ids(first) if each % 2 == 0]
    dataset = events.scan(limit=50).to_dataset()
    even = pc.bit_wise_and(ds.field("id"), 1) == 0
    assert ids(dataset.to_table(filter=even)) == expected
    assert ids(dataset.to_table(filter=ds.field("id") < 100)) == [x for x in ids(first) if x < 100]
    with pytest.raises(UnsupportedOperationError, match="limit"):
        next(dataset.get_fragments())


def test_fragments_are_the_splits_of_one_plan(events, rows):
    dataset = events.scan().to_dataset()
    fragments = list(dataset.get_fragments())
    assert len(fragments) == 4
    events.append(rows.slice(0, 50))
    assert ids(pa.concat_tables(each.to_table() for each in fragments)) == list(range(1_000))
    assert sum(each.count_rows() for each in fragments) == 1_000
    first = fragments[0]
    assert isinstance(first, ds.Fragment)
    assert first.physical_schema == dataset.schema
    scanner = first.scanner(dataset.schema, columns=["x"], filter=ds.field("id") < 500)
    assert scanner.projected_schema.names == ["x"]
    found = [each.to_table(columns=["id"], filter=ds.field("x") < 1) for each in fragments]
    assert ids(pa.concat_tables(found)) == list(range(8))
    rest = [
        each.to_table(["id"], (ds.field("id") + 0 < 5) & (ds.field("x") > 0)) for each in fragments
    ]
    assert ids(pa.concat_tables(rest)) == [1, 2, 3, 4]
    assert first.head(3).num_rows == 3
    assert "bucket 0" in repr(first)
    with pytest.raises(UnsupportedOperationError, match="laid out"):
        first.scanner(pa.schema([("id", pa.string())]))
    with pytest.raises(UnsupportedOperationError, match="cannot be pickled"):
        pickle.dumps(first)
    one = list(dataset.get_fragments(filter=ds.field("id") == 77))
    assert [each.to_table(filter=ds.field("id") == 77).num_rows for each in one] == [1]


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"columns": ["idd"]}, SchemaMismatchError, "did you mean 'id'"),
        ({"filter": col("idd") > 1}, FlussError, "did you mean 'id'"),
        ({"filter": col("id") > "a"}, InvalidValueError, "BIGINT"),
        ({"mode": "state"}, UnsupportedOperationError, "no primary key"),
        ({"limit": -1}, InvalidValueError, "number of rows"),
        ({"partitions": "x"}, UnsupportedOperationError, "not partitioned"),
    ],
)
def test_impossible_options_are_refused_before_anything_is_read(events, options, error, text):
    with pytest.raises(error, match=text):
        events.scan(**options).splits()


# --- tables with a primary key --------------------------------------------------------------------


def expected_state():
    kept = [*range(10), *range(20, 1_000)]
    return {each: (-1.0 if each < 10 else each / 8) for each in kept}


def state_of(table):
    return dict(zip(table.column("id").to_pylist(), table.column("x").to_pylist(), strict=True))


def test_a_keyed_table_is_scanned_as_its_state(keyed):
    scan = keyed.scan()
    assert state_of(scan.to_arrow()) == expected_state()
    assert scan.count() == 990
    keyed.delete({"id": [500]})
    assert state_of(scan.to_arrow()) == expected_state()
    assert keyed.scan().count() == 989


@pytest.mark.parametrize("strategy", ["limit_scan", "changelog"])
def test_each_way_gives_the_same_state(keyed, strategy):
    scan = keyed.scan(strategy=strategy, filter=col("x") >= 0, columns=["id", "x", "_bucket"])
    found = scan.to_arrow()
    assert state_of(found) == {key: x for key, x in expected_state().items() if x >= 0}
    assert strategy in scan.explain()


def test_a_filter_on_the_whole_key_looks_up(keyed):
    scan = keyed.scan(filter=col("id").is_in([7, 15, 21, 5_000]), columns=["x", "id"])
    assert "lookup of 4 keys" in scan.explain()
    assert state_of(scan.to_arrow()) == {7: -1.0, 21: 21 / 8}
    pinned = keyed.scan(filter=col("id") == 7, as_of="latest")
    assert "no lookup, which gives the state at the moment of reading: as_of=" in pinned.explain()
    assert state_of(pinned.to_arrow()) == {7: -1.0}
    both = keyed.scan(filter=(col("id") == 7) & (col("x") > 0))
    assert both.to_arrow().num_rows == 0


def test_an_earlier_state_is_asked_for_by_time(keyed, rows):
    time.sleep(0.05)
    moment = datetime.now(UTC)
    time.sleep(0.05)
    keyed.delete(rows.select(["id"]))
    assert keyed.scan().count() == 0
    assert state_of(keyed.scan(as_of=moment).to_arrow()) == expected_state()


def test_changes_are_read_with_what_happened_and_when(keyed):
    changes = keyed.scan(mode="changelog").to_arrow()
    assert changes.column_names[:3] == ["_change_type", "_log_offset", "_commit_timestamp"]
    kinds = changes.column("_change_type").value_counts().to_pylist()
    assert {each["values"]: each["counts"] for each in kinds} == {
        "insert": 1_000, "update_before": 10, "update_after": 10, "delete": 10,
    }  # fmt: skip
    deleted = keyed.scan(mode="changelog", filter=col("_change_type") == "delete")
    assert ids(deleted.to_arrow()) == list(range(10, 20))
    assert keyed.scan(mode="changelog").count() == 1_030


def test_a_binlog_has_rows_before_and_after(keyed):
    binlog = keyed.scan(mode="binlog").to_arrow()
    assert binlog.column_names[3:] == ["before", "after"]
    assert binlog.num_rows == 1_020
    updates = [each for each in binlog.to_pylist() if each["_change_type"] == "update"]
    assert len(updates) == 10
    assert all(each["before"]["x"] == each["before"]["id"] / 8 for each in updates)
    assert all(each["after"]["x"] == -1.0 for each in updates)


def test_a_changelog_replayed_into_an_empty_table_gives_the_source(session, keyed, rows):
    copy = session.create_table("copy", rows, primary_key=["id"], buckets=2)
    copy.upsert(keyed.scan(mode="changelog"))
    assert state_of(copy.scan().to_arrow()) == state_of(keyed.scan().to_arrow())


def test_a_state_has_no_offsets_of_its_own(keyed):
    with pytest.raises(InvalidValueError, match="changelog"):
        keyed.scan(with_metadata=["_log_offset"])
    with pytest.raises(InvalidValueError, match="changelog"):
        keyed.scan(tail=5)
    with pytest.raises(InvalidValueError, match="no cursor"):
        keyed.scan().cursor()


def test_a_time_to_come_begins_and_ends_nothing(events):
    later = datetime.now(UTC) + timedelta(hours=1)
    assert events.scan(start=later).count() == 0
    assert events.scan(start=later).to_arrow().num_rows == 0
    assert events.scan(end=later).count() == 1_000
    assert events.scan(filter=col("_commit_timestamp") >= later).count() == 0
    assert events.scan(filter=col("_commit_timestamp") < later).count() == 1_000
    assert events.scan(start=later).cursor() == events.scan().cursor()


# --- rows without columns -------------------------------------------------------------------------

WITHOUT_COLUMNS = {
    "a key": col("id") == 3,
    "several keys": col("id").is_in([3, 4, 15, 5_000]),
    "a key and more": (col("id") == 3) & (col("x") < 0),
    "a key that is not there": col("id") == 15,
    "other columns": col("x") == 20.0,
    "a bucket": col("_bucket") == 1,
    "nothing": col("x") > 10_000.0,
    "no filter": None,
}


def counts(scan):
    """How many rows each way to read a scan without columns gives."""
    dataset = scan.to_dataset()
    return {
        "count": scan.count(),
        "to_arrow": scan.to_arrow().num_rows,
        "to_reader": scan.to_reader().read_all().num_rows,
        "stream": pa.table(scan).num_rows,
        "to_pandas": len(scan.to_pandas()),
        "count_rows": dataset.count_rows(),
        "to_table": dataset.to_table(columns=[]).num_rows,
        "head": dataset.head(5_000, columns=[]).num_rows,
        "fragments": sum(each.count_rows() for each in dataset.get_fragments()),
    }


@pytest.mark.parametrize("options", [{}, {"as_of": "latest"}, {"mode": "changelog"}], ids=str)
def test_a_scan_without_columns_has_its_rows(keyed, options):
    for name, predicate in WITHOUT_COLUMNS.items():
        whole = keyed.scan(filter=predicate, **options).to_arrow().num_rows
        found = counts(keyed.scan(columns=[], filter=predicate, **options))
        assert set(found.values()) == {whole}, (name, found)
        if predicate is not None:
            assert keyed.scan(columns=[], filter=predicate, limit=1, **options).count() == min(
                1, whole
            )


def test_a_dataset_counts_rows_whose_keys_its_filter_fixes(keyed):
    dataset = keyed.scan().to_dataset()
    key = ds.field("id") == 3
    assert dataset.count_rows(filter=key) == 1
    assert dataset.to_table(columns=[], filter=key).num_rows == 1
    assert dataset.head(3, columns=[], filter=key).num_rows == 1
    assert dataset.count_rows(filter=ds.field("id").isin([3, 4, 15])) == 2


def test_rows_that_are_found_by_a_prefix_are_counted_without_columns(session):
    rows = pa.table({"user": [1, 1, 1, 2], "line": [1, 2, 3, 1], "x": [0.5, 1.5, 2.5, 3.5]})
    table = session.create_table(
        "lines", rows, primary_key=["user", "line"], bucket_key=["user"], buckets=2
    )
    table.upsert(rows)
    scan = table.scan(columns=[], filter=col("user") == 1)
    assert scan.splits()[0].prefix_columns == ("user",)
    assert set(counts(scan).values()) == {3}
    narrower = table.scan(columns=[], filter=(col("user") == 1) & (col("x") > 1))
    assert set(counts(narrower).values()) == {2}


def test_a_column_with_the_name_of_a_lookups_own_is_read_by_key(session):
    rows = pa.table({"id": [1, 2], "_found": [10, 20]})
    table = session.create_table("finds", rows, primary_key=["id"], buckets=1)
    table.upsert(rows)
    assert table.scan(filter=col("id") == 2).to_arrow().to_pylist() == [{"id": 2, "_found": 20}]
    assert table.scan(filter=col("id") == 2, columns=["id"]).count() == 1
    assert "a column '_found'" in table.scan(filter=col("id") == 2).explain()


def test_a_filter_in_sql_prunes_and_counts_as_a_predicate_does(events, parted, keyed):
    scan = parted.scan(filter=f"day = '{DAYS[1]}' AND id < 10.5")
    assert ids(scan.to_arrow()) == [1, 4, 7, 10]
    assert scan.stats.partitions_pruned == 2
    assert keyed.scan(filter="id IN (5, 15)").count() == 1
    assert events.count(filter="x < 1.25") == 10
    assert events.scan(filter="_bucket IS NULL OR x IS NULL").count() == 0
    followed = events.follow(start="earliest", filter="id >= 990 AND _log_offset >= 0")
    with followed:
        seen = []
        for batch in followed:
            seen += batch.column("id").to_pylist()
            if len(seen) == 10:
                break
    assert sorted(seen) == list(range(990, 1_000))


def test_a_dataset_takes_filters_in_sql(events):
    dataset = events.scan().to_dataset()
    assert dataset.to_table(filter="id < 3 OR id = 7", columns=["id"]).num_rows == 4
    assert dataset.filter("id < 3").count_rows() == 3
    assert dataset.count_rows(filter="x >= 124") == 8
    limited = events.scan(limit=50).to_dataset()
    assert set(ids(limited.to_table(filter="id >= 0"))) <= set(range(1_000))
    assert limited.count_rows(filter="id < 0") == 0
    assert limited.to_table(filter="id >= 0", columns=["x"]).schema.names == ["x"]


def test_a_filter_in_sql_names_the_column_that_is_missing(events):
    with pytest.raises(InvalidSchemaError, match="did you mean 'day'"):
        events.scan(filter="dya = 'x'")
    with pytest.raises(InvalidValueError, match="is BIGINT, with a text at position 6"):
        events.scan(filter="id = 'x'")


@pytest.mark.parametrize("condition", ["_log_offset > 0", "id > 5 OR _change_type = '+I'"])
def test_a_state_is_not_filtered_by_what_its_rows_do_not_have(keyed, condition):
    with pytest.raises(InvalidValueError, match="The rows of a state have no '_"):
        keyed.scan(filter=condition)
    assert (
        keyed.scan(filter="_bucket = 0").count() + keyed.scan(filter="_bucket > 0").count() == 990
    )
    assert keyed.scan(filter="_log_offset > 0", mode="changelog").count() > 0
