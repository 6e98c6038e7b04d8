"""Single physical values in the form in which every row format stores them.

The same three shapes as for columns (`rows.formats.stored` explains them), each as a pair of
functions made once per type: a *number* with its `struct` code, the two halves of a timestamp, or a
*run* of bytes. An impossible value raises ValueError, TypeError or the like; `rows.row_errors`
makes an error with field and position of it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fluss.model.types.data_type import UNITS_PER_SECOND, DecimalType
from fluss.model.types.type_facts import BytesStorage, DecimalStorage, NumberForm, NumberStorage
from fluss.rows.formats.decimals import DECIMAL_BYTES_MAX

# Encodes the physical value of one field, element or row; None never gets here.
ValueWriter = Callable[[Any], bytes]
# Decodes the section data[start:end]; the bounds have been checked.
SectionReader = Callable[[bytes, int, int], Any]

_Conversion = tuple[Callable[[Any], Any] | None, Callable[[Any], Any] | None]
# A look-up rather than bool(): it refuses values that are not boolean.
_BITS = {False: 0, True: 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """How a type that is stored as one number is packed, little endian.

    The conversions are None where the physical value is the stored one.
    """

    code: str
    to_stored: Callable[[Any], Any] | None = None
    from_stored: Callable[[Any], Any] | None = None

    @property
    def width(self) -> int:
        """How many bytes the number takes."""
        return struct.calcsize(f"<{self.code}")

    def packer(self) -> ValueWriter:
        """Packs one value."""
        pack, convert = struct.Struct(f"<{self.code}").pack, self.to_stored
        return pack if convert is None else lambda value: pack(convert(value))


def number_of(data_type: Any) -> Number | None:
    """Return how this type is stored as one number, or None if it is not."""
    storage = data_type.storage
    if not isinstance(storage, NumberStorage):
        return None
    to_stored, from_stored = _conversion(data_type, storage.form)
    return Number(code=storage.code, to_stored=to_stored, from_stored=from_stored)


def _conversion(data_type: Any, form: NumberForm) -> _Conversion:
    match form:
        case NumberForm.SAME:
            return None, None
        case NumberForm.TRUTH:
            return _BITS.__getitem__, bool
        case NumberForm.UNSCALED:
            return _digit_check(data_type), _digit_check(data_type)
        case NumberForm.MILLIS:
            return _millis_conversion(data_type.unit)


def split_timestamp(unit: str) -> Callable[[int], tuple[int, int]]:
    """Return a TIMESTAMP(4-9) as milliseconds, rounded down, and the nanoseconds above them."""
    per_milli = UNITS_PER_SECOND[unit] // 1000
    nanos_each = 1_000_000 // per_milli

    def split(value: int) -> tuple[int, int]:
        millis, rest = divmod(value, per_milli)
        return millis, rest * nanos_each

    return split


def join_timestamp(unit: str) -> Callable[[int, int], int]:
    """Return the inverse of `split_timestamp`; digits below the unit are cut off, as in Java."""
    per_milli = UNITS_PER_SECOND[unit] // 1000
    nanos_each = 1_000_000 // per_milli

    def join(millis: int, nanos: int) -> int:
        if not 0 <= nanos <= 999_999:
            raise ValueError(f"a millisecond has no {nanos} nanoseconds")
        return millis * per_milli + nanos // nanos_each

    return join


def run_writer(data_type: Any) -> ValueWriter:
    """Text, bytes or a large decimal as bytes."""
    match data_type.storage:
        case BytesStorage(is_text=True):
            return str.encode
        case BytesStorage(length=None):
            return _as_bytes
        case BytesStorage(length=int(length)):
            return lambda value: _at_most(length, _as_bytes(value))
        case DecimalStorage():
            return decimal_writer(data_type)
        case _:
            raise ValueError(f"{data_type} is not stored as a run of bytes.")


def run_reader(data_type: Any) -> SectionReader:
    """Return the inverse of `run_writer`."""
    match data_type.storage:
        case BytesStorage(is_text=True):
            return lambda data, start, end: data[start:end].decode()
        case BytesStorage(length=None):
            return lambda data, start, end: data[start:end]
        case BytesStorage(length=int(length)):
            # Java writes shorter values as they are; here they always have all bytes.
            return lambda data, start, end: _at_most(length, data[start:end]).ljust(length, b"\0")
        case DecimalStorage():
            return _decimal_reader(data_type)
        case _:
            raise ValueError(f"{data_type} is not stored as a run of bytes.")


def _millis_conversion(unit: str) -> _Conversion:
    """Return the conversions of times up to milliseconds."""
    match unit:
        case "s":
            return (1000).__mul__, _seconds
        case "ms":
            return None, None
        case _:
            per_milli = UNITS_PER_SECOND[unit] // 1000
            return (lambda value: value // per_milli), per_milli.__mul__


def _seconds(millis: int) -> int:
    # Java's division, which is how Fluss's own Arrow writers drop milliseconds.
    return millis // 1000 if millis >= 0 else -(-millis // 1000)


def _digit_check(data_type: DecimalType) -> Callable[[int], int]:
    limit, precision = 10**data_type.precision, data_type.precision

    def check(value: int) -> int:
        if -limit < value < limit:
            return value
        raise ValueError(f"a value has more than {precision} digits")

    return check


def decimal_writer(data_type: DecimalType) -> ValueWriter:
    """Return the shortest bytes of unscaled values, big endian."""
    check = _digit_check(data_type)

    def write(value: int) -> bytes:
        bits = (check(value) if value >= 0 else ~check(value)).bit_length()
        return value.to_bytes(bits // 8 + 1, "big", signed=True)

    return write


def _decimal_reader(data_type: DecimalType) -> SectionReader:
    check = _digit_check(data_type)

    def read(data: bytes, start: int, end: int) -> int:
        if not 1 <= end - start <= DECIMAL_BYTES_MAX:
            raise ValueError(f"a DECIMAL takes 1 to {DECIMAL_BYTES_MAX} bytes")
        return check(int.from_bytes(data[start:end], "big", signed=True))

    return read


def _as_bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    raise TypeError(f"bytes are needed, not {type(value).__name__}")


def _at_most(length: int, data: bytes) -> bytes:
    if len(data) > length:
        raise ValueError(f"{len(data)} bytes are too many for {length}")
    return data
