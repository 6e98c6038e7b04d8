"""Answers that need nothing of the engine, and the mailboxes of event loops."""

from __future__ import annotations

import asyncio
import gc

import pytest

from fluss.errors import InvalidValueError
from fluss.net import handoff
from fluss.net.handoff import answer_of, mailbox_of


def test_an_answer_comes_after_the_tasks_that_were_ready_before_it():
    seen = []

    async def main():
        asyncio.get_running_loop().call_soon(seen.append, "other")
        seen.append(await answer_of(lambda: "answer"))

    asyncio.run(main())
    assert seen == ["other", "answer"]


def test_an_answer_may_be_an_error():
    def refuse():
        raise InvalidValueError("no")

    async def main():
        with pytest.raises(InvalidValueError, match="no"):
            await answer_of(refuse)

    asyncio.run(main())


def test_an_answer_that_is_no_longer_awaited_is_not_made():
    made = []

    async def main():
        future = asyncio.ensure_future(answer_of(lambda: made.append(1)))
        future.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    asyncio.run(main())
    assert made == []


def test_without_a_loop_nothing_is_answered():
    with pytest.raises(RuntimeError):
        answer_of(lambda: 1)


def test_each_loop_has_a_mailbox_until_it_is_gone():
    before = dict(handoff._mailboxes)

    async def main():
        loop = asyncio.get_running_loop()
        assert mailbox_of(loop) is mailbox_of(loop)
        return id(mailbox_of(loop))

    for _ in range(3):
        asyncio.run(main())
        gc.collect()
        assert handoff._mailboxes.keys() <= before.keys()


def test_a_mailbox_is_not_that_of_another_loop_with_its_id():
    first, second = asyncio.new_event_loop(), asyncio.new_event_loop()
    handoff._mailboxes[id(second)] = mailbox_of(first)
    assert mailbox_of(second).loop() is second
    first.close()
    second.close()
