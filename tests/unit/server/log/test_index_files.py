"""The index files of segments."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from fluss.errors import CorruptBatchError
from fluss_server.log.index_files import OffsetIndex, TimeIndex

FIRST = 1000


def test_indexes_survive_being_written():
    found = np.array([FIRST + 9, FIRST + 29]), np.array([500, 1_100])
    offsets = OffsetIndex(first_offset=FIRST, offsets=found[0], positions=found[1])
    times = TimeIndex(first_offset=FIRST, timestamps=np.array([50, 60]), offsets=found[0])
    again = OffsetIndex.read(offsets.write(), first_offset=FIRST)
    assert again.offsets.tolist() == offsets.offsets.tolist()
    assert again.positions.tolist() == offsets.positions.tolist()
    again = TimeIndex.read(times.write(), first_offset=FIRST)
    assert again.timestamps.tolist() == times.timestamps.tolist()
    assert again.offsets.tolist() == times.offsets.tolist()


def test_entries_are_big_endian():
    index = OffsetIndex(
        first_offset=FIRST, offsets=np.array([FIRST + 7]), positions=np.array([300])
    )
    assert index.write() == struct.pack(">ii", 7, 300)
    times = TimeIndex(
        first_offset=FIRST, timestamps=np.array([2**40]), offsets=np.array([FIRST + 7])
    )
    assert times.write() == struct.pack(">qi", 2**40, 7)


def test_an_empty_index_leads_to_the_beginning():
    assert OffsetIndex.read(b"", first_offset=5).position_for(10**9) == 0
    assert TimeIndex.read(b"", first_offset=5).offset_for(10**9) == 5


def test_lookups_take_the_last_entry_that_is_not_behind():
    index = OffsetIndex.read(struct.pack(">6i", 9, 100, 19, 200, 29, 300), first_offset=0)
    found = [index.position_for(each) for each in (0, 8, 9, 18, 19, 29, 1000)]
    assert found == [0, 0, 100, 100, 200, 300, 300]
    times = TimeIndex.read(struct.pack(">qiqi", 50, 9, 60, 19), first_offset=100)
    assert [times.offset_for(each) for each in (0, 49, 50, 59, 60, 99)] == [
        100, 100, 109, 109, 119, 119,
    ]  # fmt: skip


@pytest.mark.parametrize("size", [1, 7, 9, 15])
def test_half_entries_are_refused(size):
    with pytest.raises(CorruptBatchError, match="not entries of 8"):
        OffsetIndex.read(bytes(size), first_offset=0)
    with pytest.raises(CorruptBatchError, match="not entries of 12"):
        TimeIndex.read(bytes(size), first_offset=0)


@pytest.mark.parametrize("entries", [(-1, 0), (5, -1), (5, 5, 4, 6), (5, 5, 6, 4)])
def test_entries_that_do_not_ascend_are_refused(entries):
    data = struct.pack(f">{len(entries)}i", *entries)
    with pytest.raises(CorruptBatchError, match="lies before"):
        OffsetIndex.read(data, first_offset=0)


def test_times_that_do_not_ascend_are_refused():
    with pytest.raises(CorruptBatchError) as caught:
        TimeIndex.read(struct.pack(">qiqi", 60, 9, 50, 19), first_offset=0)
    assert caught.value.at == 12
