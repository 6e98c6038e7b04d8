"""Codecs of fields, for the layouts of `message_layout`.

A codec reads a field, whose tag has been read already, into the values of a message. protobuf's
rules for repetition hold: of numbers and strings the last one wins, lists grow. The elements of a
list usually follow each other, so the codec of a list reads a run of them in one call.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import chain
from typing import Any, ClassVar, cast

from fluss.wire.byte_buffers import Buffer, count_bytes, size_of
from fluss.wire.message_output import Output
from fluss.wire.protobuf_fields import (
    WireType,
    read_length,
    read_tag,
    read_varint,
    refuse,
    skip_value,
    write_varint,
)

Values = dict[str, Any]

# The only field of PbValue and PbValueList: `bytes values = 1`.
_BYTES_1 = 1 << 3 | WireType.LENGTH
_BYTES_1_TAG = bytes([_BYTES_1])
# Up to here a PbValue with so many bytes has lengths of one byte each.
_SHORT_BYTES_MAX = 125
# A length from here on takes more than one byte.
_LONG_LENGTH = 0x80
# How many elements of one length are looked for in one step: a bound, so that a list in which
# lengths change costs little.
_ALIKE_MAX = 256
# Where fewer than these have one length, the next elements are read one by one for as many bytes.
_ALIKE_MIN = 16
_APART_BYTES = 1_024
# In place of the length of a value that is absent.
_ABSENT = -1


class FieldCodec(ABC):
    """Reads and writes the fields of one kind."""

    wire_type: ClassVar[WireType] = WireType.LENGTH

    @abstractmethod
    def write(self, out: Output, tag: bytes, value: Any) -> None:
        """Write the field with its tag."""


class SingleCodec(FieldCodec):
    """A field with one value."""

    @abstractmethod
    def read(self, values: Values, name: str, view: memoryview, at: int, end: int) -> int:
        """Read one occurrence of the field into `values[name]`; returns where it stops."""


class RepeatedCodec(FieldCodec):
    """A field with a list of values."""

    @abstractmethod
    def read_run(self, items: list[Any], tag: int, view: memoryview, at: int, end: int) -> int:
        """Read the element at `at` and those with the same tag that follow it; returns the end."""


class Number(SingleCodec):
    """int32 and int64: the low bits of a varint, as two's complement."""

    wire_type = WireType.VARINT

    def __init__(self, bits: int) -> None:
        self._modulus = 1 << bits
        self._negative_from = 1 << (bits - 1)

    def read(self, values: Values, name: str, view: memoryview, at: int, end: int) -> int:
        if at < end and view[at] < 0x80:  # bucket ids, error codes: a call would cost more
            values[name] = view[at]
            return at + 1
        values[name], at = self.read_one(view, at, end)
        return at

    def read_one(self, view: memoryview, at: int, end: int) -> tuple[int, int]:
        """Read a number that has no tag of its own, or whose tag has been read."""
        value, at = read_varint(view, at, end)
        if value >= self._negative_from:
            value %= self._modulus
            if value >= self._negative_from:
                value -= self._modulus
        return value, at

    def write(self, out: Output, tag: bytes, value: int) -> None:
        out.small += tag
        self.write_one(out.small, value)

    def write_one(self, out: bytearray, value: int) -> None:
        """Write a number without a tag."""
        if not -self._negative_from <= value < self._negative_from:
            raise ValueError(f"{value} does not fit into {self._modulus.bit_length() - 1} bits")
        write_varint(out, value)


class Flag(SingleCodec):
    """bool: any number but 0 is true."""

    wire_type = WireType.VARINT

    def read(self, values: Values, name: str, view: memoryview, at: int, end: int) -> int:
        number, at = read_varint(view, at, end)
        values[name] = number != 0
        return at

    def write(self, out: Output, tag: bytes, value: object) -> None:
        out.small += tag
        out.small.append(1 if value else 0)


class Text(SingleCodec):
    """string: UTF-8."""

    def read(self, values: Values, name: str, view: memoryview, at: int, end: int) -> int:
        start, stop = read_length(view, at, end)
        try:
            values[name] = str(view[start:stop], "utf-8")
        except UnicodeDecodeError as error:
            raise refuse(start + error.start, f"{name} is not UTF-8") from None
        return stop

    def write(self, out: Output, tag: bytes, value: str) -> None:
        out.append_field(tag, value.encode())


class ShortBytes(SingleCodec):
    """bytes that are compared and kept, and so are copied out of the frame."""

    def read(self, values: Values, name: str, view: memoryview, at: int, end: int) -> int:
        start, stop = read_length(view, at, end)
        values[name] = bytes(view[start:stop])
        return stop

    def write(self, out: Output, tag: bytes, value: Buffer) -> None:
        out.append_field(tag, value)


class LargeBytes(SingleCodec):
    """bytes that are not copied: one slice when read, any number of buffers when written."""

    def read(self, values: Values, name: str, view: memoryview, at: int, end: int) -> int:
        start, stop = read_length(view, at, end)
        values[name] = (view[start:stop],)
        return stop

    def write(self, out: Output, tag: bytes, value: Sequence[Buffer]) -> None:
        out.append_length(tag, count_bytes(value))
        for buffer in value:
            out.append(buffer)


class Numbers(RepeatedCodec):
    """repeated int32, packed: written as one byte string, read packed and one by one."""

    def __init__(self, number: Number) -> None:
        self._number = number

    def read_run(self, items: list[Any], tag: int, view: memoryview, at: int, end: int) -> int:
        del tag  # one element holds all numbers
        at, stop = read_length(view, at, end)
        while at < stop:
            number, at = self._number.read_one(view, at, stop)
            items.append(number)
        return stop

    def read_unpacked(self, items: list[Any], tag: int, view: memoryview, at: int, end: int) -> int:
        """Read one number with a tag of its own, as older writers store such lists."""
        del tag  # the same shape as `read_run`
        number, at = self._number.read_one(view, at, end)
        items.append(number)
        return at

    def write(self, out: Output, tag: bytes, value: Sequence[int]) -> None:
        packed = bytearray()
        for number in value:
            self._number.write_one(packed, number)
        out.append_field(tag, packed)


class ByteStrings(RepeatedCodec):
    """repeated bytes: a tuple of slices."""

    def read_run(self, items: list[Any], tag: int, view: memoryview, at: int, end: int) -> int:
        while True:
            start, stop = read_length(view, at, end)
            items.append(view[start:stop])
            if stop == end or view[stop] != tag:
                return stop
            at = stop + 1

    def write(self, out: Output, tag: bytes, value: Sequence[Buffer]) -> None:
        if set(map(type, value)) == {bytes}:
            lengths = list(map(len, value))
            if max(lengths) <= _SHORT_BYTES_MAX:  # keys, of which there may be thousands
                heads = {size: tag + bytes([size]) for size in set(lengths)}
                parts = zip(map(heads.__getitem__, lengths), value, strict=True)
                out.small += b"".join(chain.from_iterable(parts))
                return
        for item in value:
            size = size_of(item)
            if size <= _SHORT_BYTES_MAX:
                out.small += tag
                out.small.append(size)
                out.small += item
            else:
                out.append_field(tag, item)


class ShortByteStrings(ByteStrings):
    """repeated bytes that are compared and kept: a tuple of copies.

    A lookup asks for thousands of keys, often of one length, and those are read without a step of
    Python for each: 20 000 keys of 8 bytes take 1.8 ms instead of 6.7 ms. Where lengths change all
    the time, looking for equal ones costs more than it saves, and is not tried for a while: 20 000
    keys of 1 to 3 bytes take 2.3 ms instead of 4.9 ms.
    """

    def read_run(self, items: list[Any], tag: int, view: memoryview, at: int, end: int) -> int:
        data = bytes(view[at:end])
        position, stop, apart_to = 0, len(data), 0
        while True:
            size = data[position] if position < stop else _LONG_LENGTH
            till = position + 1 + size
            if size >= _LONG_LENGTH or till > stop:
                start, till = read_length(view, at + position, end)
                till -= at
                items.append(data[start - at : till])
            elif (
                position >= apart_to
                and till + 1 < stop
                and data[till] == tag
                and data[till + 1] == size
            ):
                stride = size + 2  # the length, the bytes, and the tag of the next one
                count = _count_alike(data[position : position + _ALIKE_MAX * stride], tag, stride)
                till = position + count * stride - 1
                starts = range(position + 1, till + 1, stride)
                items += [data[start : start + size] for start in starts]
                if count < _ALIKE_MIN:
                    apart_to = till + _APART_BYTES
            else:
                items.append(data[position + 1 : till])
            if till == stop or data[till] != tag:
                return at + till
            position = till + 1


def _count_alike(data: bytes, tag: int, stride: int) -> int:
    """Return how many elements at the start of these bytes have the length of the first one."""
    sizes, tags = data[::stride], data[stride - 1 :: stride]
    alike = len(sizes) - len(sizes.lstrip(sizes[:1]))
    followed = len(tags) - len(tags.lstrip(bytes((tag,))))
    # The bytes of the last one must be there, too.
    return min(alike, followed + 1, (len(data) + 1) // stride)


class MaybeByteStrings(RepeatedCodec):
    """repeated PbValue: a tuple of slices, None where a value is absent."""

    def read_run(self, items: list[Any], tag: int, view: memoryview, at: int, end: int) -> int:
        ranges: list[int] = []
        stop = VALUE_RANGES.read_run(ranges, tag, view, at, end)
        pairs = zip(ranges[::2], ranges[1::2], strict=True)
        items += [None if start < 0 else view[start:till] for start, till in pairs]
        return stop

    def write(self, out: Output, tag: bytes, value: Sequence[Buffer | None]) -> None:
        if _write_short_values(out, tag, value):
            return
        for item in value:
            if item is None:
                out.append_length(tag, 0)
            elif size_of(item) <= _SHORT_BYTES_MAX:
                size = size_of(item)
                out.small += tag
                out.small.append(size + 2)
                out.small += _BYTES_1_TAG
                out.small.append(size)
                out.small += item
            else:
                _write_bytes_1(out, tag, (item,))


def _write_short_values(out: Output, tag: bytes, value: Sequence[Buffer | None]) -> bool:
    """Write values that are all short `bytes` or absent, without a step of Python for each.

    The answer to a lookup may have thousands: 20 000 values of 27 bytes take 1.7 ms instead of
    3.3 ms. Returns False, and has written nothing, where a value is of another kind.
    """
    kinds = set(map(type, value))
    if not kinds <= {bytes, type(None)}:
        return False
    found = value if type(None) not in kinds else [each or b"" for each in value]
    lengths = list(map(len, cast("Sequence[bytes]", found)))
    if max(lengths, default=0) > _SHORT_BYTES_MAX:
        return False
    heads: dict[int, bytes] = {
        size: tag + bytes([size + 2]) + _BYTES_1_TAG + bytes([size]) for size in set(lengths)
    }
    if found is not value:
        heads[_ABSENT] = tag + b"\0"
        lengths = [
            _ABSENT if each is None else size for each, size in zip(value, lengths, strict=True)
        ]
    parts = zip(map(heads.__getitem__, lengths), cast("Sequence[bytes]", found), strict=True)
    out.small += b"".join(chain.from_iterable(parts))
    return True


class MaybeByteRanges(RepeatedCodec):
    """repeated PbValue: a tuple of starts and stops, -1 and -1 for an absent value.

    For answers with so many values that one object per value would dominate the cost.
    """

    def read_run(self, items: list[Any], tag: int, view: memoryview, at: int, end: int) -> int:
        append = items.append
        while True:
            size = view[at] if at + 2 < end else 0
            # Almost all are short, and nothing but `bytes values = 1`.
            if 2 <= size < 0x80 and view[at + 1] == _BYTES_1 and view[at + 2] == size - 2:
                stop = at + 1 + size
                if stop > end:
                    raise refuse(at, f"{size} bytes are announced, {end - at - 1} are there")
                append(at + 3)
                append(stop)
            else:
                start, stop = read_length(view, at, end)
                items += _range_of_bytes_1(view, start, stop)
            if stop == end or view[stop] != tag:
                return stop
            at = stop + 1

    def write(self, out: Output, tag: bytes, value: Any) -> None:  # noqa: ARG002 - the shape of codecs
        raise AssertionError("ranges of bytes that are elsewhere cannot be written")


class ByteStringLists(RepeatedCodec):
    """repeated PbValueList: a tuple of tuples of slices."""

    def read_run(self, items: list[Any], tag: int, view: memoryview, at: int, end: int) -> int:
        while True:
            start, stop = read_length(view, at, end)
            items.append(tuple(_read_bytes_1(view, start, stop)))
            if stop == end or view[stop] != tag:
                return stop
            at = stop + 1

    def write(self, out: Output, tag: bytes, value: Sequence[Sequence[Buffer]]) -> None:
        for item in value:
            _write_bytes_1(out, tag, item)


def _read_bytes_1(view: memoryview, at: int, end: int) -> list[memoryview]:
    """Read a message whose only field is `bytes values = 1`, once or often."""
    found: list[memoryview] = []
    while at < end:
        tag, value_at = read_tag(view, at, end)
        if tag == _BYTES_1:
            at = BYTES_LIST.read_run(found, tag, view, value_at, end)
        elif tag >> 3 == 1:
            raise refuse(at, f"values is stored in a wrong way ({tag & 7})")
        else:
            at = skip_value(view, tag, value_at, end)
    return found


def _range_of_bytes_1(view: memoryview, at: int, end: int) -> tuple[int, int]:
    """Where the bytes of such a message are; of several the last ones, as in protobuf."""
    found = (-1, -1)
    while at < end:
        tag, value_at = read_tag(view, at, end)
        if tag == _BYTES_1:
            found = read_length(view, value_at, end)
            at = found[1]
        elif tag >> 3 == 1:
            raise refuse(at, f"values is stored in a wrong way ({tag & 7})")
        else:
            at = skip_value(view, tag, value_at, end)
    return found


def _write_bytes_1(out: Output, tag: bytes, value: Sequence[Buffer]) -> None:
    message = Output()
    BYTES_LIST.write(message, _BYTES_1_TAG, value)
    out.append_nested(tag, message)


INT32 = Number(32)
INT64 = Number(64)
BOOL = Flag()
STRING = Text()
SHORT_BYTES = ShortBytes()
LARGE_BYTES = LargeBytes()
INT32_LIST = Numbers(INT32)
BYTES_LIST = ByteStrings()
SHORT_BYTES_LIST = ShortByteStrings()
VALUES = MaybeByteStrings()
VALUE_RANGES = MaybeByteRanges()
VALUE_LISTS = ByteStringLists()
