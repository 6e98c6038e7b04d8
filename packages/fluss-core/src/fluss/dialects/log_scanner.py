"""Scanners of logs: the part that both dialects share, and the documented one.

A scanner returns either records or batches, and refuses the methods of the other kind. Polls
continue where the last one ended, and return rows that it left over. Reading to the current end
starts at the subscribed offsets in each call.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from fluss.dialects.inbox import Inbox
from fluss.dialects.scan_records import RecordBatch, ScanRecords
from fluss.errors import FlussError, InvalidValueError
from fluss.log.decode import DecodedBatch
from fluss.log.decode_pool import decode_ahead
from fluss.log.fetch_messages import Fetched
from fluss.log.log_scan import LogScanCore
from fluss.model.paths import TableBucket
from fluss.net.engine_thread import Engine

if TYPE_CHECKING:
    import pandas as pd

TIMEOUT_MS_MAX = 2**53


class LogScannerBase:
    """The part that both dialects share: everything that does not wait.

    Args:
        engine: The engine on which reads wait.
        core: The subscriptions, and the reads of their buckets.
        gives_batches: Whether it returns Arrow batches instead of single records.
        records_per_poll_max: The most records of one poll.
    """

    def __init__(
        self, engine: Engine, core: LogScanCore, *, gives_batches: bool, records_per_poll_max: int
    ) -> None:
        self._engine = engine
        self._core = core
        self._gives_batches = gives_batches
        self._records_per_poll_max = records_per_poll_max
        self._inbox = Inbox(core.decoder)

    # --- subscriptions ------------------------------------------------------------------------

    def subscribe(self, bucket_id: int, start_offset: int) -> None:
        """Read a bucket from an offset on; a bucket that was subscribed before starts again."""
        self.subscribe_buckets({bucket_id: start_offset})

    def subscribe_buckets(self, bucket_offsets: Mapping[int, int]) -> None:
        """Read buckets from their offsets on: `{bucket: offset}`."""
        self._core.subscribe(bucket_offsets)
        self._forget((None, bucket_id) for bucket_id in bucket_offsets)

    def subscribe_partition(self, partition_id: int, bucket_id: int, start_offset: int) -> None:
        """Read a bucket of a partition from an offset on."""
        self.subscribe_partition_buckets({(partition_id, bucket_id): start_offset})

    def subscribe_partition_buckets(
        self, partition_bucket_offsets: Mapping[tuple[int, int], int]
    ) -> None:
        """Read buckets of partitions from their offsets on: `{(partition id, bucket): offset}`."""
        self._core.subscribe_partitions(partition_bucket_offsets)
        self._forget(partition_bucket_offsets)

    def unsubscribe(self, bucket_id: int) -> None:
        """Stop reading a bucket."""
        self._core.unsubscribe(bucket_id)
        self._forget([(None, bucket_id)])

    def unsubscribe_partition(self, partition_id: int, bucket_id: int) -> None:
        """Stop reading a bucket of a partition."""
        self._core.unsubscribe(bucket_id, partition_id=partition_id)
        self._forget([(partition_id, bucket_id)])

    def is_partitioned(self) -> bool:
        """Whether the table is partitioned, so that buckets are those of a partition."""
        return self._core.table.is_partitioned()

    def get_subscribed_buckets(self) -> list[tuple[TableBucket, int]]:
        """The subscribed buckets, and the offsets they are read from."""
        return list(self._core.subscriptions().items())

    def _forget(self, buckets: Iterable[tuple[int | None, int]]) -> None:
        gone = set(buckets)

        def is_gone(bucket: TableBucket) -> bool:
            return (bucket.partition_id, bucket.bucket_id) in gone

        # And once more on the engine, after the change itself: rows that were taken before it are
        # dropped.
        self._inbox.forget(is_gone)
        self._engine.post(lambda: self._inbox.forget_what_was_put(is_gone))

    # --- reading: on the engine, decoding, and making the result -------------------------------

    async def _take(self, timeout_ms: int) -> None:
        """Fill the inbox; waits for rows, at most so long."""
        # Rows go to the inbox and not to the caller, so a cancelled call loses nothing.
        self._inbox.put(await self._core.take(0 if self._inbox else timeout_ms / 1_000))

    def _is_filled(self) -> bool:
        """Whether the inbox has enough rows for a poll already."""
        self._core.check_open()
        return self._has_enough_rows()

    def _has_enough_rows(self) -> bool:
        return not self._gives_batches and self._inbox.has_rows(self._records_per_poll_max)

    def _decode(self) -> None:
        self._inbox.decode(None if self._gives_batches else self._records_per_poll_max)

    def _give_records(self) -> ScanRecords:
        return ScanRecords(self._inbox.give(self._records_per_poll_max), self._core.decoder.types)

    def _give_batches(self) -> list[RecordBatch]:
        return [RecordBatch(each) for each in self._inbox.give()]

    def _give_table(self) -> pa.Table:
        return pa.Table.from_batches(
            [each.batch for each in self._inbox.give()], schema=self._core.schema
        )

    def to_arrow_batch_reader(self) -> pa.RecordBatchReader:
        """All rows from the subscribed offsets to the current end of the log, as Arrow batches.

        The reader blocks its thread while it waits, also inside a running event loop. Rows are
        fetched ahead within a bounded buffer.
        """
        self._check_kind(batches=True, method="to_arrow_batch_reader()")
        return pa.RecordBatchReader.from_batches(
            self._core.schema, (each.batch for each in self._read_to_end())
        )

    def _read_to_end(self, *, takes_all: bool = False) -> Iterator[DecodedBatch]:
        source = self._core.read_to_end(takes_all=takes_all)
        try:
            for decoded in decode_ahead(self._core.decoder, self._fetches_of(source)):
                yield from decoded.batches
                if decoded.error is not None:
                    raise decoded.error
        finally:
            # Not waited for: an iterator that is dropped may end on any thread.
            self._engine.run_in_background(source.aclose)

    def _fetches_of(self, source: AsyncGenerator[list[Fetched], None]) -> Iterator[Fetched]:
        while fetched := self._engine.run(_next(source)):
            yield from fetched

    # --- checks -------------------------------------------------------------------------------

    def _check_kind(self, *, batches: bool, method: str) -> None:
        if batches is self._gives_batches:
            return
        if batches:
            made, other = "create_log_scanner()", "create_record_batch_log_scanner()"
        else:
            made, other = "create_record_batch_log_scanner()", "create_log_scanner()"
        raise FlussError(
            f"{method} does not belong to this kind of scanner, which {made} made.",
            hint=f"Use {other} for it.",
        )

    def __repr__(self) -> str:
        kind = "batches" if self._gives_batches else "records"
        return (
            f"{type(self).__name__}(table={self._core.table.table_path}, gives={kind}, "
            f"buckets={len(self._core.subscriptions())})"
        )


class LogScanner(LogScannerBase):
    """Reads a table's log; reads block the calling thread and return their result.

    Any thread may use it, also one that runs an event loop.
    """

    def poll(self, timeout_ms: int) -> ScanRecords:
        """The records that came in since the last poll; waits for some, at most `timeout_ms`."""
        self._fill(timeout_ms, batches=False, method="poll()")
        return self._give_records()

    def poll_arrow(self, timeout_ms: int) -> pa.Table:
        """The rows that came in since the last poll; waits for some, at most `timeout_ms`."""
        self._fill(timeout_ms, batches=True, method="poll_arrow()")
        return self._give_table()

    def poll_record_batch(self, timeout_ms: int) -> list[RecordBatch]:
        """The batches that came in since the last poll, with buckets and offsets."""
        self._fill(timeout_ms, batches=True, method="poll_record_batch()")
        return self._give_batches()

    poll_batches = poll_record_batch

    def _fill(self, timeout_ms: int, *, batches: bool, method: str) -> None:
        """Fill the inbox with decoded rows."""
        self._check_kind(batches=batches, method=method)
        timeout_ms = checked_timeout(timeout_ms)
        if not self._is_filled():
            self._engine.run(self._take(timeout_ms))
            self._decode()

    def to_arrow(self) -> pa.Table:
        """All rows from the subscribed offsets to the current end of the log; repeatable."""
        self._check_kind(batches=True, method="to_arrow()")
        return pa.Table.from_batches(
            [each.batch for each in self._read_to_end(takes_all=True)], schema=self._core.schema
        )

    def to_pandas(self) -> pd.DataFrame:
        """The same as `to_arrow`, as a DataFrame."""
        self._check_kind(batches=True, method="to_pandas()")
        frame: pd.DataFrame = self.to_arrow().to_pandas()
        return frame


def checked_timeout(timeout_ms: Any) -> int:
    """Check a timeout, and limit it to what can be waited."""
    if isinstance(timeout_ms, bool) or not isinstance(timeout_ms, int) or timeout_ms < 0:
        raise InvalidValueError(
            f"A timeout is a number of milliseconds from 0 on, not {timeout_ms!r}."
        )
    return min(timeout_ms, TIMEOUT_MS_MAX)


async def _next(source: AsyncGenerator[list[Fetched], None]) -> list[Fetched]:
    return await anext(source, [])
