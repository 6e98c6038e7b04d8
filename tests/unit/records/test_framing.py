"""Records behind their lengths: found again, however they were damaged."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fluss.errors import CorruptBatchError
from fluss.records.framing import find_frames, write_frames
from fluss.rows.buffers.byte_runs import fixed_words, runs_of_rows
from tests.support.generators.encoded import row_bytes

RECORDS = st.lists(st.binary(min_size=1, max_size=40), max_size=30)


def as_bytes(data):
    return np.frombuffer(data, dtype=np.uint8)


def find(data, count, *, start=0, record_bytes_min=1):
    return find_frames(
        as_bytes(data), start=start, count=count, record_bytes_min=record_bytes_min, what="record"
    )


def framed(records):
    return b"".join(struct.pack("<i", len(each)) + each for each in records)


@given(RECORDS)
def test_records_are_found_where_they_are(records):
    found = find(b"head" + framed(records), len(records), start=4)
    assert [found[index] for index in range(len(found))] == records
    assert list(map(bytes, found.gathered())) == records


@given(RECORDS)
def test_records_are_written_behind_their_lengths(records):
    written = write_frames([runs_of_rows(row_bytes(records))], len(records))
    assert written.data.tobytes() == framed(records)


def test_parts_of_a_record_stand_side_by_side():
    rows = row_bytes([b"one", b"", b"three"])
    kinds = fixed_words(np.array([7, 8, 9], dtype=np.uint64), 2, None)
    written = write_frames([kinds, runs_of_rows(rows)], 3)
    assert written.data.tobytes() == framed([b"\x07\x00one", b"\x08\x00", b"\x09\x00three"])


def test_records_can_be_taken_and_shortened():
    found = find(framed([b"abc", b"de", b"f"]), 3)
    assert found.take(np.array([2, 0]))[1] == b"abc"
    assert found.beyond(1)[1] == b"e"
    assert found.beyond(np.array([3, 0, 1]))[0] == b""


def test_every_cut_and_every_addition_is_refused():
    whole = framed([b"abc", b"", b"defgh"])
    for cut in range(len(whole)):
        with pytest.raises(CorruptBatchError):
            find(whole[:cut], 3, record_bytes_min=0)
    with pytest.raises(CorruptBatchError, match="4 bytes follow"):
        find(whole + bytes(4), 3, record_bytes_min=0)


@pytest.mark.parametrize("length", [-1, -4, -5, -(2**31), 2**31 - 1, 100, 4, 2])
@pytest.mark.parametrize("index", [0, 1, 2])
def test_a_wrong_length_is_refused_wherever_it_leads(length, index):
    data = bytearray(framed([b"abc", b"abc", b"abc"]))
    struct.pack_into("<i", data, 7 * index, length)
    with pytest.raises(CorruptBatchError) as caught:
        find(bytes(data), 3)
    assert caught.value.what == "record"


def test_a_length_that_leads_in_a_circle_comes_to_an_end():
    data = struct.pack("<ii", 4, -8) + bytes(40_000)
    with pytest.raises(CorruptBatchError):
        find(data, 8_000)


@pytest.mark.parametrize("count", [4, 2**31 - 1])
def test_more_records_than_bytes_are_refused_before_anything_is_made(count):
    with pytest.raises(CorruptBatchError, match=f"{count} of them do not fit"):
        find(framed([b"a", b"b", b"c"]), count)


def test_a_record_shorter_than_it_must_be_is_refused():
    with pytest.raises(CorruptBatchError) as caught:
        find_frames(
            as_bytes(framed([b"abcdef", b"a"]) + bytes(4)),
            start=0,
            count=2,
            record_bytes_min=2,
            what="record",
            at=100,
        )
    assert (caught.value.at, caught.value.why) == (110, "record 1 claims 1 bytes")


def test_nothing_is_found_in_nothing():
    assert len(find(b"", 0)) == 0
    assert len(find(b"head", 0, start=4).gathered()) == 0
