"""Whose turn it is: the line is joined at once, and nobody overtakes."""

import asyncio

import pytest

from fluss_server.fair_lock import FairLock


async def test_turns_come_in_the_order_in_which_the_line_was_joined():
    turn, order = FairLock(), []
    tickets = [turn.enter() for _ in range(5)]

    async def work(number):
        async with tickets[number]:
            order.append(number)
            await asyncio.sleep(0)

    await asyncio.gather(*(work(each) for each in reversed(range(5))))
    assert order == list(range(5))
    assert not turn.is_taken


async def test_who_comes_later_does_not_overtake_somebody_that_has_not_begun_to_wait():
    turn = FairLock()
    first = turn.enter()
    second = turn.enter()
    first.leave()
    third = turn.enter()
    assert second.is_due
    assert not third.is_due
    async with second:
        assert not third.is_due
    assert third.is_due


async def test_a_place_that_is_given_up_holds_nobody_up():
    turn = FairLock()
    first, second, third = (turn.enter() for _ in range(3))
    second.leave()
    first.leave()
    assert third.is_due


async def test_whoever_is_cancelled_while_waiting_leaves_the_line():
    turn = FairLock()
    first, second, third = (turn.enter() for _ in range(3))

    async def wait():
        async with second:
            raise AssertionError("its turn never came")

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    first.leave()
    assert third.is_due


async def test_a_failure_gives_the_turn_on():
    turn = FairLock()
    first, second = turn.enter(), turn.enter()

    async def fail():
        async with first:
            raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        await fail()
    assert second.is_due
