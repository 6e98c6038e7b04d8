"""What a flush waits for."""

from __future__ import annotations

import asyncio

from fluss.model.types.factory import DataTypes
from tests.unit.write.test_row_taker import appender, table

ROWS = {"n": DataTypes.int(), "text": DataTypes.string()}
TEXT = "x" * 80


def test_a_flush_waits_for_what_a_worker_has_queued_a_moment_ago():
    core = appender(table(ROWS))
    core.take((0, TEXT))
    core.seal()
    (batch,) = core._sender.queued

    async def flush():
        loop = asyncio.get_running_loop()
        flushing = asyncio.ensure_future(core.completed())
        loop.call_soon(core._sender.done.pop())  # what the worker has posted comes a moment later
        for _ in range(10):
            await asyncio.sleep(0)
        assert not flushing.done()
        batch.is_completed = True
        for waiter in batch.waiters:
            waiter(batch)
        await flushing

    asyncio.run(flush())
