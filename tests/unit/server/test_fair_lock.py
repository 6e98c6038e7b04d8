"""The fair lock: tickets are granted in the order in which they were reserved.

Neighbours with shared tickets hold it together.
"""

import asyncio

import pytest
from hypothesis import given, strategies as st

from fluss_server.fair_lock import FairLock


async def test_tickets_are_granted_in_the_order_of_reservation():
    lock, order = FairLock(), []
    tickets = [lock.reserve() for _ in range(5)]

    async def work(number):
        async with tickets[number]:
            order.append(number)
            await asyncio.sleep(0)

    await asyncio.gather(*(work(number) for number in reversed(range(5))))
    assert order == list(range(5))
    assert not lock.is_held


async def test_a_later_ticket_does_not_overtake_one_that_has_not_begun_to_wait():
    lock = FairLock()
    first = lock.reserve()
    second = lock.reserve()
    first.release()
    third = lock.reserve()
    assert second.is_granted
    assert not third.is_granted
    async with second:
        assert not third.is_granted
    assert third.is_granted


async def test_a_ticket_that_is_released_while_it_waits_blocks_no_other():
    lock = FairLock()
    first, second, third = (lock.reserve() for _ in range(3))
    second.release()
    first.release()
    assert third.is_granted


async def test_a_cancelled_task_leaves_the_queue():
    lock = FairLock()
    first, second, third = (lock.reserve() for _ in range(3))

    async def wait():
        async with second:
            raise AssertionError("the ticket was never granted")

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    first.release()
    assert third.is_granted


async def test_a_failure_releases_the_lock():
    lock = FairLock()
    first, second = lock.reserve(), lock.reserve()

    async def fail():
        async with first:
            raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        await fail()
    assert second.is_granted


async def test_neighbours_share_the_lock_and_do_not_overtake():
    lock = FairLock()
    kinds = [True, True, False, True, True, False]
    tickets = [lock.reserve(is_shared=each) for each in kinds]

    def granted():
        return [number for number, each in enumerate(tickets) if each.is_granted]

    assert granted() == [0, 1]
    tickets[1].release()
    assert granted() == [0]
    tickets[0].release()
    assert granted() == [2]
    tickets[2].release()
    assert granted() == [3, 4]
    tickets[3].release()
    assert granted() == [4]
    tickets[4].release()
    assert granted() == [5]
    tickets[5].release()
    assert not lock.is_held


async def test_readers_go_on_when_the_writer_between_them_gives_up():
    lock = FairLock()
    reader = lock.reserve(is_shared=True)
    writer = lock.reserve()
    waiting = lock.reserve(is_shared=True)
    writer.release()
    assert waiting.is_granted
    reader.release()
    waiting.release()
    waiting.release()  # idempotent
    assert not lock.is_held
    assert lock.reserve().is_granted


@given(st.lists(st.tuples(st.sampled_from(["share", "alone", "release"]), st.integers(0, 9))))
def test_a_holder_that_does_not_share_is_alone_and_none_is_overtaken(steps):
    lock, tickets = FairLock(), []
    for step, number in steps:
        if step == "release":
            if tickets:
                tickets.pop(number % len(tickets)).release()
        else:
            tickets.append(lock.reserve(is_shared=step == "share"))
        held = [each.is_granted for each in tickets]
        assert held == sorted(held, reverse=True)
        assert lock.is_held == any(held) == bool(tickets)
        holders = [each for each in tickets if each.is_granted]
        assert len(holders) <= 1 or all(each.is_shared for each in holders)
        # The first that waits could not hold it.
        if holders and holders[0].is_shared and len(holders) < len(tickets):
            assert not tickets[len(holders)].is_shared
