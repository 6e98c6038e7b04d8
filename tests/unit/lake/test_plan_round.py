"""What a round reads, recovers and may commit."""

import pytest

from fluss.errors import OffsetOutOfRangeError
from fluss.model.extent import Extent
from fluss.model.paths import TableBucket
from fluss_lake.lake_errors import LakeMismatchError
from fluss_lake.tiering.plan_round import (
    KEEP_ALL,
    BucketEnd,
    Known,
    LakeCommit,
    PlannedRange,
    check_ends,
    check_not_created_again,
    commit_properties,
    created_again,
    ends_of,
    is_known,
    kept_from,
    merged_ends,
    missing_commit,
    offsets_path_of,
    plan_range,
)

TABLE, ID = "db.t", 7
B0, B1 = TableBucket(ID, 0), TableBucket(ID, 1)
P0 = TableBucket.with_partition(ID, 3, 0)


def commit(number, *, ours=True, **properties):
    given = commit_properties(ID, "me", f"file-{number}", {B0: BucketEnd(end=number)})
    return LakeCommit(
        snapshot_id=1_000 - number,
        sequence=number,
        properties={**given, **properties} if ours else {},
    )


def known(number, **ends):
    return Known(snapshot_id=1_000 - number, ends=ends or {B0: number})


# --- ranges -----------------------------------------------------------------------------------


def planned(extent, copied, *, key=False, rows_max=100, **more):
    how = {"has_primary_key": key, "rows_max": rows_max, **more}
    return plan_range(B0, Extent(earliest=extent[0], end=extent[1]), copied, **how)


@pytest.mark.parametrize("key", [False, True])
def test_a_bucket_is_read_from_where_it_was_copied_to(key):
    expected = PlannedRange(bucket=B0, start=10, stop=30)
    assert planned((0, 30), 10, key=key) == expected
    assert planned((10, 30), 10, key=key) == expected
    assert planned((0, 30), None, key=key) == PlannedRange(bucket=B0, start=0, stop=30)
    assert planned((0, 30), 30, key=key) == PlannedRange(bucket=B0, start=30, stop=30)


def test_a_round_takes_no_more_than_its_bound():
    assert planned((0, 300), 10) == PlannedRange(bucket=B0, start=10, stop=110, is_cut=True)
    assert planned((0, 110), 10) == PlannedRange(bucket=B0, start=10, stop=110)


def test_a_log_that_is_copied_for_the_first_time_begins_where_it_does():
    assert planned((20, 30), None) == PlannedRange(bucket=B0, start=20, stop=30)


def test_lost_rows_of_a_log_are_refused_or_skipped():
    with pytest.raises(OffsetOutOfRangeError, match="10 rows between them are gone") as raised:
        planned((20, 30), 10)
    assert "--on-lost skip" in raised.value.hint
    passed = planned((20, 30), 10, skips_lost=True)
    assert passed == PlannedRange(bucket=B0, start=20, stop=30)


@pytest.mark.parametrize("copied", [None, 10])
def test_the_state_replaces_changes_that_are_gone(copied):
    found = planned((20, 3_000), copied, key=True)
    assert found == PlannedRange(bucket=B0, start=3_000, stop=3_000, is_state=True)
    # Nothing has happened since, so that nothing is missing.
    assert planned((20, 20), 20, key=True) == PlannedRange(bucket=B0, start=20, stop=20)


def test_a_log_that_has_become_shorter_is_refused():
    for key in (False, True):
        with pytest.raises(OffsetOutOfRangeError, match="never go backwards"):
            planned((0, 9), 10, key=key)


# --- what an earlier round left ---------------------------------------------------------------


def test_nothing_is_missing_where_the_cluster_knows_the_newest():
    assert missing_commit(TABLE, ID, None, []) is None
    assert missing_commit(TABLE, ID, known(2), [commit(2), commit(1)]) is None
    # A compaction on top of it is no round.
    assert missing_commit(TABLE, ID, known(2), [commit(3, ours=False), commit(2)]) is None
    # The cluster knows a compaction of Flink's job, which is the newer one.
    assert missing_commit(TABLE, ID, known(3), [commit(3, ours=False), commit(2)]) is None


def test_a_round_that_ended_between_its_commits_is_found():
    newest = commit(3)
    assert missing_commit(TABLE, ID, known(2), [newest, commit(2)]) is newest
    assert missing_commit(TABLE, ID, None, [newest, commit(2)]) is newest
    hidden = [commit(4, ours=False), newest, commit(2)]
    assert missing_commit(TABLE, ID, known(2), hidden) is newest


def test_a_lake_that_lacks_what_the_cluster_knows_is_refused():
    with pytest.raises(LakeMismatchError, match="does not have the snapshot 998") as raised:
        missing_commit(TABLE, ID, known(2), [commit(1)])
    assert raised.value.snapshot_id == 998
    with pytest.raises(LakeMismatchError, match="does not have"):
        missing_commit(TABLE, ID, known(2), [])


def test_rows_of_another_table_or_program_are_refused():
    with pytest.raises(LakeMismatchError, match="id 6, and this one has 7"):
        missing_commit(TABLE, ID, None, [commit(1, **{"fluss-tiering.table-id": "6"})])
    with pytest.raises(LakeMismatchError, match="no tiering service made"):
        missing_commit(TABLE, ID, None, [commit(1, ours=False)])


# --- what is committed ------------------------------------------------------------------------


def test_a_snapshot_says_which_offsets_it_has():
    ends = {P0: BucketEnd(end=5), B1: BucketEnd(end=9, max_timestamp_ms=70)}
    properties = commit_properties(ID, "me", "s3://f/x", ends)
    assert properties["commit-user"] == "__fluss_lake_tiering"
    assert properties["fluss-offsets"] == "s3://f/x"
    made = LakeCommit(snapshot_id=1, sequence=1, properties=properties)
    assert made.is_tiered
    assert ends_of(ID, made) == ends
    assert offsets_path_of(TABLE, made) == "s3://f/x"
    of_flink = {"commit-user": "__fluss_lake_tiering", "fluss-offsets": "f"}
    assert ends_of(ID, LakeCommit(snapshot_id=1, sequence=1, properties=of_flink)) is None
    with pytest.raises(LakeMismatchError, match="does not name its offsets"):
        offsets_path_of(TABLE, LakeCommit(snapshot_id=1, sequence=1))


def test_so_many_buckets_are_not_listed_in_each_snapshot():
    ends = {TableBucket(ID, each): BucketEnd(end=each) for each in range(5_000)}
    assert "fluss-tiering.ends" not in commit_properties(ID, "me", "f", ends)


def test_all_buckets_are_reported_and_none_goes_backwards():
    ends = merged_ends(known(4), {B1: BucketEnd(end=2)})
    assert ends == {B0: BucketEnd(end=4), B1: BucketEnd(end=2)}
    check_ends(TABLE, known(4), ends)
    check_ends(TABLE, None, ends)
    for wrong in ({B0: BucketEnd(end=3)}, {B1: BucketEnd(end=9)}):
        with pytest.raises(LakeMismatchError, match="go backwards"):
            check_ends(TABLE, known(4), wrong)


def test_the_snapshot_before_stays_readable():
    assert kept_from(known(4)) == 996
    assert kept_from(None) == KEEP_ALL


def test_a_snapshot_is_reported_once_and_not_over_another():
    assert is_known(TABLE, known(4), known(5), 995)
    assert not is_known(TABLE, known(4), known(4), 995)
    assert not is_known(TABLE, None, None, 995)
    for before, now in ((known(4), known(6)), (None, known(6)), (known(4), None)):
        with pytest.raises(LakeMismatchError, match="Another program"):
            is_known(TABLE, before, now, 995)


# --- partitions -------------------------------------------------------------------------------


def test_a_partition_that_the_lake_has_by_name_and_the_cluster_not_by_number_was_created_again():
    p1 = TableBucket.with_partition(ID, 4, 0)
    names = {P0: "a", p1: "b"}
    before = Known(snapshot_id=1, ends={P0: 10})
    assert created_again(before, names, {"a", "b"}) == {"b"}
    assert created_again(before, names, {"a"}) == frozenset()
    # Another bucket of the same partition was copied before.
    other = Known(snapshot_id=1, ends={P0: 10, TableBucket.with_partition(ID, 4, 1): 5})
    assert created_again(other, names, {"a", "b"}) == frozenset()
    assert created_again(None, names, {"a", "b"}) == {"a", "b"}
    assert created_again(None, {B0: None}, {None}) == frozenset()


def test_rows_by_key_are_not_added_to_those_of_earlier_partitions():
    check_not_created_again(TABLE, frozenset())
    with pytest.raises(LakeMismatchError, match="'a', 'b', 'c' dropped") as raised:
        check_not_created_again(TABLE, {"c", "b", "a", "d"})
    assert "replaces_partitions" in raised.value.hint
