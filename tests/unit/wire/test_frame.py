"""Headers of frames, in pairs: what one side writes the other reads, and Java writes the same."""

import struct

import pytest
from hypothesis import given, strategies as st

from fluss.errors import LimitExceededError, ProtocolError
from fluss.wire.byte_buffers import count_bytes
from fluss.wire.frame import (
    RequestHeader,
    ResponseHeader,
    ResponseType,
    read_request,
    read_response,
    write_request,
    write_response,
)
from fluss.wire.messages import ErrorResponse, read_message
from tests.support.differential.golden_frames import golden_frames

int16 = st.integers(-(2**15), 2**15 - 1)
int32 = st.integers(-(2**31), 2**31 - 1)
bodies = st.lists(st.binary(max_size=40), max_size=4)
request_headers = st.builds(RequestHeader, api_key=int16, api_version=int16, request_id=int32)
response_headers = st.one_of(
    st.builds(
        ResponseHeader,
        type=st.sampled_from([ResponseType.SUCCESS, ResponseType.ERROR]),
        request_id=int32,
    ),
    st.just(ResponseHeader(type=ResponseType.FAILURE, request_id=None)),
)


def without_length(frame):
    (length,) = struct.unpack_from(">i", frame)
    assert length == len(frame) - 4
    return memoryview(frame)[4:]


# --- requests -----------------------------------------------------------------------------------


@pytest.mark.parametrize("case", golden_frames("request"), ids=lambda case: case["api_key"])
def test_client_sends_the_request_that_java_sends(case):
    header = RequestHeader(
        api_key=case["api_key"], api_version=case["api_version"], request_id=case["request_id"]
    )
    frame = write_request(header, [bytes.fromhex(case["body"])])
    assert b"".join(frame).hex() == case["frame"]


@pytest.mark.parametrize("case", golden_frames("request"), ids=lambda case: case["api_key"])
def test_server_receives_the_request_that_java_sends(case):
    header, body = read_request(without_length(bytes.fromhex(case["frame"])))
    assert (header.api_key, header.api_version, header.request_id) == (
        case["api_key"],
        case["api_version"],
        case["request_id"],
    )
    assert body.hex() == case["body"]


@given(request_headers, bodies)
def test_server_receives_what_client_sends(header, body):
    frame = b"".join(write_request(header, body))
    assert read_request(without_length(frame)) == (header, b"".join(body))


def test_server_refuses_a_request_without_a_whole_header():
    for size in range(8):
        with pytest.raises(ProtocolError, match="too short") as refusal:
            read_request(memoryview(bytes(size)))
        assert (refusal.value.what, refusal.value.at) == ("a request", size)


def test_server_receives_a_request_for_an_api_of_the_future():
    header, body = read_request(memoryview(struct.pack(">hhi", 9999, 3, 1)))
    assert (header.api_key, len(body)) == (9999, 0)


# --- responses ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["error", "failure"])
def test_server_sends_the_refusals_that_java_sends(kind):
    for case in golden_frames(kind):
        body = ErrorResponse(error_code=case["code"], error_message=case["text"])
        header = ResponseHeader(type=ResponseType[kind.upper()], request_id=case["request_id"])
        frame = write_response(header, [body.SerializeToString()])
        assert b"".join(frame).hex() == case["frame"]


@pytest.mark.parametrize("kind", ["error", "failure"])
def test_client_receives_the_refusals_that_java_sends(kind):
    for case in golden_frames(kind):
        header, body = read_response(without_length(bytes.fromhex(case["frame"])))
        assert header.type is ResponseType[kind.upper()]
        assert header.request_id == case["request_id"]
        response = read_message(ErrorResponse, body)
        assert (response.error_code, response.error_message) == (case["code"], case["text"])


@pytest.mark.parametrize("case", golden_frames("talk"), ids=lambda case: case["name"])
def test_client_finds_the_request_that_a_real_server_answered(case):
    for sent, got in zip(case["sent"], case["got"], strict=True):
        request, _ = read_request(memoryview(bytes.fromhex(sent))[4:])
        response, _ = read_response(without_length(bytes.fromhex(got)))
        if response.type is not ResponseType.FAILURE:
            assert response.request_id == request.request_id


@given(response_headers, bodies)
def test_client_receives_what_server_sends(header, body):
    frame = b"".join(write_response(header, body))
    assert read_response(without_length(frame)) == (header, b"".join(body))


@pytest.mark.parametrize("frame", [b"", b"\x00", b"\x00\x00\x00\x00", b"\x01\x00\x00\x00"])
def test_client_refuses_a_response_without_a_whole_header(frame):
    with pytest.raises(ProtocolError, match="too short"):
        read_response(memoryview(frame))


@given(st.integers(3, 255), st.binary(max_size=8))
def test_client_refuses_a_response_of_an_unknown_type(kind, rest):
    with pytest.raises(ProtocolError, match=f"type is {kind}") as refusal:
        read_response(memoryview(bytes([kind]) + rest))
    assert refusal.value.at == 0


def test_a_success_needs_a_request_and_a_failure_has_none():
    with pytest.raises(ValueError, match="request id"):
        ResponseHeader(type=ResponseType.SUCCESS, request_id=None)
    with pytest.raises(ValueError, match="request id"):
        ResponseHeader(type=ResponseType.FAILURE, request_id=1)


# --- both ---------------------------------------------------------------------------------------


def test_a_body_is_passed_on_without_being_touched():
    body = [b"head", memoryview(bytearray(1000)), bytearray(b"tail")]
    header = RequestHeader(api_key=1014, api_version=0, request_id=1)
    _, *passed = write_request(header, body)
    assert all(one is other for one, other in zip(passed, body, strict=True))


def test_bytes_are_counted_where_items_are_wider():
    numbers = memoryview(bytearray(80)).cast("q")
    assert len(numbers) == 10
    assert count_bytes([numbers, b"ab", bytearray(3)]) == 85


def test_a_frame_is_as_long_as_the_limit_and_not_longer():
    request = RequestHeader(api_key=1014, api_version=0, request_id=1)
    response = ResponseHeader(type=ResponseType.SUCCESS, request_id=1)
    failure = ResponseHeader(type=ResponseType.FAILURE, request_id=None)
    for write, header, head_bytes in (
        (write_request, request, 8),
        (write_response, response, 5),
        (write_response, failure, 1),
    ):
        write(header, [bytes(100 - head_bytes)], frame_bytes_max=100)
        with pytest.raises(LimitExceededError, match=r"101 bytes .* 100 bytes") as refusal:
            write(header, [bytes(100 - head_bytes), b"x"], frame_bytes_max=100)
        assert (refusal.value.size, refusal.value.limit) == (101, 100)
