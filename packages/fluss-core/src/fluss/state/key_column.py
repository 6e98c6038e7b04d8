"""Keys of rows as one Arrow column, made to be compared and not to be decoded.

Two rows of a bucket have equal keys here exactly if they have equal primary keys. A single integer
column is used as it is; all other keys are Fluss's compacted encoding of the key columns, whatever
encoding the table stores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from fluss.model.tables.table_info import TableInfo
from fluss.model.types.data_type import BigIntType, DataType, IntType, SmallIntType, TinyIntType
from fluss.records.arrow.numpy_arrays import to_numpy
from fluss.records.convert.numpy_columns import to_column
from fluss.rows.buffers.byte_runs import check_bytes_max
from fluss.rows.buffers.columns import Int64Array, RowBytes
from fluss.rows.formats.compacted import write_compacted_keys
from fluss.rows.keys.murmur import Tail, hash_rows

_NUMBERS: Final = (TinyIntType, SmallIntType, IntType, BigIntType)
# Not Fluss's own seed and hash: all keys of a bucket share their bucket's hash values.
_SEED: Final = 0x5EED
_MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)
_HIGH_BITS: Final = np.uint64(40)


class RowKeys:
    """The keys of one table's rows.

    Args:
        table: The table; it has a primary key.
        columns: The positions of the columns that batches have, in their order; the key columns
            are among them.
    """

    def __init__(self, table: TableInfo, columns: Sequence[int]) -> None:
        schema = table.schema
        positions = schema.column_indexes(table.physical_primary_keys)
        self._places = [list(columns).index(each) for each in positions]
        self._types = [schema.column_types[each].not_null() for each in positions]

    def of(self, rows: pa.RecordBatch) -> pa.Array:
        """The key of every row."""
        arrays = [rows.column(each) for each in self._places]
        if _is_number(self._types):
            return arrays[0]
        columns = [to_column(array, each) for array, each in zip(arrays, self._types, strict=True)]
        return _binary(write_compacted_keys(columns))


def parts_of(keys: pa.Array | pa.ChunkedArray, count: int) -> Int64Array:
    """Assign each key to one of `count` parts, equal keys to the same part."""
    if isinstance(keys, pa.ChunkedArray):
        keys = keys.combine_chunks()
    if pa.types.is_integer(keys.type):
        numbers = to_numpy(keys).astype(np.int64).view(np.uint64)
        mixed = (numbers * _MULTIPLIER) >> _HIGH_BITS
        parts: Int64Array = (mixed % np.uint64(count)).astype(np.int64)
        return parts
    _, offsets, data = keys.buffers()
    ends = np.frombuffer(offsets, dtype=np.int32)[keys.offset : keys.offset + len(keys) + 1]
    first = int(ends[0])
    rows = RowBytes(
        data=np.frombuffer(data, dtype=np.uint8)[first : int(ends[-1])],
        offsets=ends.astype(np.int64) - first,
    )
    hashes = hash_rows(rows, seed=_SEED, tail=Tail.ONE_WORD)
    return (hashes % np.uint32(count)).astype(np.int64)


def _is_number(types: Sequence[DataType]) -> bool:
    return len(types) == 1 and isinstance(types[0], _NUMBERS)


def _binary(rows: RowBytes) -> pa.BinaryArray:
    check_bytes_max(len(rows.data))
    buffers = [None, pa.py_buffer(rows.offsets.astype(np.int32)), pa.py_buffer(rows.data)]
    return pa.Array.from_buffers(pa.binary(), len(rows), buffers, null_count=0)
