"""Data types and physical values with corner cases, made by seeded generators.

Thousands of values a second, the same ones in every run. Physical values are those of
`fluss.model.types.data_type`; `tests.support.generators.random_columns` lays them out as numpy
columns, and `tests.support.generators.random_values` offers the same corner cases as Hypothesis
strategies.

Every value made here fits every row format: a CHAR(n) fits n bytes of UTF-8 and does not
end in NUL, because an IndexedRow pads it with NULs; a TIME has no digits below the millisecond,
because rows hold milliseconds; a map has no key twice.
"""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from random import Random
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

NULL_RATE = 0.2

# Each type with the precisions and lengths at which its encoding changes.
LEAF_TYPES: tuple[DataType, ...] = (
    BooleanType(),
    TinyIntType(),
    SmallIntType(),
    IntType(),
    BigIntType(),
    FloatType(),
    DoubleType(),
    CharType(1),
    CharType(12),
    StringType(),
    BinaryType(1),
    BinaryType(7),
    BinaryType(16),
    BytesType(),
    DecimalType(1, 0),
    DecimalType(9, 4),
    DecimalType(18, 18),
    DecimalType(19, 0),
    DecimalType(38, 10),
    DateType(),
    TimeType(0),
    TimeType(3),
    TimeType(6),
    TimeType(9),
    TimestampType(0),
    TimestampType(3),
    TimestampType(6),
    TimestampType(9),
    TimestampLtzType(0),
    TimestampLtzType(2),
    TimestampLtzType(5),
    TimestampLtzType(8),
)

NESTED_TYPES: tuple[DataType, ...] = (
    ArrayType(IntType()),
    ArrayType(BooleanType().not_null()),
    ArrayType(StringType()),
    ArrayType(ArrayType(DoubleType())),
    MapType(StringType(), BigIntType()),
    MapType(IntType(), ArrayType(TimestampType(9))),
    RowType((DataField("a", IntType()), DataField("b", StringType()))),
    RowType(
        (
            DataField("when", TimestampLtzType(6)),
            DataField("inner", RowType((DataField("amount", DecimalType(38, 2)),))),
        )
    ),
    ArrayType(RowType((DataField("id", BigIntType().not_null()), DataField("tag", BytesType())))),
    MapType(
        CharType(4),
        RowType((DataField("xs", ArrayType(SmallIntType())), DataField("d", DateType()))),
    ),
)

ALL_TYPES = LEAF_TYPES + NESTED_TYPES

# Types a primary key, a bucket key or a partition key may have.
KEY_TYPES = LEAF_TYPES

_INT_BITS: dict[type[DataType], int] = {
    TinyIntType: 8,
    SmallIntType: 16,
    IntType: 32,
    BigIntType: 64,
    DateType: 32,
}
TEXTS = (
    "",
    "a",
    "part",
    "1234567",  # seven bytes still fit a slot
    "12345678",  # eight do not
    "\x00",
    "a\x00b",
    "é",
    "€uro",
    "\U0001f600",  # a surrogate pair in Java
    "\U0010ffff\U00010000",
    "x\U0001f600y",
    "ÿþ\x7f\x80",
    "z" * 127,
    "z" * 128,
    "日本語" * 50,
)
_ALPHABET = "abcXYZ019 _-$\x00\x7f\x80é߿€\uffff\U0001f600\U0010ffff"
_FLOATS = (0.0, -0.0, 1.0, -1.0, 1.5, 0.1, 100.0, 1e7, 1e-3, 9.999999e-4, -2.25e10)
_SPECIAL = (math.nan, math.inf, -math.inf)


def random_type(rng: Random, *, depth: int = 2) -> DataType:
    """A data type, nested at most `depth` levels deep, nullable or not."""
    made: DataType
    kind = rng.randrange(10) if depth else 0
    if kind <= 6:
        made = rng.choice(LEAF_TYPES)
    elif kind == 7:
        made = ArrayType(random_type(rng, depth=depth - 1))
    elif kind == 8:
        made = MapType(rng.choice(LEAF_TYPES), random_type(rng, depth=depth - 1))
    else:
        inner = (random_type(rng, depth=depth - 1) for _ in range(rng.randint(1, 4)))
        made = row_type(inner)
    return made if rng.random() < 0.8 else made.not_null()


def random_types(rng: Random, count: int, *, depth: int = 2) -> tuple[DataType, ...]:
    """The types of a row of `count` fields."""
    return tuple(random_type(rng, depth=depth) for _ in range(count))


def row_type(types: Iterable[DataType]) -> RowType:
    """A ROW of these types, its fields called f0, f1 and so on."""
    return RowType(tuple(DataField(f"f{index}", each) for index, each in enumerate(types)))


def with_field_ids(data_type: DataType, ids: Iterator[int] | None = None) -> Any:
    """Return the type with an id on every field of every row, as a table assigns them."""
    ids = itertools.count() if ids is None else ids
    match data_type:
        case ArrayType():
            return replace(data_type, element=with_field_ids(data_type.element, ids))
        case MapType():
            return replace(data_type, value=with_field_ids(data_type.value, ids))
        case RowType():
            return replace(data_type, fields=tuple(_numbered(f, ids) for f in data_type.fields))
        case _:
            return data_type


def _numbered(field: DataField, ids: Iterator[int]) -> DataField:
    return replace(field, field_id=next(ids), data_type=with_field_ids(field.data_type, ids))


def random_rows(
    rng: Random, types: Sequence[DataType], count: int, *, null_rate: float = NULL_RATE
) -> list[tuple[Any, ...]]:
    """Rows of physical values; NULL only where the type allows it."""
    return [
        tuple(random_value(rng, each, null_rate=null_rate) for each in types) for _ in range(count)
    ]


def random_value(rng: Random, data_type: DataType, *, null_rate: float = NULL_RATE) -> Any:
    """Return a physical value of this type, often a corner case."""
    if data_type.nullable and rng.random() < null_rate:
        return None
    match data_type:
        case ArrayType():
            return [
                random_value(rng, data_type.element, null_rate=null_rate)
                for _ in range(_random_length(rng))
            ]
        case MapType():
            pairs = (
                (
                    random_value(rng, data_type.key),
                    random_value(rng, data_type.value, null_rate=null_rate),
                )
                for _ in range(_random_length(rng))
            )
            return without_repeated_keys(pairs)
        case RowType():
            return tuple(
                random_value(rng, each, null_rate=null_rate) for each in data_type.field_types
            )
        case _:
            found = corners(data_type)
            return rng.choice(found) if rng.random() < 0.4 else _random_leaf(rng, data_type)


@cache
def corners(data_type: DataType) -> tuple[Any, ...]:
    """Return the values of a leaf type at which encodings tend to break."""
    match data_type:
        case BooleanType():
            return (False, True)
        case FloatType():
            texts = (*_FLOATS, 1.4e-45, 1.17549435e-38, 3.4028235e38, 16777216.0)
            return tuple(to_float32(each) for each in texts) + _SPECIAL
        case DoubleType():
            return (*_FLOATS, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, *_SPECIAL)
        case StringType():
            return TEXTS
        case CharType():
            return tuple(each for each in TEXTS if fits_char(each, data_type))
        case BytesType():
            return (*(each.encode() for each in TEXTS), b"\xff", b"\x80" * 7, b"\x00" * 9)
        case BinaryType():
            size = data_type.length
            return (bytes(size), b"\xff" * size, bytes(range(size)), b"\x01" + bytes(size - 1))
        case _:
            low, high, step = integer_range(data_type)
            near = {0, 1, -1, low, high, low + 1, high - 1}
            # Where a varint grows by a byte, and where 64 bits end.
            near |= {sign * (2**bits + off) for bits in _EDGE_BITS for sign, off in _NEAR}
            return tuple(sorted({n * step for n in near if low <= n <= high}))


_EDGE_BITS = (*range(6, 70, 7), 7, 15, 31, 32, 63, 64, 95, 96, 120)
_NEAR = ((1, 0), (1, -1), (-1, 0), (-1, -1))


def integer_range(data_type: DataType) -> tuple[int, int, int]:
    """The least and the greatest number for a type whose physical value is an int, and its step.

    The value is number * step: a TIME in nanoseconds moves in steps of a million.
    """
    match data_type:
        case DecimalType():
            greatest = 10**data_type.precision - 1
            return -greatest, greatest, 1
        case TimeType():
            if data_type.precision == 0:
                return 0, 86_399, 1
            return 0, 86_399_999, {"ms": 1, "us": 1_000, "ns": 1_000_000}[data_type.unit]
        case TimestampType(precision=0) | TimestampLtzType(precision=0):
            return -(2**63 // 1000), (2**63 - 1) // 1000, 1  # the rows hold it as milliseconds
        case TimestampType() | TimestampLtzType():
            return -(2**63), 2**63 - 1, 1
        case _:
            bits = _INT_BITS[type(data_type)]
            return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1, 1


def to_float32(value: float) -> float:
    """The nearest 32-bit number, as a Python float."""
    rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return rounded


def exact(value: Any) -> Any:
    """Return a form of a physical value in which `==` means equal value and Python type.

    It distinguishes 0.0 from -0.0 and True from 1, and treats all NaNs as equal.
    """
    match value:
        case float():
            return "nan" if math.isnan(value) else value.hex()
        case list() | tuple():
            return (type(value).__name__, *(exact(each) for each in value))
        case _:
            return (type(value).__name__, value)


def leaf_count(value: Any) -> int:
    """Return how many values a physical value has: one, or itself and its elements."""
    if isinstance(value, list | tuple):
        return 1 + sum(leaf_count(each) for each in value)
    return 1


def _random_length(rng: Random) -> int:
    return rng.choice((0, 1, 2, 3, 3, 5, 8, 33))


def _random_leaf(rng: Random, data_type: DataType) -> Any:
    match data_type:
        case BooleanType():
            return rng.random() < 0.5
        case FloatType():
            return without_odd_bits(struct.unpack("<f", rng.randbytes(4))[0])
        case DoubleType():
            return without_odd_bits(struct.unpack("<d", rng.randbytes(8))[0])
        case CharType():
            size = rng.randint(0, data_type.length)
            text = _random_text(rng, size)
            return text if fits_char(text, data_type) else "z" * size
        case StringType():
            return _random_text(rng, rng.choice((1, 3, 6, 7, 8, 9, 20, 200)))
        case BinaryType():
            return rng.randbytes(data_type.length)
        case BytesType():
            return rng.randbytes(rng.choice((0, 1, 6, 7, 8, 9, 127, 128, 300)))
        case _:
            low, high, step = integer_range(data_type)
            number = rng.getrandbits(rng.randint(1, high.bit_length()))
            if low < 0 and rng.random() < 0.5:
                number = -number
            return min(max(number, low), high) * step


def _random_text(rng: Random, length: int) -> str:
    return "".join(rng.choice(_ALPHABET) for _ in range(length))


def fits_char(text: str, data_type: CharType) -> bool:
    """Whether a row of any format holds this text."""
    return len(text.encode()) <= data_type.length and not text.endswith("\x00")


def without_odd_bits(value: float) -> float:
    """The same number, or the one NaN."""
    # Arrays write every NaN as the one NaN while rows keep its bits; a test of its own says so.
    return math.nan if math.isnan(value) else value


def without_repeated_keys(pairs: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Return a map of these pairs; of equal keys the last one counts."""
    kept = {repr(exact(key)): (key, value) for key, value in pairs}
    return list(kept.values())
