"""A process ends only after threads of Polars have left our code, or after a bounded time."""

from __future__ import annotations

import threading
import time

import pytest

from fluss_polars import process_end
from fluss_polars.process_end import CallsOfPolars


@pytest.fixture
def calls():
    return CallsOfPolars()


def source(calls):
    """A source that Polars pulls, or drops."""
    with calls.one():
        yield 1
        yield 2


def waited_s(calls):
    before = time.monotonic()
    calls.close()
    return time.monotonic() - before


def test_the_end_waits_for_a_call_and_for_its_return(calls):
    begun, may_end, ended = threading.Event(), threading.Event(), []

    def call():
        with calls.one():
            begun.set()
            may_end.wait(30)
            ended.append(time.monotonic())

    thread = threading.Thread(target=call)
    thread.start()
    assert begun.wait(30)
    threading.Timer(0.05, may_end.set).start()
    calls.close()
    assert time.monotonic() - ended[0] >= process_end.RETURN_S
    thread.join(30)


def test_the_end_waits_no_longer_than_its_bound(calls, monkeypatch):
    monkeypatch.setattr(process_end, "END_S_MAX", 0.05)
    pulled = source(calls)
    next(pulled)
    assert 0.05 <= waited_s(calls) < 5


def test_the_end_waits_for_the_thread_that_has_dropped_a_source(calls, monkeypatch):
    monkeypatch.setattr(process_end, "RETURN_S", 0.3)
    pulled = source(calls)
    next(pulled)
    pulled.close()
    assert 0.1 < waited_s(calls) < 5


def test_nothing_waits_for_sources_that_have_ended(calls, monkeypatch):
    monkeypatch.setattr(process_end, "RETURN_S", 60)
    assert list(source(calls)) == [1, 2]
    with pytest.raises(ValueError, match="a decoder's"), calls.one():
        raise ValueError("a decoder's")
    assert waited_s(calls) < 5


def test_no_call_begins_after_the_end(calls):
    calls.close()
    with pytest.raises(RuntimeError, match="the process ends"):
        next(source(calls))
