import threading
import time

import pytest

from fluss.errors import ClosedError, LimitExceededError
from fluss.write.write_memory import WriteMemory


def test_one_batch_may_overshoot_an_empty_room():
    room = WriteMemory(10, wait_ms_max=0)
    room.wait()
    room.take(1_000)
    assert not room.is_left


def test_a_writer_waits_until_room_comes_free():
    room = WriteMemory(10, wait_ms_max=20_000)
    room.take(10)
    threading.Timer(0.05, room.release, [1]).start()
    room.wait()
    assert room.bytes_used == 9


def test_waiting_ends_with_both_numbers():
    room = WriteMemory(10, wait_ms_max=30)
    room.take(12)
    began = time.monotonic()
    with pytest.raises(LimitExceededError, match=r"12 bytes .* limit is 10"):
        room.wait()
    assert time.monotonic() - began >= 0.03


def test_waiting_forever_is_more_than_a_lock_can_count():
    room = WriteMemory(10, wait_ms_max=2**64 - 1)
    room.take(10)
    threading.Timer(0.02, room.release, [10]).start()
    room.wait()


def test_closing_sends_waiting_writers_away():
    room = WriteMemory(10, wait_ms_max=20_000)
    room.take(10)
    threading.Timer(0.05, room.close, [ClosedError("over")]).start()
    with pytest.raises(ClosedError, match="over"):
        room.wait()
    with pytest.raises(ClosedError):
        room.wait()
