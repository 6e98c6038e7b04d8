"""The kinds of facts that a data type states about itself; codecs dispatch by them.

Which type has which facts is in `model.types.data_type`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple


class ArrowLayout(Enum):
    """The buffers of an Arrow array after its validity, as Arrow's format names them."""

    BITS = auto()  # one bit per row
    FIXED = auto()  # `values_per_row` numbers of `dtype` per row
    VARIABLE = auto()  # int32 offsets; bytes
    LIST = auto()  # int32 offsets; the elements are a child
    MAP = auto()  # int32 offsets; the child is a struct of keys and values
    STRUCT = auto()  # nothing; the fields are children


class NumberForm(Enum):
    """Which number rows store for a physical value."""

    SAME = auto()  # the value itself
    TRUTH = auto()  # 0 or 1
    UNSCALED = auto()  # the value itself, after its digits were counted
    MILLIS = auto()  # milliseconds; the value is a number of the type's unit


@dataclass(frozen=True, slots=True)
class NumberStorage:
    """Rows store one little-endian number: its code for `struct`, its numpy type, and its form."""

    code: str
    dtype: str
    form: NumberForm = NumberForm.SAME

    @property
    def width(self) -> int:
        """How many bytes the number takes."""
        return int(self.dtype[-1])


@dataclass(frozen=True, slots=True)
class TimestampStorage:
    """Rows store int64 milliseconds, rounded down, and the int32 nanoseconds above them."""

    unit: str


@dataclass(frozen=True, slots=True)
class BytesStorage:
    """Rows store the bytes as they are, those of a text in UTF-8; short ones fit into a slot.

    Attributes:
        is_text: Whether values are texts.
        length: How many bytes every value has, or None.
    """

    is_text: bool = False
    length: int | None = None


@dataclass(frozen=True, slots=True)
class DecimalStorage:
    """Rows store the shortest big-endian two's complement, in slots with room for 16 bytes."""


@dataclass(frozen=True, slots=True)
class NestedStorage:
    """Rows store an array, a map or a row of the same format."""


Storage = NumberStorage | TimestampStorage | BytesStorage | DecimalStorage | NestedStorage


class WireLiteral(NamedTuple):
    """How a PbLiteralValue carries a value: its `literal_type`, and the field the value is in."""

    number: int
    field: str
