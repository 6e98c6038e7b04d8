import pytest

from fluss.log.plan_fetch import (
    BUSY_FOR_S,
    BYTES_FIRST,
    FETCHES_AHEAD,
    PARKED_MS_BUSY,
    PARKED_MS_QUIET,
    QUIET_FOR_S,
    FetchLimits,
    FetchPlan,
    Position,
)
from fluss.model.paths import PhysicalTablePath, TableBucket, TablePath
from fluss.net.plan_routing import Leader

PATH = PhysicalTablePath(TablePath("db", "t"))


def position(bucket_id=0, offset=0, **facts):
    return Position(bucket=TableBucket(1, bucket_id), path=PATH, offset=offset, **facts)


def plan_of(*positions, is_bounded=False, now=0.0, **limits):
    plan = FetchPlan(FetchLimits(**limits), is_bounded)
    for each in positions:
        plan.subscribe(each, now=now)
    return plan


def fetches(plan, now=0.0, leaders=lambda _: 0):
    """The requests that go now, with leaders given as server ids (None where there is none)."""

    def leader_of(bucket):
        server_id = leaders(bucket)
        return None if server_id is None else Leader(server_id=server_id, epoch=0)

    return plan.next_fetches(now=now, leader_of=leader_of)


def buckets(fetch):
    return [each.bucket.bucket_id for each in fetch.positions]


def test_one_request_per_server_carries_all_its_buckets():
    plan = plan_of(*(position(bucket_id) for bucket_id in range(4)))
    sent, leaderless = fetches(plan, leaders=lambda bucket: bucket.bucket_id % 2)
    assert sorted((each.server_id, buckets(each)) for each in sent) == [(0, [0, 2]), (1, [1, 3])]
    assert leaderless == []


def test_a_server_has_one_request_of_a_kind_in_flight():
    plan = plan_of(position(0))
    (first,), _ = fetches(plan)
    plan.subscribe(position(1), now=0.0)
    assert fetches(plan) == ([], [])
    plan.ended(first)
    (second,), _ = fetches(plan)
    assert buckets(second) == [0, 1]


def test_whole_and_projected_batches_are_fetched_by_separate_requests():
    plan = plan_of(position(0), position(1, pushes_projection=False))
    sent, _ = fetches(plan)
    assert sorted((each.pushes_projection, buckets(each)) for each in sent) == [
        (False, [1]),
        (True, [0]),
    ]


def test_a_bucket_without_a_leader_is_named_and_delays_no_other():
    plan = plan_of(position(0), position(1))
    (sent,), (leaderless,) = fetches(plan, leaders=lambda bucket: bucket.bucket_id or None)
    assert buckets(sent) == [1]
    assert leaderless.bucket.bucket_id == 0


def test_a_bucket_that_got_rows_is_requested_last():
    plan = plan_of(*(position(bucket_id) for bucket_id in range(4)))
    (first,), _ = fetches(plan)
    plan.ended(first)
    plan.served(first.positions[:2])
    (second,), _ = fetches(plan)
    assert buckets(second) == [2, 3, 0, 1]


def test_nothing_is_fetched_while_too_much_is_unread():
    here = position(0)
    plan = plan_of(here, unread_bytes_max=100)
    (fetch,), _ = fetches(plan)
    plan.ended(fetch)
    plan.advance(here, next_offset=10, unread_bytes=99, now=0.0)
    assert len(fetches(plan)[0]) == 1
    plan.ended(fetch)
    plan.advance(here, next_offset=11, unread_bytes=1, now=0.0)
    assert plan.is_full
    assert fetches(plan) == ([], [])
    plan.consumed(here, 1)
    assert len(fetches(plan)[0]) == 1


def test_a_bucket_with_many_unread_bytes_waits_and_delays_no_other():
    full, other = position(0), position(1)
    plan = plan_of(full, other, bytes_max_for_bucket=100)
    plan.advance(full, next_offset=10, unread_bytes=FETCHES_AHEAD * 100, now=0.0)
    plan.advance(other, next_offset=10, unread_bytes=FETCHES_AHEAD * 100 - 1, now=0.0)
    (fetch,), _ = fetches(plan)
    assert buckets(fetch) == [1]
    plan.ended(fetch)
    plan.consumed(full, 1)
    (fetch,), _ = fetches(plan)
    assert buckets(fetch) == [0, 1]


def test_a_reader_that_waits_for_rows_gets_few_at_first():
    limit = 1024 * 1024
    waiting, counting = position(0), position(0)
    plan_of(waiting)
    plan_of(counting, is_bounded=True)
    assert waiting.bytes_to_ask(limit) == BYTES_FIRST
    assert waiting.bytes_to_ask(1_000) == 1_000
    assert counting.bytes_to_ask(limit) == limit
    waiting.batch_bytes = 10
    assert waiting.bytes_to_ask(limit) == limit


def test_what_was_unread_of_an_unsubscribed_bucket_does_not_count():
    here = position(0)
    plan = plan_of(here, position(1), unread_bytes_max=100)
    plan.advance(here, next_offset=10, unread_bytes=100, now=0.0)
    assert plan.is_full
    plan.unsubscribe(here.bucket)
    assert not plan.is_full
    plan.consumed(here, 100)
    plan.advance(here, next_offset=20, unread_bytes=100, now=0.0)
    assert not plan.is_full


def test_a_bucket_subscribed_again_restarts_while_the_old_answer_is_in_flight():
    old, new = position(0, offset=5), position(0, offset=0)
    plan = plan_of(old)
    (fetch,), _ = fetches(plan)
    plan.subscribe(new, now=0.0)
    assert not plan.is_current(old)
    assert plan.is_current(new)
    plan.ended(fetch)
    (again,), _ = fetches(plan)
    assert again.positions == (new,)


def test_unsubscribing_while_a_request_is_in_flight_leaves_nothing():
    here = position(0)
    plan = plan_of(here)
    (fetch,), _ = fetches(plan)
    plan.unsubscribe(here.bucket)
    plan.ended(fetch)
    plan.served([here])
    assert fetches(plan) == ([], [])
    assert plan.positions == {}


def test_a_bounded_read_stops_at_the_first_high_watermark():
    here = position(0)
    plan = plan_of(here, is_bounded=True)
    plan.pin(here, 10)
    plan.pin(here, 25)
    assert here.stop == 10
    plan.advance(here, next_offset=9, unread_bytes=0, now=0.0)
    assert not plan.is_finished
    plan.advance(here, next_offset=12, unread_bytes=0, now=0.0)
    assert plan.is_finished
    assert fetches(plan) == ([], [])


def test_a_bounded_read_of_an_empty_log_ends_for_any_start():
    for offset in (-2, -1, 0):
        here = position(0, offset=offset)
        plan = plan_of(here, is_bounded=True)
        plan.pin(here, 0)
        assert plan.is_finished


def test_an_earliest_offset_is_not_over_because_others_filled_the_answer():
    here = position(0, offset=-2)
    plan = plan_of(here, is_bounded=True)
    plan.pin(here, 10)
    assert not plan.is_finished


def test_a_read_that_follows_has_no_end():
    here = position(0)
    plan = plan_of(here)
    plan.pin(here, 0)
    assert here.stop is None
    assert not plan.is_finished


def test_a_paused_bucket_is_fetched_when_its_pause_is_over():
    here = position(0, paused_until=2.0)
    plan = plan_of(here, position(1, paused_until=3.0))
    assert fetches(plan, now=1.0) == ([], [])
    assert plan.next_pause_end(now=1.0) == 2.0
    (fetch,), _ = fetches(plan, now=2.0)
    assert buckets(fetch) == [0]
    assert plan.next_pause_end(now=2.0) == 3.0


def test_progress_ends_a_series_of_failures():
    here = position(0, attempts=3, remote_attempts=2)
    plan = plan_of(here)
    plan.advance(here, next_offset=0, unread_bytes=0, now=0.0)
    assert here.attempts == 3
    plan.advance(here, next_offset=1, unread_bytes=0, now=0.0)
    assert (here.attempts, here.remote_attempts) == (0, 0)


@pytest.mark.parametrize(
    ("idle_s", "parked_ms"),
    [
        (0, PARKED_MS_BUSY),
        (BUSY_FOR_S, PARKED_MS_QUIET),
        (QUIET_FOR_S, 500),
    ],
)
def test_a_server_parks_a_reader_the_longer_it_was_idle(idle_s, parked_ms):
    plan = plan_of(position(0), now=1_000.0)
    (fetch,), _ = fetches(plan, now=1_000.0 + idle_s)
    assert (fetch.wait_ms_max, fetch.bytes_min) == (parked_ms, 1)


def test_rows_and_subscriptions_make_a_reader_busy_again():
    here = position(0)
    plan = plan_of(here)
    plan.advance(here, next_offset=1, unread_bytes=10, now=100.0)
    (fetch,), _ = fetches(plan, now=101.0)
    assert fetch.wait_ms_max == PARKED_MS_BUSY
    plan.ended(fetch)
    plan.subscribe(position(1), now=500.0)
    (fetch,), _ = fetches(plan, now=500.0)
    assert fetch.wait_ms_max == PARKED_MS_BUSY


def test_a_reader_is_never_parked_for_longer_than_it_was_configured():
    plan = plan_of(position(0), wait_ms_max=5)
    for now in (0.0, 20.0, 1_000.0):
        (fetch,), _ = fetches(plan, now=now)
        assert fetch.wait_ms_max == 5
        plan.ended(fetch)


def test_a_bounded_read_is_never_parked():
    plan = plan_of(position(0), is_bounded=True)
    (fetch,), _ = fetches(plan, now=1_000.0)
    assert (fetch.wait_ms_max, fetch.bytes_min) == (None, None)


@pytest.mark.parametrize(
    ("batch_bytes", "asked"),
    [(0, 1_000), (400, 850), (300, 937), (999, 1_000), (1_001, 1_000), (10, 1_000)],
)
def test_whole_batches_are_asked_for_where_a_cut_one_would_count(batch_bytes, asked):
    assert position(batch_bytes=batch_bytes).bytes_to_ask(1_000) == asked
