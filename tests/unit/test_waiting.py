"""Waits in slices: what they return, that signals and cancelled tasks end them, and their cost."""

import asyncio
import os
import signal
import threading
import time
import weakref
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar

import pytest

from fluss import waiting
from fluss.waiting import (
    InterruptibleLock,
    acquire,
    in_thread,
    is_done,
    join,
    result_of,
    wait_until,
)


class _SignalError(Exception):
    pass


@pytest.fixture
def alarm():
    """A handler of SIGALRM that raises, and that restarts system calls, as the one of Polars."""

    def handle(*_):
        raise _SignalError

    before = signal.signal(signal.SIGALRM, handle)
    signal.siginterrupt(signal.SIGALRM, False)
    yield lambda: signal.setitimer(signal.ITIMER_REAL, 0.05)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(autouse=True)
def _not_interrupted(monkeypatch):
    """Each test begins so, and leaves it so to the tests after it in this process."""
    monkeypatch.setattr(waiting, "_interrupted_at", -waiting.INTERRUPT_LASTS_S)


def test_a_wait_is_one_attempt_where_the_answer_comes_soon():
    seconds = []
    assert wait_until(lambda s: seconds.append(s) or True)
    assert seconds == [waiting.FIRST_SLICE_S]


def test_a_wait_lasts_as_long_as_it_may():
    began = time.monotonic()
    assert not wait_until(threading.Event().wait, 0.3)
    assert 0.3 <= time.monotonic() - began < 1.0
    assert not wait_until(threading.Event().wait, 0)
    event = threading.Event()
    threading.Timer(0.3, event.set).start()
    assert wait_until(event.wait)


@pytest.mark.parametrize("way", ["lock", "event", "condition", "thread", "future", "with"])
def test_a_signal_ends_a_wait_though_its_handler_restarts_system_calls(alarm, way):
    held, end = threading.Lock(), threading.Event()
    held.acquire()
    lock = InterruptibleLock()
    taken, given_back = threading.Event(), threading.Event()

    def hold():
        with lock:
            taken.set()
            end.wait(30)
        given_back.set()

    thread = threading.Thread(target=hold, daemon=True)
    thread.start()
    taken.wait()
    condition = threading.Condition()
    with ThreadPoolExecutor(1) as pool, condition:
        future = pool.submit(end.wait, 30)
        waits = {
            "lock": lambda: acquire(held),
            "event": lambda: wait_until(threading.Event().wait),
            "condition": lambda: wait_until(condition.wait),
            "thread": lambda: join(thread),
            "future": lambda: result_of(future),
            "with": lock.__enter__,
        }
        began = time.monotonic()
        alarm()
        try:
            with pytest.raises(_SignalError):
                waits[way]()
        finally:
            end.set()
    assert time.monotonic() - began < 1.0
    assert waiting.was_interrupted()
    # Not `thread.join()`: after an interrupted join, Python 3.11 takes a running thread for ended.
    assert given_back.wait(30)
    assert lock.is_free


def test_a_lock_that_is_given_up_is_free_for_others(alarm):
    lock = InterruptibleLock()
    release = threading.Event()
    taken = threading.Event()

    def hold():
        with lock:
            taken.set()
            release.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    taken.wait()
    alarm()
    # Free before the slice ends, after the signal: the handler runs when the lock is acquired.
    threading.Timer(0.1, release.set).start()
    with pytest.raises(_SignalError), lock:
        raise AssertionError("the handler raises before the lock is given")
    holder.join()
    others = in_thread(lambda: lock.is_free, "other")
    assert result_of(others)


async def test_a_blocking_wait_ends_where_a_signal_cancels_a_task_of_its_loop():
    task = asyncio.current_task()
    before = signal.signal(signal.SIGALRM, lambda *_: task.cancel())
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(asyncio.CancelledError):
            wait_until(threading.Event().wait, 5.0)
    finally:
        signal.signal(signal.SIGALRM, before)
        task.uncancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.sleep(0)  # the loop delivers what the handler asked for


async def test_a_wait_in_a_task_that_was_cancelled_before_goes_on():
    task = asyncio.current_task()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.sleep(0)
    assert task.cancelling()
    assert not wait_until(threading.Event().wait, 0.3)  # as a session that is closed in the end
    task.uncancel()


def test_work_in_a_thread_gives_its_result_or_its_error():
    assert result_of(in_thread(lambda: 7, "seven")) == 7
    with pytest.raises(ValueError, match="early"):
        result_of(in_thread(lambda: int("early"), "early"))


@pytest.fixture
def spare(monkeypatch):
    """Threads of this test alone, which wait for work as long as the test lets them."""
    threads = waiting._SpareThreads()
    monkeypatch.setattr(waiting, "_spare_threads", threads)
    yield threads
    monkeypatch.setattr(waiting, "SPARE_S", 0.01)
    for works in list(threads._idle):
        works.put(lambda: None)  # wakes those that wait; the others end by themselves


def until_idle(threads, count):
    assert wait_until(lambda _: time.sleep(0.001) or len(threads._idle) == count, 5.0)


def test_a_thread_works_for_one_caller_after_another(spare):
    used = set()
    for number in range(20):
        used.add(result_of(in_thread(threading.get_ident, f"work {number}")))
        until_idle(spare, 1)
    assert len(used) == 1
    assert result_of(in_thread(lambda: threading.current_thread().name, "the name")) == "the name"


def test_work_never_waits_for_other_work(spare):
    met = threading.Barrier(3 * waiting.SPARE_THREADS_MAX)
    for _ in range(2):  # with new threads, and with those that wait
        together = [in_thread(lambda: met.wait(5.0), "together") for _ in range(met.parties)]
        assert sorted(map(result_of, together)) == list(range(met.parties))
        until_idle(spare, waiting.SPARE_THREADS_MAX)


def test_a_thread_without_work_ends(spare, monkeypatch):
    monkeypatch.setattr(waiting, "SPARE_S", 0.01)
    thread = result_of(in_thread(threading.current_thread, "the first"))
    assert join(thread, 5.0)
    assert not spare._idle
    assert result_of(in_thread(lambda: 7, "seven")) == 7


def test_work_sees_nothing_of_the_work_before_it(spare):
    seen = ContextVar("seen", default="nothing")
    assert result_of(in_thread(lambda: seen.set("before") and seen.get(), "before")) == "before"
    until_idle(spare, 1)
    assert result_of(in_thread(seen.get, "after")) == "nothing"


def test_a_thread_keeps_nothing_of_its_work(spare):
    class Kept:
        """Something that a connection would be held by."""

    kept = Kept()
    gone = weakref.ref(kept)
    in_thread(lambda held=kept: held is not None, "held").result()
    del kept
    until_idle(spare, 1)
    assert wait_until(lambda _: time.sleep(0.001) or gone() is None, 5.0)


@pytest.mark.parametrize("is_idle", [True, False], ids=["idle thread", "new thread"])
def test_work_that_a_signal_has_kept_from_a_thread_is_never_done(spare, monkeypatch, is_idle):
    """And no later work waits for a thread because of it."""
    done = []

    class Interrupting(deque):
        def pop(self):
            super().pop()
            raise KeyboardInterrupt

    def interrupted(*_):
        raise KeyboardInterrupt

    if is_idle:
        in_thread(lambda: 6, "six").result()
        until_idle(spare, 1)
    with monkeypatch.context() as patch:
        patch.setattr(spare, "_idle", Interrupting(spare._idle))
        patch.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            in_thread(lambda: done.append("lost"), "lost")
    spare._idle.clear()  # the thread that was found is lost to other callers
    monkeypatch.setattr(waiting, "SPARE_S", 0.01)
    for number in range(3):
        thread = in_thread(threading.current_thread, f"work {number}").result(5.0)
        assert join(thread, 5.0)
    assert not done


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own(spare):
    assert result_of(in_thread(lambda: 7, "seven")) == 7
    until_idle(spare, 1)
    child = os.fork()
    if child == 0:
        answered = is_done(future := in_thread(lambda: 8, "eight"), 5.0)
        os._exit(future.result() if answered else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 8
