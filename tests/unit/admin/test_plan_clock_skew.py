"""The difference of two clocks is found by yes-or-no answers, within a bound of questions."""

import pytest
from hypothesis import given, strategies as st

from fluss.admin.plan_clock_skew import PRECISION_MS, QUESTIONS_MAX, WIDEST_MS, SkewSearch


def search_for(skew_ms):
    search = SkewSearch()
    while not search.is_done:
        search.note(is_future=search.guess_ms > skew_ms)
    return search


@given(st.integers(-WIDEST_MS, WIDEST_MS))
def test_any_difference_up_to_a_week_is_found(skew_ms):
    search = search_for(skew_ms)
    if search.skew_ms is not None or abs(skew_ms) < WIDEST_MS // 4:
        assert abs(search.skew_ms - skew_ms) <= PRECISION_MS
    assert search.questions < QUESTIONS_MAX


@pytest.mark.parametrize("skew_ms", [-5 * WIDEST_MS, 5 * WIDEST_MS])
def test_a_larger_difference_is_given_up(skew_ms):
    assert search_for(skew_ms).skew_ms is None


def test_contradicting_answers_end():
    search = SkewSearch()
    answer = False
    while not search.is_done:
        answer = not answer
        search.note(is_future=answer)
    assert search.questions <= QUESTIONS_MAX
