"""Which table a tiering worker gets, and until when it has it."""

from __future__ import annotations

import pytest

from fluss.errors import FlussError
from fluss.model.paths import TablePath
from fluss_server.lake.plan_tiering import LEASE_MS, TieringPlan

FRESHNESS_MS = 10_000


def plan_of(*table_ids, tiered_ms=0):
    plan = TieringPlan()
    for table_id in table_ids:
        path = TablePath("shop", f"t{table_id}")
        plan.put(table_id, path, freshness_ms=FRESHNESS_MS, tiered_ms=tiered_ms)
    return plan


def code_of(call):
    with pytest.raises(FlussError) as caught:
        call()
    return caught.value.error_code


def test_a_table_is_handed_out_when_its_interval_is_over():
    plan = plan_of(1)
    assert plan.request(now_ms=FRESHNESS_MS - 1) is None
    found = plan.request(now_ms=FRESHNESS_MS)
    assert (found.table_id, found.path, found.epoch) == (1, TablePath("shop", "t1"), 1)
    assert plan.request(now_ms=FRESHNESS_MS) is None


def test_the_table_that_waits_longest_is_first():
    plan = plan_of(1)
    plan.put(2, TablePath("shop", "t2"), freshness_ms=1, tiered_ms=0)
    assert [plan.request(now_ms=FRESHNESS_MS).table_id for _ in range(2)] == [2, 1]


def test_a_finished_table_waits_for_its_interval_and_gets_another_epoch():
    plan = plan_of(1)
    plan.request(now_ms=FRESHNESS_MS)
    plan.finish(1, 1, is_forced=False, now_ms=20_000)
    assert plan.request(now_ms=20_000 + FRESHNESS_MS - 1) is None
    assert plan.request(now_ms=20_000 + FRESHNESS_MS).epoch == 2


def test_a_failed_or_broken_off_round_is_repeated_immediately():
    plan = plan_of(1)
    plan.request(now_ms=FRESHNESS_MS)
    plan.fail(1, 1, now_ms=FRESHNESS_MS)
    assert plan.request(now_ms=FRESHNESS_MS).epoch == 2
    plan.finish(1, 2, is_forced=True, now_ms=FRESHNESS_MS)
    assert plan.request(now_ms=FRESHNESS_MS).epoch == 3


def test_a_silent_worker_loses_its_table_after_two_minutes():
    plan = plan_of(1)
    got = FRESHNESS_MS
    plan.request(now_ms=got)
    plan.renew(1, 1, now_ms=got + LEASE_MS - 1)
    renewed = got + LEASE_MS - 1
    assert plan.request(now_ms=renewed + LEASE_MS - 1) is None
    assert plan.request(now_ms=renewed + LEASE_MS).epoch == 2
    for late in (
        lambda: plan.finish(1, 1, is_forced=False, now_ms=renewed + LEASE_MS),
        lambda: plan.fail(1, 1, now_ms=renewed + LEASE_MS),
        lambda: plan.renew(1, 1, now_ms=renewed + LEASE_MS),
    ):
        assert code_of(late) == 50


def test_a_lost_table_that_no_worker_has_taken_is_lost_all_the_same():
    plan = plan_of(1)
    plan.request(now_ms=FRESHNESS_MS)
    late = FRESHNESS_MS + LEASE_MS
    assert code_of(lambda: plan.finish(1, 1, is_forced=False, now_ms=late)) == 50


def test_the_end_of_a_round_may_be_reported_twice():
    plan = plan_of(1)
    plan.request(now_ms=FRESHNESS_MS)
    for _ in range(2):
        plan.finish(1, 1, is_forced=False, now_ms=FRESHNESS_MS)
    plan.fail(1, 1, now_ms=FRESHNESS_MS)
    assert plan.request(now_ms=FRESHNESS_MS) is None
    assert code_of(lambda: plan.renew(1, 1, now_ms=FRESHNESS_MS)) == -1


def test_a_dropped_table_is_unknown_and_not_handed_out():
    plan = plan_of(1, 2)
    plan.request(now_ms=FRESHNESS_MS)
    plan.remove(1)
    plan.remove(2)
    plan.remove(2)
    assert plan.request(now_ms=FRESHNESS_MS) is None
    assert code_of(lambda: plan.renew(1, 1, now_ms=FRESHNESS_MS)) == 7


def test_another_interval_counts_from_the_last_round():
    plan = plan_of(1, tiered_ms=5_000)
    plan.put(1, TablePath("shop", "t1"), freshness_ms=1_000, tiered_ms=99_000)
    assert plan.request(now_ms=5_999) is None
    assert plan.request(now_ms=6_000).table_id == 1
