"""The statistics block of a log batch: smallest, largest and number of NULLs per column.

The block follows the header of magic 1 and 2 (Java: `LogRecordBatchStatisticsWriter`), all little
endian: version 1 (1 byte), number of columns N (int16), N positions (int16), N null counts (int32),
then twice a length (int32) and an AlignedRow of the N columns, of the smallest and the largest
values. Servers skip batches by it, so a wrong block hides rows: a written range is never narrower
than the data, and a block that cannot be read completely is treated as absent. Comparing a block
with a predicate is not done here.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fluss.errors import CorruptDataError
from fluss.model.types import data_type as t
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.convert.numpy_columns import to_column
from fluss.rows.buffers.columns import Values
from fluss.rows.buffers.take import values_of
from fluss.rows.formats.aligned_row import AlignedRowReader, AlignedRowWriter

VERSION: Final = 1

_HEAD = struct.Struct("<bh")
_ROW_LENGTH = struct.Struct("<i")
_WORD: Final = 2**64


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchStatistics:
    """What is known about some columns of a batch; the four tuples belong together.

    Args:
        positions: Which columns of the batch's schema.
        null_counts: How many rows are NULL.
        minimums: The smallest physical value, None where every row is NULL.
        maximums: The largest.
    """

    positions: tuple[int, ...]
    null_counts: tuple[int, ...]
    minimums: tuple[Any, ...]
    maximums: tuple[Any, ...]


def collect_statistics(
    batch: pa.RecordBatch, layout: BatchLayout, positions: Iterable[int]
) -> BatchStatistics:
    """Compute the statistics of some columns of a batch in wire form; other types are left out."""
    chosen = tuple(each for each in positions if layout.types[each].has_statistics)
    arrays = [batch.column(each) for each in chosen]
    pairs = [
        _min_max(array, layout.types[each]) for array, each in zip(arrays, chosen, strict=True)
    ]
    return BatchStatistics(
        positions=chosen,
        null_counts=tuple(each.null_count for each in arrays),
        minimums=tuple(low for low, _ in pairs),
        maximums=tuple(high for _, high in pairs),
    )


def _min_max(array: pa.Array, data_type: t.DataType) -> tuple[Any, Any]:
    if array.null_count == len(array):
        return None, None
    if isinstance(data_type, t.TextFamily):
        found = pc.min_max(array).as_py()  # in the order of the bytes, as Java's BinaryString
        return found["min"], found["max"]
    column = to_column(array, data_type)
    values = values_of(column) if column.valid is None else values_of(column)[column.valid]
    match data_type:
        case t.FloatFamily():
            return _float_min_max(values)
        case t.DecimalType():
            return _decimal_min_max(values)
        case _:
            return values.min().item(), values.max().item()


def _float_min_max(values: Values) -> tuple[float, float]:
    """Compare in the order of Java's Double.compare: -0.0 before 0.0, and NaN last."""
    wide = values.astype(np.float64)
    wide[np.isnan(wide)] = np.nan  # the one NaN there is to Java
    bits = wide.view(np.int64)
    # The bits of negative numbers grow with their distance from zero; turned over, bits and
    # numbers have one order.
    keys = np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)
    return float(values[keys.argmin()]), float(values[keys.argmax()])


def _decimal_min_max(values: Values) -> tuple[int, int]:
    low, high = values[:, 0].view(np.uint64), values[:, 1]
    smallest, largest = high.min(), high.max()
    return (
        int(smallest) * _WORD + int(low[high == smallest].min()),
        int(largest) * _WORD + int(low[high == largest].max()),
    )


def write_statistics(statistics: BatchStatistics, types: Sequence[t.DataType]) -> bytes:
    """Encode a block.

    Args:
        statistics: The columns' statistics.
        types: The column types of the batch's schema.
    """
    count = len(statistics.positions)
    # Where there are no rows, a NOT NULL column has no smallest value either.
    chosen = [types[each].as_nullable() for each in statistics.positions]
    maximums = [_rounded_up(*each) for each in zip(statistics.maximums, chosen, strict=True)]
    smallest = AlignedRowWriter(chosen).write(statistics.minimums)
    largest = AlignedRowWriter(chosen).write(maximums)
    return b"".join((
        _HEAD.pack(VERSION, count),
        struct.pack(f"<{count}h{count}i", *statistics.positions, *statistics.null_counts),
        _ROW_LENGTH.pack(len(smallest)),
        smallest,
        _ROW_LENGTH.pack(len(largest)),
        largest,
    ))  # fmt: skip


def _rounded_up(value: Any, data_type: t.DataType) -> Any:
    """Round a TIME up to milliseconds, because rows have no smaller digits."""
    if value is None or not isinstance(data_type, t.TimeType):
        return value
    step = max(t.UNITS_PER_SECOND[data_type.unit] // 1000, 1)
    return -(-value // step) * step


def read_statistics(
    block: memoryview, types: Sequence[t.DataType], *, record_count: int
) -> BatchStatistics | None:
    """Decode a block.

    Args:
        block: The bytes between header and records.
        types: The column types of the batch's schema.
        record_count: How many records the batch has.

    Returns:
        None where any part of the block is invalid; its rows must then be read.
    """
    try:
        return _read_block(block, types, record_count)
    except (struct.error, CorruptDataError):
        return None


def _read_block(
    block: memoryview, types: Sequence[t.DataType], record_count: int
) -> BatchStatistics | None:
    version, count = _HEAD.unpack_from(block, 0)
    if version != VERSION or not 0 < count <= len(types):
        return None
    numbers = struct.unpack_from(f"<{count}h{count}i", block, _HEAD.size)
    positions, null_counts = numbers[:count], numbers[count:]
    if not all(0 <= each < len(types) for each in positions) or len(set(positions)) < count:
        return None
    if not all(0 <= each <= record_count for each in null_counts):
        return None
    chosen = [types[each].as_nullable() for each in positions]
    if not all(each.has_statistics for each in chosen):
        return None
    at = _HEAD.size + 6 * count
    rows = []
    for _ in range(2):
        size: int = _ROW_LENGTH.unpack_from(block, at)[0]
        at += _ROW_LENGTH.size
        if not 0 < size <= len(block) - at:
            return None
        rows.append(tuple(AlignedRowReader(chosen).read(block[at : at + size])))
        at += size
    return BatchStatistics(
        positions=positions, null_counts=null_counts, minimums=rows[0], maximums=rows[1]
    )
