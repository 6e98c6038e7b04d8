"""The rows of a record batch as Python values, made block by block for readers of a few rows.

A poll returns some hundred rows of a batch that has thousands. Converting a column costs several
microseconds however short it is, so a block of rows is converted at a time and kept for the next
reader (measured, 500 rows of six columns at a time, in processor time of
the whole poll beside pyfluss's: 0.65 instead of 0.80).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, Final, Self, TypeAlias

import pyarrow as pa

from fluss.model.types.data_type import DataType
from fluss.records.convert.to_python import python_values

# A block has so many rows, and fewer where they are so large that it would have more bytes.
BLOCK_ROWS_MAX: Final = 4_096
# Lists and dicts that live for as long as a block make the garbage collector look at all objects
# again and again. Measured, a poll of rows with a list, a map and a row, in processor time beside
# pyfluss's: 0.52 to 0.62 instead of 1.17 to 1.54. Rows without them take 0.71 instead of 0.65.
NESTED_BLOCK_ROWS_MAX: Final = 1_024
BLOCK_BYTES: Final = 1 << 20

Columns: TypeAlias = Sequence[Sequence[Any]]


class PythonRows:
    """Rows of a batch, from one of them on. Any thread may use it; slices share what was made."""

    __slots__ = ("_blocks", "_start")

    def __init__(self, blocks: Blocks, start: int) -> None:
        self._blocks = blocks
        self._start = start

    @classmethod
    def of(cls, batch: pa.RecordBatch, types: Sequence[DataType]) -> Self:
        """All rows of a batch."""
        return cls(Blocks(batch, types), 0)

    def slice(self, start: int) -> PythonRows:
        """The rows from `start` on."""
        return PythonRows(self._blocks, self._start + start)

    def columns(self, count: int) -> Columns:
        """The values of the first rows, column by column; at least one row and one column."""
        return self._blocks.columns(self._start, self._start + count)


class Blocks:
    """The rows of one batch; the block that was made last is kept."""

    __slots__ = ("_batch", "_block", "_block_rows", "_types")

    def __init__(self, batch: pa.RecordBatch, types: Sequence[DataType]) -> None:
        self._batch = batch
        self._types = types
        # Where it begins, where it ends, and its columns; replaced as a whole, so that threads
        # may meet here.
        self._block: tuple[int, int, Columns] = (0, 0, ())
        bytes_per_row = batch.nbytes // max(batch.num_rows, 1) + 1
        is_nested = any(each.is_nested for each in types)
        rows_max = NESTED_BLOCK_ROWS_MAX if is_nested else BLOCK_ROWS_MAX
        self._block_rows = max(1, min(rows_max, BLOCK_BYTES // bytes_per_row))

    def columns(self, start: int, stop: int) -> Columns:
        """The values of these rows, column by column."""
        parts: list[Columns] = []
        while start < stop:
            first, end, columns = self._covering(start, stop)
            until = min(stop, end)
            if start > first or until < end:
                columns = [each[start - first : until - first] for each in columns]
            parts.append(columns)
            start = until
        if len(parts) == 1:
            return parts[0]
        return [list(chain.from_iterable(each)) for each in zip(*parts, strict=True)]

    def _covering(self, start: int, stop: int) -> tuple[int, int, Columns]:
        """The block that has a row; a new one begins there and goes to `stop` at least."""
        block = self._block
        first, end, _ = block
        if first <= start < end:
            return block
        end = min(max(stop, start + self._block_rows), self._batch.num_rows)
        part = self._batch.slice(start, end - start)
        made = [
            python_values(part.column(position), data_type)
            for position, data_type in enumerate(self._types)
        ]
        block = (start, end, made)
        # The last rows of a batch are not asked for again.
        self._block = block if end > stop else (0, 0, ())
        return block
