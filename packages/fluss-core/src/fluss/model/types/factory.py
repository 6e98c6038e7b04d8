"""`DataTypes`, the factory for types in programs: `DataTypes.array(DataTypes.int())`.

It names the classes of `model.types.data_type`; its types allow NULL unless `.not_null()` is
called.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable

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


class DataTypes:
    """Makes data types by their names."""

    @staticmethod
    def boolean() -> BooleanType:
        """True or false."""
        return BooleanType()

    @staticmethod
    def tinyint() -> TinyIntType:
        """An 8-bit signed integer."""
        return TinyIntType()

    @staticmethod
    def smallint() -> SmallIntType:
        """A 16-bit signed integer."""
        return SmallIntType()

    @staticmethod
    def int() -> IntType:
        """A 32-bit signed integer."""
        return IntType()

    @staticmethod
    def bigint() -> BigIntType:
        """A 64-bit signed integer."""
        return BigIntType()

    @staticmethod
    def float() -> FloatType:
        """A 32-bit IEEE number."""
        return FloatType()

    @staticmethod
    def double() -> DoubleType:
        """A 64-bit IEEE number."""
        return DoubleType()

    @staticmethod
    def string() -> StringType:
        """Text of any length."""
        return StringType()

    @staticmethod
    def char(length: builtins.int = 1) -> CharType:
        """Text of at most `length` characters."""
        return CharType(length)

    @staticmethod
    def bytes() -> BytesType:
        """Bytes of any length."""
        return BytesType()

    @staticmethod
    def binary(length: builtins.int = 1) -> BinaryType:
        """Exactly `length` bytes."""
        return BinaryType(length)

    @staticmethod
    def decimal(precision: builtins.int = 10, scale: builtins.int = 0) -> DecimalType:
        """An exact number of `precision` digits, `scale` of them after the point."""
        return DecimalType(precision, scale)

    @staticmethod
    def date() -> DateType:
        """A calendar day."""
        return DateType()

    @staticmethod
    def time(precision: builtins.int = 0) -> TimeType:
        """A time of day with `precision` digits after the second."""
        return TimeType(precision)

    @staticmethod
    def timestamp(precision: builtins.int = 6) -> TimestampType:
        """A date and time without a zone, with `precision` digits after the second."""
        return TimestampType(precision)

    @staticmethod
    def timestamp_ltz(precision: builtins.int = 6) -> TimestampLtzType:
        """An instant, with `precision` digits after the second."""
        return TimestampLtzType(precision)

    time_with_precision = time
    timestamp_with_precision = timestamp
    timestamp_ltz_with_precision = timestamp_ltz

    @staticmethod
    def array(element: DataType) -> ArrayType:
        """A list of elements of one type."""
        return ArrayType(element)

    @staticmethod
    def map(key: DataType, value: DataType) -> MapType:
        """Pairs of key and value; keys are never NULL."""
        return MapType(key, value)

    @staticmethod
    def row(fields: Iterable[DataField]) -> RowType:
        """A record of named fields."""
        return RowType(tuple(fields))

    @staticmethod
    def field(name: str, data_type: DataType, description: str | None = None) -> DataField:
        """A field of a ROW."""
        return DataField(name, data_type, description)
