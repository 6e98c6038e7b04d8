"""Groups the rows of a batch by partition and bucket.

The rows of a bucket keep their order and become one slice. Rows without a bucket key are placed in
one of two ways. *Sticky*: all rows of a batch go to one bucket, the next batch to another, so that
batches fill. *Round robin*: row after row to the next bucket, so that even few rows are spread
evenly. Single keys are placed by `lookup.key_placement`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from fluss.model.paths import PhysicalTablePath
from fluss.model.tables.table_info import TableInfo
from fluss.model.types.data_type import DataType
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.convert.numpy_columns import to_column
from fluss.rows.buffers.columns import Column, Int64Array, RowBytes
from fluss.rows.keys.bucketing import bucket_function
from fluss.rows.keys.encoders import KeyEncoder, bucket_key_encoder, primary_key_encoder
from fluss.write.caller_rows import rows_counted
from fluss.write.wire_rows import PATHS_KEPT_MAX, PartitionPaths, RowPartitions


def key_encoder(table: TableInfo, types: Sequence[DataType]) -> KeyEncoder:
    """The encoder of a table's stored keys, or of the beginnings of keys for prefix lookups."""
    return primary_key_encoder(
        types,
        lake_format=table.options.datalake_format,
        kv_format_version=table.options.kv_format_version or 1,
        is_default_bucket_key=table.is_default_bucket_key,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The rows of one bucket: those from `start` to `stop` of the ordered rows."""

    path: PhysicalTablePath
    bucket_id: int
    bucket_count: int  # by which the rows were placed
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
        bucket_count: How many buckets a partition has, None where that is not known yet: then its
            rows are placed as if it had as many as new partitions, and the sender places them
            again if that was wrong.
    """

    def __init__(
        self,
        table: TableInfo,
        layout: BatchLayout,
        *,
        has_leader: Callable[[PhysicalTablePath, int], bool],
        is_round_robin: bool,
        choose: Callable[[PhysicalTablePath], int] | None = None,
        bucket_count: Callable[[PhysicalTablePath], int | None] = lambda _path: None,
    ) -> None:
        self._chosen = choose
        self._bucket_count = bucket_count
        self.table = table
        self.layout = layout
        self._has_leader = has_leader
        self._is_round_robin = is_round_robin
        self._partitions = PartitionPaths(table, layout)
        self.bucket_positions = [layout.names.index(name) for name in table.bucket_keys]
        lake = table.options.datalake_format
        self._function = bucket_function(lake)
        types = [layout.types[position] for position in self.bucket_positions]
        self.encoder = bucket_key_encoder(types, lake_format=lake) if types else None
        self._sticky: dict[PhysicalTablePath, int] = {}
        self._next = random.randrange(table.num_buckets)  # noqa: S311 - writers start at different buckets

    def columns(self, batch: pa.RecordBatch, positions: Sequence[int]) -> list[Column]:
        """Some columns of a batch, in the form that the encoders of keys take."""
        types = self.layout.types
        return [to_column(batch.column(place), types[place]) for place in positions]

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
        counts = [self.bucket_count(each) for each in paths]
        if self.encoder is not None:
            if keys is None:
                with rows_counted(names=self.table.bucket_keys):
                    keys = self.encoder.encode_rows(self.columns(batch, self.bucket_positions))
            buckets = self._hashed(keys, counts, codes)
            return _grouped(paths, codes, buckets, counts)
        if self._is_round_robin and not is_frame:
            turns = np.arange(count) + self._next
            self._next = (self._next + count) % (1 << 31)
            return _grouped(paths, codes, turns % _of_rows(counts, codes), counts)
        chosen = np.array(list(map(self._choose, paths, counts)), dtype=np.int64)
        if codes is None:
            return _all_in_one(paths[0], int(chosen[0]), counts[0], row_count=count)
        return _grouped(paths, codes, chosen[codes], counts)

    def bucket_count(self, path: PhysicalTablePath) -> int:
        """The bucket count by which rows of a table or partition are placed now."""
        if path.partition_name is None:
            return self.table.num_buckets
        return self._bucket_count(path) or self.table.num_buckets

    def _hashed(self, keys: RowBytes, counts: Sequence[int], codes: Int64Array | None) -> Any:
        different = sorted(set(counts))
        buckets = self._function.buckets(keys, different[0]).astype(np.int64)
        if len(different) == 1:
            return buckets
        count_of_row = _of_rows(counts, codes)
        for count in different[1:]:
            of_others = self._function.buckets(keys, count)
            buckets = np.where(count_of_row == count, of_others, buckets)
        return buckets

    def _choose(self, path: PhysicalTablePath, count: int) -> int:
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


def _of_rows(counts: Sequence[int], codes: Int64Array | None) -> Any:
    """The bucket count of the partition of each row."""
    return counts[0] if codes is None else np.array(counts, dtype=np.int64)[codes]


def _all_in_one(
    path: PhysicalTablePath, bucket_id: int, bucket_count: int, *, row_count: int
) -> Shares:
    share = Share(
        path=path, bucket_id=bucket_id, bucket_count=bucket_count, start=0, stop=row_count
    )
    return Shares(shares=(share,))


def _grouped(
    paths: Sequence[PhysicalTablePath],
    codes: Int64Array | None,
    buckets: Int64Array,
    counts: Sequence[int],
) -> Shares:
    count_max = max(counts)
    groups = buckets if codes is None else codes * count_max + buckets
    first = int(groups[0])
    if (groups == first).all():
        code, bucket = divmod(first, count_max)
        return _all_in_one(paths[code], bucket, counts[code], row_count=len(groups))
    # numpy sorts numbers of 16 bits in linear time.
    is_short = len(paths) * count_max <= 1 << 16
    order = np.argsort(groups.astype(np.uint16) if is_short else groups, kind="stable")
    ordered = groups[order]
    edges = [0, *(np.flatnonzero(ordered[1:] != ordered[:-1]) + 1).tolist(), len(groups)]
    shares = []
    for start, stop in pairwise(edges):
        code, bucket = divmod(int(ordered[start]), count_max)
        shares.append(
            Share(
                path=paths[code],
                bucket_id=bucket,
                bucket_count=counts[code],
                start=start,
                stop=stop,
            )
        )
    return Shares(shares=tuple(shares), order=order)


class StoredKeys:
    """Encodes the keys under which rows are stored, and places the rows; any thread may use it.

    Args:
        placement: Places the rows.
        names: The columns of the key.
    """

    def __init__(self, placement: Placement, names: Sequence[str]) -> None:
        layout = placement.layout
        self.names = tuple(names)
        self._positions = [layout.names.index(name) for name in names]
        self._placement = placement
        types = [layout.types[position] for position in self._positions]
        self._encoder = key_encoder(placement.table, types)
        # Where the same bytes choose the bucket, they are encoded once.
        self._choose_bucket = (
            self._positions == placement.bucket_positions and self._encoder == placement.encoder
        )

    def of(self, batch: pa.RecordBatch) -> RowBytes:
        """The keys of the rows of a batch."""
        return self._encoder.encode_rows(self._placement.columns(batch, self._positions))

    def place(
        self,
        batch: pa.RecordBatch,
        keys: RowBytes,
        *,
        partitions: RowPartitions | None = None,
        is_frame: bool = False,
    ) -> Shares:
        """Group the rows of a batch by bucket; see `Placement.place`."""
        known = keys if self._choose_bucket else None
        return self._placement.place(batch, keys=known, partitions=partitions, is_frame=is_frame)


def choose_sticky(
    current: int | None, bucket_count: int, has_leader: Callable[[int], bool], *, jitter: float
) -> int:
    """The bucket for the next batch: another than the last, and one with a leader if possible.

    Args:
        current: The bucket of the last batch, None for the first one.
        bucket_count: How many buckets there are.
        has_leader: Whether a bucket has a known leader.
        jitter: A random number from 0 to 1 (not 1 itself).
    """
    start = int(jitter * bucket_count)
    around = [(start + step) % bucket_count for step in range(bucket_count)]
    others = [each for each in around if each != current] or around
    return next((each for each in others if has_leader(each)), others[0])
