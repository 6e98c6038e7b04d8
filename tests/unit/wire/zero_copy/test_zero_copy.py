"""Envelopes are protobuf: the same bytes, the same values, and the records left where they are."""

import dataclasses
from typing import Annotated

import pytest
from hypothesis import given, settings, strategies as st

from fluss.errors import ProtocolError
from fluss.wire.field_codecs import INT32, INT64
from fluss.wire.message_layout import Layout, Nested, NestedList
from fluss.wire.messages import message_class
from fluss.wire.zero_copy import fetch_log, lookup_values, record_batches, scan_batches
from fluss.wire.zero_copy.fetch_log import (
    FETCH_LOG_RESPONSE,
    FetchedBucket,
    FetchedTable,
    FetchLogResponse,
    find_first_records,
)
from fluss.wire.zero_copy.lookup_values import (
    LOOKUP_REQUEST,
    LOOKUP_RESPONSE,
    LookupBucket,
    LookupRequest,
)
from fluss.wire.zero_copy.record_batches import (
    PRODUCE_LOG_REQUEST,
    ProduceLogRequest,
    WrittenBucket,
)
from tests.support.generators.random_messages import encodings, random_messages

MODULES = (fetch_log, lookup_values, record_batches, scan_batches)
LAYOUTS = {
    name: layout
    for module in MODULES
    for name, layout in vars(module).items()
    if isinstance(layout, Layout) and name != "LOOKUP_RANGES_RESPONSE"  # see test_lookup_ranges
}
# Half of what the profile allows: there are nine layouts, and messages are large examples.
EXAMPLES = settings().max_examples // 2
every_layout = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)


def protobuf_class(layout):
    return message_class(layout.message.__name__)


def plain(value):
    """An envelope or a protobuf message as dicts and lists, absent fields left out."""
    if dataclasses.is_dataclass(value):
        fields = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
        for name in ("records",):
            if fields.get(name):
                fields[name] = b"".join(fields[name])
        return {name: plain(each) for name, each in fields.items() if each not in (None, ())}
    if hasattr(value, "ListFields"):
        if value.DESCRIPTOR.name == "PbValue":
            return value.values if value.HasField("values") else None
        if value.DESCRIPTOR.name == "PbValueList":
            return list(value.values)
        return {field.name: plain(each) for field, each in value.ListFields()}
    if isinstance(value, str | bytes | bytearray | memoryview | int | None):
        return bytes(value) if isinstance(value, bytearray | memoryview) else value
    return [plain(each) for each in value]


# --- the same as protobuf -----------------------------------------------------------------------


@every_layout
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_what_protobuf_writes_is_read_and_written_again_to_the_byte(layout, data):
    message = data.draw(random_messages(protobuf_class(layout)))
    encoded = message.SerializeToString()
    read = layout.read(encoded)
    assert plain(read) == plain(message)
    assert b"".join(layout.write(read)) == encoded


@every_layout
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_every_encoding_that_protobuf_reads_is_read_alike(layout, data):
    message = data.draw(random_messages(protobuf_class(layout)))
    encoded = data.draw(encodings(message))
    assert plain(protobuf_class(layout).FromString(encoded)) == plain(message)
    assert plain(layout.read(encoded)) == plain(message)


@every_layout
def test_every_field_of_the_protocol_is_there(layout):
    def compare(layout, cls):
        names = {number: name for number, (name, _) in layout.fields.items()}
        assert names == {field.number: field.name for field in cls.DESCRIPTOR.fields}
        for name, kind in layout.fields.values():
            if isinstance(kind, Nested | NestedList):
                inner = cls.DESCRIPTOR.fields_by_name[name].message_type.name
                compare(kind.layout, message_class(inner))

    compare(layout, protobuf_class(layout))


@every_layout
def test_an_empty_message_is_read_where_nothing_is_required(layout):
    cls = protobuf_class(layout)
    if cls().IsInitialized():
        assert layout.read(b"") == layout.message()
        assert layout.write(layout.message()) == []
    else:
        with pytest.raises(ProtocolError, match="is missing") as refusal:
            layout.read(b"")
        assert refusal.value.what == layout.message.__name__


def test_a_message_in_pieces_is_put_together():
    cls = message_class("FetchLogResponse")
    info = message_class("PbRemoteLogFetchInfo")
    bucket = message_class("PbFetchLogRespForBucket")
    first = bucket(remote_log_fetch_info=info(remote_log_tablet_dir="old", first_start_pos=3))
    second = bucket(bucket_id=1, remote_log_fetch_info=info(remote_log_tablet_dir="new"))
    body = first.SerializePartialToString() + second.SerializePartialToString()
    encoded = b"\x0a" + nested(b"\x08\x05" + b"\x12" + nested(body))
    read = FETCH_LOG_RESPONSE.read(encoded)
    assert plain(read) == plain(cls.FromString(encoded))
    found = read.tables_resp[0].buckets_resp[0].remote_log_fetch_info
    assert (found.remote_log_tablet_dir, found.first_start_pos) == ("new", 3)


def nested(body):
    assert len(body) < 128
    return bytes([len(body)]) + body


# --- nothing is copied --------------------------------------------------------------------------


def test_client_receives_records_as_slices_of_the_frame():
    records = bytes(100_000)
    frame = b"".join(
        FETCH_LOG_RESPONSE.write(
            FetchLogResponse(
                tables_resp=(
                    FetchedTable(
                        table_id=1,
                        buckets_resp=(FetchedBucket(bucket_id=0, records=(records,)),),
                    ),
                )
            )
        )
    )
    (table,) = FETCH_LOG_RESPONSE.read(frame).tables_resp
    (found,) = table.buckets_resp[0].records
    assert found.obj is frame
    assert found == records


def test_client_sends_records_as_they_are():
    parts = (bytes(5000), memoryview(bytearray(6000)), bytearray(7000))
    buffers = PRODUCE_LOG_REQUEST.write(
        ProduceLogRequest(
            acks=-1,
            table_id=7,
            timeout_ms=30_000,
            buckets_req=(
                WrittenBucket(bucket_id=0, records=parts, routing_bucket_count=3),
                WrittenBucket(bucket_id=1, records=(b"small", b"parts")),
            ),
        )
    )
    assert [each for each in buffers if len(each) >= 5000] == list(parts)
    assert all(any(each is part for each in buffers) for part in parts)
    request = message_class("ProduceLogRequest").FromString(b"".join(buffers))
    assert request.buckets_req[0].records == bytes(18_000)
    assert request.buckets_req[0].routing_bucket_count == 3
    assert request.buckets_req[1].records == b"smallparts"


def test_server_receives_records_as_slices_of_the_frame():
    request = message_class("PutKvRequest")(acks=1, table_id=7, timeout_ms=1)
    request.buckets_req.add(bucket_id=0, records=b"r" * 900)
    frame = memoryview(request.SerializeToString())
    (bucket,) = record_batches.PUT_KV_REQUEST.read(frame).buckets_req
    assert bucket.records[0].obj is frame.obj


def test_few_bytes_are_gathered_in_one_buffer():
    buckets = (LookupBucket(bucket_id=0, keys=tuple(bytes([n]) * 20 for n in range(200))),)
    buffers = LOOKUP_REQUEST.write(LookupRequest(table_id=1, buckets_req=buckets))
    assert len(buffers) == 1


@pytest.mark.parametrize(
    ("records", "present"), [((), False), ((b"",), True), ((b"", b""), True), ((b"x", b""), True)]
)
def test_records_that_are_absent_differ_from_empty_ones(records, present):
    bucket = FetchedBucket(bucket_id=0, records=records)
    tables = (FetchedTable(table_id=1, buckets_resp=(bucket,)),)
    encoded = b"".join(FETCH_LOG_RESPONSE.write(FetchLogResponse(tables_resp=tables)))
    theirs = message_class("FetchLogResponse").FromString(encoded)
    assert theirs.tables_resp[0].buckets_resp[0].HasField("records") is present
    ours = FETCH_LOG_RESPONSE.read(encoded).tables_resp[0].buckets_resp[0]
    assert (ours.records == ()) is not present


# --- bytes that are no message ------------------------------------------------------------------


@every_layout
@given(data=st.data())
@settings(max_examples=EXAMPLES // 5)
def test_a_message_cut_off_anywhere_is_refused_or_a_shorter_message(layout, data):
    encoded = data.draw(random_messages(protobuf_class(layout))).SerializeToString()
    # At every byte; in long ones, where most bytes are records, at two hundred of them.
    for length in range(0, len(encoded), len(encoded) // 200 + 1):
        agrees_with_protobuf(layout, encoded[:length])


@every_layout
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_a_message_with_a_flipped_bit_is_refused_or_another_message(layout, data):
    encoded = bytearray(data.draw(random_messages(protobuf_class(layout))).SerializeToString())
    if not encoded:
        return
    for _ in range(20):
        bit = data.draw(st.integers(0, len(encoded) * 8 - 1))
        damaged = bytearray(encoded)
        damaged[bit // 8] ^= 1 << bit % 8
        agrees_with_protobuf(layout, bytes(damaged))


@every_layout
@given(st.binary(max_size=60))
def test_garbage_is_refused_or_a_message(layout, garbage):
    agrees_with_protobuf(layout, garbage)


def agrees_with_protobuf(layout, encoded):
    """Either both read the same, or we refuse; we never read what protobuf refuses."""
    ours, refusal = read_or_refuse(layout, encoded)
    if refusal is not None:
        assert refusal.what == layout.message.__name__
        assert 0 <= refusal.at <= len(encoded)
        assert refusal.why
        return
    theirs = protobuf_class(layout).FromString(encoded)
    assert theirs.IsInitialized()
    assert plain(ours) == plain(theirs)


def read_or_refuse(layout, encoded):
    try:
        return layout.read(encoded), None
    except ProtocolError as refusal:
        return None, refusal


@pytest.mark.parametrize(
    ("encoded", "at", "why"),
    [
        (b"\x0a", 1, "a number ends before its last byte"),
        (b"\x0a\x05abc", 1, "5 bytes are announced, 3 are there"),
        (b"\x0a\xff\xff\xff\xff\x0f", 1, "4294967295 bytes are announced, 0 are there"),
        (b"\x0a" + b"\xff" * 10, 1, "a number is longer than 10 bytes"),
        (b"\x08\x01", 0, "tables_resp is stored in a wrong way (0)"),
        (b"\x00", 0, "no field has the tag 0"),
        (b"\x0e", 0, "tables_resp is stored in a wrong way (6)"),
        (b"\x9b\x06", 2, "a number ends before its last byte"),
        (b"\x7e", 1, "field 15 is stored as 6, which does not exist"),
        (b"\x7c", 1, "group 15 ends without having begun"),
        (b"\x7b" * 101, 101, "groups are nested deeper than 100"),
        (b"\x79abc", 1, "8 bytes are announced, 3 are there"),
        (b"\xff\xff\xff\xff\xff\x01", 0, "no field has the tag 68719476735"),
        (b"\x0a\x00", 2, "the field table_id is missing"),
        (b"\x0a\x06\x08\x01\x12\x02\x22\x00", 8, "the field bucket_id is missing"),
        (b"\x0a\x07\x08\x01\x12\x03\x22\x01\xff", 8, "error_message is not UTF-8"),
    ],
)
def test_the_error_names_the_reason_and_the_position(encoded, at, why):
    with pytest.raises(ProtocolError) as refusal:
        FETCH_LOG_RESPONSE.read(encoded)
    assert (refusal.value.at, refusal.value.why) == (at, why)
    assert str(refusal.value) == f"FetchLogResponse cannot be read at byte {at}: {why}."


def test_a_long_length_is_not_taken_for_a_short_one():
    # The first byte of a length of two bytes is as large as the number of bytes that follow it.
    value = b"\x0a\x82\x01" + bytes(129)
    assert len(value) - 2 == value[1]
    encoded = b"\x0a\x89\x01" + b"\x10\x00" + b"\x2a\x84\x01" + value
    with pytest.raises(ProtocolError, match="130 bytes are announced, 129 are there"):
        LOOKUP_RESPONSE.read(encoded)


def test_a_number_that_does_not_fit_is_not_written():
    with pytest.raises(ValueError, match="does not fit into 32 bits"):
        LOOKUP_REQUEST.write(LookupRequest(table_id=1, acks=2**31))
    with pytest.raises(ValueError, match="does not fit into 64 bits"):
        LOOKUP_REQUEST.write(LookupRequest(table_id=-(2**63) - 1))


@pytest.mark.parametrize("number", [1, 3])
def test_fields_that_are_not_numbered_in_order_are_a_mistake(number):
    @dataclasses.dataclass
    class Wrong:
        first: Annotated[int, 3, INT64]
        second: Annotated[int, number, INT32]

    with pytest.raises(ValueError, match="not numbered in order"):
        Layout(Wrong)


small_numbers = st.integers(-1, 2**40)
fetched_buckets = st.builds(
    FetchedBucket,
    bucket_id=st.integers(0, 300),
    partition_id=st.none() | small_numbers,
    error_message=st.none() | st.text(max_size=5),
    high_watermark=small_numbers,
    records=st.lists(st.binary(max_size=200), max_size=1).map(tuple),
)
fetched_tables = st.builds(
    FetchedTable,
    table_id=st.integers(0, 2**40),
    buckets_resp=st.lists(fetched_buckets, max_size=3).map(tuple),
)


@given(st.lists(fetched_tables, max_size=2).map(tuple))
def test_the_first_records_are_found_from_the_beginning_of_an_answer(tables):
    encoded = memoryview(b"".join(FETCH_LOG_RESPONSE.write(FetchLogResponse(tables_resp=tables))))
    buckets = [each for table in tables for each in table.buckets_resp]
    first = next((each.records[0] for each in buckets if any(map(len, each.records))), None)
    found = find_first_records(encoded)
    if first is None:
        assert found == 0
        return
    assert encoded[found : found + len(first)] == first
    assert [find_first_records(encoded[:end]) for end in range(found)] == [0] * found
    assert find_first_records(encoded[:found]) == found


@given(st.binary(max_size=60))
def test_looking_for_records_in_garbage_finds_some_place_or_none(garbage):
    assert 0 <= find_first_records(memoryview(garbage)) <= len(garbage)
