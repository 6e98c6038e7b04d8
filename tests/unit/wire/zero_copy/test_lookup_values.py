"""Thousands of keys and values are read and written in bulk: as protobuf does it one by one."""

from __future__ import annotations

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, strategies as st

from fluss.errors import ProtocolError
from fluss.wire import messages as pb
from fluss.wire.zero_copy.lookup_values import (
    LOOKUP_REQUEST,
    LOOKUP_RESPONSE,
    LookedUpBucket,
    LookupBucket,
    LookupRequest,
    LookupResponse,
)

SIZES = st.sampled_from([0, 1, 8, 13, 124, 125, 126, 127, 128, 300])
# Runs of one length, some longer than one step of the bulk reader takes.
LONG_RUNS = st.lists(
    st.tuples(SIZES, st.sampled_from([1, 1, 2, 3, 255, 256, 257, 600])), max_size=4
)
# Lengths that change all the time, as those of numbers do, and then do not.
SHORT_RUNS = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from([1, 2, 15, 16, 17])), min_size=40, max_size=60
)
RUNS = st.one_of(LONG_RUNS, st.builds(list.__add__, SHORT_RUNS, LONG_RUNS))


def strings_of(runs):
    """Different byte strings, of the lengths of these runs; some begin like a tag and a length."""
    sizes = [size for size, count in runs for _ in range(count)]
    return [
        (bytes([0x1A, size % 256]) + at.to_bytes(4, "little")).ljust(size, b"\x1a")[:size]
        for at, size in enumerate(sizes)
    ]


def encoded_request(keys):
    bucket = pb.PbLookupReqForBucket(bucket_id=3, keys=keys)
    return pb.LookupRequest(table_id=7, buckets_req=[bucket, bucket]).SerializeToString()


@given(RUNS)
def test_keys_are_those_that_protobuf_reads(runs):
    keys = strings_of(runs)
    read = LOOKUP_REQUEST.read(encoded_request(keys))
    assert [list(each.keys) for each in read.buckets_req] == [keys, keys]
    assert all(type(key) is bytes for each in read.buckets_req for key in each.keys)


@given(RUNS, st.data())
def test_damaged_keys_are_read_or_refused_as_by_protobuf(runs, data):
    encoded = bytearray(encoded_request(strings_of(runs)))
    at = data.draw(st.integers(0, len(encoded) - 1))
    encoded[at] = data.draw(st.integers(0, 255))
    damaged = bytes(encoded[: data.draw(st.integers(at, len(encoded)))])
    try:
        known = pb.LookupRequest.FromString(damaged)
    except DecodeError:
        with pytest.raises(ProtocolError):
            LOOKUP_REQUEST.read(damaged)
        return
    try:
        read = LOOKUP_REQUEST.read(damaged)
    except ProtocolError:
        return  # stricter than protobuf where a known field is stored in a wrong way
    assert [list(each.keys) for each in read.buckets_req] == [
        list(each.keys) for each in known.buckets_req
    ]


@given(RUNS, st.data())
def test_values_are_written_as_protobuf_writes_them(runs, data):
    values = [
        data.draw(st.sampled_from([each, each, None])) if at < 20 else each
        for at, each in enumerate(strings_of(runs))
    ]
    bucket = LookedUpBucket(bucket_id=3, values=tuple(values))
    written = b"".join(LOOKUP_RESPONSE.write(LookupResponse(buckets_resp=(bucket,))))
    known = pb.LookupResponse()
    answer = known.buckets_resp.add(bucket_id=3)
    for value in values:
        answer.values.add(**({} if value is None else {"values": value}))
    assert written == known.SerializeToString()


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_values_of_every_kind_of_buffer_are_written_alike(kind):
    values = (b"one", b"", b"three" * 100)
    plain = LookedUpBucket(bucket_id=1, values=values)
    other = LookedUpBucket(bucket_id=1, values=tuple(kind(each) for each in values))
    written = [
        b"".join(LOOKUP_RESPONSE.write(LookupResponse(buckets_resp=(each,))))
        for each in (plain, other)
    ]
    assert written[0] == written[1]


def test_keys_without_an_end_are_refused_at_their_place():
    encoded = b"".join(
        LOOKUP_REQUEST.write(
            LookupRequest(
                table_id=1, buckets_req=(LookupBucket(bucket_id=0, keys=(b"12345678",) * 9),)
            )
        )
    )
    cut = bytearray(encoded[:-8])
    cut[3] -= 8  # the bucket ends within its last key
    with pytest.raises(ProtocolError, match="8 bytes are announced, 0 are there") as refusal:
        LOOKUP_REQUEST.read(cut)
    assert refusal.value.at == len(cut) - 1
