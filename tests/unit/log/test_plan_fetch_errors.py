import pytest

from fluss.errors import (
    ConnectError,
    CorruptBatchError,
    OffsetOutOfRangeError,
    error_from_code,
)
from fluss.log.plan_fetch import Position
from fluss.log.plan_fetch_errors import (
    LAG_S_MAX,
    REMOTE_ATTEMPTS_MAX,
    Recovery,
    RetryContext,
    decide_refusal,
    decide_remote_failure,
    decide_stall,
    forgive,
    out_of_range,
)
from fluss.model.paths import PhysicalTablePath, TableBucket, TablePath
from fluss.net.plan_retry import RetryPolicy

POLICY = RetryPolicy(delay_first_ms=100, delay_ms_max=1_000)
PATIENCE_S = 120.0


def at(now):
    return RetryContext(policy=POLICY, patience_s=PATIENCE_S, now=now, jitter=0.5)


def position(offset=0, **facts):
    path = PhysicalTablePath(TablePath("db", "t"))
    return Position(bucket=TableBucket(1, 3), path=path, offset=offset, **facts)


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (1, Recovery.LEADER),
        (12, Recovery.LEADER),
        (21, Recovery.LEADER),
        (44, Recovery.LEADER),
        (25, Recovery.NOTHING),
        (48, Recovery.GIVEN_UP),
        (-1, Recovery.GIVEN_UP),
    ],
)
def test_the_code_decides_what_to_look_up(code, remedy):
    here = position()
    assert decide_refusal(here, error_from_code(code), at(0.0)) is remedy
    assert (here.error is not None) == (remedy is Recovery.GIVEN_UP)
    assert (here.paused_until > 0) == (remedy is not Recovery.GIVEN_UP)


def test_pauses_grow_until_the_time_limit():
    here = position()
    now, pauses = 1_000.0, []
    while decide_refusal(here, ConnectError("no"), at(now)) is Recovery.LEADER:
        pauses.append(round(here.paused_until - now, 3))
        now = here.paused_until
    assert pauses[:5] == [0.1, 0.2, 0.4, 0.8, 1.0]
    assert PATIENCE_S - 2 < now - 1_000.0 < PATIENCE_S
    assert isinstance(here.error, ConnectError)


def test_a_forgiven_bucket_has_its_whole_time_limit_again():
    here = position()
    decide_refusal(here, ConnectError("no"), at(0.0))
    assert decide_refusal(here, ConnectError("no"), at(PATIENCE_S)) is Recovery.GIVEN_UP
    forgive(here)
    assert here.error is None
    assert decide_refusal(here, ConnectError("no"), at(PATIENCE_S)) is Recovery.LEADER


def test_a_batch_older_than_a_column_is_fetched_whole_immediately():
    here = position()
    late = error_from_code(34, "Projected field id 2 is out of bound")
    assert decide_refusal(here, late, at(0.0)) is Recovery.NOTHING
    assert not here.pushes_projection
    assert (here.paused_until, here.attempts) == (0.0, 0)
    assert decide_refusal(here, late, at(0.0)) is Recovery.GIVEN_UP


def test_an_offset_out_of_range_asks_for_the_range_but_not_for_ever():
    here = position(5)
    refused = OffsetOutOfRangeError("no")
    assert decide_refusal(here, refused, at(0.0)) is Recovery.RANGE
    assert here.paused_until > 0
    assert decide_refusal(here, refused, at(PATIENCE_S)) is Recovery.GIVEN_UP


@pytest.mark.parametrize(
    ("has_read", "earliest", "latest", "expected"),
    [
        (False, 0, 30, "the log ends at 30"),
        (False, 70, 90, "rows before 70 have been removed"),
        (True, 70, 90, "rows before 70 have been removed"),
        (True, 0, 30, "went backwards: it ends at offset 30, and 50 has been read"),
    ],
)
def test_the_error_names_why_an_offset_cannot_be_read(has_read, earliest, latest, expected):
    error = out_of_range(position(50, has_read=has_read), earliest=earliest, latest=latest)
    assert expected in str(error)
    assert (error.table, error.bucket, error.offset) == ("db.t", 3, 50)
    if "went backwards" not in expected:
        assert isinstance(error, OffsetOutOfRangeError)
        assert (error.earliest_offset, error.latest_offset) == (earliest, latest)


@pytest.mark.parametrize("offset", [-2, 0, 25, 30])
def test_an_offset_that_is_there_by_now_is_no_error(offset):
    assert out_of_range(position(offset), earliest=0, latest=30) is None


def test_a_bucket_at_its_end_is_not_stalled():
    here = position(10, has_read=True, attempts=3)
    assert decide_stall(here, 10, at(0.0)) is Recovery.NOTHING
    assert (here.attempts, here.paused_until) == (0, 0.0)
    empty = position(-2)
    assert decide_stall(empty, 0, at(0.0)) is Recovery.NOTHING
    assert empty.paused_until == 0.0


def test_rows_that_are_announced_and_never_come_end_the_read():
    here = position(10)
    assert decide_stall(here, 20, at(0.0)) is Recovery.NOTHING
    assert here.paused_until > 0
    assert decide_stall(here, 20, at(PATIENCE_S)) is Recovery.GIVEN_UP
    assert "is reported to have rows at offset 10" in str(here.error)


def test_an_earliest_offset_that_brings_nothing_is_looked_up():
    assert decide_stall(position(-2), 20, at(0.0)) is Recovery.RANGE


def test_a_new_leader_may_lag_for_a_while_but_a_log_must_not_go_backwards():
    here = position(10, has_read=True)
    assert decide_stall(here, 8, at(0.0)) is Recovery.NOTHING
    assert here.paused_until > 0
    assert decide_stall(here, 8, at(LAG_S_MAX / 2)) is Recovery.NOTHING
    assert decide_stall(here, 8, at(LAG_S_MAX)) is Recovery.GIVEN_UP
    assert "went backwards" in str(here.error)


def test_a_lag_that_ends_resets_the_time_limit():
    here = position(10, has_read=True)
    decide_stall(here, 8, at(0.0))
    assert decide_stall(here, 10, at(20.0)) is Recovery.NOTHING
    assert decide_stall(here, 8, at(40.0)) is Recovery.NOTHING


def test_a_user_may_wait_for_an_offset_beyond_the_end():
    here = position(100)
    assert decide_stall(here, 8, at(0.0)) is Recovery.NOTHING
    assert decide_stall(here, 8, at(1e6)) is Recovery.NOTHING
    assert here.error is None


def test_a_log_that_ends_before_the_end_that_was_pinned_has_gone_backwards():
    here = position(5, stop=20)
    assert decide_stall(here, 5, at(0.0)) is Recovery.NOTHING
    assert decide_stall(here, 5, at(LAG_S_MAX)) is Recovery.GIVEN_UP


def test_a_remote_file_is_read_a_few_times():
    here = position()
    error = CorruptBatchError("damaged")
    for _ in range(REMOTE_ATTEMPTS_MAX - 1):
        assert decide_remote_failure(here, error, at(0.0)) is Recovery.NOTHING
        assert here.paused_until > 0
    assert decide_remote_failure(here, error, at(0.0)) is Recovery.GIVEN_UP
    assert here.error is error
