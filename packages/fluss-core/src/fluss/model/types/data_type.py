"""Fluss's data types, as values: frozen, validated when made, equal when they mean the same.

Only the types themselves live here. Their JSON form is in `model.types.type_json`, their Arrow
counterpart in `model.types.type_to_arrow`, their bytes in the room `rows`.

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

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from fluss.errors import InvalidSchemaError

PRECISION_MAX_DECIMAL = 38
PRECISION_MAX_COMPACT_DECIMAL = 18  # an unscaled value of up to 18 digits fits a 64-bit integer
PRECISION_MAX_TIME = 9
PRECISION_MAX_COMPACT_TIMESTAMP = 3  # up to milliseconds one 64-bit integer holds a timestamp
LENGTH_MAX = 2**31 - 1

_UNITS = ("s", "ms", "ms", "ms", "us", "us", "us", "ns", "ns", "ns")
UNITS_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def unit_of_precision(precision: int) -> str:
    """The unit (s, ms, us, ns) in which a TIME or TIMESTAMP of this precision is counted."""
    return _UNITS[precision]


@dataclass(frozen=True, slots=True)
class DataType:
    """A Fluss data type. `root` is its name in Fluss's JSON."""

    root: ClassVar[str] = ""

    nullable: bool = field(default=True, kw_only=True)

    def not_null(self) -> Self:
        """The same type without NULL."""
        return self if not self.nullable else replace(self, nullable=False)

    def as_nullable(self) -> Self:
        """The same type with NULL."""
        return self if self.nullable else replace(self, nullable=True)

    def children(self) -> Iterator[DataType]:
        """The types this one is made of, in order."""
        return iter(())

    @property
    def is_nested(self) -> bool:
        """Whether this is ARRAY, MAP or ROW."""
        return isinstance(self, ArrayType | MapType | RowType)

    def _name(self) -> str:
        return self.root

    def __str__(self) -> str:
        return self._name() if self.nullable else f"{self._name()} NOT NULL"


@dataclass(frozen=True, slots=True)
class BooleanType(DataType):
    """True or false."""

    root: ClassVar[str] = "BOOLEAN"


@dataclass(frozen=True, slots=True)
class TinyIntType(DataType):
    """An 8-bit signed integer."""

    root: ClassVar[str] = "TINYINT"


@dataclass(frozen=True, slots=True)
class SmallIntType(DataType):
    """A 16-bit signed integer."""

    root: ClassVar[str] = "SMALLINT"


@dataclass(frozen=True, slots=True)
class IntType(DataType):
    """A 32-bit signed integer."""

    root: ClassVar[str] = "INTEGER"

    def _name(self) -> str:
        return "INT"


@dataclass(frozen=True, slots=True)
class BigIntType(DataType):
    """A 64-bit signed integer."""

    root: ClassVar[str] = "BIGINT"


@dataclass(frozen=True, slots=True)
class FloatType(DataType):
    """A 32-bit IEEE number."""

    root: ClassVar[str] = "FLOAT"


@dataclass(frozen=True, slots=True)
class DoubleType(DataType):
    """A 64-bit IEEE number."""

    root: ClassVar[str] = "DOUBLE"


@dataclass(frozen=True, slots=True)
class CharType(DataType):
    """Text of at most `length` characters; Fluss stores it without padding."""

    root: ClassVar[str] = "CHAR"

    length: int = 1

    def __post_init__(self) -> None:
        _check_range("CHAR length", self.length, 1, LENGTH_MAX)

    def _name(self) -> str:
        return f"CHAR({self.length})"


@dataclass(frozen=True, slots=True)
class StringType(DataType):
    """Text of any length."""

    root: ClassVar[str] = "STRING"


@dataclass(frozen=True, slots=True)
class BinaryType(DataType):
    """Exactly `length` bytes."""

    root: ClassVar[str] = "BINARY"

    length: int = 1

    def __post_init__(self) -> None:
        _check_range("BINARY length", self.length, 1, LENGTH_MAX)

    def _name(self) -> str:
        return f"BINARY({self.length})"


@dataclass(frozen=True, slots=True)
class BytesType(DataType):
    """Bytes of any length."""

    root: ClassVar[str] = "BYTES"


@dataclass(frozen=True, slots=True)
class DecimalType(DataType):
    """An exact number of `precision` digits, `scale` of them after the point."""

    root: ClassVar[str] = "DECIMAL"

    precision: int = 10
    scale: int = 0

    def __post_init__(self) -> None:
        _check_range("DECIMAL precision", self.precision, 1, PRECISION_MAX_DECIMAL)
        _check_range("DECIMAL scale", self.scale, 0, self.precision)

    @property
    def is_compact(self) -> bool:
        """Whether the unscaled value fits 64 bits for every value of this type."""
        return self.precision <= PRECISION_MAX_COMPACT_DECIMAL

    def _name(self) -> str:
        return f"DECIMAL({self.precision}, {self.scale})"


@dataclass(frozen=True, slots=True)
class DateType(DataType):
    """A calendar day."""

    root: ClassVar[str] = "DATE"


@dataclass(frozen=True, slots=True)
class TimeType(DataType):
    """A time of day; inside Fluss rows it has millisecond resolution whatever its precision."""

    root: ClassVar[str] = "TIME_WITHOUT_TIME_ZONE"

    precision: int = 0

    def __post_init__(self) -> None:
        _check_range("TIME precision", self.precision, 0, PRECISION_MAX_TIME)

    @property
    def unit(self) -> str:
        """The unit of the physical value."""
        return unit_of_precision(self.precision)

    def _name(self) -> str:
        return f"TIME({self.precision})"


@dataclass(frozen=True, slots=True)
class TimestampType(DataType):
    """A date and time without a zone."""

    root: ClassVar[str] = "TIMESTAMP_WITHOUT_TIME_ZONE"

    precision: int = 6

    def __post_init__(self) -> None:
        _check_range("TIMESTAMP precision", self.precision, 0, PRECISION_MAX_TIME)

    @property
    def unit(self) -> str:
        """The unit of the physical value."""
        return unit_of_precision(self.precision)

    @property
    def is_compact(self) -> bool:
        """Whether milliseconds alone hold every value of this type."""
        return self.precision <= PRECISION_MAX_COMPACT_TIMESTAMP

    def _name(self) -> str:
        return f"TIMESTAMP({self.precision})"


@dataclass(frozen=True, slots=True)
class TimestampLtzType(DataType):
    """An instant, counted from the epoch in UTC."""

    root: ClassVar[str] = "TIMESTAMP_WITH_LOCAL_TIME_ZONE"

    precision: int = 6

    def __post_init__(self) -> None:
        _check_range("TIMESTAMP_LTZ precision", self.precision, 0, PRECISION_MAX_TIME)

    @property
    def unit(self) -> str:
        """The unit of the physical value."""
        return unit_of_precision(self.precision)

    @property
    def is_compact(self) -> bool:
        """Whether milliseconds alone hold every value of this type."""
        return self.precision <= PRECISION_MAX_COMPACT_TIMESTAMP

    def _name(self) -> str:
        return f"TIMESTAMP_LTZ({self.precision})"


@dataclass(frozen=True, slots=True)
class ArrayType(DataType):
    """A list of elements of one type."""

    root: ClassVar[str] = "ARRAY"

    element: DataType

    def children(self) -> Iterator[DataType]:
        yield self.element

    def _name(self) -> str:
        return f"ARRAY<{self.element}>"


@dataclass(frozen=True, slots=True)
class MapType(DataType):
    """Pairs of key and value; keys are never NULL."""

    root: ClassVar[str] = "MAP"

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
    """A field of a ROW. `field_id` is given by whoever creates the table; see `Schema`."""

    name: str
    data_type: DataType
    description: str | None = None
    field_id: int | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class RowType(DataType):
    """A record of named fields."""

    root: ClassVar[str] = "ROW"

    fields: tuple[DataField, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", tuple(self.fields))
        _refuse_duplicates("ROW", (each.name for each in self.fields))

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


def _refuse_duplicates(where: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidSchemaError(f"{where} has two fields named {name!r}.")
        seen.add(name)
