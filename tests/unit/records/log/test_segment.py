"""Segment files and their indexes."""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
import pytest

from fluss.errors import CorruptBatchError
from fluss.model.types.data_type import BigIntType
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.arrow.compression import BodyCodec
from fluss.records.arrow.received_bytes import joined
from fluss.records.log.log_batch import iter_log_headers
from fluss.records.log.log_writer import arrow_log_body, write_log_batch
from fluss.records.log.segment import (
    OffsetIndex,
    TimeIndex,
    build_indexes,
    iter_segment,
    segment_file_name,
)

LAYOUT = BatchLayout.of(["id"], [BigIntType()])
FIRST = 1000


def batch(base_offset, timestamp, count=10):
    ids = pa.array(range(base_offset, base_offset + count), pa.int64())
    rows = pa.record_batch([ids], schema=LAYOUT.wire_schema)
    return joined(
        write_log_batch(
            arrow_log_body(rows, BodyCodec()),
            schema_id=1,
            base_offset=base_offset,
            commit_timestamp=timestamp,
        )
    )


# Batch k holds the offsets 1000 + 10 k ..., and every third one has a time of its own.
BATCHES = [batch(FIRST + 10 * index, 5000 + index // 3) for index in range(100)]
FILE = b"".join(BATCHES)
POSITIONS = np.cumsum([0, *map(len, BATCHES)])


def test_a_file_is_named_after_its_first_offset():
    assert segment_file_name(0, "log") == "00000000000000000000.log"
    assert segment_file_name(2**63 - 1, "timeindex") == "09223372036854775807.timeindex"


def test_batches_are_read_from_a_position_to_an_offset():
    start = int(POSITIONS[3])
    found = list(iter_segment(FILE, start=start, end_offset=FIRST + 60))
    assert [each.base_offset for each in found] == [FIRST + 30, FIRST + 40, FIRST + 50]
    assert found[0].record_batch(LAYOUT).column(0)[0].as_py() == FIRST + 30
    assert len(list(iter_segment(FILE))) == 100


def test_a_segment_is_not_cut_and_not_damaged():
    with pytest.raises(CorruptBatchError, match="ends after"):
        list(iter_segment(FILE[:-1]))
    damaged = bytearray(FILE)
    damaged[-1] ^= 1
    with pytest.raises(CorruptBatchError, match="checksum"):
        list(iter_segment(damaged))
    assert len(list(iter_segment(damaged, verify_crc=False))) == 100


def test_indexes_lead_to_a_place_at_or_before_the_one_looked_for():
    offsets, times = build_indexes(iter_log_headers(FILE), first_offset=FIRST)
    assert 1 < len(offsets.offsets) < 20
    for offset in range(FIRST, FIRST + 1000):
        position = offsets.position_for(offset)
        assert position in POSITIONS
        assert position <= POSITIONS[(offset - FIRST) // 10]
        assert POSITIONS[(offset - FIRST) // 10] - position <= 4096 + 2 * len(BATCHES[0])
    for timestamp in range(4990, 5040):
        first = min((index for index in range(100) if 5000 + index // 3 >= timestamp), default=99)
        assert times.offset_for(timestamp) <= FIRST + 10 * first


def test_indexes_survive_being_written():
    offsets, times = build_indexes(iter_log_headers(FILE), first_offset=FIRST, interval_bytes=500)
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
    offsets, times = build_indexes([], first_offset=5)
    assert offsets.write() == times.write() == b""


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
