"""Maps the fields of a frozen dataclass to those of a protobuf message, by their annotations.

protobuf copies every byte string out of a message and into it. A message with a layout is read
without copies: its byte strings are slices of the received frame, and separate buffers when it is
written. Nothing else differs: the bytes are those that protobuf writes, and everything that
protobuf reads is read. The annotations serve both directions. The messages are in `wire.zero_copy`.

Stricter than protobuf: a known field of the wrong wire type, a string that is not UTF-8 and a
missing required field are refused.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any, Generic, TypeVar, get_type_hints

from fluss.errors import ProtocolError
from fluss.wire.byte_buffers import Buffer
from fluss.wire.field_codecs import FieldCodec, Numbers, RepeatedCodec, SingleCodec, Values
from fluss.wire.message_output import Output
from fluss.wire.protobuf_fields import (
    WireType,
    read_length,
    read_tag,
    refuse,
    skip_value,
    write_varint,
)

Message = TypeVar("Message")


class Layout(Generic[Message]):
    """The fields of a message.

    Args:
        message: A dataclass, each field annotated with its number and its codec, by rising number:
            `bucket_id: Annotated[int, 2, INT32]`. A field without a default is required.
    """

    def __init__(self, message: type[Message]) -> None:
        declared = fields(message)  # type: ignore[arg-type] # Message cannot be bound to dataclasses
        table = _annotations(message)
        if list(table) != sorted(table) or len(table) < len(declared):
            raise ValueError(f"the fields of {message.__name__} are not numbered in order")
        self.message = message
        self.fields = table
        self._required = [
            each.name
            for each in declared
            if each.default is MISSING and each.default_factory is MISSING
        ]
        self._readers = {
            number << 3 | codec.wire_type: (name, codec.read)
            for number, (name, codec) in table.items()
            if isinstance(codec, SingleCodec)
        }
        self._run_readers = {
            number << 3 | codec.wire_type: (name, codec.read_run)
            for number, (name, codec) in table.items()
            if isinstance(codec, RepeatedCodec)
        }
        for number, (name, codec) in table.items():
            if isinstance(codec, Numbers):
                self._run_readers[number << 3 | WireType.VARINT] = (name, codec.read_unpacked)
        self._lists = [name for name, codec in table.values() if isinstance(codec, RepeatedCodec)]
        self._nested = [
            (name, codec.layout) for name, codec in table.values() if isinstance(codec, Nested)
        ]
        self._writers = [
            (_tag(number, codec), name, name in self._required, codec.write)
            for number, (name, codec) in table.items()
        ]

    def read(self, data: Buffer) -> Message:
        """Read a whole message; its byte strings are slices of `data`.

        Raises:
            ProtocolError: The bytes are not such a message.
        """
        view = memoryview(data)
        values: Values = {}
        try:
            self.read_into(values, view, 0, len(view))
            return self.make(values, len(view))
        except ProtocolError as error:
            name = self.message.__name__
            raise ProtocolError(
                f"{name} cannot be read at byte {error.at}: {error.why}.",
                what=name,
                at=error.at,
                why=error.why,
            ) from None

    def write(self, message: Message) -> list[Buffer]:
        """Write a whole message, as buffers to be sent one after the other."""
        out = Output()
        self.write_into(out, message)
        return out.buffers()

    def read_into(self, values: Values, view: memoryview, at: int, end: int) -> None:
        """Read the fields between `at` and `end` into `values`, which may hold some already."""
        readers, run_readers = self._readers, self._run_readers
        while at < end:
            tag = view[at]  # the tags of all known fields usually take one byte
            if tag in readers:
                name, read = readers[tag]
                at = read(values, name, view, at + 1, end)
            elif tag in run_readers:
                name, read_run = run_readers[tag]
                at = read_run(values.setdefault(name, []), tag, view, at + 1, end)
            else:
                at = self._read_unusual(values, view, at, end)

    def make(self, values: Values, end: int) -> Message:
        """Make the message that ends at `end`."""
        for name in self._lists:
            if name in values:
                values[name] = tuple(values[name])
        for name, layout in self._nested:
            if name in values:
                values[name] = layout.make(values[name], end)
        for name in self._required:
            if name not in values:
                raise refuse(end, f"the field {name} is missing")
        return self.message(**values)

    def write_into(self, out: Output, message: Message) -> None:
        """Append the fields, by rising number."""
        for tag, name, required, write in self._writers:
            value = getattr(message, name)
            if required or not (value is None or value == ()):
                write(out, tag, value)

    def _read_unusual(self, values: Values, view: memoryview, at: int, end: int) -> int:
        tag, value_at = read_tag(view, at, end)
        if tag in self._readers:
            name, read = self._readers[tag]
            return read(values, name, view, value_at, end)
        if tag in self._run_readers:
            name, read_run = self._run_readers[tag]
            return read_run(values.setdefault(name, []), tag, view, value_at, end)
        if tag >> 3 in self.fields:
            name, _ = self.fields[tag >> 3]
            raise refuse(at, f"{name} is stored in a wrong way ({tag & 7})")
        return skip_value(view, tag, value_at, end)


class Nested(SingleCodec):
    """A message in a message; if it is repeated, the later fields replace the earlier ones.

    So its fields are kept as values until the outer message is complete.
    """

    def __init__(self, message: type[Any]) -> None:
        self.layout = Layout(message)

    def read(self, values: Values, name: str, view: memoryview, at: int, end: int) -> int:
        start, stop = read_length(view, at, end)
        self.layout.read_into(values.setdefault(name, {}), view, start, stop)
        return stop

    def write(self, out: Output, tag: bytes, value: Any) -> None:
        message = Output()
        self.layout.write_into(message, value)
        out.append_nested(tag, message)


class NestedList(RepeatedCodec):
    """repeated message."""

    def __init__(self, message: type[Any]) -> None:
        self.layout = Layout(message)

    def read_run(self, items: list[Any], tag: int, view: memoryview, at: int, end: int) -> int:
        layout = self.layout
        while True:
            start, stop = read_length(view, at, end)
            values: Values = {}
            layout.read_into(values, view, start, stop)
            items.append(layout.make(values, stop))
            if stop == end or view[stop] != tag:
                return stop
            at = stop + 1

    def write(self, out: Output, tag: bytes, value: Any) -> None:
        for item in value:
            message = Output()
            self.layout.write_into(message, item)
            out.append_nested(tag, message)


def _annotations(message: type[Any]) -> dict[int, tuple[str, FieldCodec]]:
    """Return name and codec of each field of a message, by its number."""
    hints = get_type_hints(message, include_extras=True)
    return {
        number: (name, codec)
        for name, hint in hints.items()
        for number, codec in [hint.__metadata__]
    }


def _tag(number: int, codec: FieldCodec) -> bytes:
    tag = bytearray()
    write_varint(tag, number << 3 | codec.wire_type)
    return bytes(tag)
