"""The positions of values in an answer: the same bytes as in plain reading, or an error."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from fluss.errors import ProtocolError
from fluss.wire import messages as pb
from fluss.wire.zero_copy.lookup_values import (
    LOOKUP_RANGES_RESPONSE,
    LOOKUP_REQUEST,
    LOOKUP_RESPONSE,
    LookedUpBucket,
    LookupBucket,
    LookupRangesResponse,
    LookupRequest,
    LookupResponse,
)

SIZES = st.sampled_from([0, 1, 2, 3, 120, 124, 125, 126, 127, 128, 300])
VALUES = st.lists(st.one_of(st.none(), SIZES.map(bytes)), max_size=8)


def values_at(answer, ranges):
    pairs = zip(ranges[::2], ranges[1::2], strict=True)
    return [None if start < 0 else answer[start:stop] for start, stop in pairs]


@given(st.lists(VALUES, max_size=4))
def test_ranges_hold_the_values_that_are_read_otherwise(buckets):
    message = LookupResponse(
        buckets_resp=tuple(
            LookedUpBucket(bucket_id=index, values=tuple(values))
            for index, values in enumerate(buckets)
        )
    )
    answer = b"".join(LOOKUP_RESPONSE.write(message))
    found = LOOKUP_RANGES_RESPONSE.read(answer).buckets_resp
    assert [values_at(answer, each.ranges) for each in found] == buckets


@given(st.lists(st.one_of(st.none(), SIZES.map(bytes)), min_size=1, max_size=5), st.data())
def test_damaged_answers_are_read_alike_or_refused(values, data):
    message = LookupResponse(buckets_resp=(LookedUpBucket(bucket_id=1, values=tuple(values)),))
    answer = bytearray(b"".join(LOOKUP_RESPONSE.write(message)))
    at = data.draw(st.integers(0, len(answer) - 1))
    answer[at] = data.draw(st.integers(0, 255))
    damaged = bytes(answer[: data.draw(st.integers(at, len(answer)))])
    try:
        plain = LOOKUP_RESPONSE.read(damaged)
    except ProtocolError:
        with pytest.raises(ProtocolError):
            LOOKUP_RANGES_RESPONSE.read(damaged)
        return
    ranges = LOOKUP_RANGES_RESPONSE.read(damaged)
    for one, other in zip(plain.buckets_resp, ranges.buckets_resp, strict=True):
        assert values_at(damaged, other.ranges) == list(one.values)


def test_of_several_values_in_one_message_the_last_counts():
    message = pb.LookupResponse()
    bucket = message.buckets_resp.add(bucket_id=2)
    bucket.values.add(values=b"first")
    encoded = bytearray(message.SerializeToString())
    # One more `bytes values = 1` in the same PbValue: its length, and those around it, grow by 5.
    at = encoded.index(b"first") + 5
    encoded[at:at] = b"\x0a\x03two"
    encoded[at - 8] += 5
    encoded[1] += 5
    (found,) = LOOKUP_RANGES_RESPONSE.read(bytes(encoded)).buckets_resp
    assert values_at(encoded, found.ranges) == [b"two"]


def test_ranges_are_not_written():
    from fluss.wire.zero_copy.lookup_values import LookedUpRanges

    message = LookupRangesResponse(buckets_resp=(LookedUpRanges(bucket_id=1, ranges=(0, 1)),))
    with pytest.raises(AssertionError):
        LOOKUP_RANGES_RESPONSE.write(message)


@given(st.lists(SIZES.map(bytes), max_size=6), st.booleans())
def test_keys_are_written_as_protobuf_writes_them(keys, are_views):
    given_keys = tuple(map(memoryview, keys)) if are_views else tuple(keys)
    bucket = LookupBucket(bucket_id=1, keys=given_keys)
    ours = b"".join(LOOKUP_REQUEST.write(LookupRequest(table_id=7, buckets_req=(bucket,))))
    theirs = pb.LookupRequest(table_id=7)
    theirs.buckets_req.add(bucket_id=1, keys=keys)
    assert ours == theirs.SerializeToString()
