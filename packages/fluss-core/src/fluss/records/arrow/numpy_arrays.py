"""Arrow arrays over numpy's memory, and numpy arrays over Arrow's.

`pa.array`, `pa.scalar` and `Array.to_numpy` check for pandas objects and import pandas where it is
installed: 60 MB and a second of the processor, for programs that do not use pandas. So work on
every batch goes by buffers, here. Columns of tables are converted in
`records.convert.numpy_columns`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fluss.rows.buffers.columns import BoolArray

ELEMENTS_MAX = 2**31 - 1  # what the offsets of a list can count


def from_numpy(values: np.ndarray[Any, Any], *, valid: BoolArray | None = None) -> pa.Array:
    """Return numbers or booleans as an Arrow array; numbers are not copied.

    Args:
        values: Of one dimension.
        valid: Which of them are not NULL; None for all.
    """
    if values.dtype == np.bool_:
        return _from_buffers(pa.bool_(), values, _bits(values), valid)
    data = pa.py_buffer(np.ascontiguousarray(values))
    return _from_buffers(pa.from_numpy_dtype(values.dtype), values, data, valid)


def to_numpy(array: pa.Array) -> np.ndarray[Any, Any]:
    """Return integers or booleans, none of them NULL, as a numpy array without copying integers."""
    if array.null_count:
        raise AssertionError("NULL is no number")
    is_truth = pa.types.is_boolean(array.type)
    kind = "u" if pa.types.is_unsigned_integer(array.type) else "i"
    dtype = np.dtype(np.bool_ if is_truth else f"{kind}{array.type.bit_width // 8}")
    if not len(array):
        return np.empty(0, dtype=dtype)
    data, stop = array.buffers()[1], array.offset + len(array)
    if is_truth:
        bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8), count=stop, bitorder="little")
        return bits[array.offset :].view(np.bool_)
    return np.frombuffer(data, dtype=dtype, count=stop)[array.offset :]


def texts(values: Iterable[str | None]) -> pa.StringArray:
    """Return a few texts as an Arrow array."""
    given = list(values)
    encoded = [b"" if each is None else each.encode() for each in given]
    offsets = np.zeros(len(given) + 1, dtype=np.int32)
    np.cumsum([len(each) for each in encoded], out=offsets[1:])
    valid = np.array([each is not None for each in given], dtype=np.bool_)
    buffers = [_bits(valid), pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(given), buffers)


def as_list(array: pa.Array) -> pa.Array:
    """Return a map as the list of its entries."""
    entries = array.values
    buffers = array.buffers()[:2]
    return pa.Array.from_buffers(
        pa.list_(entries.type), len(array), buffers, array.null_count, array.offset, [entries]
    )


def list_parts(array: pa.Array) -> tuple[pa.Buffer, pa.Array]:
    """Return offsets from zero, and exactly the elements of the lists that are not NULL."""
    lengths = pc.list_value_length(array)
    if array.null_count:
        lengths = pc.if_else(array.is_valid(), lengths, 0)
    ends = np.cumsum(lengths.to_numpy(zero_copy_only=False), dtype=np.int64)
    if len(ends) and ends[-1] > ELEMENTS_MAX:
        raise pa.ArrowInvalid(f"the lists up to it have more than {ELEMENTS_MAX} elements")
    offsets = np.zeros(len(array) + 1, dtype=np.int32)
    offsets[1:] = ends
    return pa.py_buffer(offsets), pc.list_flatten(array)


def empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch without rows."""
    return pa.RecordBatch.from_arrays([pa.nulls(0, each.type) for each in schema], schema=schema)


def _from_buffers(
    arrow_type: pa.DataType,
    values: np.ndarray[Any, Any],
    data: pa.Buffer,
    valid: BoolArray | None,
) -> pa.Array:
    validity = None if valid is None else _bits(valid)
    null_count = 0 if valid is None else -1
    return pa.Array.from_buffers(arrow_type, len(values), [validity, data], null_count=null_count)


def _bits(truths: BoolArray) -> pa.Buffer:
    return pa.py_buffer(np.packbits(truths, bitorder="little"))
