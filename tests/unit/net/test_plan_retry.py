from hypothesis import given, strategies as st

from fluss.errors import ConnectError, LeaderChangedError, TableNotFoundError
from fluss.net.plan_retry import JITTER, RetryPolicy, decide_retry, pause_ms

POLICY = RetryPolicy(attempts_max=5, delay_first_ms=20, delay_ms_max=1_000)


def decide(error, **changes):
    facts = {"attempt": 1, "now": 100.0, "deadline": 200.0, "jitter": 0.5} | changes
    return decide_retry(POLICY, error, **facts)


def test_an_error_that_is_not_retriable_is_not_retried():
    assert decide(TableNotFoundError("gone")) is None


def test_a_foreign_error_is_not_retried():
    assert decide(ValueError("a bug")) is None


def test_a_lost_connection_is_retried_after_a_metadata_refresh():
    retry = decide(ConnectError("hung up"))
    assert retry is not None
    assert retry.refresh_metadata
    assert retry.at == 100.02


def test_the_last_attempt_is_the_last():
    assert decide(LeaderChangedError("moved"), attempt=4) is not None
    assert decide(LeaderChangedError("moved"), attempt=5) is None


def test_no_pause_goes_past_the_deadline():
    assert decide(LeaderChangedError("moved"), deadline=100.02) is None


@given(attempt=st.integers(1, 2**31 - 1), jitter=st.floats(0, 1))
def test_a_pause_is_bounded_and_spread(attempt, jitter):
    pause = pause_ms(POLICY, attempt=attempt, jitter=jitter)
    assert 20 * (1 - JITTER) <= pause <= 1_000 * (1 + JITTER)
