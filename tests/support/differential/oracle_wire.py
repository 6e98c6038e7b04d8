"""The pipe format between the tests and tools/Oracle.java.

The top of that file describes the format. It is deliberately not one of Fluss's encodings, and it
shares no code with ours, so that a codec bug cannot hide in the question.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from fluss.model.types.data_type import (
    ArrayType,
    BigIntType,
    BinaryType,
    BooleanType,
    BytesType,
    CharType,
    DataField,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntType,
    MapType,
    RowType,
    SmallIntType,
    StringType,
    TimestampLtzType,
    TimestampType,
    TimeType,
    TinyIntType,
)

_PLAIN: dict[str, type[DataType]] = {
    each.root: each
    for each in (
        BooleanType,
        TinyIntType,
        SmallIntType,
        IntType,
        BigIntType,
        FloatType,
        DoubleType,
        StringType,
        BytesType,
        DateType,
    )
}
_WITH_PRECISION: dict[str, type[TimeType | TimestampType | TimestampLtzType]] = {
    each.root: each for each in (TimeType, TimestampType, TimestampLtzType)
}
_WITH_LENGTH: dict[str, type[CharType | BinaryType]] = {
    each.root: each for each in (CharType, BinaryType)
}
_FORMATS: dict[str, struct.Struct] = {
    "BOOLEAN": struct.Struct(">?"),
    "TINYINT": struct.Struct(">b"),
    "SMALLINT": struct.Struct(">h"),
    "INTEGER": struct.Struct(">i"),
    "DATE": struct.Struct(">i"),
    "BIGINT": struct.Struct(">q"),
    "FLOAT": struct.Struct(">f"),
    "DOUBLE": struct.Struct(">d"),
    "TIME_WITHOUT_TIME_ZONE": struct.Struct(">q"),
    "TIMESTAMP_WITHOUT_TIME_ZONE": struct.Struct(">q"),
    "TIMESTAMP_WITH_LOCAL_TIME_ZONE": struct.Struct(">q"),
}
_NO_FIELD_ID = -1


class Question:
    """A question being encoded: its name, then its arguments in order."""

    def __init__(self, name: str) -> None:
        self._data = bytearray()
        self.name(name)

    def body(self) -> bytes:
        """What was written so far."""
        return bytes(self._data)

    def name(self, text: str) -> Question:
        """A short ASCII word."""
        self._data += struct.pack(">H", len(text)) + text.encode("ascii")
        return self

    def flag(self, value: bool) -> Question:
        """A boolean."""
        self._data.append(value)
        return self

    def int8(self, value: int) -> Question:
        """One signed byte."""
        self._data += struct.pack(">b", value)
        return self

    def int32(self, value: int) -> Question:
        """Four bytes, signed."""
        self._data += struct.pack(">i", value)
        return self

    def int64(self, value: int) -> Question:
        """Eight bytes, signed."""
        self._data += struct.pack(">q", value)
        return self

    def data(self, value: bytes) -> Question:
        """A byte string."""
        self._data += struct.pack(">i", len(value)) + value
        return self

    def text(self, value: str) -> Question:
        """A text of any characters."""
        return self.data(value.encode())

    def texts(self, values: Sequence[str]) -> Question:
        """A list of texts."""
        self.int32(len(values))
        for item in values:
            self.text(item)
        return self

    def many(self, values: Sequence[bytes]) -> Question:
        """A list of byte strings."""
        self.int32(len(values))
        for item in values:
            self.data(item)
        return self

    def type(self, data_type: DataType) -> Question:
        """A data type."""
        self.name(data_type.root).flag(data_type.nullable)
        match data_type:
            case CharType() | BinaryType():
                self.int32(data_type.length)
            case TimeType() | TimestampType() | TimestampLtzType():
                self.int32(data_type.precision)
            case DecimalType():
                self.int32(data_type.precision).int32(data_type.scale)
            case RowType():
                self.int32(len(data_type.fields))
                for field in data_type.fields:
                    self._field(field)
            case _:
                for child in data_type.children():
                    self.type(child)
        return self

    def value(self, data_type: DataType, value: Any) -> Question:
        """A physical value of this type, or None."""
        self.flag(value is not None)
        if value is None:
            return self
        match data_type:
            case CharType() | StringType():
                self.text(value)
            case BinaryType() | BytesType():
                self.data(value)
            case DecimalType():
                self.data(value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True))
            case ArrayType():
                self.int32(len(value))
                for entry in value:
                    self.value(data_type.element, entry)
            case MapType():
                self.int32(len(value))
                for key, item in value:
                    self.value(data_type.key, key).value(data_type.value, item)
            case RowType():
                self.row(data_type.field_types, value)
            case _:
                self._data += _FORMATS[data_type.root].pack(value)
        return self

    def row(self, types: Sequence[DataType], row: Sequence[Any]) -> Question:
        """The fields of a row, one after the other."""
        for data_type, value in zip(types, row, strict=True):
            self.value(data_type, value)
        return self

    def rows(self, types: Sequence[DataType], rows: Sequence[Sequence[Any]]) -> Question:
        """A list of rows."""
        self.int32(len(rows))
        for row in rows:
            self.row(types, row)
        return self

    def _field(self, field: DataField) -> None:
        self.text(field.name).flag(field.description is not None)
        if field.description is not None:
            self.text(field.description)
        self.int32(_NO_FIELD_ID if field.field_id is None else field.field_id)
        self.type(field.data_type)


class Answer:
    """An answer, read from its beginning; `end` says that nothing was left unread."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def end(self) -> None:
        """The answer must be used up: what is left was misunderstood."""
        assert self._at == len(self._data), f"{len(self._data) - self._at} bytes left unread"

    def take(self, count: int) -> bytes:
        """So many bytes."""
        found = self._data[self._at : self._at + count]
        assert len(found) == count, "the answer is shorter than it should be"
        self._at += count
        return found

    def name(self) -> str:
        """A short ASCII word."""
        return self.take(int.from_bytes(self.take(2), "big")).decode("ascii")

    def flag(self) -> bool:
        """A boolean."""
        return self.take(1) != b"\x00"

    def int8(self) -> int:
        """One signed byte."""
        return int.from_bytes(self.take(1), "big", signed=True)

    def int32(self) -> int:
        """Four bytes, signed."""
        return int.from_bytes(self.take(4), "big", signed=True)

    def int64(self) -> int:
        """Eight bytes, signed."""
        return int.from_bytes(self.take(8), "big", signed=True)

    def data(self) -> bytes:
        """A byte string."""
        return self.take(self.int32())

    def text(self) -> str:
        """A text of any characters."""
        return self.data().decode()

    def many(self) -> list[bytes]:
        """A list of byte strings."""
        return [self.data() for _ in range(self.int32())]

    def texts(self) -> list[str]:
        """A list of texts."""
        return [self.text() for _ in range(self.int32())]

    def rows(self, types: Sequence[DataType]) -> list[tuple[Any, ...]]:
        """A list of rows."""
        return [self.row(types) for _ in range(self.int32())]

    def row(self, types: Sequence[DataType]) -> tuple[Any, ...]:
        """The fields of a row."""
        return tuple(self.value(each) for each in types)

    def value(self, data_type: DataType) -> Any:
        """A physical value of this type, or None."""
        if not self.flag():
            return None
        match data_type:
            case CharType() | StringType():
                return self.text()
            case BinaryType() | BytesType():
                return self.data()
            case DecimalType():
                return int.from_bytes(self.data(), "big", signed=True)
            case ArrayType():
                return self._elements(data_type.element)
            case MapType():
                keys = self._elements(data_type.key)
                return list(zip(keys, self._elements(data_type.value), strict=True))
            case RowType():
                return self.row(data_type.field_types)
            case _:
                layout = _FORMATS[data_type.root]
                return layout.unpack(self.take(layout.size))[0]

    def type(self) -> DataType:
        """A data type."""
        root = self.name()
        nullable = self.flag()
        if root in _PLAIN:
            return _PLAIN[root](nullable=nullable)
        if root in _WITH_PRECISION:
            return _WITH_PRECISION[root](self.int32(), nullable=nullable)
        if root in _WITH_LENGTH:
            return _WITH_LENGTH[root](self.int32(), nullable=nullable)
        match root:
            case "DECIMAL":
                return DecimalType(self.int32(), self.int32(), nullable=nullable)
            case "ARRAY":
                return ArrayType(self.type(), nullable=nullable)
            case "MAP":
                return MapType(self.type(), self.type(), nullable=nullable)
            case "ROW":
                fields = tuple(self._field() for _ in range(self.int32()))
                return RowType(fields, nullable=nullable)
            case _:
                raise AssertionError(f"the oracle speaks of a type {root!r}")

    def _elements(self, data_type: DataType) -> list[Any]:
        return [self.value(data_type) for _ in range(self.int32())]

    def _field(self) -> DataField:
        name = self.text()
        description = self.text() if self.flag() else None
        field_id = self.int32()
        return DataField(
            name,
            self.type(),
            description,
            field_id=None if field_id == _NO_FIELD_ID else field_id,
        )
