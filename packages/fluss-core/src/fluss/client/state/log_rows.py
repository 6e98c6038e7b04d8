"""The changes of one bucket between two offsets, for whoever reads on a thread of its own.

Bytes are fetched on the engine's loop, ahead of the reader and within bounds; decoding is the
reader's work. Between one batch and the next nothing but the fetches goes on.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence

from fluss.client.connection import TableCore
from fluss.client.decode import DecodedBatch
from fluss.engine.fetcher import Fetched
from fluss.model.paths import TableBucket


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
