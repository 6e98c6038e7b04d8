"""Single values in slots of eight bytes, and in the variable part after the slots.

Aligned rows and binary arrays share this: short text lies in its slot; longer text lies in the
variable part, and the slot holds its position. `rows.formats.slots` does the same for columns.
Numbers are not here, because rows and arrays place them differently.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Any

from fluss.model.types.data_type import DataType
from fluss.model.types.type_facts import (
    BytesStorage,
    DecimalStorage,
    NestedStorage,
    TimestampStorage,
)
from fluss.rows.formats.decimals import DECIMAL_BYTES_MAX
from fluss.rows.formats.slots import INLINE_BYTES_MAX, inline_slot, pack_halves
from fluss.rows.formats.stored_value import (
    SectionReader,
    ValueWriter,
    join_timestamp,
    split_timestamp,
)

SLOT_BYTES = 8

# A whole slot; or the low half of one, and the run it points to.
Placed = bytes | tuple[int, bytes]
Placer = Callable[[Any], Placed]
# Reads the value of a slot: from data[start:end], the slot, and where it is. Returns the value, and
# how many bytes outside the slots it took.
Opener = Callable[[bytes, int, int, int, int], tuple[Any, int]]

_NULL_SLOT = bytes(SLOT_BYTES)
_LONG = struct.Struct("<q")


def place_all(values: Iterable[tuple[Placer, Any]], offset: int) -> tuple[list[bytes], list[bytes]]:
    """Return the slots of values, and the runs they point to; the first run is at `offset`."""
    slots: list[bytes] = []
    runs: list[bytes] = []
    for place, value in values:
        placed = _NULL_SLOT if value is None else place(value)
        if isinstance(placed, bytes):
            slots.append(placed)
        else:
            low, run = placed
            slots.append(pack_halves(low, offset))
            runs.append(run)
            offset += len(run)
    return slots, runs


def placer_of(data_type: DataType, write: Callable[[DataType], ValueWriter]) -> Placer:
    """Return the function that places values of a type that is no number.

    Args:
        data_type: The type.
        write: Returns the function that encodes values as bytes; not called for timestamps.
    """
    storage = data_type.storage
    if isinstance(storage, TimestampStorage):
        return _timestamp_placer(storage.unit)
    run = write(data_type)
    if isinstance(storage, DecimalStorage):
        return lambda value: _padded(run(value), DECIMAL_BYTES_MAX)
    if isinstance(storage, NestedStorage):
        return lambda value: _padded(run(value), SLOT_BYTES)

    def place_text(value: Any) -> Placed:
        data = run(value)
        return inline_slot(data) if len(data) <= INLINE_BYTES_MAX else _padded(data, SLOT_BYTES)

    return place_text


def _timestamp_placer(unit: str) -> Placer:
    split = split_timestamp(unit)

    def place(value: int) -> Placed:
        millis, nanos = split(value)
        return nanos, _LONG.pack(millis)

    return place


def _padded(run: bytes, multiple: int) -> tuple[int, bytes]:
    return len(run), run + bytes(-len(run) % multiple)


def opener_of(data_type: DataType, read: Callable[[DataType], SectionReader]) -> Opener:
    """Return the inverse of `placer_of`."""
    storage = data_type.storage
    if isinstance(storage, TimestampStorage):
        return _timestamp_opener(storage.unit)
    run = read(data_type)
    may_be_inline = isinstance(storage, BytesStorage)

    def open_slot(data: bytes, start: int, end: int, slot: int, at: int) -> tuple[Any, int]:
        if may_be_inline and slot >> 63:
            size = slot >> 56 & 0x7F
            if size > INLINE_BYTES_MAX:
                raise ValueError(f"a slot has no room for {size} bytes")
            return run(data, at, at + size), 0
        size = slot & 0xFFFFFFFF
        run_at = _checked_position(start + (slot >> 32), size, end)
        return run(data, run_at, run_at + size), size

    return open_slot


def _timestamp_opener(unit: str) -> Opener:
    join = join_timestamp(unit)

    def open_slot(data: bytes, start: int, end: int, slot: int, _: int) -> tuple[int, int]:
        millis_at = _checked_position(start + (slot >> 32), SLOT_BYTES, end)
        (millis,) = _LONG.unpack_from(data, millis_at)
        return join(millis, slot & 0xFFFFFFFF), SLOT_BYTES

    return open_slot


def _checked_position(start: int, size: int, end: int) -> int:
    if start + size > end:
        raise ValueError("a slot points out of its section")
    return start
