"""Puts one value into a slot of eight bytes, and into the variable part after the slots.

Aligned rows and binary arrays share this: short text lies in its slot; longer text lies in the
variable part, and the slot holds its position. `rows.formats.slots` does the same for columns.
Numbers are not here, because rows and arrays place them differently.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from fluss.model.types.data_type import (
    DataType,
)
from fluss.model.types.type_facts import DecimalStorage, NestedStorage, TimestampStorage
from fluss.rows.formats.decimals import DECIMAL_BYTES_MAX
from fluss.rows.formats.slots import INLINE_BYTES_MAX, inline_slot
from fluss.rows.formats.stored_value import ValueWriter, split_timestamp

# A whole slot; or the low half of one, and the run it points to.
Placed = bytes | tuple[int, bytes]
Placer = Callable[[Any], Placed]

_SLOT_BYTES = 8
_pack_long = struct.Struct("<q").pack


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
        return lambda value: _padded(run(value), _SLOT_BYTES)

    def place_text(value: Any) -> Placed:
        data = run(value)
        return inline_slot(data) if len(data) <= INLINE_BYTES_MAX else _padded(data, _SLOT_BYTES)

    return place_text


def _timestamp_placer(unit: str) -> Placer:
    split = split_timestamp(unit)

    def place(value: int) -> Placed:
        millis, nanos = split(value)
        return nanos, _pack_long(millis)

    return place


def _padded(run: bytes, multiple: int) -> tuple[int, bytes]:
    return len(run), run + bytes(-len(run) % multiple)
