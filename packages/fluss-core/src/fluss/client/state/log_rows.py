"""The changes of one bucket between two offsets, for whoever reads on a thread of its own.

Bytes are fetched on the engine's loop, ahead of the reader and within bounds; decoding is the
reader's work. Writers that flush often leave batches of a few rows, and what is done per batch
would cost more than what is done per row: stretches of many batches are handed on as one.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from fluss.client.connection import TableCore
from fluss.client.decode import DecodedBatch
from fluss.engine.fetcher import Fetched
from fluss.errors import CorruptDataError
from fluss.model.paths import TableBucket
from fluss.rows.columns import ByteArray

STRETCH_ROWS_MIN: Final = 8_192


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stretch:
    """Changes one behind the other: the rows, what happened to each, the offset of the first."""

    rows: pa.RecordBatch
    change_types: ByteArray
    base_offset: int


def stretches(decoded: Iterable[DecodedBatch]) -> Iterator[Stretch]:
    """The changes of one bucket, many at a time.

    Raises:
        CorruptDataError: A batch does not say what its changes are.
    """
    waiting: list[DecodedBatch] = []
    count = 0
    for each in decoded:
        waiting.append(each)
        count += each.num_rows
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
    table: TableCore,
    bucket: TableBucket,
    start: int,
    stop: int,
    columns: Sequence[int],
) -> Iterator[DecodedBatch]:
    """Changes from `start` to `stop`, which the log has reached already.

    Raises:
        OffsetOutOfRangeError: The log does not go back that far any more.
        FlussError: The bucket cannot be read.
    """
    if start >= stop:
        return
    engine = table.connection.engine
    core = table.log_scan(columns)
    if bucket.partition_id is None:
        core.subscribe({bucket.bucket_id: start})
    else:
        core.subscribe_partitions({(bucket.partition_id, bucket.bucket_id): start})
    source = core.read_to_end({bucket: stop})
    try:
        while fetched := engine.run(_next(source)):
            for each in fetched:
                yield from core.decoder.decode(each)
    finally:
        engine.run(source.aclose())
        engine.run(core.close())


async def _next(source: AsyncGenerator[list[Fetched], None]) -> list[Fetched]:
    return await anext(source, [])


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
