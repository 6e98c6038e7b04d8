"""Ctrl-C while work is handed to the engine: it is raised as it is, and the engine goes on."""

from __future__ import annotations

import asyncio
import threading

import pytest

from fluss.net.engine_thread import Engine
from fluss.waiting import wait_until


class Interrupting:
    """A loop that is interrupted while it is woken, before or after it has been."""

    def __init__(self, loop, *, is_woken):
        self._loop = loop
        self._is_woken = is_woken
        self.began = threading.Event()

    def __getattr__(self, name):
        return getattr(self._loop, name)

    def call_soon_threadsafe(self, callback):
        if self._is_woken:
            self._loop.call_soon_threadsafe(callback)
            assert self.began.wait(10)
        raise KeyboardInterrupt


@pytest.mark.parametrize("is_woken", [False, True])
def test_ctrl_c_while_work_is_handed_over_ends_the_work_and_not_the_engine(is_woken):
    engine = Engine()
    loop, ended = engine.loop, threading.Event()
    interrupting = Interrupting(loop, is_woken=is_woken)

    async def work():
        try:
            interrupting.began.set()
            await asyncio.sleep(600)
        finally:
            ended.set()

    async def answer():
        return 7

    coroutine = work()
    engine.loop = interrupting
    try:
        with pytest.raises(KeyboardInterrupt):
            engine.run(coroutine)
    finally:
        engine.loop = loop
    assert engine.run(answer()) == 7, "the engine is woken by the next call"
    if is_woken:
        assert wait_until(ended.wait, 10)
    assert coroutine.cr_frame is None, "the work has ended, or was closed"
