"""One Arrow message per batch, and no lie in it reaches Arrow."""

from __future__ import annotations

import struct
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from fluss.error_codes import ErrorCode
from fluss.errors import CorruptBatchError, error_from_code
from fluss.model.tables.table_options import ArrowCompression
from fluss.model.types.data_type import (
    ArrayType,
    BigIntType,
    BytesType,
    DecimalType,
    IntType,
    MapType,
    StringType,
    TimestampLtzType,
)
from fluss.records.arrow.arrow_body import read_arrow_body, write_arrow_body
from fluss.records.arrow.arrow_metadata import read_body_metadata, write_body_metadata
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.arrow.compression import KINDS, BodyCodec
from fluss.records.arrow.received_bytes import to_view
from fluss.records.convert.numpy_columns import to_columns
from tests.support.generators.arrow_rows import batch_of
from tests.support.generators.random_columns import rows_in
from tests.support.generators.random_values import exact, tables

LZ4_NUMBER, ZSTD_NUMBER = (
    KINDS[each].number for each in (ArrowCompression.LZ4_FRAME, ArrowCompression.ZSTD)
)
CODECS = [BodyCodec(each) for each in ArrowCompression]
TEXT_LAYOUT = BatchLayout.of(["id", "text"], [BigIntType(), StringType()])


def layout_of(*types):
    return BatchLayout.of([f"c{index}" for index in range(len(types))], types)


def text_batch(texts):
    ids = pa.array(range(len(texts)), pa.int64())
    return pa.record_batch([ids, pa.array(texts, pa.string())], schema=TEXT_LAYOUT.wire_schema)


def message_of(arrays, *, row_count, nodes=None, codec=None, change=None):
    """A message of these buffers; `change` edits the positions in their metadata."""
    body, places = b"", []
    for each in arrays:
        places.append((len(body), len(each)))
        body += each + bytes(-len(each) % 8)
    if change is not None:
        change(places)
    head = write_body_metadata(
        row_count=row_count,
        nodes=nodes or [(row_count, 0)],
        buffers=places,
        codec=codec,
        body_length=len(body),
    )
    return pa.py_buffer(head + body)


def refused(message, layout, *, row_count, **how):
    with pytest.raises(CorruptBatchError) as caught:
        read_arrow_body(message, layout, row_count=row_count, **how)
    return caught.value


@given(tables(), st.sampled_from(CODECS))
def test_every_batch_survives_every_codec(table, codec):
    types, rows = table
    layout = layout_of(*types)
    body = write_arrow_body(batch_of(layout.wire_schema, types, rows), codec)
    read = read_arrow_body(body, layout, row_count=len(rows))
    assert read.schema.equals(layout.user_schema, check_metadata=True)
    assert exact(rows_in(to_columns(read, types), length=len(rows))) == exact(rows)


@pytest.mark.parametrize("codec", CODECS, ids=str)
def test_a_message_can_lie_at_any_address(codec):
    batch = text_batch(["a", None, "ccc"] * 50)
    body = bytes(write_arrow_body(batch, codec))
    for shift in range(9):
        shifted = pa.py_buffer(bytes(shift) + body).slice(shift)
        read = read_arrow_body(shifted, TEXT_LAYOUT, row_count=150)
        assert read.equals(batch)
        for array in read.columns:
            for buffer in array.buffers():
                assert buffer is None or buffer.address % 8 == 0


def test_an_aligned_plain_body_is_not_copied():
    body = write_arrow_body(text_batch(["a"] * 100), BodyCodec(ArrowCompression.NONE))
    read = read_arrow_body(body, TEXT_LAYOUT, row_count=100)
    assert body.address < read.column(0).buffers()[1].address < body.address + body.size


def test_instants_are_read_as_utc_whatever_was_written():
    layout = layout_of(TimestampLtzType(3))
    array = pa.array([5, None], pa.timestamp("ms"))
    body = write_arrow_body(pa.record_batch([array], ["c0"]), BodyCodec())
    assert read_arrow_body(body, layout, row_count=2).column(0).type == pa.timestamp("ms", "UTC")


def test_a_slice_writes_only_its_rows():
    batch = text_batch(["x" * 100] * 1000).slice(500, 2)
    body = write_arrow_body(batch, BodyCodec(ArrowCompression.NONE))
    assert body.size < 1000
    assert read_arrow_body(body, TEXT_LAYOUT, row_count=2).equals(batch)


def test_bytes_behind_the_message_are_ignored():
    body = bytes(write_arrow_body(text_batch(["a"]), BodyCodec()))
    read = read_arrow_body(pa.py_buffer(body + b"behind"), TEXT_LAYOUT, row_count=1)
    assert read.num_rows == 1


@pytest.mark.parametrize("codec", CODECS, ids=str)
def test_every_cut_is_refused(codec):
    body = bytes(write_arrow_body(text_batch(["a", None, "ccc"]), codec))
    for cut in range(len(body)):
        refused(pa.py_buffer(body[:cut]), TEXT_LAYOUT, row_count=3)


def test_the_rows_must_be_those_of_the_header():
    body = write_arrow_body(text_batch(["a", "b"]), BodyCodec())
    assert "2 rows where the header has 3" in refused(body, TEXT_LAYOUT, row_count=3).why


def test_the_columns_must_be_those_of_the_layout():
    body = write_arrow_body(text_batch(["a", "b"]), BodyCodec())
    assert "its schema needs 1 and 2" in refused(body, layout_of(BigIntType()), row_count=2).why
    swapped = layout_of(StringType(), BigIntType())
    refused(body, swapped, row_count=2)


def test_error_positions_count_from_what_the_caller_read():
    body = write_arrow_body(text_batch(["a"]), BodyCodec())
    assert refused(body, TEXT_LAYOUT, row_count=2, at=1234).at == 1234


@pytest.mark.parametrize(
    ("offset", "length"),
    [(0, 17), (8, 9), (16, 1), (-8, 8), (0, -1), (2**62, 2**62), (4, 8), (2**63 - 8, 8)],
)
def test_a_buffer_outside_its_body_is_refused(offset, length):
    def change(places):
        places[1] = (offset, length)

    message = message_of([b"", bytes(16)], row_count=2, change=change)
    assert "a buffer of" in refused(message, layout_of(BigIntType()), row_count=2).why


@pytest.mark.parametrize("node", [(2, 3), (2, -1), (-1, 0), (2**62, 0), (3, 0)])
def test_a_node_that_cannot_be_is_refused(node):
    message = message_of([b"", bytes(24)], row_count=2, nodes=[node])
    refused(message, layout_of(BigIntType()), row_count=2)


def test_a_null_count_must_be_that_of_the_bits():
    message = message_of([b"\x01", bytes(16)], row_count=2, nodes=[(2, 2)])
    assert "Arrow: " in refused(message, layout_of(BigIntType()), row_count=2).why
    message = message_of([b"", bytes(16)], row_count=2, nodes=[(2, 1)])
    refused(message, layout_of(BigIntType()), row_count=2)


def test_a_buffer_too_short_for_its_rows_is_refused():
    message = message_of([b"", bytes(8)], row_count=2)
    refused(message, layout_of(BigIntType()), row_count=2)
    message = message_of([b"", bytes(8)], row_count=2)
    refused(message, layout_of(DecimalType(20, 0)), row_count=2)


@pytest.mark.parametrize(
    "offsets", [(0, 5, 3), (0, 2, 100), (-4, 0, 3), (3, 0, 3), (0, 2**31 - 1, 3)]
)
@pytest.mark.parametrize("data_type", [StringType(), BytesType()], ids=str)
def test_offsets_that_run_backwards_or_out_are_refused(offsets, data_type):
    message = message_of([b"", struct.pack("<3i", *offsets), b"abc"], row_count=2)
    refused(message, layout_of(data_type), row_count=2)


def test_offsets_of_lists_and_maps_are_checked():
    def lists(offsets, data_type, children):
        nodes = [(2, 0), *[(3, 0)] * (len(children) // 2)]
        arrays = [b"", struct.pack("<3i", *offsets), *children]
        return message_of(arrays, row_count=2, nodes=nodes), layout_of(data_type)

    children = [b"", struct.pack("<3i", 1, 2, 3)]
    message, layout = lists((0, 2, 3), ArrayType(IntType()), children)
    assert read_arrow_body(message, layout, row_count=2).column(0).to_pylist() == [[1, 2], [3]]
    message, layout = lists((0, 4, 3), ArrayType(IntType()), children)
    refused(message, layout, row_count=2)
    message, layout = lists((0, 2, 9), ArrayType(IntType()), children)
    refused(message, layout, row_count=2)
    entries = [b"", b"", struct.pack("<3i", 1, 2, 3), b"", struct.pack("<3i", 4, 5, 6)]
    nodes = [(2, 0), (3, 0), (3, 0), (3, 0)]
    for offsets, fits in (((0, 1, 3), True), ((0, 9, 3), False)):
        arrays = [b"", struct.pack("<3i", *offsets), *entries]
        message = message_of(arrays, row_count=2, nodes=nodes)
        layout = layout_of(MapType(IntType(), IntType()))
        if fits:
            assert read_arrow_body(message, layout, row_count=2).num_rows == 2
        else:
            refused(message, layout, row_count=2)


@pytest.mark.parametrize("text", [b"\xff", b"a\xc3", b"\xed\xa0\x80", b"ok\x80"])
def test_text_that_is_not_utf8_is_refused(text):
    message = message_of([b"", struct.pack("<2i", 0, len(text)), text], row_count=1)
    refused(message, layout_of(StringType()), row_count=1)
    read = read_arrow_body(message, layout_of(BytesType()), row_count=1)
    assert read.column(0).to_pylist() == [text]


def test_text_cut_in_the_middle_of_a_character_is_refused():
    message = message_of([b"", struct.pack("<3i", 0, 1, 2), "ä".encode()], row_count=2)
    refused(message, layout_of(StringType()), row_count=2)


def test_text_in_nested_columns_is_checked():
    arrays = [b"", struct.pack("<2i", 0, 1), b"", struct.pack("<2i", 0, 1), b"\xff"]
    message = message_of(arrays, row_count=1, nodes=[(1, 0), (1, 0)])
    refused(message, layout_of(ArrayType(StringType())), row_count=1)


@pytest.mark.parametrize("size", [2**62, 2**31, -2, 1025])
def test_what_a_buffer_claims_to_become_is_limited_before_it_is_allocated(size):
    packed = struct.pack("<q", size) + pa.Codec("zstd").compress(bytes(16), asbytes=True)
    message = message_of([b"", packed], row_count=2, codec=ZSTD_NUMBER)
    error = refused(message, layout_of(BigIntType()), row_count=2, body_bytes_max=1024)
    assert str(size) in error.why


def test_a_batch_above_the_limit_has_the_code_of_one_that_is_too_large():
    packed = struct.pack("<q", 1025) + pa.Codec("zstd").compress(bytes(1025), asbytes=True)
    message = message_of([b"", packed], row_count=2, codec=ZSTD_NUMBER)
    error = refused(message, layout_of(BigIntType()), row_count=2, body_bytes_max=1024)
    assert error.error_code == ErrorCode.RECORD_TOO_LARGE_EXCEPTION
    assert not error_from_code(error.error_code).is_retriable


def test_a_compressed_buffer_without_a_length_is_refused():
    message = message_of([b"", bytes(7)], row_count=2, codec=ZSTD_NUMBER)
    assert "has no length" in refused(message, layout_of(BigIntType()), row_count=2).why


def test_a_buffer_that_becomes_less_than_it_claims_is_refused():
    packed = struct.pack("<q", 16) + pa.Codec("zstd").compress(bytes(8), asbytes=True)
    message = message_of([b"", packed], row_count=2, codec=ZSTD_NUMBER)
    refused(message, layout_of(BigIntType()), row_count=2)


def test_a_buffer_stored_plain_among_compressed_ones_is_read():
    packed = struct.pack("<qqq", -1, 7, 8)
    message = message_of([b"", packed], row_count=2, codec=ZSTD_NUMBER)
    assert read_arrow_body(message, layout_of(BigIntType()), row_count=2).column(0).to_pylist() == [
        7,
        8,
    ]


@pytest.mark.parametrize("codec", [each for each in CODECS if each.compression != "NONE"])
def test_the_buffers_of_a_few_short_rows_are_stored_plain(codec):
    body = write_arrow_body(text_batch(["x", None, "abc"]), codec)
    metadata = read_body_metadata(to_view(body))
    assert metadata.codec is not None
    starts = [metadata.body_start + offset for offset, length in metadata.buffers if length]
    assert {to_view(body)[each : each + 8].hex() for each in starts} == {"ff" * 8}
    assert read_arrow_body(body, TEXT_LAYOUT, row_count=3)["text"].to_pylist() == ["x", None, "abc"]


@pytest.mark.parametrize("texts", [["x" * 2_000], ["x"] * 200])
def test_one_long_row_is_compressed_and_so_are_many_short_ones(texts):
    batch = text_batch(texts)
    body = write_arrow_body(batch, BodyCodec(ArrowCompression.ZSTD))
    assert body.size < batch.serialize().size


def test_levels_of_zstd_are_used():
    text = " ".join(str(Random(index).random()) for index in range(3000))
    batch = text_batch([text])
    sizes = [write_arrow_body(batch, BodyCodec(level=level)).size for level in (1, 19)]
    assert sizes[1] < sizes[0]


def test_large_lz4_buffers_have_blocks_that_do_not_need_each_other():
    batch = text_batch([f"{index}-{'x' * 50}" for index in range(5000)])
    body = write_arrow_body(batch, BodyCodec(ArrowCompression.LZ4_FRAME))
    metadata = read_body_metadata(to_view(body))
    start = metadata.body_start + metadata.buffers[-1][0]
    size, magic, flags = struct.unpack_from("<qIB", body, start)
    assert size > 1 << 17
    assert (magic, flags) == (0x184D2204, 0x60)
    assert body.size < batch.nbytes / 2
    assert read_arrow_body(body, TEXT_LAYOUT, row_count=5000).equals(batch)


def test_what_lz4_cannot_make_smaller_is_stored_plain():
    noise = pa.array(np.frombuffer(Random(1).randbytes(80_000), dtype=np.int64))
    batch = pa.record_batch([noise], ["c0"])
    body = write_arrow_body(batch, BodyCodec(ArrowCompression.LZ4_FRAME))
    assert body.size < batch.nbytes + 500
    assert read_arrow_body(body, layout_of(BigIntType()), row_count=10_000).equals(
        batch.cast(layout_of(BigIntType()).user_schema)
    )
