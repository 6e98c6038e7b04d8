"""A column as plain numpy buffers: what the vectorised codecs of this room read and write.

The layout is Arrow's, without Arrow objects, so that `records` can pass buffers without copying.
Encodings are in `rows.formats`, Arrow types in `records.convert.numpy_columns`.

==================  ==========================================================================
type                buffers
==================  ==========================================================================
BOOLEAN             values: bool, one per row
integers, DATE,     values: int8 / int16 / int32 / int64 of the type's width; TIME is int32 for
TIME, TIMESTAMP     precision 0-3 and int64 above; TIMESTAMP is int64; units as physical values
FLOAT, DOUBLE       values: float32 / float64
DECIMAL             values: int64 of shape (rows, 2): low word, high word (two's complement)
CHAR, STRING,       offsets: int32, rows + 1, relative to `values`; values: uint8, the bytes
BYTES
BINARY(n)           values: uint8 of shape (rows, n)
ARRAY               offsets: int32, rows + 1, into children[0]
MAP                 offsets: int32, rows + 1, into children[0] (keys) and children[1] (values)
ROW                 children: one column per field, each as long as this one
==================  ==========================================================================

`valid` is one bool per row, or None where no row is NULL. What stands in `values` at a NULL row
is unspecified on input; the codecs write zeros there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fluss.model.types.data_type import DataType

BoolArray = npt.NDArray[np.bool_]
ByteArray = npt.NDArray[np.uint8]
Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
Values = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Column:
    """One column of `length` rows."""

    type: DataType
    length: int
    valid: BoolArray | None = None
    values: Values | None = None
    offsets: Int32Array | None = None
    children: tuple[Column, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowBytes:
    """Encoded rows, back to back: row i is data[offsets[i]:offsets[i + 1]]."""

    data: ByteArray
    offsets: Int64Array

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> bytes:
        return self.data[self.offsets[index] : self.offsets[index + 1]].tobytes()
