"""Memory of frames returns to the pool with its last view, and never before."""

import ctypes
import threading

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from fluss.wire.receive_memory import ALIGNMENT, FrameMemory

SIZE = 100_000


def address(view):
    return ctypes.addressof(ctypes.c_char.from_buffer(view))


@given(st.integers(1, 3_000_000), st.integers(0, ALIGNMENT - 1))
def test_it_has_the_requested_alignment_and_length(size, shift):
    view = FrameMemory().take(size, shift=shift)
    assert len(view) == size
    assert not view.readonly
    assert address(view) % ALIGNMENT == shift


def test_unreferenced_memory_is_used_again():
    memory = FrameMemory()
    first = memory.take(SIZE)
    place = address(first)
    del first
    assert memory.kept_bytes >= SIZE
    assert address(memory.take(SIZE - 1_000, shift=3)) == place + 3


@pytest.mark.parametrize(
    "keep",
    [
        lambda view: view[10:20],
        lambda view: view.toreadonly()[10:20].cast("B"),
        lambda view: np.frombuffer(view, np.uint8)[10:20],
        lambda view: np.asarray(view)[10:20],
        lambda view: pa.py_buffer(view).slice(10, 10),
        lambda view: pa.Array.from_buffers(pa.uint8(), 10, [None, pa.py_buffer(view[10:20])]),
    ],
    ids=["slice", "read-only", "numpy", "numpy view", "Arrow buffer", "Arrow array"],
)
def test_a_reference_to_a_part_keeps_the_whole(keep):
    memory = FrameMemory()
    view = memory.take(SIZE)
    view[:] = b"\x07" * SIZE
    kept = keep(view)
    del view
    assert memory.kept_bytes == 0
    others = [memory.take(SIZE) for _ in range(3)]
    for other in others:
        other[:] = b"\xff" * SIZE
    assert list(kept) == [7] * 10 or kept.tolist() == [7] * 10 or kept.to_pylist() == [7] * 10
    del kept
    assert memory.kept_bytes > 0


def test_what_lies_unused_is_bounded():
    memory = FrameMemory(kept_bytes_max=3 * SIZE)
    views = [memory.take(SIZE) for _ in range(10)]
    views.append(memory.take(100 * SIZE))
    views.clear()
    assert SIZE <= memory.kept_bytes <= 3 * SIZE


def test_threads_let_go_of_memory_while_others_take_it():
    memory = FrameMemory()
    wrong = []

    def work(number):
        for _ in range(300):
            view = memory.take(5_000)
            view[:] = bytes([number]) * 5_000
            if bytes(view[::100]) != bytes([number]) * 50:
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong
