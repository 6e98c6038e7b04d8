"""Columns of physical values as Arrow arrays in wire form.

Values were checked and converted when they were taken (`model.values.conversion`); here whole
columns become arrays, which costs a fraction of converting row by row. All of them
are built from buffers: `pa.array` would be as fast, but imports pandas first (see
`records.arrow.numpy_arrays`), which delays the first row by a second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, repeat
from operator import is_not
from typing import Any, Final

import numpy as np
import pyarrow as pa

from fluss.errors import LimitExceededError
from fluss.model.types.data_type import ArrayType, DataType, DecimalType, MapType, RowType
from fluss.model.types.type_facts import ArrowLayout, BytesStorage
from fluss.rows.buffers.columns import BoolArray, Int32Array, Int64Array

_WORD: Final = 2**64
_SIGN: Final = 2**63
_EXACT_IN_FLOATS: Final = 2**53


def array_from_values(
    values: Sequence[Any], data_type: DataType, arrow_type: pa.DataType
) -> pa.Array:
    """Make an array of physical values, None where a value is NULL.

    Raises:
        LimitExceededError: The values together are longer than one array can be.
    """
    return _maker(data_type)(values, data_type, arrow_type)


def _maker(data_type: DataType) -> Callable[[Sequence[Any], Any, Any], pa.Array]:
    match data_type.layout, data_type.storage:
        case ArrowLayout.VARIABLE, BytesStorage(is_text=True):
            return _texts
        case ArrowLayout.VARIABLE, _:
            return _bytes
        case ArrowLayout.FIXED, BytesStorage():
            return _fixed
        case ((ArrowLayout.BITS | ArrowLayout.FIXED), _):
            return _numbers if data_type.values_per_row is None else _decimals
        case ArrowLayout.LIST, _:
            return _lists
        case ArrowLayout.MAP, _:
            return _maps
        case ArrowLayout.STRUCT, _:
            return _rows


def _lists(values: Sequence[Any], data_type: ArrayType, arrow_type: pa.ListType) -> pa.Array:
    buffers = _list_buffers(values)
    elements = list(chain.from_iterable(filter(None, values)))
    child = array_from_values(elements, data_type.element, arrow_type.value_type)
    return pa.Array.from_buffers(arrow_type, len(values), buffers, children=[child])


def _numbers(values: Sequence[Any], data_type: DataType, arrow_type: pa.DataType) -> pa.Array:
    """Numbers, truths, and times, whose physical values are numbers."""
    dtype = np.dtype(data_type.dtype)
    numbers = _unless_null(values, dtype)
    if numbers is not None:
        return _number_array(numbers, arrow_type, None)
    found = _by_floats(values, dtype)
    if found is not None:
        return _number_array(found[0], arrow_type, found[1])
    given, valid = _filled(values, 0)
    return _number_array(np.fromiter(given, dtype, len(values)), arrow_type, valid)


def _unless_null(values: Sequence[Any], dtype: Any) -> Any:
    """The numbers, or None if there may be a NULL; to look for one first would double the time."""
    try:
        if dtype.kind == "b":
            return np.frombuffer(bytes(values), np.bool_)
        numbers = np.fromiter(values, dtype, len(values))
    except TypeError:
        return None
    # Numpy makes a NaN of None.
    return None if dtype.kind == "f" and np.isnan(numbers).any() else numbers


def _by_floats(values: Sequence[Any], dtype: Any) -> tuple[Any, BoolArray] | None:
    """The numbers with 0 for NULL, and which are valid; None where floats do not hold them all.

    Numpy makes a NaN of None, so one pass finds both (measured, every second value NULL: 15 to 20
    instead of 36 to 55 ns per value). A float holds all integers up to 2^53, as are times of today.
    """
    floats = np.fromiter(values, np.float64, len(values))
    null = np.isnan(floats)
    if dtype.kind == "f" and np.count_nonzero(null) != values.count(None):
        return None  # there are NaNs that are values
    floats[null] = 0
    if dtype.kind == "i" and np.abs(floats).max(initial=0) >= _EXACT_IN_FLOATS:
        return None
    return floats.astype(dtype), ~null


def _number_array(numbers: Any, arrow_type: pa.DataType, valid: BoolArray | None) -> pa.Array:
    data = packed(numbers) if numbers.dtype == np.bool_ else pa.py_buffer(numbers)
    return pa.Array.from_buffers(arrow_type, len(numbers), [packed(valid), data])


def _texts(values: Sequence[Any], data_type: DataType, arrow_type: pa.DataType) -> pa.Array:
    joined = _joined(values, "")
    if joined.isascii():
        return _spans(values, joined.encode(), data_type, arrow_type)
    encoded = [None if each is None else each.encode() for each in values]
    return _spans(encoded, _joined(encoded, b""), data_type, arrow_type)


def _bytes(values: Sequence[Any], data_type: DataType, arrow_type: pa.DataType) -> pa.Array:
    return _spans(values, _joined(values, b""), data_type, arrow_type)


def _spans(
    values: Sequence[Any], data: bytes, data_type: DataType, arrow_type: pa.DataType
) -> pa.Array:
    """Return an array of values whose bytes stand back to back in `data`."""
    if len(data) >= _SIGN >> 32:
        raise LimitExceededError(
            f"The values of a {data_type} column hold more than 2 GiB together.",
            hint="Write fewer rows at a time.",
        )
    lengths, valid = lengths_of(values)
    buffers = [packed(valid), pa.py_buffer(_offsets(lengths)), pa.py_buffer(data)]
    return pa.Array.from_buffers(arrow_type, len(values), buffers)


def lengths_of(values: Sequence[Any]) -> tuple[Int64Array, BoolArray | None]:
    """Return how long each value is, 0 for NULL, and which are valid; None for all."""
    try:
        return np.fromiter(map(len, values), np.int64, len(values)), None
    except TypeError:  # there is a NULL
        return _without_null([-1 if each is None else len(each) for each in values])


def lengths_from(cells: Sequence[int | None]) -> tuple[Int64Array, BoolArray | None]:
    """The same where the lengths are given, None for NULL."""
    try:
        return np.fromiter(cells, np.int64, len(cells)), None
    except TypeError:
        return _without_null([-1 if each is None else each for each in cells])


def _without_null(lengths: Sequence[int]) -> tuple[Int64Array, BoolArray]:
    found = np.fromiter(lengths, np.int64, len(lengths))
    return np.maximum(found, 0), found >= 0


def _joined(values: Sequence[Any], empty: Any) -> Any:
    """The texts or bytes back to back, without those that are NULL."""
    try:
        return empty.join(values)
    except TypeError:
        return empty.join(filter(None, values))


def _offsets(lengths: Int64Array) -> Int32Array:
    offsets = np.zeros(len(lengths) + 1, dtype=np.int32)
    np.cumsum(lengths, dtype=np.int32, out=offsets[1:])
    return offsets


def _fixed(values: Sequence[Any], _: DataType, arrow_type: pa.DataType) -> pa.Array:
    given, valid = _filled(values, bytes(arrow_type.byte_width))
    buffers = [packed(valid), pa.py_buffer(b"".join(given))]
    return pa.Array.from_buffers(arrow_type, len(values), buffers)


def _decimals(values: Sequence[Any], data_type: DecimalType, arrow_type: pa.DataType) -> pa.Array:
    words = np.empty((len(values), 2), dtype=np.int64)
    given, valid = _filled(values, 0)
    if data_type.is_compact:
        words[:, 0] = given
        words[:, 1] = words[:, 0] >> 63
    else:
        words[:, 0] = [(each + _SIGN) % _WORD - _SIGN for each in given]
        words[:, 1] = [each >> 64 for each in given]
    buffers = [packed(valid), pa.py_buffer(words)]
    return pa.Array.from_buffers(arrow_type, len(values), buffers)


def _maps(values: Sequence[Any], data_type: MapType, arrow_type: pa.MapType) -> pa.Array:
    buffers = _list_buffers(values)
    pairs = chain.from_iterable(filter(None, values))
    flat = list(chain.from_iterable(pairs))
    keys = array_from_values(flat[::2], data_type.key, arrow_type.key_type)
    items = array_from_values(flat[1::2], data_type.value, arrow_type.item_type)
    entries = pa.StructArray.from_arrays(
        [keys, items], fields=[arrow_type.key_field, arrow_type.item_field]
    )
    return pa.Array.from_buffers(arrow_type, len(values), buffers, children=[entries])


def _rows(values: Sequence[Any], data_type: RowType, arrow_type: pa.StructType) -> pa.Array:
    width = len(data_type.fields)
    given, valid = _filled(values, (None,) * width)
    flat = list(chain.from_iterable(given))
    children = [
        array_from_values(flat[index::width], field.data_type, arrow_type.field(index).type)
        for index, field in enumerate(data_type.fields)
    ]
    return pa.Array.from_buffers(arrow_type, len(values), [packed(valid)], children=children)


def _list_buffers(values: Sequence[Any]) -> list[pa.Buffer | None]:
    return list_buffers(*lengths_of(values))


def list_buffers(lengths: Int64Array, valid: BoolArray | None) -> list[pa.Buffer | None]:
    """The buffers of an array of lists that are so long.

    Raises:
        LimitExceededError: Their elements are more than one array can have.
    """
    if lengths.sum() >= _SIGN >> 32:
        raise LimitExceededError(
            f"The lists of a column hold {int(lengths.sum())} elements together, more than 2^31.",
            hint="Write fewer rows at a time.",
        )
    return [packed(valid), pa.py_buffer(_offsets(lengths))]


def _filled(values: Sequence[Any], nothing: Any) -> tuple[Sequence[Any], BoolArray | None]:
    """Return the values with `nothing` in place of NULL, and which are valid; None for all."""
    valid = valid_of(values)
    if valid is None:
        return values, None
    return [nothing if each is None else each for each in values], valid


def valid_of(values: Sequence[Any]) -> BoolArray | None:
    """Return which values are not None; None for all."""
    if None not in values:
        return None
    return np.frombuffer(bytes(map(is_not, values, repeat(None))), np.bool_)


def packed(valid: BoolArray | None) -> pa.Buffer | None:
    """The bits of the values that are valid; None for all."""
    return None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
