"""Headers of every magic byte, against bytes written by hand."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, strategies as st

from fluss.errors import CorruptBatchError
from fluss.records.log.log_header import (
    LogBatchHeader,
    format_of,
    patch_crc,
    read_log_header,
    stamp_log_batch,
    write_log_header,
)

# base offset 1, length, magic, timestamp 2, [epoch 3], CRC 4, schema id 5, attributes 1,
# last offset delta 6, writer id 7, sequence 8, record count 7, [statistics length 9]
COMMON = struct.pack("<hbiqii", 5, 1, 6, 7, 8, 7)
BY_HAND = {
    0: struct.pack("<qibqI", 1, 36, 0, 2, 4) + COMMON,
    1: struct.pack("<qibqI", 1, 40, 1, 2, 4) + COMMON + struct.pack("<i", 9),
    2: struct.pack("<qibqiI", 1, 44, 2, 2, 3, 4) + COMMON + struct.pack("<i", 9),
}
OLD_MAGIC_1 = struct.pack("<qibqiI", 1, 40, 1, 2, 3, 4) + COMMON

I64 = st.integers(-(2**63), 2**63 - 1)
I32 = st.integers(-(2**31), 2**31 - 1)


def check_fields(header):
    assert (header.base_offset, header.commit_timestamp, header.crc) == (1, 2, 4)
    assert (header.schema_id, header.attributes, header.last_offset_delta) == (5, 1, 6)
    assert (header.writer_id, header.batch_sequence, header.record_count) == (7, 8, 7)
    assert header.is_append_only
    assert header.next_offset == 8


@pytest.mark.parametrize(("magic", "size"), [(0, 48), (1, 52), (2, 56)])
def test_each_magic_is_read_from_its_places(magic, size):
    header = read_log_header(memoryview(BY_HAND[magic]))
    check_fields(header)
    assert (header.format.size, header.size_bytes) == (size, size)
    assert header.leader_epoch == (3 if magic == 2 else -1)
    assert header.statistics_length == (9 if magic else 0)
    assert header.records_start == size + header.statistics_length


def test_magic_1_of_0_9_1_has_a_leader_epoch_instead():
    header = read_log_header(memoryview(OLD_MAGIC_1), magic_1="leader_epoch")
    check_fields(header)
    assert (header.leader_epoch, header.statistics_length, header.format.size) == (3, 0, 52)


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_each_magic_is_written_to_its_places(magic):
    written = write_log_header(read_log_header(memoryview(BY_HAND[magic])))
    assert bytes(written) == BY_HAND[magic]


@given(
    magic=st.sampled_from([0, 1, 2]), wide=st.tuples(I64, I64, I64), narrow=st.tuples(*[I32] * 5)
)
def test_headers_survive(magic, wide, narrow):
    shape = format_of(magic)
    header = LogBatchHeader(
        base_offset=wide[0],
        length=narrow[0],
        magic=magic,
        commit_timestamp=wide[1],
        leader_epoch=narrow[1] if shape.has_leader_epoch else -1,
        crc=narrow[2] % 2**32,
        schema_id=narrow[3] % 2**15,
        attributes=1,
        last_offset_delta=narrow[3],
        writer_id=wide[2],
        batch_sequence=narrow[4],
        record_count=narrow[1],
        statistics_length=narrow[2] if shape.has_statistics else 0,
        format=shape,
    )
    behind = b"xyz"
    data = b"ab" + write_log_header(header) + behind
    assert read_log_header(memoryview(data), 2) == header


@pytest.mark.parametrize("magic", [3, 127, 128, 255])
def test_an_unknown_magic_byte_is_refused(magic):
    data = bytearray(BY_HAND[0])
    data[12] = magic
    with pytest.raises(CorruptBatchError, match=f"magic byte {magic} is unknown"):
        read_log_header(memoryview(data))


def test_0_9_1_knows_no_magic_2():
    with pytest.raises(CorruptBatchError, match="magic byte 2"):
        read_log_header(memoryview(BY_HAND[2]), magic_1="leader_epoch")


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_a_header_that_is_cut_off_is_refused(magic):
    for cut in range(len(BY_HAND[magic])):
        with pytest.raises(CorruptBatchError, match="bytes are there"):
            read_log_header(memoryview(BY_HAND[magic][:cut]))
    with pytest.raises(CorruptBatchError) as caught:
        read_log_header(memoryview(BY_HAND[magic]), 60)
    assert caught.value.at == 60


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_the_leader_sets_its_fields_and_no_other(magic):
    data = bytearray(b"??" + BY_HAND[magic])
    epoch = 11 if magic == 2 else None
    stamp_log_batch(data, 2, base_offset=2**40, commit_timestamp=2**41, leader_epoch=epoch)
    header = read_log_header(memoryview(data), 2)
    assert (header.base_offset, header.commit_timestamp) == (2**40, 2**41)
    assert header.leader_epoch == (11 if magic == 2 else -1)
    checked = format_of(magic).checked_from
    assert data[2 + checked :] == BY_HAND[magic][checked:]
    assert header.crc == 4


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_the_checksum_is_set_where_it_is_read(magic):
    data = bytearray(BY_HAND[magic])
    patch_crc(data, format_of(magic), 0xDEADBEEF)
    assert read_log_header(memoryview(data)).crc == 0xDEADBEEF
