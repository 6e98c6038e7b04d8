"""The metadata of Arrow messages: read as Arrow writes it, written as Arrow reads it."""

from __future__ import annotations

import struct
from contextlib import suppress

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from pyarrow import ipc

from fluss.errors import CorruptBatchError
from fluss.model.tables.table_options import ArrowCompression
from fluss.records.arrow.arrow_metadata import (
    read_body_metadata,
    write_body_metadata,
)
from fluss.records.arrow.compression import KINDS
from fluss.records.arrow.received_bytes import to_view

LZ4_NUMBER, ZSTD_NUMBER = (
    KINDS[each].number for each in (ArrowCompression.LZ4_FRAME, ArrowCompression.ZSTD)
)
PAIRS = st.lists(st.tuples(st.integers(0, 2**40), st.integers(0, 2**40)), max_size=5)
BATCH = pa.record_batch([pa.array([1, None, 3]), pa.array(["a", None, "ccc"])], ["a", "b"])


def message(compression=None):
    if compression is None:
        return BATCH.serialize()
    sink = pa.BufferOutputStream()
    options = ipc.IpcWriteOptions(compression=compression)
    with ipc.new_stream(sink, BATCH.schema, options=options) as stream:
        stream.write_batch(BATCH)
    data = sink.getvalue()
    return data.slice(8 + struct.unpack_from("<i", data, 4)[0])


def test_what_arrow_writes_is_read():
    found = read_body_metadata(to_view(message()))
    assert found.row_count == 3
    assert found.nodes == [(3, 1), (3, 1)]
    assert found.buffers == [(0, 1), (8, 24), (32, 1), (40, 16), (56, 4)]
    assert found.codec is None
    assert found.body_length == 64
    assert found.body_start + found.body_length == message().size


@pytest.mark.parametrize(("name", "codec"), [("lz4", LZ4_NUMBER), ("zstd", ZSTD_NUMBER)])
def test_the_codec_is_read(name, codec):
    assert read_body_metadata(to_view(message(name))).codec == codec


@given(PAIRS, PAIRS, st.sampled_from([None, LZ4_NUMBER, ZSTD_NUMBER]))
def test_what_is_written_is_read_back(nodes, buffers, codec):
    written = write_body_metadata(
        row_count=7, nodes=nodes, buffers=buffers, codec=codec, body_length=2**33
    )
    assert len(written) % 8 == 0
    found = read_body_metadata(memoryview(written))
    assert (found.row_count, found.body_length) == (7, 2**33)
    assert (found.nodes, found.buffers, found.codec) == (nodes, buffers, codec)
    assert found.body_start == len(written)


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_arrow_reads_a_body_behind_metadata_written_here(compression):
    original = message(compression)
    found = read_body_metadata(to_view(original))
    head = write_body_metadata(
        row_count=found.row_count,
        nodes=found.nodes,
        buffers=found.buffers,
        codec=found.codec,
        body_length=found.body_length,
    )
    again = pa.py_buffer(head + original[found.body_start :].to_pybytes())
    assert ipc.read_message(again).type == "record batch"
    assert ipc.read_record_batch(again, BATCH.schema).equals(BATCH)


def test_a_schema_message_is_not_a_batch():
    with pytest.raises(CorruptBatchError, match="not a record batch"):
        read_body_metadata(to_view(BATCH.schema.serialize()))


@pytest.mark.parametrize("size", [-1, 0, 2**31 - 1, 17 << 20])
def test_a_metadata_size_that_cannot_be_is_refused(size):
    data = bytearray(message())
    struct.pack_into("<i", data, 4, size)
    with pytest.raises(CorruptBatchError, match="metadata claims"):
        read_body_metadata(memoryview(data))


def test_metadata_without_its_marker_is_refused():
    with pytest.raises(CorruptBatchError, match="FFFFFFFF"):
        read_body_metadata(memoryview(b"\x00" * 64))


def test_every_cut_is_refused_and_no_flipped_bit_leads_out_of_the_bytes():
    whole = bytes(message("zstd"))
    end = read_body_metadata(memoryview(whole)).body_start
    for cut in range(end):
        with pytest.raises(CorruptBatchError):
            read_body_metadata(memoryview(whole[:cut]))
    for at in range(8, end):
        for bit in range(8):
            damaged = bytearray(whole)
            damaged[at] ^= 1 << bit
            with suppress(CorruptBatchError):
                read_body_metadata(memoryview(damaged))


def test_a_vtable_before_the_metadata_is_refused():
    # The root table claims that its vtable lies far in front of it.
    metadata = struct.pack("<Ii", 4, 2**30) + bytes(8)
    data = b"\xff\xff\xff\xff" + struct.pack("<i", len(metadata)) + metadata
    with pytest.raises(CorruptBatchError, match="outside the metadata"):
        read_body_metadata(memoryview(data))


def test_a_list_longer_than_its_metadata_is_refused():
    written = bytearray(
        write_body_metadata(row_count=0, nodes=[(0, 0)], buffers=[], codec=None, body_length=0)
    )
    struct.pack_into("<I", written, 8 + 100, 2**28)
    with pytest.raises(CorruptBatchError, match="a list of 268435456 entries"):
        read_body_metadata(memoryview(written))


def test_an_unknown_codec_is_refused():
    written = bytearray(
        write_body_metadata(row_count=0, nodes=[], buffers=[], codec=ZSTD_NUMBER, body_length=0)
    )
    written[8 + 92] = 7
    with pytest.raises(CorruptBatchError, match="codec 7"):
        read_body_metadata(memoryview(written))


def test_short_vtables_mean_defaults():
    # A message of two fields, and a batch that only says how many rows it has.
    metadata = bytearray(64)
    struct.pack_into("<I", metadata, 0, 16)
    struct.pack_into("<5H", metadata, 4, 10, 12, 8, 10, 4)  # version, type, header
    struct.pack_into("<iIhB", metadata, 16, 12, 36 - 20, 4, 3)
    struct.pack_into("<3H", metadata, 28, 6, 12, 4)
    struct.pack_into("<iq", metadata, 36, 8, 5)
    data = b"\xff\xff\xff\xff" + struct.pack("<i", len(metadata)) + metadata
    found = read_body_metadata(memoryview(data))
    assert (found.row_count, found.nodes, found.buffers) == (5, [], [])
    assert (found.codec, found.body_length) == (None, 0)
