"""Small messages lose their compression without Arrow's threads, and mean what Arrow reads."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from fluss.errors import CorruptBatchError
from fluss.model.tables.table_options import ArrowCompression
from fluss.model.types.data_type import (
    ArrayType,
    BigIntType,
    BooleanType,
    IntType,
    MapType,
    StringType,
    TimestampLtzType,
)
from fluss.records.arrow import arrow_body
from fluss.records.arrow.arrow_body import read_arrow_body, write_arrow_body
from fluss.records.arrow.arrow_inflate import (
    COPIED_BYTES_MAX,
    INFLATED_BYTES_MAX,
    READ_ALONE_BYTES_MAX,
    SMALL_BUFFER_BYTES,
    inflated,
    is_inflated_here,
    read_alone,
)
from fluss.records.arrow.arrow_metadata import (
    read_body_metadata,
    write_body_metadata,
)
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.arrow.compression import KINDS, BodyCodec
from fluss.records.arrow.received_bytes import to_view

LZ4_NUMBER, ZSTD_NUMBER = (
    KINDS[each].number for each in (ArrowCompression.LZ4_FRAME, ArrowCompression.ZSTD)
)
LAYOUT = BatchLayout.of(["id", "text"], [BigIntType(), StringType()])
ZSTD = pa.Codec("zstd")
ROWS = 100
IDS = struct.pack(f"<{ROWS}q", *range(ROWS))
ENDS = struct.pack(f"<{ROWS + 1}i", *range(0, 3 * ROWS + 1, 3))
TEXT = b"abc" * ROWS


def frame_of(data):
    """A buffer as ZSTD's one call compresses it, behind its length."""
    return claimed(len(data), ZSTD.compress(data).to_pybytes())


def claimed(size, frame):
    return struct.pack("<q", size) + frame


def streamed(data):
    """A frame that does not say how much is in it."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


def message_of(*buffers, codec=ZSTD_NUMBER, rows=ROWS):
    """A message of two columns without NULLs."""
    body, places = b"", []
    for each in buffers:
        places.append((len(body), len(each)))
        body += each + bytes(-len(each) % 8)
    head = write_body_metadata(
        row_count=rows,
        nodes=[(rows, 0), (rows, 0)],
        buffers=places,
        codec=codec,
        body_length=len(body),
    )
    return pa.py_buffer(head + body)


def inflate(message):
    view = to_view(message)
    return inflated(view, read_body_metadata(view))


def read(message):
    return read_arrow_body(message, LAYOUT, row_count=ROWS)


def test_a_message_without_compression_means_the_same():
    message = message_of(b"", frame_of(IDS), b"", frame_of(ENDS), frame_of(TEXT))
    plain = inflate(message)
    assert read_body_metadata(to_view(plain)).codec is None
    batch = pa.ipc.read_record_batch(plain, LAYOUT.user_schema)
    assert batch.equals(pa.ipc.read_record_batch(message, LAYOUT.user_schema))
    assert batch["text"].to_pylist() == ["abc"] * ROWS


def test_buffers_stored_plain_stay_where_they_were_among_compressed_ones():
    message = message_of(b"", claimed(-1, IDS), b"", frame_of(ENDS), claimed(-1, TEXT))
    assert inflate(message) is not None
    assert read(message)["id"].to_pylist() == list(range(ROWS))
    assert read(message)["text"].to_pylist() == ["abc"] * ROWS


def test_every_array_begins_where_processors_like_it():
    bits = bytes([0xFF] * 13)  # the next buffer would begin at an odd place
    message = message_of(frame_of(bits), frame_of(IDS), b"", frame_of(ENDS), frame_of(TEXT))
    addresses = [
        each.address
        for column in pa.ipc.read_record_batch(inflate(message), LAYOUT.user_schema).columns
        for each in column.buffers()
        if each is not None
    ]
    start = inflate(message).address % 8
    assert {each % 8 for each in addresses} == {start}


@given(st.lists(st.binary(max_size=3_000), min_size=1, max_size=20))
def test_frames_of_any_size_come_out_as_they_went_in(contents):
    body, places = b"", []
    for each in contents:
        frame = frame_of(each) if each else b""
        places.append((len(body), len(frame)))
        body += frame + bytes(-len(frame) % 8)
    head = write_body_metadata(
        row_count=1, nodes=[(1, 0)], buffers=places, codec=ZSTD_NUMBER, body_length=len(body)
    )
    plain = to_view(inflate(pa.py_buffer(head + body)))
    metadata = read_body_metadata(plain)
    found = [
        bytes(plain[metadata.body_start + start :][:length]) for start, length in metadata.buffers
    ]
    assert found == contents


def test_a_large_frame_says_its_size_in_more_bytes():
    for size in (255, 256, 65_791, 65_792, INFLATED_BYTES_MAX):
        message = message_of(b"", frame_of(bytes(size)), b"", b"", b"")
        assert len(inflate(message)) > size


def test_what_arrow_has_to_see_to_is_left_to_it():
    unsaid = message_of(b"", claimed(len(IDS), streamed(IDS)), b"", frame_of(ENDS), frame_of(TEXT))
    assert inflate(unsaid) is None
    assert read(unsaid)["id"].to_pylist() == list(range(ROWS))
    in_two = claimed(
        len(IDS), b"".join(ZSTD.compress(each).to_pybytes() for each in (IDS[:8], IDS[8:]))
    )
    in_two = message_of(b"", in_two, b"", frame_of(ENDS), frame_of(TEXT))
    assert inflate(in_two) is None
    assert read(in_two).equals(read(unsaid))
    lz4 = pa.Codec("lz4").compress(IDS).to_pybytes()
    assert inflate(message_of(b"", claimed(len(IDS), lz4), codec=LZ4_NUMBER)) is None


def test_a_message_of_many_columns_is_what_arrow_reads(monkeypatch):
    rows, width = 200, 120
    assert INFLATED_BYTES_MAX < rows * width * 8 <= width * SMALL_BUFFER_BYTES
    layout = BatchLayout.of([f"c{each}" for each in range(width)], [BigIntType()] * width)
    columns = [pa.array(range(each, each + rows)) for each in range(width)]
    columns[7] = pa.array([None if each % 3 else each for each in range(rows)])
    batch = pa.record_batch(columns, schema=layout.wire_schema)
    message = write_arrow_body(batch, BodyCodec(ArrowCompression.ZSTD))
    known = pa.ipc.read_record_batch(message, layout.user_schema)
    metadata = read_body_metadata(to_view(message))
    assert is_inflated_here(metadata, rows * width * 8)
    assert not is_inflated_here(metadata, COPIED_BYTES_MAX + 1)
    tried = []
    monkeypatch.setattr(arrow_body, "inflated", lambda *given: tried.append(inflated(*given)))
    assert read_arrow_body(message, layout, row_count=rows).equals(known)  # by Arrow
    (plain,) = tried
    assert pa.ipc.read_record_batch(plain, layout.user_schema).equals(known)


@pytest.mark.parametrize(("rows", "is_here"), [(2_000, True), (4_000, False), (10_000, False)])
def test_few_large_buffers_are_left_to_arrow(rows, is_here):
    layout = BatchLayout.of(["id", "kind"], [BigIntType(), BigIntType()])
    columns = [pa.array(range(rows)), pa.array([each % 100 for each in range(rows)])]
    batch = pa.record_batch(columns, schema=layout.wire_schema)
    message = write_arrow_body(batch, BodyCodec(ArrowCompression.ZSTD))
    metadata = read_body_metadata(to_view(message))
    assert is_inflated_here(metadata, rows * 16) is is_here
    plain = pa.ipc.read_record_batch(inflate(message), layout.user_schema)
    assert read_arrow_body(message, layout, row_count=rows).equals(plain)


def test_large_messages_are_not_even_tried(monkeypatch):
    tried = []
    monkeypatch.setattr(arrow_body, "inflated", lambda *_: tried.append(1))
    rows = INFLATED_BYTES_MAX // 8 + 1
    ids, ends = bytes(8 * rows), bytes(4 * (rows + 1))
    message = message_of(b"", frame_of(ids), b"", frame_of(ends), b"", rows=rows)
    assert read_arrow_body(message, LAYOUT, row_count=rows).num_rows == rows
    assert not tried


@pytest.mark.parametrize(
    "damaged",
    [
        claimed(len(IDS), ZSTD.compress(IDS).to_pybytes()[:-1]),
        claimed(len(IDS) - 8, ZSTD.compress(IDS).to_pybytes()),
        claimed(len(IDS) + 8, ZSTD.compress(IDS).to_pybytes()),
        claimed(len(IDS), ZSTD.compress(IDS).to_pybytes() * 2),
        claimed(len(IDS), b"\x28\xb5\x2f\xfd"),
        claimed(len(IDS), b"\x28\xb5\x2f\xfd\xff\xff"),
        claimed(len(IDS), bytes(80)),
        claimed(len(IDS), b""),
    ],
    ids=[
        "cut short",
        "more than claimed",
        "less than claimed",
        "twice",
        "nothing but the magic",
        "no size",
        "zeros",
        "nothing",
    ],
)
def test_damage_is_refused_as_arrow_refuses_it(damaged):
    message = message_of(b"", damaged, b"", frame_of(ENDS), frame_of(TEXT))
    with pytest.raises(CorruptBatchError):
        read(message)


def test_frames_that_make_up_for_each_other_are_refused():
    ids, text = claimed(len(IDS), ZSTD.compress(IDS + b"abc").to_pybytes()), frame_of(TEXT[3:])
    with pytest.raises(CorruptBatchError):
        read(message_of(b"", ids, b"", frame_of(ENDS), text))


MANY = 10_000
KINDS_OF_COLUMNS = {
    "numbers": ([BigIntType(), IntType()], [list(range(MANY)), [each % 9 for each in range(MANY)]]),
    "NULLs": ([BooleanType(), BigIntType()], [[None, True] * (MANY // 2), [7, None] * (MANY // 2)]),
    "times": ([TimestampLtzType(3)], [[each * 1_000 for each in range(MANY)]]),
    "text": ([StringType()], [[f"user-{each % 77}" for each in range(MANY)]]),
    "nested": (
        [ArrayType(IntType()), MapType(StringType(), IntType())],
        [[[1, None], []] * (MANY // 2), [[("a", 1)], None] * (MANY // 2)],
    ),
}


@pytest.mark.parametrize("codec", [ArrowCompression.ZSTD, ArrowCompression.LZ4_FRAME])
@pytest.mark.parametrize("kind", KINDS_OF_COLUMNS)
def test_what_arrow_reads_alone_is_what_it_reads_with_threads(kind, codec):
    types, values = KINDS_OF_COLUMNS[kind]
    layout = BatchLayout.of([f"c{each}" for each in range(len(types))], types)
    pairs = zip(values, layout.wire_schema, strict=True)
    columns = [pa.array(given, field.type) for given, field in pairs]
    batch = pa.record_batch(columns, schema=layout.wire_schema)
    message = write_arrow_body(batch, BodyCodec(codec))
    view = to_view(message)
    alone = read_alone(view, read_body_metadata(view), layout)
    assert alone.schema.equals(layout.user_schema, check_metadata=True)
    known = pa.ipc.read_record_batch(message, layout.user_schema)
    assert alone.equals(known, check_metadata=True)
    assert read_arrow_body(message, layout, row_count=MANY).equals(known)


def few_columns(rows):
    layout = BatchLayout.of(["id", "kind"], [BigIntType(), BigIntType()])
    columns = [pa.array(range(rows)), pa.array([each % 100 for each in range(rows)])]
    batch = pa.record_batch(columns, schema=layout.wire_schema)
    return write_arrow_body(batch, BodyCodec(ArrowCompression.ZSTD)), layout


def test_only_small_messages_are_read_alone():
    for rows, is_alone in ((MANY, True), (100 * MANY, False)):
        message, layout = few_columns(rows)
        view = to_view(message)
        assert (len(view) <= READ_ALONE_BYTES_MAX) is is_alone
        assert (read_alone(view, read_body_metadata(view), layout) is not None) is is_alone


def test_a_schema_that_reads_as_another_is_left_to_the_whole_schema(monkeypatch):
    message, layout = few_columns(MANY)
    monkeypatch.setattr(pa.ipc, "read_schema", lambda _: LAYOUT.user_schema)
    view = to_view(message)
    assert read_alone(view, read_body_metadata(view), layout) is None
    assert read_arrow_body(message, layout, row_count=MANY)["id"].to_pylist() == list(range(MANY))


@pytest.mark.parametrize("cut", [1, 8, 100])
def test_damage_is_refused_where_arrow_reads_alone(cut):
    message, layout = few_columns(MANY)
    view = to_view(message)
    offset, length = read_body_metadata(view).buffers[1]
    end = read_body_metadata(view).body_start + offset + length
    damaged = bytearray(view)
    damaged[end - cut : end] = bytes(cut)
    with pytest.raises(CorruptBatchError):
        read_arrow_body(pa.py_buffer(damaged), layout, row_count=MANY)
