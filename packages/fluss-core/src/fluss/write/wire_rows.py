"""Rows in wire form, and the partition of each of them.

The partitions of a frame are computed when it is checked, before any of it is written. They travel
with its rows, so that encoding does not compute them again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa

from fluss.model.paths import PhysicalTablePath
from fluss.model.tables.partitions import SEPARATOR
from fluss.model.tables.table_info import TableInfo
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.convert.numpy_columns import to_column
from fluss.rows.buffers.columns import Int64Array
from fluss.rows.keys.partition_codes import partition_codes

PATHS_KEPT_MAX = 10_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowPartitions:
    """The partitions of the rows of a batch.

    Attributes:
        paths: The partitions; the table itself where it has none.
        codes: The index of each row's partition in `paths`; None where all rows are of the first.
    """

    paths: Sequence[PhysicalTablePath]
    codes: Int64Array | None = None

    @classmethod
    def joined(cls, parts: Sequence[tuple[Self, int]]) -> Self:
        """The partitions of several batches, one after the other.

        Args:
            parts: The partitions of each batch, and its number of rows.
        """
        index_of: dict[PhysicalTablePath, int] = {}
        codes = []
        for part, row_count in parts:
            indexes = [index_of.setdefault(path, len(index_of)) for path in part.paths]
            own = np.zeros(row_count, np.int64) if part.codes is None else part.codes
            codes.append(np.array(indexes, np.int64)[own])
        return cls(
            paths=tuple(index_of), codes=np.concatenate(codes) if len(index_of) > 1 else None
        )

    def slice(self, start: int, row_count: int) -> RowPartitions:
        """The partitions of some of the rows."""
        if self.codes is None:
            return self
        return RowPartitions(paths=self.paths, codes=self.codes[start : start + row_count])


class PartitionPaths:
    """Computes the partitions of rows; any thread may use it.

    Args:
        table: The table.
        layout: The columns of the rows.
    """

    def __init__(self, table: TableInfo, layout: BatchLayout) -> None:
        self._table = table
        # By the layout, not by the schema: frames of keys have the columns of keys only.
        self._columns = [
            (position, layout.types[position])
            for position in map(layout.names.index, table.partition_keys)
        ]
        self._whole = RowPartitions(paths=(PhysicalTablePath(table.table_path),))
        self._paths: dict[tuple[str, ...], PhysicalTablePath] = {}

    def of(self, batch: pa.RecordBatch) -> RowPartitions:
        """The partitions of the rows of a batch in wire form.

        Raises:
            InvalidValueError: A partition column is NULL, or longer than a partition name.
            InvalidNameError: A value is no partition name.
        """
        if not self._columns:
            return self._whole
        columns = [to_column(batch.column(position), kind) for position, kind in self._columns]
        found, codes = partition_codes(columns, names=self._table.partition_keys)
        paths = [self._path(values) for values in found]
        return RowPartitions(paths=paths, codes=None if len(paths) == 1 else codes.astype(np.int64))

    def _path(self, values: tuple[str, ...]) -> PhysicalTablePath:
        path = self._paths.get(values)
        if path is None:
            path = PhysicalTablePath(self._table.table_path, SEPARATOR.join(values))
            if len(self._paths) >= PATHS_KEPT_MAX:
                self._paths.clear()
            self._paths[values] = path
        return path


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WireRows:
    """Rows in wire form.

    Attributes:
        batch: The rows.
        partitions: Their partitions; None where they have not been computed yet.
    """

    batch: pa.RecordBatch
    partitions: RowPartitions | None = None

    def slice(self, start: int, row_count: int) -> WireRows:
        """Some of the rows."""
        partitions = self.partitions
        return WireRows(
            batch=self.batch.slice(start, row_count),
            partitions=None if partitions is None else partitions.slice(start, row_count),
        )
