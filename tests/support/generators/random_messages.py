"""Random protobuf messages of any class, and other encodings of the same message.

protobuf allows many encodings: fields in any order, numbers longer than necessary, lists packed or
not, unknown fields, and values that later ones override.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import strategies as st

INT32, INT64, BOOL, STRING, BYTES, FLOAT, DOUBLE, MESSAGE = 5, 3, 8, 9, 12, 2, 1, 11
_LABEL_OPTIONAL, _LABEL_REQUIRED, _LABEL_REPEATED = 1, 2, 3

_SCALARS = {
    INT32: st.one_of(st.integers(-3, 300), st.integers(-(2**31), 2**31 - 1)),
    INT64: st.one_of(st.integers(-3, 300), st.integers(-(2**63), 2**63 - 1)),
    BOOL: st.booleans(),
    STRING: st.text(max_size=12),
    BYTES: st.one_of(st.binary(max_size=12), st.integers(4090, 4100).map(bytes)),
    FLOAT: st.floats(width=32, allow_nan=False),
    DOUBLE: st.floats(allow_nan=False),
}


@cache
def labels(cls: Any) -> dict[str, int]:
    """The label of each field: 1 optional, 2 required, 3 repeated.

    Taken from the serialized descriptor, because runtimes disagree about how to ask a field.
    """
    from google.protobuf.descriptor_pb2 import DescriptorProto

    description = DescriptorProto()
    cls.DESCRIPTOR.CopyToProto(description)
    return {field.name: field.label for field in description.field}


@cache
def random_messages(cls: Any, depth: int = 4) -> st.SearchStrategy[Any]:
    """Messages of a class, every optional field sometimes absent."""
    known = labels(cls)
    fields = {}
    for field in cls.DESCRIPTOR.fields:
        if field.type == MESSAGE:
            if depth == 0:
                if known[field.name] == _LABEL_REQUIRED:
                    return st.nothing()
                continue
            value = random_messages(_class_of(field), depth - 1)
        else:
            value = _SCALARS[field.type]
        if known[field.name] == _LABEL_REPEATED:
            value = st.lists(value, max_size=3)
        elif known[field.name] == _LABEL_OPTIONAL:
            value = st.none() | value
        fields[field.name] = value
    return st.fixed_dictionaries(fields).map(
        lambda values: cls(**{name: value for name, value in values.items() if value is not None})
    )


def _class_of(field: Any) -> Any:
    from fluss.wire.messages import message_class

    return message_class(field.message_type.name)


# --- other encodings ----------------------------------------------------------------------------


@st.composite
def encodings(draw: st.DrawFn, message: Any) -> bytes:
    """Encodings that protobuf reads as this message."""
    parts = []
    known = labels(type(message))
    for field, value in message.ListFields():
        repeated = known[field.name] == _LABEL_REPEATED
        if not repeated and field.type != MESSAGE and draw(st.booleans()):
            # The value before the one that counts; lists and messages would grow by it.
            parts.append([_field(draw, field, draw(_SCALARS[field.type]))])
        values = list(value) if repeated else [value]
        if repeated and field.type in {INT32, INT64} and draw(st.booleans()):
            cut = draw(st.integers(0, len(values)))
            parts.append([_packed(draw, field, values[:cut]), _packed(draw, field, values[cut:])])
        else:
            parts.append([_field(draw, field, each) for each in values])
    order = draw(st.permutations(range(len(parts))))
    scrambled = _keeping_the_last(message, parts, order)
    for _ in range(draw(st.integers(0, 2))):
        scrambled.insert(draw(st.integers(0, len(scrambled))), draw(_unknown_fields()))
    return b"".join(scrambled)


def _keeping_the_last(message: Any, parts: list[list[bytes]], order: list[int]) -> list[bytes]:
    # Occurrences of one field must keep their order; different fields may change places.
    first_of: dict[int, list[int]] = {}
    for index, part in enumerate(parts):
        if part:
            first_of.setdefault(_number(part[0]), []).append(index)
    taken: dict[int, int] = {}
    result = []
    for index in order:
        if not parts[index]:
            continue
        number = _number(parts[index][0])
        nth = taken.get(number, 0)
        taken[number] = nth + 1
        result += parts[first_of[number][nth]]
    return result


def _number(field: bytes) -> int:
    value = shift = 0
    for byte in field:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return value >> 3


def _field(draw: st.DrawFn, field: Any, value: Any) -> bytes:
    number = field.number << 3
    if field.type == MESSAGE:
        return _bytes(draw, number | 2, draw(encodings(value)))
    if field.type in {STRING, BYTES}:
        return _bytes(draw, number | 2, value.encode() if field.type == STRING else value)
    if field.type in {FLOAT, DOUBLE}:
        raise AssertionError("no envelope has a field of this type")
    return varint(draw, number) + varint(draw, int(value) % 2**64)


def _packed(draw: st.DrawFn, field: Any, values: list[int]) -> bytes:
    body = b"".join(varint(draw, each % 2**64) for each in values)
    return _bytes(draw, field.number << 3 | 2, body)


def _bytes(draw: st.DrawFn, tag: int, body: bytes) -> bytes:
    return varint(draw, tag) + varint(draw, len(body)) + body


def varint(draw: st.DrawFn, value: int) -> bytes:
    """Encode a number, sometimes with redundant bytes at its end."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    if len(out) < 5 and draw(st.integers(0, 5)) == 0:
        out[-1] |= 0x80
        out += b"\x80" * draw(st.integers(0, 4 - len(out))) + b"\x00"
    return bytes(out)


@st.composite
def _unknown_fields(draw: st.DrawFn, depth: int = 2) -> bytes:
    number = draw(st.integers(100, 2**29 - 1)) << 3
    kinds = [0, 1, 2, 5] + ([3] if depth else [])
    stored = draw(st.sampled_from(kinds))
    tag = varint(draw, number | stored)
    match stored:
        case 0:
            return tag + varint(draw, draw(st.integers(0, 2**64 - 1)))
        case 1:
            return tag + bytes(8)
        case 2:
            body = draw(st.binary(max_size=5))
            return tag + varint(draw, len(body)) + body
        case 5:
            return tag + bytes(4)
    inner = draw(st.lists(_unknown_fields(depth=depth - 1), max_size=2))
    return tag + b"".join(inner) + varint(draw, number | 4)
