"""Scanners of the awaited dialect: reads are awaited, and `async for` never ends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING

import anyio.to_thread
import pyarrow as pa

from fluss.dialects.batch_scanner import BatchScannerBase
from fluss.dialects.log_scanner import LogScannerBase, checked_timeout
from fluss.dialects.scan_records import RecordBatch, ScanRecord, ScanRecords
from fluss.errors import FlussError
from fluss.log.decode_pool import decode_while_fetching
from fluss.net.call_styles import run_awaitable

if TYPE_CHECKING:
    import pandas as pd

# How long each poll of `async for` waits.
FOLLOW_WAIT_MS = 1_000


class LogScanner(LogScannerBase):
    """Reads a table's log; reads are awaited, and `async for` follows the log without an end."""

    def poll(self, timeout_ms: int) -> Awaitable[ScanRecords]:
        """The records that came in since the last poll; waits for some, at most `timeout_ms`."""
        polled = self._fill(timeout_ms, self._decode_records, batches=False, method="poll()")
        return self._engine.submit_and_convert(polled, self._give_records)

    def poll_arrow(self, timeout_ms: int) -> Awaitable[pa.Table]:
        """The rows that came in since the last poll; waits for some, at most `timeout_ms`."""
        polled = self._fill(timeout_ms, self._decode_batches, batches=True, method="poll_arrow()")
        return self._engine.submit_and_convert(polled, self._give_table)

    def poll_record_batch(self, timeout_ms: int) -> Awaitable[list[RecordBatch]]:
        """The batches that came in since the last poll, with buckets and offsets."""
        method = "poll_record_batch()"
        polled = self._fill(timeout_ms, self._decode_batches, batches=True, method=method)
        return self._engine.submit_and_convert(polled, self._give_batches)

    poll_batches = poll_record_batch

    def to_arrow(self) -> Awaitable[pa.Table]:
        """All rows from the subscribed offsets to the current end of the log; repeatable."""
        return self._engine.submit(self._table_to_end(method="to_arrow()"))

    def to_pandas(self) -> Awaitable[pd.DataFrame]:
        """The same as `to_arrow`, as a DataFrame."""
        table = partial(self._table_to_end, method="to_pandas()")
        return run_awaitable(self._engine, table, _frame_of)

    # The wrong kind of scanner is reported when the result is awaited, as in pyfluss.

    async def _fill(
        self, timeout_ms: int, decode: Callable[[], None], *, batches: bool, method: str
    ) -> None:
        """Fill the inbox with decoded rows; a cancelled poll leaves them to the next."""
        self._check_kind(batches=batches, method=method)
        timeout_ms = checked_timeout(timeout_ms)
        if not self._is_filled():
            await self._take(timeout_ms)
            await anyio.to_thread.run_sync(decode)

    async def _table_to_end(self, *, method: str) -> pa.Table:
        self._check_kind(batches=True, method=method)
        batches: list[pa.RecordBatch] = []
        async with (
            aclosing(self._core.read_to_end()) as source,
            aclosing(decode_while_fetching(self._core.decoder, source)) as found,
        ):
            async for decoded in found:
                batches += [each.batch for each in decoded.batches]
                if decoded.error is not None:
                    raise decoded.error
        return pa.Table.from_batches(batches, schema=self._core.schema)

    def __aiter__(self) -> AsyncIterator[ScanRecord | RecordBatch]:
        """Follow the log: records, or batches, without an end.

        Raises:
            FlussError: Nothing is subscribed at the start.
        """
        return self._follow()

    async def _follow(self) -> AsyncIterator[ScanRecord | RecordBatch]:
        if not self.get_subscribed_buckets():
            raise FlussError(
                "No buckets are subscribed, so there is nothing to wait for.",
                hint="Call subscribe_buckets({bucket: EARLIEST_OFFSET, ...}) first.",
            )
        while self.get_subscribed_buckets():
            if self._gives_batches:
                for batch in await self.poll_record_batch(FOLLOW_WAIT_MS):
                    yield batch
            else:
                for record in await self.poll(FOLLOW_WAIT_MS):
                    yield record


def _frame_of(table: pa.Table) -> pd.DataFrame:
    frame: pd.DataFrame = table.to_pandas()
    return frame


class BatchScanner(BatchScannerBase):
    """Reads a few rows of one bucket; reads are awaited."""

    def next_batch(self) -> Awaitable[RecordBatch | None]:
        """The next batch of rows; None after the last."""
        return self._engine.submit(self._next())

    def collect_all_batches(self) -> Awaitable[list[RecordBatch]]:
        """All batches that are left."""
        return run_awaitable(self._engine, self._rest, self._as_batches)

    def to_arrow(self) -> Awaitable[pa.Table]:
        """All rows that are left, as a table."""
        return run_awaitable(self._engine, self._rest, self._as_table)

    def to_pandas(self) -> Awaitable[pd.DataFrame]:
        """All rows that are left, as a DataFrame."""
        return run_awaitable(self._engine, self._rest, self._as_frame)
