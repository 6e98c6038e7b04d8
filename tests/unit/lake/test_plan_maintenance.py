"""Which snapshots expire, and which files are written again."""

import pytest

from fluss_lake.lake_errors import LakeMismatchError
from fluss_lake.tiering.plan_maintenance import expired, is_orphan, runs_to_rewrite
from fluss_lake.tiering.plan_round import COMMIT_USER, COMMIT_USER_KEY, LakeCommit

OURS = {COMMIT_USER_KEY: COMMIT_USER}


def commit(number, properties=OURS):
    return LakeCommit(snapshot_id=number, sequence=number, properties=properties)


COMMITS = [commit(5, {}), commit(4), commit(3), commit(2), commit(1)]
TIMES = {each: each * 10 for each in range(1, 6)}


def gone(known=3, before=1_000, keep_last=1, **more):
    return expired("db.t", known, COMMITS, TIMES, before_ms=before, keep_last=keep_last, **more)


def test_snapshots_in_use_are_kept():
    # 5 is the newest, 4 may not be known to the cluster yet, 3 is what it knows.
    assert gone() == [1, 2]
    assert gone(known=4) == [1, 2, 3]
    assert gone(known=None) == [1, 2, 3]
    assert gone(before=20) == [1]
    assert gone(keep_last=4) == [1]
    assert gone(named={1}) == [2]


def test_nothing_expires_where_the_cluster_knows_another_lake():
    with pytest.raises(LakeMismatchError, match="does not have the snapshot 99"):
        gone(known=99)


S, L = (1, False), (100, False)
D = (100, True)


@pytest.mark.parametrize(
    ("sizes", "ordered", "unordered"),
    [
        ([], [], []),
        ([S], [], []),
        ([S, S], [[0, 1]], [[0, 1]]),
        ([S, L, S], [], [[0, 2]]),
        ([S, S, L, S, S, S], [[0, 1], [3, 4, 5]], [[0, 1, 3, 4, 5]]),
        ([L, D, L], [[1]], [[1]]),
        ([L, L], [], []),
    ],
)
def test_small_files_are_joined_and_logs_keep_their_order(sizes, ordered, unordered):
    assert list(runs_to_rewrite(sizes, file_bytes=100, is_ordered=True)) == ordered
    assert list(runs_to_rewrite(sizes, file_bytes=100, is_ordered=False)) == unordered


FILE = "0123456789abcdef-0-0123456789ab-rows-0.parquet"


@pytest.mark.parametrize(
    ("name", "modified_ms", "is_in_snapshot", "expected"),
    [
        (FILE, 99, False, True),
        ("0123456789abcdef-17-0-0123456789ab-deletes-3.parquet", 99, False, True),
        ("0123456789abcdef-0-2-compacted-0.parquet", 99, False, True),
        ("0123456789abcdef-0123abcd-0-2-compacted-0.parquet", 99, False, True),
        (FILE, 99, True, False),
        (FILE, 100, False, False),
        (FILE, None, False, False),
        ("00000-0-4f1c7c2e-data.parquet", 99, False, False),
        (FILE.replace(".parquet", ".avro"), 99, False, False),
    ],
)
def test_orphans_are_old_files_of_ours_that_no_snapshot_has(
    name, modified_ms, is_in_snapshot, expected
):
    found = is_orphan(
        name=name, modified_ms=modified_ms, is_in_snapshot=is_in_snapshot, before_ms=100
    )
    assert found is expected
