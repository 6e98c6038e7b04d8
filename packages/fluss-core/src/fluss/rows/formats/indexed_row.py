"""Single indexed rows; the layout is drawn in `rows.formats.indexed`, which has the columns.

`IndexedRowWriter` and `IndexedRowReader` are made once per table and then encode and decode many
rows. NULL is None.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from fluss.model.types.data_type import (
    BinaryType,
    CharType,
    DataType,
)
from fluss.model.types.type_facts import TimestampStorage
from fluss.rows.formats.array_value import RowValueFormat, run_reader, run_writer
from fluss.rows.formats.nulls import null_bytes
from fluss.rows.formats.stored_value import (
    Number,
    SectionReader,
    ValueWriter,
    join_timestamp,
    number_of,
    split_timestamp,
)
from fluss.rows.row_errors import UNFIT, UNREADABLE, null_field, unfit_row, unreadable

_LENGTH_BYTES = 4
_TIMESTAMP = struct.Struct("<qi")
_unpack_length = struct.Struct("<i").unpack_from


def width_of(data_type: DataType) -> int | None:
    """Return how many bytes a field of this type takes, or None if it depends on the value."""
    number = number_of(data_type)
    if number is not None:
        return number.width
    if isinstance(data_type.storage, TimestampStorage):
        return _TIMESTAMP.size
    return data_type.length if isinstance(data_type, CharType | BinaryType) else None


class IndexedRowWriter:
    """Encodes rows of these types; any thread may use it."""

    __slots__ = ("_fields", "_lengths_bytes", "_null_bytes", "_required", "_types", "_writers")

    def __init__(self, types: Sequence[DataType]) -> None:
        self._types = tuple(types)
        self._writers = tuple(_field_writer(each) for each in types)
        has_width = [width_of(each) is not None for each in types]
        self._fields = tuple(zip(self._writers, has_width, strict=True))
        self._null_bytes = null_bytes(len(types))
        self._lengths_bytes = _LENGTH_BYTES * has_width.count(False)
        self._required = sum(1 << index for index, each in enumerate(types) if not each.nullable)

    def write(self, values: Sequence[Any]) -> bytes:
        """Encodes one row of physical values.

        Raises:
            InvalidValueError: A value does not fit its type; `column` names it.
        """
        fields: list[bytes] = []
        lengths: list[int] = []
        nulls, bit = 0, 1
        try:
            for (write, has_width), value in zip(self._fields, values, strict=True):
                if value is None:
                    nulls |= bit
                else:
                    field = write(value)
                    fields.append(field)
                    if not has_width:
                        lengths.append(len(field))
                bit <<= 1
        except UNFIT as error:
            raise unfit_row(self._types, self._writers, values) from error
        if nulls & self._required:
            raise null_field(self._types, values, is_key=False)
        heads = struct.pack(f"<{len(lengths)}i", *lengths).ljust(self._lengths_bytes, b"\0")
        return nulls.to_bytes(self._null_bytes, "little") + heads + b"".join(fields)


class IndexedRowReader:
    """Decodes rows of these types; any thread may use it."""

    __slots__ = ("_fields", "_header_bytes", "_null_bytes")

    def __init__(self, types: Sequence[DataType]) -> None:
        self._fields = tuple((_field_reader(each), width_of(each)) for each in types)
        self._null_bytes = null_bytes(len(types))
        without_width = sum(width is None for _, width in self._fields)
        self._header_bytes = self._null_bytes + _LENGTH_BYTES * without_width

    def read(self, data: bytes | memoryview) -> tuple[Any, ...]:
        """Decodes one row, which takes all of the data, into physical values.

        Raises:
            CorruptDataError: The bytes cannot be a row of these types.
        """
        given = bytes(data)
        return self.read_section(given, 0, len(given))

    def read_section(self, data: bytes, start: int, end: int) -> tuple[Any, ...]:
        """Decodes the row data[start:end], as `read` does; the bounds have been checked."""
        values: list[Any] = []
        lengths_at = start + self._null_bytes
        at = start + self._header_bytes
        nulls = int.from_bytes(data[start:lengths_at], "little")
        try:
            for read, width in self._fields:
                if nulls & 1:
                    values.append(None)
                else:
                    if width is None:
                        (size,) = _unpack_length(data, lengths_at)
                        lengths_at += _LENGTH_BYTES
                    else:
                        size = width
                    field_at, at = at, _checked_end(at, size, end)
                    values.append(read(data, field_at, at))
                nulls >>= 1
        except UNREADABLE as error:
            raise unreadable("indexed row", at, data, error) from error
        if at != end:
            raise unreadable("indexed row", at, data, ValueError(f"it should end at byte {end}"))
        return tuple(values)


_INDEXED = RowValueFormat(
    row_writer=lambda types: IndexedRowWriter(types).write,
    row_reader=lambda types: IndexedRowReader(types).read_section,
)


def _checked_end(at: int, size: int, end: int) -> int:
    if size < 0 or at + size > end:
        raise ValueError(f"there are no {size} bytes for a value")
    return at + size


def _field_writer(data_type: DataType) -> ValueWriter:
    number = number_of(data_type)
    if number is not None:
        return number.packer()
    storage = data_type.storage
    if isinstance(storage, TimestampStorage):
        split = split_timestamp(storage.unit)
        return lambda value: _TIMESTAMP.pack(*split(value))
    write = run_writer(data_type, _INDEXED)
    if isinstance(data_type, CharType | BinaryType):
        return _padded_writer(write, data_type.length)
    return write


def _padded_writer(write: ValueWriter, size: int) -> ValueWriter:
    def write_padded(value: Any) -> bytes:
        data = write(value)
        if len(data) > size:
            raise ValueError(f"its {len(data)} bytes are more than {size}")
        return data.ljust(size, b"\0")

    return write_padded


def _field_reader(data_type: DataType) -> SectionReader:
    number = number_of(data_type)
    if number is not None:
        return _number_reader(number)
    storage = data_type.storage
    if isinstance(storage, TimestampStorage):
        join = join_timestamp(storage.unit)
        return lambda data, start, _: join(*_TIMESTAMP.unpack_from(data, start))
    if isinstance(data_type, CharType):
        return lambda data, start, end: data[start:end].rstrip(b"\0").decode()
    return run_reader(data_type, _INDEXED)


def _number_reader(number: Number) -> SectionReader:
    unpack, convert = struct.Struct(f"<{number.code}").unpack_from, number.from_stored
    if convert is None:
        return lambda data, start, _: unpack(data, start)[0]
    return lambda data, start, _: convert(unpack(data, start)[0])
