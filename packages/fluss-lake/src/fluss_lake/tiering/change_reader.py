"""Reads the changes of one bucket between two offsets, with the columns that a lake adds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from fluss.connection.connection import TableHandle
from fluss.log.decode import DecodedBatch, Decoder
from fluss.log.decode_pool import decode_ahead
from fluss.log.plan_fetch import Position
from fluss.log.range_reader import RangeReader
from fluss.model.change_type import ChangeType
from fluss.model.paths import PhysicalTablePath
from fluss.net.cancellation import Cancellation
from fluss.records.arrow.numpy_arrays import from_numpy
from fluss.rows.buffers.columns import ByteArray, Int64Array
from fluss_lake.file_plan import BUCKET, OFFSET, TIMESTAMP
from fluss_lake.tiering.range_task import RangeTask

UNREAD_BYTES: int = 16 * 1024 * 1024
# Small batches are joined: a small one costs the interpreter as much as a large one.
STRETCH_ROWS: int = 32_768
_TIME = pa.timestamp("ms", "UTC")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stretch:
    """Consecutive changes.

    Attributes:
        rows: The rows, with the columns that a lake adds.
        change_types: The kind of each change.
        end: One past the last offset.
        max_timestamp_ms: When the last change was committed.
    """

    rows: pa.RecordBatch
    change_types: ByteArray
    end: int
    max_timestamp_ms: int


def read_range(
    task: RangeTask, table: TableHandle, cancellation: Cancellation | None = None
) -> Iterator[Stretch]:
    """Read the changes of a task, in the order of their offsets."""
    decoder = Decoder(table, None)
    position = Position(
        bucket=task.bucket,
        path=PhysicalTablePath(task.table_path, task.partition_name),
        offset=task.start,
        stop=task.stop,
    )
    reader = RangeReader(
        table,
        [position],
        decoder.fetch_target,
        unread_bytes_max=UNREAD_BYTES,
        cancellation=cancellation,
    )
    waiting: list[DecodedBatch] = []
    rows = 0
    for decoded in decode_ahead(decoder, reader):
        for batch in decoded.batches:
            waiting.append(batch)
            rows += batch.num_rows
            if rows >= STRETCH_ROWS:
                yield _stretch(waiting)
                waiting, rows = [], 0
        if decoded.error is not None:
            raise decoded.error
    if waiting:
        yield _stretch(waiting)


def with_place(
    batch: pa.RecordBatch, bucket_id: int, offsets: Int64Array, times_ms: Int64Array
) -> pa.RecordBatch:
    """Add the columns of a lake to rows: their bucket, offset and time."""
    count = batch.num_rows
    arrays = [
        *batch.columns,
        from_numpy(np.full(count, bucket_id, dtype=np.int32)),
        from_numpy(offsets),
        from_numpy(times_ms).cast(_TIME),
    ]
    schema = with_place_schema(batch.schema)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def with_place_schema(schema: pa.Schema) -> pa.Schema:
    """The columns of a table, and those that a lake adds."""
    return pa.schema(
        [
            *schema,
            pa.field(BUCKET, pa.int32(), nullable=False),
            pa.field(OFFSET, pa.int64(), nullable=False),
            pa.field(TIMESTAMP, _TIME, nullable=False),
        ]
    )


def _stretch(batches: list[DecodedBatch]) -> Stretch:
    rows = (
        batches[0].batch
        if len(batches) == 1
        else pa.concat_batches([each.batch for each in batches])
    )
    offsets = np.concatenate([np.asarray(each.row_offsets(), dtype=np.int64) for each in batches])
    counts = [each.num_rows for each in batches]
    times = np.repeat(np.array([each.timestamp for each in batches], dtype=np.int64), counts)
    return Stretch(
        rows=with_place(rows, batches[0].bucket.bucket_id, offsets, times),
        change_types=np.concatenate([_types_of(each) for each in batches]),
        end=int(offsets[-1]) + 1,
        max_timestamp_ms=int(times.max()),
    )


def _types_of(decoded: DecodedBatch) -> ByteArray:
    if decoded.change_types is not None:
        return decoded.change_types
    return np.full(decoded.num_rows, ChangeType.AppendOnly, dtype=np.uint8)
