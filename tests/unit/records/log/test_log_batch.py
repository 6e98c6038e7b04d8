"""Walking over log batches: what is found, what is dropped, what is refused."""

from __future__ import annotations

import struct
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from crc32c import crc32c

from fluss.errors import CorruptBatchError
from fluss.model.tables.table_options import ArrowCompression
from fluss.model.types.data_type import BigIntType, StringType
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.arrow.compression import BodyCodec
from fluss.records.log.log_batch import iter_log_batches, iter_log_headers
from fluss.records.log.log_header import (
    LogBatchHeader,
    format_of,
    patch_crc,
    read_log_header,
    stamp_log_batch,
    write_log_header,
)
from fluss.records.log.log_writer import arrow_log_body, write_log_batch

LAYOUT = BatchLayout.of(["id", "text"], [BigIntType(), StringType()])
PLAIN = BodyCodec(ArrowCompression.NONE)


def rows(*ids):
    return pa.record_batch(
        [pa.array(ids, pa.int64()), pa.array([f"row {each}" for each in ids], pa.string())],
        schema=LAYOUT.wire_schema,
    )


def stored(batch, *, base_offset=0, change_types=None, statistics=None, leader_epoch=None):
    body = arrow_log_body(batch, PLAIN, change_types=change_types, statistics=statistics)
    return b"".join(
        write_log_batch(
            body,
            schema_id=3,
            base_offset=base_offset,
            commit_timestamp=9,
            leader_epoch=leader_epoch,
        )
    )


def changed(data, **fields):
    """The batch with other fields in its header and a checksum that fits."""
    header = replace(read_log_header(memoryview(data)), **fields)
    written = bytearray(write_log_header(header)) + data[header.format.size :]
    crc = crc32c(memoryview(written)[header.format.checked_from :])
    patch_crc(written, header.format, crc)
    return bytes(written)


def refused(data, **how):
    with pytest.raises(CorruptBatchError) as caught:
        list(iter_log_batches(data, **how))
    return caught.value


@pytest.mark.parametrize("source", [bytes, bytearray, memoryview, pa.py_buffer])
def test_batches_are_found_one_behind_the_other(source):
    first, second = stored(rows(1, 2), base_offset=10), stored(rows(3), base_offset=12)
    found = list(iter_log_batches(source(first + second)))
    assert [each.base_offset for each in found] == [10, 12]
    assert [each.next_offset for each in found] == [12, 13]
    assert [each.at for each in found] == [0, len(first)]
    assert [each.record_batch(LAYOUT).to_pylist() for each in found] == [
        [{"id": 1, "text": "row 1"}, {"id": 2, "text": "row 2"}],
        [{"id": 3, "text": "row 3"}],
    ]
    assert [each.change_types() for each in found] == [None, None]


def test_a_walk_can_begin_behind_something():
    data = b"other bytes" + stored(rows(1))
    (found,) = iter_log_batches(data, start=11)
    assert found.record_batch(LAYOUT).num_rows == 1
    assert found.at == 11


def test_nothing_holds_no_batches():
    assert list(iter_log_batches(b"")) == []


def test_change_types_stand_in_front_of_the_rows():
    kinds = np.array([1, 2, 3, 4, 0], dtype=np.uint8)
    (found,) = iter_log_batches(stored(rows(1, 2, 3, 4, 5), change_types=kinds))
    assert found.change_types().tolist() == [1, 2, 3, 4, 0]
    assert found.record_batch(LAYOUT).column(0).to_pylist() == [1, 2, 3, 4, 5]
    assert not found.header.is_append_only


def test_an_unknown_change_type_is_refused():
    kinds = np.array([1, 5, 3], dtype=np.uint8)
    (found,) = iter_log_batches(stored(rows(1, 2, 3), change_types=kinds))
    with pytest.raises(CorruptBatchError, match="record 1 has the change type 5"):
        found.change_types()


def test_an_empty_batch_takes_one_offset_and_has_no_rows():
    data = stored(rows(), base_offset=7, change_types=np.zeros(0, dtype=np.uint8))
    assert len(data) == 48
    (found,) = iter_log_batches(data)
    assert (found.record_count, found.next_offset) == (0, 8)
    assert found.record_batch(LAYOUT).schema == LAYOUT.user_schema
    assert found.change_types().tolist() == []


@pytest.mark.parametrize("tail", ["drop", "refuse"])
def test_a_cut_at_the_end_is_dropped_in_a_fetch_and_refused_in_a_segment(tail):
    whole = stored(rows(1), base_offset=0)
    data = whole + stored(rows(2), base_offset=1)
    for cut in range(len(whole), len(data) + 1):
        walk = iter_log_batches(data[:cut], tail=tail)
        assert next(walk).base_offset == 0
        if cut == len(data):
            assert next(walk).base_offset == 1
        elif tail == "drop" or cut == len(whole):
            assert list(walk) == []
        else:
            with pytest.raises(CorruptBatchError) as caught:
                next(walk)
            assert caught.value.at == len(whole)
            assert f"after {cut - len(whole)} of its bytes" in caught.value.why


@pytest.mark.parametrize("leader_epoch", [None, 4])
def test_every_flipped_bit_under_the_checksum_is_noticed(leader_epoch):
    data = stored(rows(1), statistics=b"1234", leader_epoch=leader_epoch)
    checked = format_of(2 if leader_epoch else 1).checked_from
    for at in range(checked, len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 4
        refused(bytes(damaged))


def test_a_wrong_checksum_names_both():
    data = bytearray(stored(rows(1)))
    expected = struct.unpack_from("<I", data, 21)[0]
    data[-1] ^= 1
    why = refused(bytes(data)).why
    assert f"{expected:08x}" in why


def test_the_checksum_of_a_projected_fetch_is_not_looked_at():
    data = bytearray(stored(rows(1)))
    data[21] ^= 1
    (found,) = iter_log_batches(bytes(data), verify_crc=False)
    assert found.record_batch(LAYOUT).num_rows == 1
    with pytest.raises(CorruptBatchError, match="checksum"):
        found.verify_crc()


def test_what_a_leader_sets_is_not_under_the_checksum():
    data = bytearray(stored(rows(1, 2)))
    stamp_log_batch(data, base_offset=100, commit_timestamp=200)
    (found,) = iter_log_batches(data)
    assert (found.base_offset, found.header.commit_timestamp) == (100, 200)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"record_count": -1}, "-1 records"),
        ({"record_count": 3}, "3 records and a last offset delta of 1"),
        ({"last_offset_delta": 2}, "last offset delta of 2"),
        ({"last_offset_delta": -1}, "last offset delta of -1"),
        ({"base_offset": -1}, "base offset is -1"),
        ({"schema_id": -1}, "schema id -1"),
        (
            {"attributes": 0, "record_count": 2**31 - 1, "last_offset_delta": 2**31 - 2},
            "do not fit",
        ),
    ],
)
def test_counts_that_contradict_each_other_are_refused(fields, why):
    assert why in refused(changed(stored(rows(1, 2)), **fields)).why


@pytest.mark.parametrize("length", [-1, 2**31 - 1, 1000])
def test_statistics_that_do_not_fit_the_batch_are_refused(length):
    data = changed(stored(rows(1, 2), statistics=b"1234"), statistics_length=length)
    assert "statistics do not fit" in refused(data).why


@pytest.mark.parametrize("length", [-1, -12, -(2**31)])
def test_a_negative_length_is_refused_and_not_followed(length):
    data = bytearray(stored(rows(1)))
    struct.pack_into("<i", data, 8, length)
    assert refused(bytes(data)).why == f"its length is {length}"
    with pytest.raises(CorruptBatchError):
        list(iter_log_headers(bytes(data)))


@pytest.mark.parametrize("length", range(36))
def test_a_batch_shorter_than_its_header_is_refused(length):
    data = bytearray(stored(rows(1)))
    struct.pack_into("<i", data, 8, length)
    refused(bytes(data), verify_crc=False)


def test_a_header_of_magic_1_and_2_must_fit_its_batch_too():
    for magic, leader_epoch in ((1, None), (2, 5)):
        data = bytearray(stored(rows(1), statistics=b"1", leader_epoch=leader_epoch))
        assert data[12] == magic
        struct.pack_into("<i", data, 8, 38)
        refused(bytes(data), verify_crc=False)


def test_an_empty_batch_may_carry_an_empty_body():
    body = arrow_log_body(rows(), PLAIN)
    header = LogBatchHeader(
        schema_id=1, last_offset_delta=0, record_count=0, length=36 + 8, attributes=1,
        format=format_of(0),
    )  # fmt: skip
    assert body.buffers == (b"",)
    data = bytes(write_log_header(header)) + bytes(8)
    (found,) = iter_log_batches(data, verify_crc=False)
    assert found.record_batch(LAYOUT).num_rows == 0


def test_magic_1_is_read_as_the_caller_says():
    data = bytearray(stored(rows(1)))
    old = data[:12] + b"\x01" + data[13:21] + struct.pack("<i", 6) + data[21:]
    struct.pack_into("<i", old, 8, len(old) - 12)
    (found,) = iter_log_batches(bytes(old), magic_1="leader_epoch")
    assert found.header.leader_epoch == 6
    assert found.record_batch(LAYOUT).num_rows == 1
    refused(bytes(old), magic_1="statistics")


def test_headers_alone_say_where_the_next_fetch_begins():
    data = stored(rows(1, 2)) + stored(rows(3), base_offset=2)
    assert [(at, header.base_offset) for at, header in iter_log_headers(data)] == [
        (0, 0),
        (len(stored(rows(1, 2))), 2),
    ]
    for whole in (data, data + data[:60]):
        *_, (_, last) = iter_log_headers(whole)
        assert last.next_offset == 3
    assert not list(iter_log_headers(data[:20]))


def test_a_batch_keeps_its_bytes_alive():
    found = next(iter_log_batches(bytearray(stored(rows(1, 2, 3)))))
    batch = found.record_batch(LAYOUT)
    del found
    assert batch.column(1).to_pylist() == ["row 1", "row 2", "row 3"]


def test_statistics_are_optional():
    (found,) = iter_log_batches(stored(rows(1)))
    assert found.statistics(LAYOUT.types) is None
    (found,) = iter_log_batches(stored(rows(1), statistics=b"\x07not a block"))
    assert found.statistics(LAYOUT.types) is None
    assert found.record_batch(LAYOUT).num_rows == 1
