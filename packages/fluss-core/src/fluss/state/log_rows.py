"""The changes of one bucket between two offsets, for whoever reads on a thread of its own.

Bytes are fetched on the engine's loop, ahead of the reader and within bounds; decoding is the
reader's work. Writers that flush often leave batches of a few rows, and what is done per batch
would cost more than what is done per row: stretches of many batches are handed on as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from fluss.connection.connection import TableHandle
from fluss.errors import CorruptDataError
from fluss.log.decode import DecodedBatch
from fluss.log.fetch_messages import Fetched, FetchTarget
from fluss.log.fetcher import Fetcher
from fluss.log.log_services import fetch_limits
from fluss.log.plan_fetch import Position
from fluss.log.table_reading import table_decoder, table_fetcher
from fluss.model.paths import PhysicalTablePath, TableBucket
from fluss.net.cancellation import Cancellation
from fluss.rows.buffers.columns import ByteArray

STRETCH_ROWS_MIN: Final = 8_192
# Several buckets are read at a time, and what they fetch comes on top of what they keep.
UNREAD_BYTES_MAX: Final = 2 * 1024 * 1024


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
    table: TableHandle,
    bucket: TableBucket,
    start: int,
    stop: int,
    columns: Sequence[int],
    *,
    cancellation: Cancellation | None = None,
) -> Iterator[DecodedBatch]:
    """Changes from `start` to `stop`, which the log has reached already.

    Raises:
        OffsetOutOfRangeError: The log does not go back that far any more.
        ClosedError: It has been cancelled.
        FlussError: The bucket cannot be read.
    """
    if start >= stop:
        return
    decoder = table_decoder(table, columns)
    fetching = _Fetching(table, decoder.fetch_target, bucket, start=start, stop=stop)
    engine = table.connection.engine
    try:
        while taken := engine.run(fetching.take(), cancellation=cancellation):
            for each in taken:
                yield from decoder.decode(each)
    finally:
        engine.post_cleanup(fetching.close)


class _Fetching:
    """One bucket's part of the log on its way. Lives on the engine's loop."""

    def __init__(
        self, table: TableHandle, target: FetchTarget, bucket: TableBucket, *, start: int, stop: int
    ) -> None:
        self._table = table
        self._target = target
        path = PhysicalTablePath(table.info.table_path)
        self._position = Position(bucket=bucket, path=path, offset=start, stop=stop)
        self._fetcher: Fetcher | None = None

    async def take(self) -> list[Fetched]:
        """What has come in; nothing behind the last."""
        if self._fetcher is None:
            self._fetcher = self._begun()
        return await self._fetcher.take(None)

    def close(self) -> None:
        if self._fetcher is not None:
            self._fetcher.close()

    def _begun(self) -> Fetcher:
        limits = fetch_limits(self._table.connection)
        unread_bytes_max = min(limits.unread_bytes_max, UNREAD_BYTES_MAX)
        fetcher = table_fetcher(
            self._table,
            self._target,
            limits=replace(limits, unread_bytes_max=unread_bytes_max),
            is_bounded=True,
        )
        fetcher.subscribe(self._position)
        return fetcher


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
