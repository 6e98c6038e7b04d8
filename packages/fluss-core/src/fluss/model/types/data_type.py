"""Fluss's data types, as values: frozen, validated when made, equal when they mean the same.

A type states its facts: its names, how Arrow and rows store it, its number on the wire. Codecs
dispatch by these facts, or by a table with an entry for each type (`model.types.per_type`), so a
type that lacks a fact or an entry fails when a module is imported. What is done with a type is not
here: see `model.types.type_json`, `type_text`, `type_to_arrow`, and the room `rows`.

The *physical value* of a type is the Python value that the codecs of `rows` read and write:

======================  ========================================================================
BOOLEAN                 bool
TINYINT … BIGINT        int
FLOAT, DOUBLE           float (FLOAT already rounded to 32 bits)
CHAR, STRING            str
BINARY, BYTES           bytes
DECIMAL(p, s)           int: the unscaled value
DATE                    int: days since 1970-01-01
TIME(p)                 int since midnight, in the unit of p
TIMESTAMP(p), …_LTZ(p)  int since the epoch, in the unit of p
ARRAY                   list of physical values
MAP                     list of (key, value) tuples
ROW                     tuple of physical values
======================  ========================================================================

The unit of a precision p is seconds for 0, milliseconds for 1-3, microseconds for 4-6 and
nanoseconds for 7-9, as in Fluss's Arrow mapping (Java: `ArrowUtils`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Self, TypeVar, dataclass_transform

from fluss.errors import InvalidSchemaError
from fluss.model.types.type_facts import (
    ArrowLayout,
    BytesStorage,
    DecimalStorage,
    NestedStorage,
    NumberForm,
    NumberStorage,
    Storage,
    TimestampStorage,
    WireLiteral,
)

PRECISION_MAX_DECIMAL = 38
PRECISION_MAX_COMPACT_DECIMAL = 18  # an unscaled value of up to 18 digits fits a 64-bit integer
PRECISION_MAX_TIME = 9
PRECISION_MAX_COMPACT_TIMESTAMP = 3  # up to milliseconds one 64-bit integer holds a timestamp
LENGTH_MAX = 2**31 - 1

_UNIT_OF_PRECISION = ("s", "ms", "ms", "ms", "us", "us", "us", "ns", "ns", "ns")
UNITS_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}

_I32 = NumberStorage("i", "<i4")
_MILLIS_I64 = NumberStorage("q", "<i8", NumberForm.MILLIS)
_UNSCALED_I64 = NumberStorage("q", "<i8", NumberForm.UNSCALED)


@dataclass(frozen=True, slots=True)
class DataType:
    """A Fluss data type."""

    root: ClassVar[str]
    """The name in Fluss's JSON."""

    sql_name: ClassVar[str]
    """The name in texts, without parameters."""

    layout: ClassVar[ArrowLayout]
    """The layout of the Arrow array."""

    literal: ClassVar[WireLiteral | None]
    """How a filter that is sent to a server carries a value; None where it cannot."""

    has_statistics: ClassVar[bool]
    """Whether a log batch can state the smallest and largest value of such a column."""

    arrow_parameters: ClassVar[tuple[str, ...]] = ()
    """The attributes that are arguments of the function `arrow_name`."""

    arrow_zone: ClassVar[str | None] = None
    """The zone of the Arrow type, which it has everywhere but in a log batch."""

    parameters: ClassVar[tuple[str, ...]] = ()
    """The attributes that the name takes in brackets, in order; those of JSON, too."""

    nullable: bool = field(default=True, kw_only=True)

    @property
    def storage(self) -> Storage:
        """How rows store a value."""
        raise NotImplementedError

    @property
    def dtype(self) -> str:
        """The numpy type of `Column.values`; empty where a column has none."""
        raise NotImplementedError

    @property
    def values_per_row(self) -> int | None:
        """How many items of `dtype` a row has, where the layout is FIXED; None for one number."""
        return None

    @property
    def arrow_name(self) -> str:
        """The function of pyarrow that makes the Arrow type."""
        raise NotImplementedError

    @property
    def arrow_is_exact(self) -> bool:
        """Whether the Arrow type alone would be read back as this type."""
        return True

    def arrow_arguments(self, *, for_wire: bool = False) -> tuple[Any, ...]:
        """Return the arguments of the function `arrow_name`, without children of nested types."""
        own = (getattr(self, each) for each in self.arrow_parameters)
        return tuple(own) if for_wire or self.arrow_zone is None else (*own, self.arrow_zone)

    @property
    def row_width(self) -> int:
        """How many bytes a row takes in Arrow's fixed part: the value or its offset."""
        match self.layout:
            case ArrowLayout.BITS:
                return 1
            case ArrowLayout.FIXED:
                return int(self.dtype[-1]) * (self.values_per_row or 1)
            case ArrowLayout.VARIABLE | ArrowLayout.LIST | ArrowLayout.MAP | ArrowLayout.STRUCT:
                return 4

    def not_null(self) -> Self:
        """Return the same type without NULL."""
        return self if not self.nullable else replace(self, nullable=False)

    def as_nullable(self) -> Self:
        """Return the same type with NULL."""
        return self if self.nullable else replace(self, nullable=True)

    def children(self) -> Iterator[DataType]:
        """The types this one is made of, in order."""
        return iter(())

    @property
    def is_nested(self) -> bool:
        """Whether this is ARRAY, MAP or ROW."""
        return isinstance(self, NestedType)

    def _name(self) -> str:
        numbers = ", ".join(str(getattr(self, each)) for each in self.parameters)
        return f"{self.sql_name}({numbers})" if numbers else self.sql_name

    def __str__(self) -> str:
        return self._name() if self.nullable else f"{self._name()} NOT NULL"


DATA_TYPES: list[type[DataType]] = []
"""Every data type there is, in the order of their numbers on the wire; nested ones last."""

_T = TypeVar("_T", bound=DataType)
_NAMES = ("root", "sql_name", "arrow_name")
_FACTS = (*_NAMES, "layout", "literal", "has_statistics", "storage", "dtype")


@dataclass_transform(frozen_default=True)
def concrete(cls: type[_T]) -> type[_T]:
    """Make a frozen dataclass of a data type and list it in `DATA_TYPES`.

    Raises:
        TypeError: The type lacks a fact.
    """
    made = dataclass(frozen=True, slots=True)(cls)
    undeclared = object()
    missing = [
        each
        for each in _FACTS
        if getattr(made, each, undeclared) is getattr(DataType, each, undeclared)
    ]
    if missing:
        raise TypeError(f"the data type {made.__name__} lacks {', '.join(missing)}")
    if not issubclass(made, NestedType):
        made.parameters = tuple(each.name for each in fields(made) if each.name != "nullable")
    DATA_TYPES.append(made)
    return made


class ScalarType(DataType):
    """A type without children."""

    __slots__ = ()


class NestedType(DataType):
    """A type that is made of others."""

    __slots__ = ()
    literal = None
    has_statistics = False
    storage = NestedStorage()
    dtype = ""


# Families: types that differ in nothing but width or length (Java: `DataTypeFamily`).


class PlainNumberType(ScalarType):
    """A type whose values are numbers, and whose columns and rows have the same ones."""

    __slots__ = ()
    storage: ClassVar[NumberStorage]
    layout = ArrowLayout.FIXED
    has_statistics = True

    @property
    def dtype(self) -> str:
        """The numpy type of the number in rows, whose bytes have an order."""
        return self.storage.dtype.lstrip("<")


class IntegerFamily(PlainNumberType):
    """Signed integers."""

    __slots__ = ()

    @property
    def bits(self) -> int:
        """How many bits a value has."""
        return 8 * self.storage.width


class FloatFamily(PlainNumberType):
    """IEEE numbers."""

    __slots__ = ()


class TextFamily(ScalarType):
    """Text in UTF-8."""

    __slots__ = ()
    arrow_name = "string"
    layout = ArrowLayout.VARIABLE
    has_statistics = True
    storage = BytesStorage(is_text=True)
    dtype = "u1"


class BinaryFamily(ScalarType):
    """Bytes."""

    __slots__ = ()
    arrow_name = "binary"
    has_statistics = False
    dtype = "u1"


@dataclass(frozen=True, slots=True)
class TimeFamily(ScalarType):
    """Times with `precision` digits after the second, counted in `unit`."""

    arrow_parameters = ("unit",)
    layout = ArrowLayout.FIXED
    has_statistics = True

    precision: int

    def __post_init__(self) -> None:
        _check_range(f"{self.sql_name} precision", self.precision, 0, PRECISION_MAX_TIME)

    @property
    def unit(self) -> str:
        """The unit of the physical value: s, ms, us or ns."""
        return _UNIT_OF_PRECISION[self.precision]

    @property
    def arrow_is_exact(self) -> bool:
        """Arrow knows the unit only."""
        return self.precision % 3 == 0


@dataclass(frozen=True, slots=True)
class TimestampFamily(TimeFamily):
    """Times since 1970."""

    arrow_name = "timestamp"
    dtype = "i8"

    precision: int = 6

    @property
    def is_compact(self) -> bool:
        """Whether milliseconds alone hold every value of this type."""
        return self.precision <= PRECISION_MAX_COMPACT_TIMESTAMP

    @property
    def storage(self) -> Storage:
        """Milliseconds alone, or with nanoseconds."""
        return _MILLIS_I64 if self.is_compact else TimestampStorage(self.unit)


@concrete
class BooleanType(ScalarType):
    """True or false."""

    root = sql_name = "BOOLEAN"
    arrow_name = "bool_"
    layout = ArrowLayout.BITS
    literal = WireLiteral(0, "boolean_value")
    has_statistics = True
    storage = NumberStorage("B", "u1", NumberForm.TRUTH)
    dtype = "bool"


@concrete
class TinyIntType(IntegerFamily):
    """An 8-bit signed integer."""

    root = sql_name = "TINYINT"
    arrow_name = "int8"
    literal = WireLiteral(1, "int_value")
    storage = NumberStorage("b", "i1")


@concrete
class SmallIntType(IntegerFamily):
    """A 16-bit signed integer."""

    root = sql_name = "SMALLINT"
    arrow_name = "int16"
    literal = WireLiteral(2, "int_value")
    storage = NumberStorage("h", "<i2")


@concrete
class IntType(IntegerFamily):
    """A 32-bit signed integer."""

    root = "INTEGER"
    sql_name = "INT"
    arrow_name = "int32"
    literal = WireLiteral(3, "int_value")
    storage = _I32


@concrete
class BigIntType(IntegerFamily):
    """A 64-bit signed integer."""

    root = sql_name = "BIGINT"
    arrow_name = "int64"
    literal = WireLiteral(4, "bigint_value")
    storage = NumberStorage("q", "<i8")


@concrete
class FloatType(FloatFamily):
    """A 32-bit IEEE number."""

    root = sql_name = "FLOAT"
    arrow_name = "float32"
    literal = WireLiteral(5, "float_value")
    storage = NumberStorage("f", "<f4")


@concrete
class DoubleType(FloatFamily):
    """A 64-bit IEEE number."""

    root = sql_name = "DOUBLE"
    arrow_name = "float64"
    literal = WireLiteral(6, "double_value")
    storage = NumberStorage("d", "<f8")


@concrete
class CharType(TextFamily):
    """Text of at most `length` characters; Fluss stores it without padding."""

    root = sql_name = "CHAR"
    literal = WireLiteral(7, "string_value")
    arrow_is_exact = False

    length: int = 1

    def __post_init__(self) -> None:
        _check_range("CHAR length", self.length, 1, LENGTH_MAX)


@concrete
class StringType(TextFamily):
    """Text of any length."""

    root = sql_name = "STRING"
    literal = WireLiteral(8, "string_value")


@concrete
class DecimalType(ScalarType):
    """An exact number of `precision` digits, `scale` of them after the point."""

    root = sql_name = "DECIMAL"
    arrow_name = "decimal128"
    arrow_parameters = ("precision", "scale")
    layout = ArrowLayout.FIXED
    literal = WireLiteral(9, "decimal_value")
    has_statistics = True
    dtype = "i8"
    values_per_row = 2  # the low word and the high word

    precision: int = 10
    scale: int = 0

    def __post_init__(self) -> None:
        _check_range("DECIMAL precision", self.precision, 1, PRECISION_MAX_DECIMAL)
        _check_range("DECIMAL scale", self.scale, 0, self.precision)

    @property
    def is_compact(self) -> bool:
        """Whether the unscaled value fits 64 bits for every value of this type."""
        return self.precision <= PRECISION_MAX_COMPACT_DECIMAL

    @property
    def storage(self) -> Storage:
        """A number while 64 bits hold it."""
        return _UNSCALED_I64 if self.is_compact else DecimalStorage()


@concrete
class DateType(PlainNumberType):
    """A calendar day."""

    root = sql_name = "DATE"
    arrow_name = "date32"
    literal = WireLiteral(10, "bigint_value")
    storage = _I32


@concrete
class TimeType(TimeFamily):
    """A time of day; inside Fluss rows it has millisecond resolution whatever its precision."""

    root = "TIME_WITHOUT_TIME_ZONE"
    sql_name = "TIME"
    literal = WireLiteral(11, "int_value")
    storage = NumberStorage("i", "<i4", NumberForm.MILLIS)

    precision: int = 0

    @property
    def dtype(self) -> str:
        """32 bits up to milliseconds."""
        return "i4" if self.unit in {"s", "ms"} else "i8"

    @property
    def arrow_name(self) -> str:
        """Arrow has a type for each width."""
        return "time32" if self.unit in {"s", "ms"} else "time64"


@concrete
class TimestampType(TimestampFamily):
    """A date and time without a zone."""

    root = "TIMESTAMP_WITHOUT_TIME_ZONE"
    sql_name = "TIMESTAMP"
    literal = WireLiteral(12, "timestamp_millis_value")


@concrete
class TimestampLtzType(TimestampFamily):
    """An instant, counted from the epoch in UTC."""

    root = "TIMESTAMP_WITH_LOCAL_TIME_ZONE"
    sql_name = "TIMESTAMP_LTZ"
    arrow_zone = "UTC"
    literal = WireLiteral(13, "timestamp_millis_value")


@concrete
class BinaryType(BinaryFamily):
    """Exactly `length` bytes."""

    root = sql_name = "BINARY"
    arrow_parameters = ("length",)
    layout = ArrowLayout.FIXED
    literal = WireLiteral(14, "binary_value")

    length: int = 1

    def __post_init__(self) -> None:
        _check_range("BINARY length", self.length, 1, LENGTH_MAX)

    @property
    def storage(self) -> Storage:
        """Bytes of one length."""
        return BytesStorage(length=self.length)

    @property
    def values_per_row(self) -> int:
        """The bytes."""
        return self.length


@concrete
class BytesType(BinaryFamily):
    """Bytes of any length."""

    root = sql_name = "BYTES"
    layout = ArrowLayout.VARIABLE
    literal = WireLiteral(15, "binary_value")
    storage = BytesStorage()


@concrete
class ArrayType(NestedType):
    """A list of elements of one type."""

    root = sql_name = "ARRAY"
    arrow_name = "list_"
    layout = ArrowLayout.LIST

    element: DataType

    def children(self) -> Iterator[DataType]:
        yield self.element

    def _name(self) -> str:
        return f"ARRAY<{self.element}>"


@concrete
class MapType(NestedType):
    """Pairs of key and value; keys are never NULL."""

    root = sql_name = "MAP"
    arrow_name = "map_"
    layout = ArrowLayout.MAP

    key: DataType
    value: DataType

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", self.key.not_null())

    def children(self) -> Iterator[DataType]:
        yield self.key
        yield self.value

    def _name(self) -> str:
        return f"MAP<{self.key}, {self.value}>"


@dataclass(frozen=True, slots=True)
class DataField:
    """A field of a ROW. `field_id` is assigned when the table is created; see `Schema`."""

    name: str
    data_type: DataType
    description: str | None = None
    field_id: int | None = field(default=None, kw_only=True)


@concrete
class RowType(NestedType):
    """A record of named fields."""

    root = sql_name = "ROW"
    arrow_name = "struct"
    layout = ArrowLayout.STRUCT

    fields: tuple[DataField, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", tuple(self.fields))
        twice = next((name for name, count in Counter(self.field_names).items() if count > 1), None)
        if twice is not None:
            raise InvalidSchemaError(f"ROW has two fields named {twice!r}.")

    def children(self) -> Iterator[DataType]:
        return (each.data_type for each in self.fields)

    @property
    def field_names(self) -> tuple[str, ...]:
        """The names of the fields, in order."""
        return tuple(each.name for each in self.fields)

    @property
    def field_types(self) -> tuple[DataType, ...]:
        """The types of the fields, in order."""
        return tuple(each.data_type for each in self.fields)

    def _name(self) -> str:
        return f"ROW<{', '.join(f'{each.name} {each.data_type}' for each in self.fields)}>"


def _check_range(what: str, value: object, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidSchemaError(f"{what} must lie between {low} and {high}, not {value!r}.")
