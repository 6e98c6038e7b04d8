"""The protobuf wire format, for the messages that are not left to protobuf.

A field is a tag (its number, and how its value is stored) and the value (protobuf: "Encoding"):

====  ==========  ==========================================================
type  stored as   used for
====  ==========  ==========================================================
0     varint      int32, int64, bool; negative numbers take ten bytes
1     8 bytes     double
2     length      string, bytes, messages, packed lists of numbers
3, 4  group       nothing in Fluss; skipped like any other unknown field
5     4 bytes     float
====  ==========  ==========================================================

Readers take a byte view and the end of the message in it, never look beyond that end, and return
where they stopped. `wire.message_layout` and `wire.zero_copy` say what the fields mean.
"""

from __future__ import annotations

from enum import IntEnum

from fluss.errors import ProtocolError


class WireType(IntEnum):
    """How the value of a field is stored: the last three bits of its tag."""

    VARINT = 0
    FIXED64 = 1
    LENGTH = 2
    GROUP_START = 3
    GROUP_END = 4
    FIXED32 = 5


_VARINT_BYTES_MAX = 10
_MASK_64 = 2**64 - 1
_TAG_MAX = 2**32 - 1
_GROUP_DEPTH_MAX = 100


def refuse(at: int, why: str) -> ProtocolError:
    """The error for bytes that are not a protobuf message; `message_layout` adds its name."""
    return ProtocolError(
        f"A protobuf message cannot be read at byte {at}: {why}.",
        what="a protobuf message",
        at=at,
        why=why,
    )


def read_varint(view: memoryview, at: int, end: int) -> tuple[int, int]:
    """Read an unsigned number of up to 64 bits; what lies above them is dropped, as in protobuf."""
    stop = min(end, at + _VARINT_BYTES_MAX)
    value = shift = 0
    position = at
    while position < stop:
        byte = view[position]
        position += 1
        if byte < 0x80:
            return (value | byte << shift) & _MASK_64, position
        value |= (byte & 0x7F) << shift
        shift += 7
    if end - at < _VARINT_BYTES_MAX:
        raise refuse(at, "a number ends before its last byte")
    raise refuse(at, f"a number is longer than {_VARINT_BYTES_MAX} bytes")


def read_tag(view: memoryview, at: int, end: int) -> tuple[int, int]:
    """Read a field's tag: its number times eight plus how it is stored."""
    tag, stop = read_varint(view, at, end)
    if tag > _TAG_MAX or tag < 8:
        raise refuse(at, f"no field has the tag {tag}")
    return tag, stop


def read_length(view: memoryview, at: int, end: int) -> tuple[int, int]:
    """Read and check the length of some bytes; returns where they start and stop."""
    if at < end and view[at] < 0x80:  # most are short, and a call costs as much as all of this
        length, start = view[at], at + 1
    else:
        length, start = read_varint(view, at, end)
    if length > end - start:
        raise refuse(at, f"{length} bytes are announced, {end - start} are there")
    return start, start + length


def skip_value(view: memoryview, tag: int, at: int, end: int) -> int:
    """Skip the value of an unknown field; a group with everything in it."""
    open_groups: list[int] = []
    while True:
        match tag & 7:
            case WireType.VARINT:
                _, at = read_varint(view, at, end)
            case WireType.FIXED64:
                at = _skip_bytes(8, at, end)
            case WireType.LENGTH:
                _, at = read_length(view, at, end)
            case WireType.GROUP_START:
                open_groups.append(tag >> 3)
                if len(open_groups) > _GROUP_DEPTH_MAX:
                    raise refuse(at, f"groups are nested deeper than {_GROUP_DEPTH_MAX}")
            case WireType.GROUP_END:
                if not open_groups or open_groups.pop() != tag >> 3:
                    raise refuse(at, f"group {tag >> 3} ends without having begun")
            case WireType.FIXED32:
                at = _skip_bytes(4, at, end)
            case stored:
                raise refuse(at, f"field {tag >> 3} is stored as {stored}, which does not exist")
        if not open_groups:
            return at
        tag, at = read_tag(view, at, end)


def _skip_bytes(count: int, at: int, end: int) -> int:
    if count > end - at:
        raise refuse(at, f"{count} bytes are announced, {end - at} are there")
    return at + count


def write_varint(out: bytearray, value: int) -> None:
    """Append a number; a negative one as the 64 bits of its two's complement."""
    if value < 0:
        value += 1 << 64
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
