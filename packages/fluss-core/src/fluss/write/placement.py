"""Groups the rows of a batch by partition and bucket.

The rows of a bucket keep their order and become one slice. Single keys are placed by
`lookup.key_placement`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from fluss.model.paths import PhysicalTablePath
from fluss.model.tables.table_info import TableInfo
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.convert.numpy_columns import to_column
from fluss.rows.buffers.columns import Column, Int64Array, RowBytes
from fluss.rows.keys.bucketing import bucket_function
from fluss.rows.keys.encoders import bucket_key_encoder
from fluss.write.caller_rows import rows_counted
from fluss.write.plan_bucket_choice import choose_sticky
from fluss.write.wire_rows import PATHS_KEPT_MAX, PartitionPaths, RowPartitions


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The rows of one bucket: those from `start` to `stop` of the ordered rows."""

    path: PhysicalTablePath
    bucket_id: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shares:
    """The rows of a batch by bucket.

    Attributes:
        shares: One per bucket that has rows.
        order: Which row of the batch each ordered row is; None where the order is the same.
    """

    shares: tuple[Share, ...]
    order: Int64Array | None = None


class Placement:
    """Places the rows of one table; any thread may use it.

    Args:
        table: The table.
        layout: The columns of the batches.
        has_leader: Whether a bucket has a known leader.
        is_round_robin: Whether rows without a bucket key are spread row by row.
        choose: Chooses the bucket for a frame of such rows instead; any number.
    """

    def __init__(
        self,
        table: TableInfo,
        layout: BatchLayout,
        *,
        has_leader: Callable[[PhysicalTablePath, int], bool],
        is_round_robin: bool,
        choose: Callable[[PhysicalTablePath], int] | None = None,
    ) -> None:
        self._chosen = choose
        self._table = table
        self._layout = layout
        self._has_leader = has_leader
        self._is_round_robin = is_round_robin
        self._partitions = PartitionPaths(table, layout)
        self._bucket_positions = [layout.names.index(each) for each in table.bucket_keys]
        lake = table.options.datalake_format
        self._function = bucket_function(lake)
        types = [layout.types[each] for each in self._bucket_positions]
        self.encoder = bucket_key_encoder(types, lake_format=lake) if types else None
        self._sticky: dict[PhysicalTablePath, int] = {}
        self._next = random.randrange(table.num_buckets)  # noqa: S311 - writers start at different buckets

    def columns(self, batch: pa.RecordBatch, positions: Sequence[int]) -> list[Column]:
        """Some columns of a batch, in the form that the encoders of keys take."""
        types = self._layout.types
        return [to_column(batch.column(each), types[each]) for each in positions]

    def place(
        self,
        batch: pa.RecordBatch,
        *,
        keys: RowBytes | None = None,
        partitions: RowPartitions | None = None,
        is_frame: bool = False,
    ) -> Shares:
        """Group the rows of a batch.

        Args:
            batch: The rows, in wire form; at least one.
            keys: Their bucket keys, where they have been encoded already.
            partitions: Their partitions, where they have been computed already.
            is_frame: Whether the rows came as one frame, which is not spread where there is no
                bucket key.

        Raises:
            InvalidValueError: A partition or key column is NULL.
            InvalidNameError: A value is not a partition name.
        """
        count = batch.num_rows
        placed = partitions or self._partitions.of(batch)
        paths, codes = placed.paths, placed.codes
        if self.encoder is not None:
            if keys is None:
                with rows_counted(names=self._table.bucket_keys):
                    keys = self.encoder.encode_rows(self.columns(batch, self._bucket_positions))
            buckets = self._function.buckets(keys, self._table.num_buckets).astype(np.int64)
            return _grouped(paths, codes, buckets, self._table.num_buckets)
        if self._is_round_robin and not is_frame:
            buckets = (np.arange(count) + self._next) % self._table.num_buckets
            self._next = (self._next + count) % self._table.num_buckets
            return _grouped(paths, codes, buckets, self._table.num_buckets)
        chosen = np.array([self._choose(each) for each in paths], dtype=np.int64)
        if codes is None:
            share = Share(path=paths[0], bucket_id=int(chosen[0]), start=0, stop=count)
            return Shares(shares=(share,))
        return _grouped(paths, codes, chosen[codes], self._table.num_buckets)

    def _choose(self, path: PhysicalTablePath) -> int:
        count = self._table.num_buckets
        if self._chosen is not None:
            return self._chosen(path) % count
        if self._is_round_robin:
            self._next = (self._next + 1) % count
            return self._next
        chosen = choose_sticky(
            self._sticky.get(path),
            count,
            lambda bucket: self._has_leader(path, bucket),
            jitter=random.random(),  # noqa: S311 - spreads writers, hides nothing
        )
        if len(self._sticky) >= PATHS_KEPT_MAX:
            self._sticky.clear()
        self._sticky[path] = chosen
        return chosen


def _grouped(
    paths: Sequence[PhysicalTablePath],
    codes: Int64Array | None,
    buckets: Int64Array,
    bucket_count: int,
) -> Shares:
    groups = buckets if codes is None else codes * bucket_count + buckets
    first = int(groups[0])
    if (groups == first).all():
        code, bucket = divmod(first, bucket_count)
        share = Share(path=paths[code], bucket_id=bucket, start=0, stop=len(groups))
        return Shares(shares=(share,))
    # numpy sorts numbers of 16 bits in linear time.
    is_short = len(paths) * bucket_count <= 1 << 16
    order = np.argsort(groups.astype(np.uint16) if is_short else groups, kind="stable")
    ordered = groups[order]
    edges = [0, *(np.flatnonzero(ordered[1:] != ordered[:-1]) + 1).tolist(), len(groups)]
    shares = []
    for start, stop in pairwise(edges):
        code, bucket = divmod(int(ordered[start]), bucket_count)
        shares.append(Share(path=paths[code], bucket_id=bucket, start=start, stop=stop))
    return Shares(shares=tuple(shares), order=order)
