import asyncio
import threading

import pytest

from fluss.errors import ClosedError
from fluss.net.cancellation import Cancellation
from fluss.net.engine_thread import engine

PATIENCE_S = 30


class Work:
    """Waits on the engine for ever, and records what became of it."""

    def __init__(self):
        self.begun, self.ended = threading.Event(), threading.Event()

    async def run(self):
        self.begun.set()
        try:
            await asyncio.sleep(3600)
        finally:
            self.ended.set()


async def identity(value):
    return value


def test_listeners_are_called_once_and_late_ones_immediately():
    cancellation, heard = Cancellation(), []
    cancellation.listen(lambda: heard.append("first"))
    forget = cancellation.listen(lambda: heard.append("forgotten"))
    forget()
    cancellation.cancel()
    cancellation.cancel()
    cancellation.listen(lambda: heard.append("late"))
    assert heard == ["first", "late"]
    with pytest.raises(ClosedError, match="cancelled"):
        cancellation.check()


def test_cancelling_ends_the_call_and_its_work():
    cancellation, work = Cancellation(), Work()

    def cancel():
        assert work.begun.wait(PATIENCE_S)
        cancellation.cancel()

    canceller = threading.Thread(target=cancel)
    canceller.start()
    with pytest.raises(ClosedError, match="cancelled"):
        engine().run(work.run(), cancellation=cancellation)
    canceller.join()
    assert work.ended.wait(PATIENCE_S)
    assert engine().run(identity(7)) == 7


def test_a_cancelled_call_does_not_wait_for_work_that_is_slow_to_end():
    cancellation, work, ends = Cancellation(), Work(), threading.Event()

    async def stubborn():
        try:
            await work.run()
        except asyncio.CancelledError:
            await asyncio.to_thread(ends.wait, PATIENCE_S)
            raise

    def cancel():
        assert work.begun.wait(PATIENCE_S)
        cancellation.cancel()

    canceller = threading.Thread(target=cancel)
    canceller.start()
    with pytest.raises(ClosedError, match="cancelled"):
        engine().run(stubborn(), cancellation=cancellation)
    canceller.join()
    assert not ends.is_set()
    ends.set()


def test_cancelling_does_not_wait_for_the_call_that_it_ends():
    cancellation, work = Cancellation(), Work()
    outcomes = []

    def call():
        try:
            engine().run(work.run(), cancellation=cancellation)
        except ClosedError as error:
            outcomes.append(error)

    caller = threading.Thread(target=call)
    caller.start()
    assert work.begun.wait(PATIENCE_S)
    cancellation.cancel()
    caller.join(PATIENCE_S)
    assert len(outcomes) == 1


def test_work_is_not_begun_where_it_is_cancelled_already():
    cancellation, work = Cancellation(), Work()
    cancellation.cancel()
    with pytest.raises(ClosedError, match="cancelled"):
        engine().run(work.run(), cancellation=cancellation)
    engine().run(identity(1))  # the engine has done all before this
    assert not work.begun.is_set()


def test_a_token_serves_call_after_call_and_keeps_nothing_of_them():
    cancellation = Cancellation()
    for number in range(3):
        assert engine().run(identity(number), cancellation=cancellation) == number
    with pytest.raises(ZeroDivisionError):
        engine().run(_failing(), cancellation=cancellation)
    assert not cancellation._listeners


def test_results_and_cancellations_that_race_leave_the_engine_whole():
    for number in range(300):
        cancellation = Cancellation()

        async def quick(number=number, cancellation=cancellation):
            if number % 2:
                await asyncio.sleep(0)
            threading.Thread(target=cancellation.cancel).start()
            return number

        try:
            assert engine().run(quick(), cancellation=cancellation) == number
        except ClosedError:
            assert cancellation.is_cancelled
    assert engine().run(identity(7)) == 7


async def _failing():
    return 1 / 0
