"""All messages of the protocol as protobuf classes, and their bytes: `messages.MetadataRequest`.

The classes are made on first use, so that importing this room costs nothing. Messages with records,
keys or values are better read and written with `wire.zero_copy`, which does not copy these.
`wire.api` maps APIs to messages.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from fluss.errors import FlussError, ProtocolError, error_from_code
from fluss.wire.byte_buffers import Buffer
from fluss.wire.protobuf_fields import WireType, read_length, read_tag, refuse, skip_value

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor
    from google.protobuf.message import Message

    from fluss.wire._generated.messages_pb2 import *  # noqa: F403 - what __getattr__ finds

    MessageT = TypeVar("MessageT", bound=Message)

# protobuf's own limit, in all its implementations.
_DEPTH_MAX = 100
_TYPE_STRING = 9


def __getattr__(name: str) -> Any:
    cls = message_class(name)
    globals()[name] = cls  # the next time it is an ordinary attribute
    return cls


def message_class(name: str) -> type[Message]:
    """The class of a message, by its name in the protocol.

    Raises:
        AttributeError: The protocol has no message of this name.
    """
    generated: Any = importlib.import_module("fluss.wire._generated.messages_pb2")
    if name not in generated.DESCRIPTOR.message_types_by_name:
        raise AttributeError(f"the Fluss protocol has no message {name!r}")
    found: type[Message] = getattr(generated, name)
    return found


def write_message(message: Message) -> bytes:
    """The bytes of a message.

    Raises:
        ValueError: A required field has not been set.
    """
    from google.protobuf.message import EncodeError

    try:
        return message.SerializeToString()
    except EncodeError:
        raise ValueError(f"{message.DESCRIPTOR.name} lacks {_missing(message)}") from None


def read_message(cls: type[MessageT], data: Buffer) -> MessageT:
    """Read a message.

    Raises:
        ProtocolError: The bytes are not such a message, or a required field is missing.
    """
    from google.protobuf.message import DecodeError

    message = cls()
    try:
        message.ParseFromString(bytes(data))
    # The last two come from protobuf's Python implementation, for strings and for depth.
    except (DecodeError, UnicodeDecodeError, RecursionError):
        raise _refuse(message, data, "protobuf cannot read it") from None
    if not message.IsInitialized():
        raise _refuse(message, data, f"it lacks {_missing(message)}")
    if not _all_text_is_text(message):
        raise _refuse(message, data, "a string is not UTF-8")
    return message


def read_error(data: Buffer, **facts: Any) -> FlussError:
    """Read the error in the body of an error or failure response.

    Args:
        data: An `ErrorResponse`.
        facts: Facts that the caller knows; see `fluss.errors.error_from_code`.

    Raises:
        ProtocolError: The bytes are not an `ErrorResponse`.
    """
    response: Any = read_message(message_class("ErrorResponse"), data)
    return error_from_code(response.error_code, response.error_message, **facts)


def _all_text_is_text(message: Message) -> bool:
    # protobuf's C implementation hands out bytes where a string of proto2 is not UTF-8.
    plan = _fields_with_text(message.DESCRIPTOR)
    for field, value in message.ListFields():
        if field.number not in plan:
            continue
        if field.message_type is None:
            texts = (value,) if isinstance(value, str | bytes) else value
            if not all(isinstance(each, str) for each in texts):
                return False
        else:
            nested = (value,) if hasattr(value, "ListFields") else value
            if not all(map(_all_text_is_text, nested)):
                return False
    return True


@cache
def _fields_with_text(descriptor: Descriptor) -> frozenset[int]:
    """The fields that are strings, or messages with strings or messages in them."""
    return frozenset(
        field.number
        for field in descriptor.fields
        if field.type == _TYPE_STRING
        or (
            field.message_type is not None
            and any(
                inner.type == _TYPE_STRING or inner.message_type is not None
                for inner in field.message_type.fields
            )
        )
    )


def _missing(message: Any) -> str:
    # All implementations of protobuf have this method, but not all declare it.
    return ", ".join(message.FindInitializationErrors())


def _refuse(message: Message, data: Buffer, why: str) -> ProtocolError:
    """The error for bytes that are not this message; protobuf does not report where they differ."""
    at = 0
    try:
        _look_for_damage(message.DESCRIPTOR, memoryview(data), 0, len(data), depth=1)
    except ProtocolError as found:
        at, why = found.at, found.why
    name = message.DESCRIPTOR.name
    return ProtocolError(f"{name} cannot be read at byte {at}: {why}.", what=name, at=at, why=why)


def _look_for_damage(descriptor: Any, view: memoryview, at: int, end: int, *, depth: int) -> None:
    if depth > _DEPTH_MAX:
        raise refuse(at, f"messages are nested deeper than {_DEPTH_MAX}")
    while at < end:
        tag, value_at = read_tag(view, at, end)
        at = skip_value(view, tag, value_at, end)
        field = descriptor.fields_by_number.get(tag >> 3)
        if field is None or tag & 7 != WireType.LENGTH:
            continue
        start, stop = read_length(view, value_at, end)
        if field.message_type is not None:
            _look_for_damage(field.message_type, view, start, stop, depth=depth + 1)
        elif field.type == _TYPE_STRING:
            try:
                str(view[start:stop], "utf-8")
            except UnicodeDecodeError as error:
                raise refuse(start + error.start, f"{field.name} is not UTF-8") from None
