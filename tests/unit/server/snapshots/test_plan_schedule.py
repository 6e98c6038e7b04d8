"""When a KV snapshot of a bucket is due."""

from itertools import pairwise

from fluss.model.paths import TableBucket
from fluss_server.snapshots.plan_schedule import Schedule

BUCKET = TableBucket(1, 0)
INTERVAL_MS = 1_000


def looks(schedule, bucket, times, interval_ms=INTERVAL_MS):
    return [
        now_ms
        for now_ms in times
        if schedule.is_due(bucket, now_ms=now_ms, interval_ms=interval_ms)
    ]


def test_the_first_look_comes_in_the_second_half_of_an_interval_and_then_one_each_interval():
    firsts = set()
    for number in range(200):
        found = looks(Schedule(), TableBucket(1, number), range(0, 5_000, 10))
        assert 500 <= found[0] <= 1_000
        assert {later - earlier for earlier, later in pairwise(found)} == {1_000}
        firsts.add(found[0])
    assert len(firsts) > 20, "the buckets of a table are not due together"


def test_a_shorter_interval_has_an_effect_immediately():
    schedule = Schedule()
    looks(schedule, BUCKET, range(0, 1_000, 10))
    schedule.note(BUCKET, now_ms=1_000)
    assert looks(schedule, BUCKET, range(1_000, 1_300, 10), interval_ms=100) == [1_100, 1_200]


def test_a_snapshot_that_was_made_early_counts():
    schedule = Schedule()
    schedule.note(BUCKET, now_ms=5_000)
    assert looks(schedule, BUCKET, range(5_000, 6_100, 100)) == [6_000]


def test_a_clock_that_is_set_back_stops_nothing():
    schedule = Schedule()
    schedule.note(BUCKET, now_ms=10**12)
    assert looks(schedule, BUCKET, [5_000, 5_500, 6_000]) == [5_000, 6_000]


def test_a_dropped_bucket_is_forgotten():
    schedule = Schedule()
    schedule.note(BUCKET, now_ms=0)
    schedule.forget(BUCKET)
    schedule.forget(BUCKET)
    assert not schedule.is_due(BUCKET, now_ms=10**6, interval_ms=INTERVAL_MS)
