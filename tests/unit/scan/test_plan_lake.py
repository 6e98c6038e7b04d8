"""A bucket with a lake is one longer log, which is divided where the lake ends."""

import pytest

from fluss.errors import OffsetOutOfRangeError
from fluss.lake.lake_format import LakePart
from fluss.model.extent import Extent
from fluss.model.options.scan_options import scan_options
from fluss.model.paths import TableBucket
from fluss.scan.plan_lake import divide, facts_of_dropped, with_lake, with_lake_state
from fluss.scan.plan_scan import BucketFacts, Range, decide_range

BUCKET = TableBucket(1, 0)


def part(first=0, end=100):
    return LakePart(
        format="iceberg",
        snapshot_id=1,
        partition_name=None,
        bucket_id=0,
        first_offset=first,
        end=end,
        files=("a",),
        files_left_out=0,
        rows_max=end - first,
        is_whole=True,
        size_bytes=1,
    )


def facts(earliest=80, end=150, **more):
    return BucketFacts(
        bucket=BUCKET, partition_name=None, extent=Extent(earliest=earliest, end=end), **more
    )


def ranges(known, start=None, stop=None, **options):
    decided = decide_range(known, start=None, end=None, on_trimmed="error")
    decided = Range(
        start=decided.start if start is None else start, stop=decided.stop if stop is None else stop
    )
    found = divide(decided, known, scan_options(options))
    return tuple(None if each is None else (each.start, each.stop) for each in found)


BOTH = with_lake(facts(), part(), 100)


@pytest.mark.parametrize(
    ("start", "stop", "expected"),
    [
        (None, None, ((0, 100), (100, 150))),
        (20, 60, ((20, 60), (60, 60))),
        (20, 100, ((20, 100), (100, 100))),
        (99, 101, ((99, 100), (100, 101))),
        (100, 150, (None, (100, 150))),
        (120, 150, (None, (120, 150))),
    ],
)
def test_a_range_is_divided_where_the_lake_ends(start, stop, expected):
    assert ranges(BOTH, start, stop) == expected


def test_a_bucket_begins_where_its_lake_does():
    assert BOTH.extent == Extent(earliest=0, end=150)
    assert with_lake(facts(), part(first=30), 100).extent.earliest == 30
    assert with_lake(facts(earliest=20), part(first=30), 100).extent.earliest == 20


def test_only_the_lake_is_read_where_that_is_requested():
    assert ranges(BOTH, lake="only") == ((0, 100), None)
    assert ranges(with_lake(facts(), None, None), lake="only") == (None, None)


def test_a_bucket_that_the_lake_does_not_have_is_read_in_the_log():
    assert ranges(with_lake(facts(), None, None)) == (None, (80, 150))
    assert ranges(with_lake(facts(earliest=0), None, 0)) == (None, (0, 150))


def test_rows_that_neither_has_are_an_error():
    gap = with_lake(facts(earliest=120), part(), 100)
    with pytest.raises(OffsetOutOfRangeError, match="100 to 120 of bucket 0 are lost"):
        ranges(gap)
    assert ranges(gap, on_trimmed="earliest") == ((0, 100), (120, 150))
    assert ranges(gap, 0, 90) == ((0, 90), (90, 90))
    assert ranges(gap, 130, 150) == (None, (130, 150))


def test_a_time_that_the_log_is_too_young_for_begins_with_the_lake():
    moved = with_lake(facts(at_start=80, at_end=80, at_filter_start=80), part(), 100)
    assert (moved.at_start, moved.at_filter_start, moved.at_end) == (0, 0, 80)
    later = with_lake(facts(at_start=90, at_filter_start=None), part(), 100)
    assert (later.at_start, later.at_filter_start) == (90, None)


def test_a_partition_that_was_dropped_is_read_in_the_lake_alone():
    assert ranges(facts_of_dropped(BUCKET, "d", part(10, 60))) == ((10, 60), None)
    assert ranges(facts_of_dropped(BUCKET, "d", None)) == (None, None)


def test_a_state_keeps_the_beginning_of_its_log():
    known = with_lake_state(facts(), part(), 100)
    assert (known.extent.earliest, known.lake_end, known.log_begin) == (80, 100, 80)
