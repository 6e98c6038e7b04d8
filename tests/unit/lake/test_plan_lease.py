"""Whose table it is: heartbeats, epochs, and the moment after which nothing may be committed."""

import pytest

from fluss.errors import FlussError
from fluss.model.paths import TablePath
from fluss_lake.lake_errors import TieringFencedError
from fluss_lake.tiering.plan_lease import (
    BEAT_S,
    IDLE_S,
    LEASE_S,
    MARGIN_S,
    Assigned,
    Leases,
    Outcome,
)

REFUSED = FlussError("The tiering epoch 1 is not match current epoch 2.", 50)


def table(number=1, epoch=1):
    path = TablePath("db", f"t{number}")
    return Assigned(table_id=number, path=path, tiering_epoch=epoch, coordinator_epoch=0)


def answered(leases, now, assigned=None, errors=None, *, wants=True):
    beat = leases.beat(now, wants_tables=wants)
    leases.answered(beat, assigned, errors or {})
    return beat


def test_a_table_is_asked_for_until_there_are_enough():
    leases = Leases(tables_max=2)
    assert answered(leases, 0.0, table(1)).wants_table
    assert leases.wait_s(0.0, wants_tables=True) == 0.0  # there may be more
    assert answered(leases, 0.0, table(2)).wants_table
    assert leases.tables == [table(1), table(2)]
    assert not leases.beat(1.0, wants_tables=True).wants_table
    assert leases.wait_s(1.0, wants_tables=True) == BEAT_S - 1.0


def test_an_empty_queue_is_asked_again_later():
    leases = Leases(tables_max=1)
    answered(leases, 0.0)
    assert leases.wait_s(0.0, wants_tables=True) == IDLE_S
    assert leases.wait_s(0.0, wants_tables=False) == BEAT_S


def test_a_lease_lasts_as_long_as_heartbeats_are_answered():
    leases = Leases(tables_max=1)
    answered(leases, 0.0, table())
    safe_s = LEASE_S - MARGIN_S
    leases.check(table(), safe_s - 1)
    with pytest.raises(TieringFencedError, match="no heartbeat for too long"):
        leases.check(table(), safe_s)
    beat = answered(leases, BEAT_S)
    assert beat.tiering == (table(),)
    leases.check(table(), BEAT_S + safe_s - 1)
    leases.unanswered(leases.beat(2 * BEAT_S, wants_tables=True))
    assert leases.wait_s(2 * BEAT_S, wants_tables=True) == IDLE_S
    with pytest.raises(TieringFencedError):
        leases.check(table(), BEAT_S + safe_s)


def test_a_table_that_another_worker_has_is_lost():
    leases = Leases(tables_max=1)
    answered(leases, 0.0, table())
    answered(leases, BEAT_S, errors={1: REFUSED})
    with pytest.raises(TieringFencedError, match="epoch 1") as raised:
        leases.check(table(), BEAT_S)
    assert raised.value.error_code == 50
    # Nothing is reported of it any more, not even that it ended.
    assert leases.beat(2 * BEAT_S, wants_tables=False).tiering == ()
    leases.ended(table(), Outcome.DONE)
    last = leases.beat(2 * BEAT_S, wants_tables=False)
    assert (last.finished, last.failed) == ((), ())


def test_a_late_end_of_an_earlier_epoch_does_not_end_the_next():
    leases = Leases(tables_max=1)
    answered(leases, 0.0, table(epoch=1))
    answered(leases, 200.0, table(epoch=3))
    leases.ended(table(epoch=1), Outcome.DONE)
    assert leases.tables == [table(epoch=3)]
    with pytest.raises(TieringFencedError):
        leases.check(table(epoch=1), 200.0)
    leases.check(table(epoch=3), 200.0)


@pytest.mark.parametrize(
    ("outcome", "finished", "failed", "again"),
    [
        (Outcome.DONE, (table(),), (), ()),
        (Outcome.MORE, (table(),), (), (1,)),
        (Outcome.FAILED, (), (table(),), ()),
    ],
)
def test_the_end_is_reported_immediately_and_until_it_is_answered(outcome, finished, failed, again):
    leases = Leases(tables_max=1)
    answered(leases, 0.0, table())
    leases.ended(table(), outcome)
    assert leases.wait_s(1.0, wants_tables=True) == 0.0
    lost = leases.beat(1.0, wants_tables=True)
    assert (lost.finished, lost.failed, lost.again) == (finished, failed, again)
    assert lost.wants_table
    leases.unanswered(lost)
    assert answered(leases, 2.0).finished == finished
    assert leases.beat(3.0, wants_tables=True).finished == ()


def test_a_worker_that_wants_none_of_what_comes_rests():
    leases = Leases(tables_max=1)
    answered(leases, 0.0, table())
    leases.ended(table(), Outcome.FAILED)
    answered(leases, 0.1, table(2))
    leases.ended(table(2), Outcome.FAILED)
    answered(leases, 0.2)
    leases.rest(0.2)
    assert leases.wait_s(0.2, wants_tables=True) == IDLE_S
