"""What a scan is pinned to: columns, partitions, offsets, times, and the last rows."""

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from fluss import PartitionInfo, PartitionSpec, Schema, TableDescriptor, TableInfo, TablePath
from fluss.errors import (
    InvalidValueError,
    OffsetOutOfRangeError,
    PartitionNotFoundError,
    SchemaMismatchError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from fluss.model.extent import Extent
from fluss.model.options.bounds import Bound, BoundKind, Cursor, bound_of
from fluss.model.options.scan_options import Mode, scan_options
from fluss.model.paths import TableBucket
from fluss.scan.plan_scan import (
    BucketFacts,
    Range,
    Span,
    Window,
    check_places,
    decide_mode,
    decide_output,
    decide_range,
    select_partitions,
    tail_starts,
    window_of,
)

COLUMNS = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("x", pa.float64())])


def table(*, keys=None, partition_keys=()):
    schema = Schema(COLUMNS, primary_keys=keys)
    descriptor = TableDescriptor(schema, bucket_count=3, partition_keys=list(partition_keys))
    return TableInfo.of(descriptor, table_path=TablePath("db", "t"), table_id=1, schema_id=1)


# --- what the rows are ----------------------------------------------------------------------------


def test_a_log_table_gives_its_log_and_a_keyed_one_its_state():
    assert decide_mode(scan_options({}), table()) is Mode.LOG
    assert decide_mode(scan_options({}), table(keys=["id"])) is Mode.STATE
    assert decide_mode(scan_options({"mode": "changelog"}), table()) is Mode.CHANGELOG


@pytest.mark.parametrize("mode", ["state", "binlog"])
def test_a_table_without_a_key_has_no_state(mode):
    with pytest.raises(UnsupportedOperationError, match="no primary key"):
        decide_mode(scan_options({"mode": mode}), table())


def test_a_state_has_no_tail():
    with pytest.raises(InvalidValueError, match="cut a log"):
        decide_mode(scan_options({"tail": 5}), table(keys=["id"]))


def output(**options):
    given = scan_options(options)
    return decide_output(given, table(), decide_mode(given, table()))


def test_columns_come_in_the_order_requested_and_metadata_after_them():
    found = output(columns=["x", "_bucket", "id"], with_metadata=["_log_offset"])
    assert found.names == ("x", "_bucket", "id", "_log_offset")
    assert found.metadata == (None, "_bucket", None, "_log_offset")
    assert found.table_columns == ("x", "id")


def test_a_changelog_begins_with_fluss_own_columns():
    found = output(mode="changelog")
    assert found.names == ("_change_type", "_log_offset", "_commit_timestamp", "id", "day", "x")


def test_metadata_columns_can_have_another_prefix():
    found = output(with_metadata=["_bucket"], metadata_prefix="__")
    assert found.names[-1] == "__bucket"
    assert found.metadata[-1] == "_bucket"


def test_a_column_that_is_not_there_is_refused_with_the_nearest():
    with pytest.raises(SchemaMismatchError, match="did you mean 'day'"):
        output(columns=["dya"])


# --- partitions -----------------------------------------------------------------------------------

DAYS = [
    PartitionInfo(number, day, partition_spec=PartitionSpec({"day": day}))
    for number, day in enumerate(["2026-01-01", "2026-01-02", "2026-01-03"])
]


def chosen(partitions, *, skips_missing=False):
    options = scan_options({"partitions": partitions})
    info = table(partition_keys=["day"])
    found = select_partitions(options.partitions, DAYS, info, skips_missing=skips_missing)
    return [each.partition_id for each in found]


def test_partitions_are_chosen_by_name_by_text_and_by_typed_value():
    from datetime import date

    assert chosen(None) == [0, 1, 2]
    assert chosen("2026-01-02") == [1]
    assert chosen(["day=2026-01-03", "2026-01-01"]) == [0, 2]
    assert chosen({"day": date(2026, 1, 2)}) == [1]
    assert chosen({"day": [date(2026, 1, 2), "2026-01-03"]}) == [1, 2]


def test_a_partition_that_is_not_there_is_an_error_unless_it_may_be_missing():
    with pytest.raises(PartitionNotFoundError, match="did you mean '2026-01-03'"):
        chosen("2026-01-3")
    assert chosen(["2026-01-9", "2026-01-01"], skips_missing=True) == [0]


def test_another_column_is_no_partition_key():
    with pytest.raises(SchemaMismatchError, match="not a partition key"):
        chosen({"id": 5})


def test_a_table_without_partitions_has_none_to_choose():
    with pytest.raises(UnsupportedOperationError, match="not partitioned"):
        select_partitions(("a",), [], table(), skips_missing=False)


# --- offsets --------------------------------------------------------------------------------------

BUCKET = TableBucket.with_partition(1, 7, 2)


def ranged(start=None, end=None, *, earliest=10, log_end=50, at=None, **more):
    facts = BucketFacts(
        bucket=BUCKET,
        partition_name="EU",
        extent=Extent(earliest=earliest, end=log_end),
        at_start=at,
        at_end=at,
    )
    return decide_range(
        facts,
        start=None if start is None else bound_of(start, "start"),
        end=None if end is None else bound_of(end, "end"),
        on_trimmed=more.pop("on_trimmed", "error"),
        **more,
    )


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (None, None, (10, 50)),
        ("earliest", "latest", (10, 50)),
        (20, 30, (20, 30)),
        (20, 1_000, (20, 50)),
        (1_000, None, (50, 50)),
        ("latest", None, (50, 50)),
        ({("EU", 2): 12}, None, (12, 50)),
        ({(7, 2): 12}, None, (12, 50)),
        ({("EU", 0): 12}, None, (10, 50)),
        ({("EU", 2): -2}, {("EU", 2): -1}, (10, 50)),
    ],
)
def test_a_range_is_what_was_asked_for_as_far_as_it_is_there(start, end, expected):
    found = ranged(start, end)
    assert (found.start, found.stop) == expected
    assert found.span == expected[1] - expected[0]


def test_a_time_begins_where_the_leader_says_and_in_the_future_at_the_end():
    assert ranged("1970-01-01T00:00:01Z", at=33) == Range(start=33, stop=50)
    assert ranged("1970-01-01T00:00:01Z", at=None) == Range(start=50, stop=50)
    assert ranged(None, "1970-01-01T00:00:01Z", at=33) == Range(start=10, stop=33)


def test_what_was_trimmed_is_an_error_unless_the_scan_begins_later():
    with pytest.raises(OffsetOutOfRangeError, match="begins at 10") as caught:
        ranged(5)
    assert (caught.value.offset, caught.value.earliest) == (5, 10)
    assert ranged(5, on_trimmed="earliest") == Range(start=10, stop=50)


def test_an_offset_of_another_incarnation_is_refused():
    with pytest.raises(
        OffsetOutOfRangeError, match="beyond the end of the log, which is 50"
    ) as caught:
        ranged({("EU", 2): 51})
    assert (caught.value.offset, caught.value.end) == (51, 50)


@pytest.mark.parametrize(
    ("options", "is_as_of"), [({"start": 51}, False), ({"end": 51}, False), ({"end": 51}, True)]
)
def test_a_cursor_behind_rows_that_were_lost_is_refused(options, is_as_of):
    cursors = {name: Cursor.of(1, {BUCKET: offset}) for name, offset in options.items()}
    with pytest.raises(
        OffsetOutOfRangeError, match="ends at 50, before the cursor's 51: rows were lost"
    ) as caught:
        ranged(**cursors, is_as_of=is_as_of)
    assert "50" in caught.value.hint
    at_the_end = {name: Cursor.of(1, {BUCKET: 50}) for name in options}
    assert ranged(**at_the_end, is_as_of=is_as_of).stop == 50


def test_a_state_as_of_offsets_after_the_end_is_refused_and_a_cut_there_is_none():
    with pytest.raises(OffsetOutOfRangeError, match="beyond the end"):
        ranged(None, {("EU", 2): 51}, is_as_of=True)
    assert ranged(None, {("EU", 2): 51}).stop == 50
    assert ranged(None, 1_000, is_as_of=True).stop == 50


@pytest.mark.parametrize("as_of", [9, 3])
def test_a_moment_before_retention_is_refused(as_of):
    with pytest.raises(OffsetOutOfRangeError, match="trimmed"):
        ranged(None, as_of, is_as_of=True)


def test_a_time_at_the_trimmed_beginning_may_have_lost_rows():
    with pytest.raises(OffsetOutOfRangeError, match="trimmed"):
        ranged(None, "1970-01-01T00:00:01Z", at=10, is_as_of=True)
    assert ranged(None, "1970-01-01T00:00:01Z", at=11, is_as_of=True).stop == 11
    assert ranged(None, 0, earliest=0, is_as_of=True) == Range(start=0, stop=0)


def test_a_cursor_goes_on_where_it_ended_and_begins_new_partitions():
    cursor = Cursor.of(1, {BUCKET: 30})
    assert ranged(cursor) == Range(start=30, stop=50)
    other = Cursor.of(1, {TableBucket.with_partition(1, 8, 2): 30})
    assert ranged(other) == Range(start=10, stop=50)


def test_a_cursor_of_another_table_is_refused():
    with pytest.raises(TableNotFoundError, match="dropped and created again"):
        ranged(Cursor.of(2, {}))


def test_an_offset_for_a_bucket_that_is_not_read_is_refused():
    places = [("EU", 2), (7, 2)]
    check_places(bound_of({("EU", 2): 0, (7, 2): 1}, "start"), places, "start")
    check_places(bound_of(5, "start"), places, "start")
    with pytest.raises(InvalidValueError, match="not part of the scan"):
        check_places(bound_of({2: 0}, "start"), places, "start")


def test_times_are_held_against_rows_start_inclusive_and_end_exclusive():
    def time(ms):
        return Bound(kind=BoundKind.TIME, number=ms)

    window = window_of(time(10), time(20))
    assert window is not None
    assert [each for each in range(5, 25) if window.holds(each)] == list(range(10, 20))
    assert window_of(None, bound_of(5, "end")) is None
    assert window.meet(Window(start_ms=15)) == Window(start_ms=15, end_ms=20)
    assert window.meet(None) is window


# --- the last rows --------------------------------------------------------------------------------

BATCHES = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 5), st.integers(0, 2)), max_size=8)


@given(st.lists(BATCHES, min_size=1, max_size=4), st.integers(0, 40))
def test_the_last_rows_are_those_of_a_sort_by_time_bucket_and_offset(buckets, rows_max):
    spans, rows = {}, []
    for number, batches in enumerate(buckets):
        bucket, offset, latest = TableBucket(1, number), 0, 0
        spans[bucket] = []
        for timestamp, count, gap in batches:
            offset += gap  # offsets without rows
            latest = max(latest, timestamp)
            spans[bucket].append(Span(base_offset=offset, rows=count, timestamp_ms=timestamp))
            rows += [(latest, bucket, offset + row) for row in range(count)]
            offset += count
    expected = sorted(rows)[max(0, len(rows) - rows_max) :] if rows_max else []
    starts = tail_starts(spans, rows_max)
    kept = [row for row in rows if row[1] in starts and row[2] >= starts[row[1]]]
    assert sorted(kept) == expected
