"""Many sources into one stream: parallel, ahead, within bounds, and over when it is over."""

import threading
import time
from typing import ClassVar

import pytest

from fluss.errors import ClosedError, FlussError
from fluss.scan.fan_in import FanIn, merged

PATIENCE_S = 60


class Numbers:
    """A source that takes its time, and knows what has been taken of it."""

    def __init__(self, items, *, pause_s=0.0, error=None):
        self.items, self.pause_s, self.error = list(items), pause_s, error
        self.given = 0
        self.closed = threading.Event()

    def __iter__(self):
        for each in self.items:
            if self.closed.wait(self.pause_s):
                raise ClosedError("closed")
            self.given += 1
            yield each
        if self.error is not None:
            raise self.error

    def close(self):
        self.closed.set()


def fan_in(sources, **more):
    options = {"parallel_max": 4, "bytes_max": 1_000, "size_of": lambda _: 1, "in_order": False}
    return FanIn([lambda each=each: each for each in sources], **(options | more))


def test_everything_arrives_once():
    sources = [Numbers(range(start, start + 50)) for start in range(0, 500, 50)]
    assert sorted(fan_in(sources)) == list(range(500))


def test_in_order_all_of_a_source_comes_before_the_next():
    sources = [Numbers(range(start, start + 50)) for start in range(0, 500, 50)]
    assert list(fan_in(sources, in_order=True, bytes_max=3)) == list(range(500))


def test_sources_are_merged_by_a_growing_key():
    sources = [Numbers(range(start, 300, 3)) for start in range(3)]
    both = fan_in(sources, in_order=True, bytes_max=2, parallel_max=3)
    assert list(merged(both, 3, lambda item: (item,))) == list(range(300))


class Meeting(Numbers):
    """A source that gives nothing before so many others are being read as well."""

    def __init__(self, items, all_of_them):
        super().__init__(items)
        self.all_of_them = all_of_them

    def __iter__(self):
        self.all_of_them.wait(PATIENCE_S)
        yield from super().__iter__()


def test_as_many_sources_are_read_side_by_side_as_may_be():
    all_of_them = threading.Barrier(4)
    sources = [Meeting(range(25), all_of_them) for _ in range(8)]
    assert len(list(fan_in(sources, parallel_max=4))) == 200


class Counted(Numbers):
    """A source that notes how many are being read concurrently."""

    being_read: ClassVar[set] = set()
    most = 0

    def __iter__(self):
        self.being_read.add(self)
        Counted.most = max(Counted.most, len(self.being_read))
        yield from super().__iter__()
        self.being_read.discard(self)


@pytest.mark.parametrize("parallel_max", [1, 2])
def test_no_more_sources_are_read_concurrently_than_allowed(parallel_max, monkeypatch):
    monkeypatch.setattr(Counted, "most", 0)
    sources = [Counted(range(25), pause_s=0.001) for _ in range(8)]
    assert len(list(fan_in(sources, parallel_max=parallel_max))) == 200
    assert Counted.most <= parallel_max


def test_a_slow_reader_slows_the_sources_down():
    sources = [Numbers(range(1_000)) for _ in range(4)]
    reading = iter(fan_in(sources, bytes_max=10))
    for _ in range(5):
        next(reading)
    time.sleep(0.05)
    assert sum(each.given for each in sources) <= 5 + 10 + 2 * len(sources)
    reading.close()
    assert all(each.closed.is_set() for each in sources)


def test_in_order_a_full_buffer_does_not_stop_the_source_that_is_waited_for():
    sources = [Numbers(range(20), pause_s=0.001), Numbers(range(100, 200))]
    assert list(fan_in(sources, in_order=True, bytes_max=5))[:20] == list(range(20))


def test_an_error_of_a_source_reaches_the_reader_and_ends_the_others():
    endless = Numbers(range(10**6))
    sources = [endless, Numbers([1], error=FlussError("broken"))]
    with pytest.raises(FlussError, match="broken"):
        list(fan_in(sources, bytes_max=5))
    assert endless.closed.is_set()


def test_in_order_what_comes_before_an_error_is_given_first():
    sources = [Numbers([1, 2], pause_s=0.01), Numbers([3], error=FlussError("broken"))]
    reading = iter(fan_in(sources, in_order=True))
    assert [next(reading) for _ in range(3)] == [1, 2, 3]
    with pytest.raises(FlussError, match="broken"):
        next(reading)


def test_a_reader_that_is_never_read_starts_nothing():
    before = threading.active_count()
    made = fan_in([Numbers(range(5))])
    assert threading.active_count() == before
    made.close()


def test_closing_from_another_thread_ends_a_reader_that_waits():
    waiting = fan_in([Numbers([1], pause_s=60)])
    threading.Timer(0.05, waiting.close).start()
    with pytest.raises(ClosedError):
        list(waiting)


def test_stopping_does_not_wait_for_sources_that_are_slow_to_end():
    class Stuck(Numbers):
        def close(self):
            pass  # its iteration goes on until `ends` is set

        def __iter__(self):
            yield 1
            ends.wait(60)

    ends = threading.Event()
    reading = fan_in([Stuck([])])
    rows = iter(reading)
    assert next(rows) == 1
    reading.stop()
    assert any(each.is_alive() for each in reading._threads)
    with pytest.raises(ClosedError):
        reading.take_from(0)
    ends.set()
    rows.close()
    assert not any(each.is_alive() for each in reading._threads)


def test_no_thread_is_left_behind():
    before = set(threading.enumerate())
    list(fan_in([Numbers(range(10)) for _ in range(8)]))
    assert set(threading.enumerate()) <= before


@pytest.mark.timeout(30, func_only=True)
@pytest.mark.parametrize("in_order", [False, True])
def test_a_notification_that_is_missed_delays_the_reader_and_does_not_stop_it(in_order):
    read = fan_in([Numbers([1, 2], pause_s=0.1), Numbers([3], pause_s=0.1)], in_order=in_order)
    # As where each of them falls between two slices of the reader's wait.
    read._changed.notify_all = lambda: None
    assert sorted(read) == [1, 2, 3]
