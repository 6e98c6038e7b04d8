"""protobuf with our errors: malformed messages are refused with the position of the damage."""

import subprocess
import sys

import pytest
from hypothesis import given, settings, strategies as st

from fluss.errors import ProtocolError, ServerError, TableNotFoundError
from fluss.wire import messages
from fluss.wire.frame import read_response
from fluss.wire.messages import (
    ErrorResponse,
    FetchLogRequest,
    MetadataResponse,
    PbPredicate,
    message_class,
    read_error,
    read_message,
    write_message,
)
from tests.support.differential.golden_frames import talk
from tests.support.generators.random_messages import random_messages


def test_messages_are_made_when_they_are_asked_for():
    program = (
        "import sys, fluss, fluss.wire.api, fluss.wire.messages as m, fluss.wire.sasl\n"
        "import fluss.wire.frame, fluss.wire.splitter, fluss.wire.zero_copy.fetch_log\n"
        "assert not [each for each in sys.modules if each.startswith(('google', 'numpy'))]\n"
        "m.MetadataRequest(partitions_id=[1])\n"
        "assert 'google.protobuf' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_a_message_that_the_protocol_does_not_have_is_a_missing_attribute():
    with pytest.raises(AttributeError, match="no message 'NopeRequest'"):
        _ = messages.NopeRequest
    with pytest.raises(AttributeError, match="no message 'DESCRIPTOR'"):
        _ = messages.DESCRIPTOR


@pytest.mark.parametrize("name", ["MetadataResponse", "FetchLogRequest", "PbLiteralValue"])
@given(data=st.data())
@settings(max_examples=15)
def test_a_message_is_read_as_it_was_written(name, data):
    message = data.draw(random_messages(message_class(name)))
    for buffer in (bytes, bytearray, memoryview):
        assert read_message(message_class(name), buffer(write_message(message))) == message


def test_a_message_that_lacks_a_field_is_not_written():
    response = MetadataResponse()
    response.tablet_servers.add(node_id=1, port=2)
    with pytest.raises(ValueError, match=r"MetadataResponse lacks tablet_servers\[0\].host"):
        write_message(response)


def test_a_message_that_lacks_a_field_is_not_read():
    with pytest.raises(ProtocolError, match=r"ErrorResponse cannot .*: it lacks error_code"):
        read_message(ErrorResponse, b"")


@pytest.mark.parametrize(
    ("cls", "encoded", "at", "why"),
    [
        (ErrorResponse, b"\x08\x07\x12\x05abc", 3, "5 bytes are announced, 3 are there"),
        (ErrorResponse, b"\x08\x07\x12\x03ab\xff", 6, "error_message is not UTF-8"),
        (
            MetadataResponse,
            b"\x12\x08\x08\x01\x12\x02\xff\xfe\x18\x01",
            6,
            "host is not UTF-8",
        ),
        (MetadataResponse, b"\x12\x04\x08\x01\x12\x09", 5, "9 bytes are announced, 0 are there"),
        (ErrorResponse, b"\x00", 0, "no field has the tag 0"),
    ],
)
def test_the_refusal_finds_the_damage(cls, encoded, at, why):
    with pytest.raises(ProtocolError) as refusal:
        read_message(cls, encoded)
    assert refusal.value.what == cls.DESCRIPTOR.name
    assert (refusal.value.at, refusal.value.why) == (at, why)


def test_messages_nested_without_end_are_refused():
    # Each predicate holds a compound (field 3), which holds a predicate (field 2).
    encoded = b""
    for _ in range(3000):
        for tag in (b"\x12", b"\x1a"):
            encoded = tag + length(encoded) + encoded
    with pytest.raises(ProtocolError, match="nested deeper than 100"):
        read_message(PbPredicate, encoded)


def length(encoded):
    out = bytearray()
    value = len(encoded)
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


@given(data=st.data())
@settings(max_examples=30)
def test_damage_is_refused_or_another_message(data):
    encoded = bytearray(write_message(data.draw(random_messages(MetadataResponse))))
    if encoded:
        bit = data.draw(st.integers(0, len(encoded) * 8 - 1))
        encoded[bit // 8] ^= 1 << bit % 8
    try:
        message = read_message(MetadataResponse, encoded)
    except ProtocolError:
        return
    assert message.IsInitialized()
    assert all(isinstance(server.host, str) for server in message.tablet_servers)


@given(st.binary(max_size=80))
def test_garbage_is_refused_or_a_message(garbage):
    for cls in (MetadataResponse, FetchLogRequest, ErrorResponse):
        try:
            read_message(cls, garbage)
        except ProtocolError as refusal:
            assert refusal.what == cls.DESCRIPTOR.name  # noqa: PT017 - raised for some garbage only


# --- refusals of a server -----------------------------------------------------------------------


def test_an_error_response_is_the_error_of_its_code():
    body = write_message(ErrorResponse(error_code=7, error_message="Table 'a.b' does not exist."))
    error = read_error(body, address="127.0.0.1:9123")
    assert isinstance(error, TableNotFoundError)
    assert error.message == "Table 'a.b' does not exist."
    assert error.address == "127.0.0.1:9123"


def test_an_error_response_without_a_text_has_that_of_its_code():
    assert read_error(write_message(ErrorResponse(error_code=8))).message.endswith("already.")


def test_an_error_response_of_success_is_an_error_nevertheless():
    error = read_error(write_message(ErrorResponse(error_code=0)))
    assert isinstance(error, ServerError)
    assert error.server_code == 0


@pytest.mark.parametrize(
    ("name", "code", "message", "has_trace"),
    [
        ("a missing table", 7, "Table 'fluss.nope' does not exist.", False),
        ("metadata of a missing table", -1, "Table 'fluss.nope' does not exist.", True),
        (
            "a frame that is too long",
            -1,
            "Adjusted frame length exceeds 1048576: 1048581 - discarded",
            True,
        ),
    ],
)
def test_the_error_of_a_real_server_is_reduced_to_its_message(name, code, message, has_trace):
    ((_, got),) = talk(name)
    _, body = read_response(memoryview(got)[4:])
    error = read_error(body)
    assert (error.error_code, error.message) == (code, message)
    assert (error.server_trace is not None) is has_trace
