"""Leases of KV snapshots: what they hold, when they end, and that a restart knows them."""

import pytest

from fluss.errors import FlussError
from fluss.model.paths import TableBucket
from fluss_server.snapshots import plan_leases as leases_room
from fluss_server.snapshots.plan_leases import Leases

ONE, TWO = TableBucket(1, 0), TableBucket(1, 1)
OF_PARTITION = TableBucket(2, 0, partition_id=5)


def reopened(leases, *ids):
    texts = {each: leases.text_of(each) for each in ids}
    return Leases({each: text for each, text in texts.items() if text is not None})


def test_a_snapshot_is_held_until_every_lease_of_it_ends():
    leases = Leases()
    leases.acquire("a", {ONE: 3}, expires_ms=100)
    leases.acquire("b", {ONE: 3, TWO: 1}, expires_ms=100)
    assert leases.drop("a")
    assert leases.holds(ONE, 3)
    assert leases.release("b", [ONE])
    assert not leases.holds(ONE, 3)
    assert leases.holds(TWO, 1)
    assert not leases.holds(TWO, 2)


def test_another_snapshot_of_the_same_bucket_replaces_the_first():
    leases = Leases()
    leases.acquire("a", {ONE: 3}, expires_ms=100)
    leases.acquire("a", {ONE: 4}, expires_ms=100)
    assert not leases.holds(ONE, 3)
    assert leases.holds(ONE, 4)


def test_each_request_extends_the_whole_lease():
    leases = Leases()
    leases.acquire("a", {ONE: 3}, expires_ms=100)
    leases.acquire("a", {}, expires_ms=200)
    assert leases.expire(now_ms=150) == []
    assert leases.expire(now_ms=201) == ["a"]
    assert not leases.holds(ONE, 3)


def test_a_lease_of_nothing_is_none():
    leases = Leases()
    leases.acquire("a", {}, expires_ms=100)
    assert len(leases) == 0
    leases.acquire("a", {ONE: 3, TWO: 1}, expires_ms=100)
    leases.release("a", [ONE])
    assert len(leases) == 1
    leases.release("a", [TWO, ONE])
    assert len(leases) == 0
    assert not leases.release("a", [TWO])
    assert not leases.drop("a")


def test_a_restart_knows_them():
    leases = Leases()
    leases.acquire("a", {ONE: 3, OF_PARTITION: 2**40}, expires_ms=2**70)
    leases.acquire("b", {ONE: 3}, expires_ms=100)
    again = reopened(leases, "a", "b")
    assert again.holds(OF_PARTITION, 2**40)
    assert again.tables_of("a") == {1, 2}
    again.drop("a")
    assert again.holds(ONE, 3)
    assert again.expire(now_ms=101) == ["b"]
    assert again.text_of("b") is None


def test_dropped_tables_and_partitions_leave_all_leases():
    leases = Leases()
    leases.acquire("a", {ONE: 3, OF_PARTITION: 2}, expires_ms=100)
    leases.acquire("b", {TWO: 3}, expires_ms=100)
    assert leases.forget(2, 6) == []
    assert leases.forget(2, 5) == ["a"]
    assert leases.tables_of("a") == {1}
    assert leases.forget(1) == ["a", "b"]
    assert len(leases) == 0


@pytest.mark.parametrize("lease_id", ["", "x" * (leases_room.ID_CHARACTERS_MAX + 1)])
def test_a_name_that_is_none_is_refused(lease_id):
    with pytest.raises(FlussError, match="characters"):
        Leases().acquire(lease_id, {ONE: 1}, expires_ms=1)


def test_there_are_not_more_than_the_limits(monkeypatch):
    monkeypatch.setattr(leases_room, "LEASES_MAX", 2)
    monkeypatch.setattr(leases_room, "BUCKETS_MAX", 2)
    leases = Leases()
    leases.acquire("a", {ONE: 1, TWO: 1}, expires_ms=1)
    leases.acquire("a", {ONE: 2, TWO: 2}, expires_ms=1)
    with pytest.raises(FlussError, match="would have 3 KV snapshots"):
        leases.acquire("a", {OF_PARTITION: 1}, expires_ms=1)
    leases.acquire("b", {ONE: 1}, expires_ms=1)
    with pytest.raises(FlussError, match="no more are possible"):
        leases.acquire("c", {ONE: 1}, expires_ms=1)
    assert not leases.holds(OF_PARTITION, 1)
