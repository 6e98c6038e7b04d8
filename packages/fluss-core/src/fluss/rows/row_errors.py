"""The errors of single rows, with the field that caused them.

The functions that encode and decode single values are small and fast; they raise Python's
own errors. The row codecs catch these and call this file for an error with the field.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from fluss.errors import CorruptDataError, InvalidValueError
from fluss.model.types.data_type import DataType

# Raised by a writer for a value of the wrong type or size; the first comes from a nested row.
UNFIT = (
    InvalidValueError,
    TypeError,
    ValueError,
    AttributeError,
    LookupError,
    ArithmeticError,
    struct.error,
)
# Raised by a reader for impossible bytes; text that is no UTF-8 is a ValueError.
UNREADABLE = (ValueError, IndexError, struct.error)


def unfit_row(
    types: Sequence[DataType], writers: Sequence[Callable[[Any], object]], values: Sequence[Any]
) -> InvalidValueError:
    """Return the error for a row of which some value could not be written."""
    if len(values) != len(types):
        return InvalidValueError(f"A row of {len(types)} fields was given {len(values)} values.")
    for index, (write, value) in enumerate(zip(writers, values, strict=True)):
        if value is None:
            continue
        try:
            write(value)
        except UNFIT as error:
            return InvalidValueError(
                f"Field {index} of the row cannot be {value!r:.200}, its type is {types[index]}: "
                f"{str(error).rstrip('.')}.",
                column=index,
            )
    raise AssertionError("a row that could not be written can be written")


def null_field(
    types: Sequence[DataType], values: Sequence[Any], *, is_key: bool
) -> InvalidValueError:
    """Return the error for NULL where it must not be."""
    index = next(
        index
        for index, (value, data_type) in enumerate(zip(values, types, strict=True))
        if value is None and (is_key or not data_type.nullable)
    )
    why = "it belongs to the key" if is_key else f"its type is {types[index]}"
    return InvalidValueError(f"Field {index} of the row is NULL, but {why}.", column=index)


def unreadable(what: str, at: int, data: bytes, error: Exception) -> CorruptDataError:
    """Return the error for a row in `data` of which the field at `at` cannot be read."""
    is_cut_off = isinstance(error, IndexError | struct.error)
    why = f"it ends after {len(data)} bytes, in the middle of a value" if is_cut_off else str(error)
    return CorruptDataError(
        f"A {what} cannot be read at byte {at}: {why}.", what=what, at=at, why=why
    )
