"""The fair lock: tickets are granted in the order in which they were reserved."""

import asyncio

import pytest

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
