"""Single aligned rows; the layout is drawn in `rows.formats.aligned`, which has the columns.

`AlignedRowWriter` and `AlignedRowReader` are made once per table and then encode and decode many
rows. NULL is None.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from fluss.errors import UnsupportedTypeError
from fluss.model.types.data_type import DataType
from fluss.rows.formats.single_slots import SLOT_BYTES, Placer, opener_of, place_all, placer_of
from fluss.rows.formats.stored_value import Number, number_of, run_reader, run_writer
from fluss.rows.row_errors import UNFIT, UNREADABLE, null_field, unfit_row, unreadable

INSERT_KIND = 0  # what Fluss and Paimon write into byte 0 wherever they use these rows

HEADER_BITS = 8

# Reads the value of a slot of the given row, and returns how many bytes outside the slots it took.
_Opener = Callable[[bytes, int], tuple[Any, int]]


def null_words_bytes(fields: int) -> int:
    """Return how many bytes the row kind and the null bits of so many fields take."""
    return (fields + HEADER_BITS + 63) // 64 * 8


def check_flat(data_type: DataType) -> None:
    """Refuse a nested type, which aligned rows cannot hold.

    Raises:
        UnsupportedTypeError: The type is nested.
    """
    if data_type.is_nested:
        raise UnsupportedTypeError(
            f"{data_type} has no place in an aligned row: neither statistics nor keys are nested.",
            hint="Leave the column out, or take fields of it that are not nested.",
            type=str(data_type),
        )


class AlignedRowWriter:
    """Encodes rows of these types; any thread may use it."""

    __slots__ = ("_fixed_bytes", "_null_bytes", "_placers", "_required", "_types")

    def __init__(self, types: Sequence[DataType]) -> None:
        """Prepares for rows.

        Raises:
            UnsupportedTypeError: A type is nested.
        """
        self._types = tuple(types)
        self._placers = tuple(_placer(each) for each in types)
        self._null_bytes = null_words_bytes(len(types))
        self._fixed_bytes = self._null_bytes + len(types) * SLOT_BYTES
        self._required = sum(1 << index for index, each in enumerate(types) if not each.nullable)

    def write(self, values: Sequence[Any]) -> bytes:
        """Encodes one row of physical values.

        Raises:
            InvalidValueError: A value does not fit its type; `column` names it.
        """
        nulls = 0
        if None in values:
            nulls = sum(1 << index for index, value in enumerate(values) if value is None)
        try:
            pairs = zip(self._placers, values, strict=True)
            slots, runs = place_all(pairs, self._fixed_bytes)
        except UNFIT as error:
            raise unfit_row(self._types, self._placers, values) from error
        if nulls & self._required:
            raise null_field(self._types, values, is_key=False)
        head = (nulls << HEADER_BITS | INSERT_KIND).to_bytes(self._null_bytes, "little")
        return b"".join((head, *slots, *runs))


class AlignedRowReader:
    """Decodes rows of these types; any thread may use it."""

    __slots__ = ("_null_bytes", "_openers")

    def __init__(self, types: Sequence[DataType]) -> None:
        """Prepares for rows.

        Raises:
            UnsupportedTypeError: A type is nested.
        """
        self._openers = tuple(_opener(each) for each in types)
        self._null_bytes = null_words_bytes(len(types))

    def read(self, data: bytes | memoryview) -> tuple[Any, ...]:
        """Decodes one row, which takes all of the data, into physical values.

        The row kind is ignored.

        Raises:
            CorruptDataError: The bytes cannot be a row of these types.
        """
        given = bytes(data)
        at = self._null_bytes
        fixed_bytes = at + len(self._openers) * SLOT_BYTES
        if len(given) < fixed_bytes:
            raise unreadable("aligned row", len(given), given, IndexError())
        nulls = int.from_bytes(given[:at], "little") >> HEADER_BITS
        values: list[Any] = []
        left = len(given) - fixed_bytes
        try:
            for read_slot in self._openers:
                value, size = (None, 0) if nulls & 1 else read_slot(given, at)
                left -= size
                if left < 0:
                    # Valid slots share no bytes. Slots that all point to one long run would
                    # need far more memory than there are bytes.
                    raise ValueError("slots share their bytes")
                values.append(value)
                nulls >>= 1
                at += SLOT_BYTES
        except UNREADABLE as error:
            raise unreadable("aligned row", at, given, error) from error
        return tuple(values)


def _placer(data_type: DataType) -> Placer:
    check_flat(data_type)
    number = number_of(data_type)
    if number is None:
        return placer_of(data_type, run_writer)
    pack = number.packer()
    return lambda value: pack(value).ljust(SLOT_BYTES, b"\0")


def _opener(data_type: DataType) -> _Opener:
    check_flat(data_type)
    number = number_of(data_type)
    if number is not None:
        return _number_opener(number)
    open_slot = opener_of(data_type, run_reader)

    def read_slot(data: bytes, at: int) -> tuple[Any, int]:
        slot = int.from_bytes(data[at : at + SLOT_BYTES], "little")
        return open_slot(data, 0, len(data), slot, at)

    return read_slot


def _number_opener(number: Number) -> _Opener:
    unpack, convert = struct.Struct(f"<{number.code}").unpack_from, number.from_stored

    def read_slot(data: bytes, at: int) -> tuple[Any, int]:
        (value,) = unpack(data, at)
        return (value if convert is None else convert(value)), 0

    return read_slot
