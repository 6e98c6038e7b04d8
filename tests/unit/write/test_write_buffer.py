"""What a flush waits for, and a row that fills a buffer."""

from __future__ import annotations

import asyncio

import pytest

from fluss.model.types.factory import DataTypes
from fluss.write.write_memory import WriteMemory
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


class TakenMeanwhile(WriteMemory):
    """Memory that another thread takes right after this one has seen that some is left."""

    looks = 0

    @property
    def is_left(self):
        self.looks += 1
        return self.looks == 1


@pytest.mark.usefixtures("row_functions")
def test_a_row_that_was_taken_raises_nothing_where_its_full_buffer_finds_no_memory():
    core = appender(table(ROWS), batch_bytes_max=300, has_dynamic_batches=False)
    core._sender.memory = TakenMeanwhile(1, wait_ms_max=1)
    rows = 0
    while core.rows_taken == rows and not core._sender.queued:
        core.take((rows, TEXT))
        rows += 1
    assert rows < 10, "the buffer is full"
