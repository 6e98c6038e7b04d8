"""Numbers, tags and lengths on the wire; how protobuf sees them is in test_envelope."""

import pytest
from hypothesis import given, strategies as st

from fluss.errors import ProtocolError
from fluss.wire.protobuf_fields import (
    WireType,
    read_length,
    read_tag,
    read_varint,
    skip_value,
    write_varint,
)


def written(value):
    out = bytearray()
    write_varint(out, value)
    return bytes(out)


@given(st.integers(0, 2**64 - 1), st.binary(max_size=3))
def test_a_number_is_read_as_it_was_written_and_nothing_beyond_it(value, rest):
    encoded = written(value)
    assert read_varint(memoryview(encoded + rest), 0, len(encoded + rest)) == (value, len(encoded))


@pytest.mark.parametrize(
    ("value", "encoded"),
    [(0, "00"), (127, "7f"), (128, "8001"), (300, "ac02"), (-1, "ff" * 9 + "01")],
)
def test_a_number_takes_seven_bits_a_byte_and_a_negative_one_ten_bytes(value, encoded):
    assert written(value).hex() == encoded


def test_bits_above_sixty_four_are_dropped_as_protobuf_does():
    assert read_varint(memoryview(b"\xff" * 9 + b"\x7f"), 0, 10) == (2**64 - 1, 10)


def test_the_end_of_the_message_is_the_end_even_where_bytes_follow():
    with pytest.raises(ProtocolError, match="ends before its last byte"):
        read_varint(memoryview(b"\xff\x01"), 0, 1)
    with pytest.raises(ProtocolError, match="3 bytes are announced, 2 are there"):
        read_length(memoryview(b"\x03abc"), 0, 3)


def test_a_length_of_nothing_is_a_place():
    assert read_length(memoryview(b"\x00"), 0, 1) == (1, 1)


@pytest.mark.parametrize("tag", [0, 7, 2**32, 2**63])
def test_tags_without_a_field_are_refused(tag):
    encoded = written(tag)
    with pytest.raises(ProtocolError, match=f"no field has the tag {tag}"):
        read_tag(memoryview(encoded), 0, len(encoded))


@pytest.mark.parametrize(
    ("stored", "value"),
    [
        (WireType.VARINT, b"\xff\x01"),
        (WireType.FIXED64, b"12345678"),
        (WireType.LENGTH, b"\x03abc"),
        (WireType.GROUP_START, b"\x08\x01" + b"\x13\x14" + bytes([5 << 3 | 4])),
        (WireType.FIXED32, b"1234"),
    ],
    ids=lambda value: value.name if isinstance(value, WireType) else "",
)
def test_any_value_can_be_skipped_and_no_part_of_one(stored, value):
    tag = 5 << 3 | stored
    view = memoryview(value + b"rest")
    assert skip_value(view, tag, 0, len(view)) == len(value)
    for length in range(len(value)):
        with pytest.raises(ProtocolError):
            skip_value(view, tag, 0, length)


def test_a_group_ends_with_its_own_number():
    view = memoryview(bytes([6 << 3 | 4]))
    with pytest.raises(ProtocolError, match="group 6 ends without having begun"):
        skip_value(view, 5 << 3 | 3, 0, len(view))
