"""KV batches."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from crc32c import crc32c
from hypothesis import given, strategies as st

from fluss.errors import CorruptBatchError
from fluss.records.kv.kv_batch import kv_body, read_kv_batch, write_kv_batch
from tests.support.generators.encoded import row_bytes

RECORDS = st.lists(
    st.tuples(
        st.binary(max_size=30) | st.just(b"k" * 127) | st.just(b"k" * 128) | st.just(b"k" * 20_000),
        st.none() | st.binary(min_size=1, max_size=30),
    ),
    max_size=20,
)


def written(records, **header):
    keys = row_bytes([key for key, _ in records])
    # The row of a deletion is ignored.
    rows = row_bytes([b"rubbish" if row is None else row for _, row in records])
    deletes = np.array([row is None for _, row in records], dtype=np.bool_)
    return b"".join(
        write_kv_batch(kv_body(keys, rows, deletes=deletes), **{"schema_id": 1} | header)
    )


def records_in(batch):
    pairs = [(batch.keys[index], batch.rows[index]) for index in range(len(batch))]
    return [
        (key, None if delete else row)
        for (key, row), delete in zip(pairs, batch.deletes, strict=True)
    ]


def damaged(data, at, layout, value):
    """The batch with another number in it, and a checksum that fits."""
    edited = bytearray(data)
    struct.pack_into(layout, edited, at, value)
    struct.pack_into("<I", edited, 5, crc32c(memoryview(edited)[9:]))
    return bytes(edited)


def refused(data):
    with pytest.raises(CorruptBatchError) as caught:
        read_kv_batch(data)
    return caught.value


@given(RECORDS)
def test_records_survive(records):
    assert records_in(read_kv_batch(written(records))) == records


def test_a_batch_is_what_the_table_says():
    data = written([(b"\x01", b"row"), (b"\x02", None)], schema_id=3, writer_id=4, batch_sequence=5)
    behind = struct.pack("<hbqii", 3, 0, 4, 5, 2) + bytes.fromhex(
        "05000000 01 01 726f77  02000000 01 02"
    )
    assert data == struct.pack("<ibI", 5 + len(behind), 0, crc32c(behind)) + behind


def test_the_header_is_read():
    batch = read_kv_batch(written([], schema_id=7, writer_id=2**40, batch_sequence=9))
    assert (batch.schema_id, batch.writer_id, batch.batch_sequence) == (7, 2**40, 9)
    assert len(batch) == 0
    assert batch.deletes.tolist() == []


def test_without_deletes_every_row_is_written():
    body = kv_body(row_bytes([b"a", b"b"]), row_bytes([b"1", b"2"]))
    batch = read_kv_batch(b"".join(write_kv_batch(body, schema_id=1)))
    assert records_in(batch) == [(b"a", b"1"), (b"b", b"2")]


def test_keys_and_rows_can_be_had_back_to_back():
    batch = read_kv_batch(written([(b"a", b"1"), (b"bc", None), (b"", b"23")]))
    assert list(map(bytes, batch.keys.gathered())) == [b"a", b"bc", b""]
    assert list(map(bytes, batch.rows.gathered())) == [b"1", b"", b"23"]


def test_a_wrong_checksum_is_refused_unless_checks_are_off():
    data = bytearray(written([(b"a", b"1")]))
    data[5] ^= 1
    assert "checksum" in refused(bytes(data)).why
    assert len(read_kv_batch(bytes(data), verify_crc=False)) == 1


def test_every_cut_and_every_addition_is_refused():
    data = written([(b"a", b"1"), (b"b" * 200, None)])
    for cut in range(len(data)):
        refused(data[:cut])
        with_length = damaged(data[:cut], 0, "<i", cut - 4) if cut > 28 else data[:cut]
        refused(with_length)
    refused(data + b"x")


@pytest.mark.parametrize(
    ("at", "layout", "value"),
    [
        (0, "<i", -1), (0, "<i", 2**31 - 1), (4, "<b", 1), (9, "<h", -1),
        (24, "<i", -1), (24, "<i", 1), (24, "<i", 3), (24, "<i", 2**31 - 1),
        (28, "<i", 0), (28, "<i", -5), (28, "<i", 2**31 - 1),
        (32, "<B", 100), (32, "<I", 0xFFFFFFFF),
    ],
)  # fmt: skip
def test_numbers_that_lie_are_refused(at, layout, value):
    refused(damaged(written([(b"key", b"row"), (b"key", b"row")]), at, layout, value))


def test_a_key_length_that_never_ends_is_refused():
    data = written([(b"k" * 300, b"row")])
    for prefix in (b"\xff" * 12, b"\xff\xff\xff\xff\x0f", b"\x80\x80\x80\x80\x80\x01"):
        edited = bytearray(data)
        edited[32 : 32 + len(prefix)] = prefix
        with pytest.raises(CorruptBatchError, match="the key of record 0"):
            read_kv_batch(bytes(edited), verify_crc=False)
