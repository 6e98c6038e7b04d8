"""Encodes and decodes single arrays and maps, and other values that are runs of bytes in a row.

The layout is drawn in `rows.formats.binary_array`, which does the same for columns. Writers and
readers are functions made once per type, so that a row pays only for its values.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

from fluss.model.types import data_type as t
from fluss.rows.formats import stored_value
from fluss.rows.formats.single_slots import (
    SLOT_BYTES,
    Opener,
    Placer,
    opener_of,
    place_all,
    placer_of,
)
from fluss.rows.formats.stored_value import Number, SectionReader, ValueWriter, number_of

_COUNT_BYTES = 4
_NAN = float("nan")
_pack_int, _unpack_int = struct.Struct("<i").pack, struct.Struct("<i").unpack_from

Values = Sequence[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowValueFormat:
    """How a single ROW is laid out inside an array or map: like the row around it."""

    row_writer: Callable[[Sequence[t.DataType]], ValueWriter]
    row_reader: Callable[[Sequence[t.DataType]], SectionReader]


def run_writer(data_type: t.DataType, rows: RowValueFormat) -> ValueWriter:
    """Encodes a value that is stored as a run of bytes, nested or not."""
    match data_type:
        case t.ArrayType(element=element):
            return _array_writer(element, rows)
        case t.MapType():
            return _map_writer(data_type, rows)
        case t.RowType(field_types=types):
            return rows.row_writer(types)
        case _:
            return stored_value.run_writer(data_type)


def run_reader(data_type: t.DataType, rows: RowValueFormat) -> SectionReader:
    """Return the inverse of `run_writer`."""
    match data_type:
        case t.ArrayType(element=element):
            return _array_reader(element, rows)
        case t.MapType():
            return _map_reader(data_type, rows)
        case t.RowType(field_types=types):
            return rows.row_reader(types)
        case _:
            return stored_value.run_reader(data_type)


def _map_writer(data_type: t.MapType, rows: RowValueFormat) -> ValueWriter:
    write_keys = _array_writer(data_type.key, rows)
    write_values = _array_writer(data_type.value, rows)

    def write(pairs: Sequence[tuple[Any, Any]]) -> bytes:
        keys = write_keys([key for key, _ in pairs])
        return _pack_int(len(keys)) + keys + write_values([value for _, value in pairs])

    return write


def _map_reader(data_type: t.MapType, rows: RowValueFormat) -> SectionReader:
    read_keys = _array_reader(data_type.key, rows)
    read_values = _array_reader(data_type.value, rows)

    def read(data: bytes, start: int, end: int) -> list[tuple[Any, Any]]:
        keys_start = start + _COUNT_BYTES
        keys_end = keys_start + _int_at(data, start, end)
        if not keys_start <= keys_end <= end:
            raise ValueError("the key array of a MAP does not fit")
        keys = read_keys(data, keys_start, keys_end)
        values = read_values(data, keys_end, end)
        if len(keys) != len(values):
            raise ValueError("a MAP has another number of keys than of values")
        if None in keys:
            raise ValueError("a key of a MAP is NULL")
        return list(zip(keys, values, strict=True))

    return read


def _array_writer(element: t.DataType, rows: RowValueFormat) -> ValueWriter:
    number = number_of(element)
    width = SLOT_BYTES if number is None else number.width
    if number is None:
        slots = _wide_slots(placer_of(element, lambda each: run_writer(each, rows)))
    else:
        slots = _number_slots(number)

    def write(values: Values) -> bytes:
        count = len(values)
        null_bytes = _null_bytes(count)
        bits = 0
        if None in values:
            if not element.nullable:
                raise TypeError(f"an element is NULL, but its type is {element}")
            bits = int("".join("1" if value is None else "0" for value in reversed(values)), 2)
        fixed_bytes = _COUNT_BYTES + null_bytes + count * width + 7 & ~7
        fixed, variable = slots(values, fixed_bytes)
        head = _pack_int(count) + bits.to_bytes(null_bytes, "little")
        return (head + fixed).ljust(fixed_bytes, b"\0") + variable

    return write


def _null_bytes(count: int) -> int:
    return (count + 31) // 32 * 4


# Turns values into their slots and a variable part that begins at this byte of the array.
_SlotsWriter = Callable[[Values, int], tuple[bytes, bytes]]


def _number_slots(number: Number) -> _SlotsWriter:
    code, convert = number.code, number.to_stored

    def write(values: Values, _: int) -> tuple[bytes, bytes]:
        if convert is not None:
            values = [0 if value is None else convert(value) for value in values]
        elif None in values:
            values = [0 if value is None else value for value in values]
        if code in "fd" and math.isnan(sum(values)):
            # Some element may be NaN, and arrays have only one NaN.
            values = [_NAN if math.isnan(value) else value for value in values]
        return struct.pack(f"<{len(values)}{code}", *values), b""

    return write


def _wide_slots(place: Placer) -> _SlotsWriter:
    def write(values: Values, fixed_bytes: int) -> tuple[bytes, bytes]:
        slots, runs = place_all(zip(repeat(place), values, strict=False), fixed_bytes)
        return b"".join(slots), b"".join(runs)

    return write


def _array_reader(element: t.DataType, rows: RowValueFormat) -> SectionReader:
    number = number_of(element)
    width = SLOT_BYTES if number is None else number.width
    if number is None:
        read_slots = _wide_reader(opener_of(element, lambda each: run_reader(each, rows)))
    else:
        read_slots = _number_reader(number)

    def read(data: bytes, start: int, end: int) -> list[Any]:
        count = _int_at(data, start, end)
        nulls_at = start + _COUNT_BYTES
        slots_at = nulls_at + _null_bytes(count)
        if count < 0 or slots_at + count * width > end:
            raise ValueError(f"an ARRAY of {end - start} bytes has no {count} elements")
        nulls = data[nulls_at:slots_at] if any(data[nulls_at:slots_at]) else None
        return read_slots(_Section(data, start, end, slots_at, count, nulls))

    return read


@dataclass(frozen=True, slots=True)
class _Section:
    """An array whose head has been read; `nulls` are its null bits, or None without any NULL."""

    data: bytes
    start: int
    end: int
    slots_at: int
    count: int
    nulls: bytes | None

    def are_null(self) -> Iterator[int]:
        """A true value for every element that is NULL."""
        if self.nulls is None:
            return repeat(0, self.count)
        nulls = self.nulls
        return (nulls[index >> 3] >> (index & 7) & 1 for index in range(self.count))


_SlotsReader = Callable[[_Section], list[Any]]


def _number_reader(number: Number) -> _SlotsReader:
    code, convert = number.code, number.from_stored

    def read(section: _Section) -> list[Any]:
        values = struct.unpack_from(f"<{section.count}{code}", section.data, section.slots_at)
        if section.nulls is None:
            return list(values) if convert is None else [convert(value) for value in values]
        # Java leaves old bytes in the slots of NULL elements, which need not be values at all.
        pairs = zip(values, section.are_null(), strict=True)
        if convert is None:
            return [None if is_null else value for value, is_null in pairs]
        return [None if is_null else convert(value) for value, is_null in pairs]

    return read


def _wide_reader(open_slot: Opener) -> _SlotsReader:
    def read(section: _Section) -> list[Any]:
        slots = struct.unpack_from(f"<{section.count}Q", section.data, section.slots_at)
        data, start, end = section.data, section.start, section.end
        values, at, left = [], section.slots_at, end - start
        for slot, is_null in zip(slots, section.are_null(), strict=True):
            value, size = (None, 0) if is_null else open_slot(data, start, end, slot, at)
            values.append(value)
            at += SLOT_BYTES
            left -= size
            if left < 0:
                # Valid slots share no bytes. A few slots that all point to one long run would
                # need far more memory than there are bytes.
                raise ValueError("slots of an ARRAY share their bytes")
        return values

    return read


def _int_at(data: bytes, start: int, end: int) -> int:
    if end - start < _COUNT_BYTES:
        raise ValueError(f"{end - start} bytes are too few for an ARRAY or MAP")
    value: int = _unpack_int(data, start)[0]
    return value
