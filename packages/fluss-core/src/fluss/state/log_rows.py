"""Reads the changes of one bucket between two offsets, on a blocking thread.

Bytes are fetched on the engine's loop, ahead of the reader and within bounds; the reader decodes
them. Writers that flush often leave batches of a few rows, for which the work per batch would cost
more than the work per row: many batches are joined into one stretch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from fluss.connection.connection import TableHandle
from fluss.errors import CorruptDataError
from fluss.log.decode import DecodedBatch, Decoder
from fluss.log.plan_fetch import Position
from fluss.log.range_reader import RangeReader
from fluss.model.paths import PhysicalTablePath, TableBucket
from fluss.net.cancellation import Cancellation
from fluss.rows.buffers.columns import ByteArray

STRETCH_ROWS_MIN: Final = 8_192
# Several buckets are read concurrently, and their fetched bytes come on top of what they keep.
UNREAD_BYTES_MAX: Final = 2 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stretch:
    """Consecutive changes: the rows, the kind of each change, the offset of the first."""

    rows: pa.RecordBatch
    change_types: ByteArray
    base_offset: int


def stretches(decoded: Iterable[DecodedBatch]) -> Iterator[Stretch]:
    """Join the changes of one bucket into stretches of many rows.

    Raises:
        CorruptDataError: A batch has no change types.
    """
    waiting: list[DecodedBatch] = []
    count = 0
    for batch in decoded:
        waiting.append(batch)
        count += batch.num_rows
        if count >= STRETCH_ROWS_MIN:
            yield _joined(waiting)
            waiting, count = [], 0
    if waiting:
        yield _joined(waiting)


def _joined(batches: Sequence[DecodedBatch]) -> Stretch:
    first = batches[0]
    if len(batches) == 1:
        return Stretch(
            rows=first.batch, change_types=_types_of(first), base_offset=first.base_offset
        )
    return Stretch(
        rows=pa.concat_batches([each.batch for each in batches]),
        change_types=np.concatenate([_types_of(each) for each in batches]),
        base_offset=first.base_offset,
    )


def _types_of(decoded: DecodedBatch) -> ByteArray:
    if decoded.change_types is None:
        raise _without_types(decoded)
    return decoded.change_types


def read_changes(
    table: TableHandle,
    bucket: TableBucket,
    start: int,
    stop: int,
    columns: Sequence[int],
    *,
    cancellation: Cancellation | None = None,
) -> Iterator[DecodedBatch]:
    """Read the changes from `start` to `stop`, which the log has reached already.

    Raises:
        OffsetOutOfRangeError: The log no longer goes back that far.
        ClosedError: It has been cancelled.
        FlussError: The bucket cannot be read.
    """
    decoder = Decoder(table, columns)
    path = PhysicalTablePath(table.info.table_path)
    reader = RangeReader(
        table,
        [Position(bucket=bucket, path=path, offset=start, stop=stop)],
        decoder.fetch_target,
        unread_bytes_max=UNREAD_BYTES_MAX,
        cancellation=cancellation,
    )
    for fetched in reader:
        yield from decoder.decode(fetched)


def _without_types(decoded: DecodedBatch) -> CorruptDataError:
    why = "its rows have no change types"
    return CorruptDataError(
        f"The changelog of bucket {decoded.bucket.bucket_id} cannot be replayed: the batch at "
        f"offset {decoded.base_offset} cannot be right, as {why}.",
        what="changelog",
        at=0,
        why=why,
        bucket=decoded.bucket.bucket_id,
        offset=decoded.base_offset,
    )
