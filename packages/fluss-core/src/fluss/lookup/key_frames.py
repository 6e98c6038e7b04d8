"""Encodes the keys of a frame and groups them by bucket, all keys together.

Bytes and buckets are those of `lookup.key_placement`, which takes one key at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from fluss.errors import SchemaMismatchError
from fluss.model.paths import PhysicalTablePath
from fluss.model.tables.table_info import TableInfo
from fluss.model.types.data_type import DataType
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.convert.cast import to_wire_batch
from fluss.rows.buffers.columns import Int64Array
from fluss.write.caller_rows import rows_counted
from fluss.write.placement import Placement, Share, StoredKeys
from fluss.write.tabular import frame_of_keys
from fluss.write.wire_rows import PartitionPaths

# A round is decoded and put in order together; more keys make several rounds.
KEYS_PER_ROUND_MAX = 131_072


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlacedKeys:
    """Keys by bucket.

    Attributes:
        batch: The keys in wire form, in the order given.
        shares: Which of the ordered keys lie in which bucket.
        order: Which of the given keys each ordered key is.
    """

    batch: pa.RecordBatch
    shares: tuple[Share, ...]
    order: Int64Array
    _data: bytes
    _starts: Int64Array
    _ends: Int64Array

    def __len__(self) -> int:
        return len(self.order)

    def keys(self, start: int, stop: int) -> tuple[bytes, ...]:
        """The bytes of some ordered keys."""
        data = self._data
        starts, ends = self._starts[start:stop].tolist(), self._ends[start:stop].tolist()
        return tuple([data[each:end] for each, end in zip(starts, ends, strict=True)])

    def size(self, start: int, stop: int) -> int:
        """The total bytes of some ordered keys."""
        return int((self._ends[start:stop] - self._starts[start:stop]).sum())

    def fitting(self, start: int, stop: int, bytes_max: int) -> int:
        """The last stop at which the keys have at most so many bytes in total."""
        sizes = np.cumsum(self._ends[start:stop] - self._starts[start:stop])
        return start + int(np.searchsorted(sizes, bytes_max, side="right"))


class KeyFrames:
    """Places frames of keys of one table.

    Args:
        table: The table; it has a primary key.
        columns: The columns of a key: the primary key, or for prefixes the partition columns and
            the bucket key.
        is_prefix: Whether the keys are prefixes.
        find_partitions: Called before keys are placed, with their partitions: learns the bucket
            counts of those that exist.
        bucket_count: How many buckets a partition has; None for as many as the table.
    """

    def __init__(
        self,
        table: TableInfo,
        columns: Sequence[str],
        *,
        is_prefix: bool,
        find_partitions: Callable[[Sequence[PhysicalTablePath]], None] = lambda _paths: None,
        bucket_count: Callable[[PhysicalTablePath], int | None] = lambda _path: None,
    ) -> None:
        self._table = table
        self.types: Mapping[str, DataType] = {
            name: table.schema.column(name).data_type.not_null() for name in columns
        }
        self.layout = BatchLayout.of(
            tuple(self.types), tuple(self.types.values()), limits=table.value_limits
        )
        placement = Placement(
            table,
            self.layout,
            has_leader=lambda _path, _bucket: True,
            is_round_robin=False,
            bucket_count=bucket_count,
        )
        self._find_partitions = find_partitions
        self._partitions = PartitionPaths(table, self.layout)
        key_names = table.bucket_keys if is_prefix else table.physical_primary_keys
        self._keys = StoredKeys(placement, key_names)

    def rounds(self, data: Any) -> Iterator[PlacedKeys]:
        """Place the keys of a frame, in rounds of bounded size.

        All keys are checked before the first round; other columns are ignored.

        Raises:
            SchemaMismatchError: A key column is missing, or of a type that cannot be cast.
            InvalidValueError: A key is NULL or does not fit its column.
        """
        frame = frame_of_keys(data, list(self.types))
        batches, first = [], 0
        for batch in frame.batches(self.types):
            with rows_counted(first=first):
                batches.append(self._cast(batch))
            first += batch.num_rows
        whole = pa.Table.from_batches(batches, schema=self.layout.wire_schema).combine_chunks()
        return self._placed_rounds(whole)

    def _placed_rounds(self, whole: pa.Table) -> Iterator[PlacedKeys]:
        for batch in whole.to_batches():
            for start in range(0, batch.num_rows, KEYS_PER_ROUND_MAX):
                yield self._placed(batch.slice(start, KEYS_PER_ROUND_MAX))

    def _cast(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        names = batch.schema.names
        missing = [each for each in self.types if each not in names]
        if missing:
            raise SchemaMismatchError(
                f"The keys lack the column {missing[0]!r}; they have {', '.join(names)}.",
                hint=f"A key of {self._table.table_path} is ({', '.join(self.types)}).",
                column=missing[0],
            )
        if len(set(names)) < len(names):
            twice = sorted({each for each in self.types if names.count(each) > 1})
            if twice:
                raise SchemaMismatchError(f"The keys have the column {twice[0]!r} twice.")
        cast = to_wire_batch(batch.select(list(self.types)), self.layout)
        return pa.RecordBatch.from_arrays(
            [
                array if array.type.equals(field.type) else array.view(field.type)
                for array, field in zip(cast.columns, self.layout.wire_schema, strict=True)
            ],
            schema=self.layout.wire_schema,
        )

    def _placed(self, batch: pa.RecordBatch) -> PlacedKeys:
        keys = self._keys.of(batch)
        partitions = self._partitions.of(batch)
        if self._table.is_partitioned():
            self._find_partitions(partitions.paths)
        placed = self._keys.place(batch, keys, partitions=partitions)
        order = placed.order
        if order is None:
            order = np.arange(batch.num_rows, dtype=np.int64)
        return PlacedKeys(
            batch=batch,
            shares=placed.shares,
            order=order,
            _data=keys.data.tobytes(),
            _starts=keys.offsets[:-1][order],
            _ends=keys.offsets[1:][order],
        )
