"""The awaited dialect, where it differs: reads are awaited, and `async for` never ends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

import anyio.to_thread
import pyarrow as pa

from fluss.admin.admin import admin_of
from fluss.dialects.batch_scanner import BatchScannerBase
from fluss.dialects.fluss_connection import FlussAdmin, FlussConnectionBase, FlussTableBase
from fluss.dialects.log_scanner import LogScannerBase, checked_timeout
from fluss.dialects.multi_table import MultiTable
from fluss.dialects.scan_records import RecordBatch, ScanRecord, ScanRecords
from fluss.dialects.table_scan import TableScanBase
from fluss.errors import FlussError
from fluss.log.decode_pool import decode_while_fetching
from fluss.net.engine_thread import Engine
from fluss.net.handoff import answer_of

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
R = TypeVar("R")

# How long each poll of `async for` waits.
FOLLOW_WAIT_MS = 1_000


class LogScanner(LogScannerBase):
    """Reads a table's log; reads are awaited, and `async for` follows the log without an end."""

    def poll(self, timeout_ms: int) -> Awaitable[ScanRecords]:
        """The records that came in since the last poll; waits for some, at most `timeout_ms`."""
        return self._polled(timeout_ms, self._give_records, batches=False, method="poll()")

    def poll_arrow(self, timeout_ms: int) -> Awaitable[pa.Table]:
        """The rows that came in since the last poll; waits for some, at most `timeout_ms`."""
        return self._polled(timeout_ms, self._give_table, batches=True, method="poll_arrow()")

    def poll_record_batch(self, timeout_ms: int) -> Awaitable[list[RecordBatch]]:
        """The batches that came in since the last poll, with buckets and offsets."""
        method = "poll_record_batch()"
        return self._polled(timeout_ms, self._give_batches, batches=True, method=method)

    poll_batches = poll_record_batch

    def to_arrow(self) -> Awaitable[pa.Table]:
        """All rows from the subscribed offsets to the current end of the log; repeatable."""
        return self._engine.submit(self._table_to_end(method="to_arrow()"))

    def to_pandas(self) -> Awaitable[pd.DataFrame]:
        """The same as `to_arrow`, as a DataFrame."""
        table = partial(self._table_to_end, method="to_pandas()")
        return _converted(self._engine, table, _frame_of)

    # The wrong kind of scanner is reported when the result is awaited, as in pyfluss.

    def _polled(
        self, timeout_ms: int, give: Callable[[], R], *, batches: bool, method: str
    ) -> Awaitable[R]:
        if not batches and self._has_enough_rows():
            # Without crossing to the engine: an awaited call takes 35 µs for that (performance.md).
            # The rows are given on the caller's loop in both cases.
            return answer_of(partial(self._answer_now, timeout_ms, give))
        filling = self._fill(timeout_ms, batches=batches, method=method)
        return self._engine.submit_and_convert(filling, lambda _: give())

    def _answer_now(self, timeout_ms: int, give: Callable[[], R]) -> R:
        """The answer of a poll that needs to wait for nothing."""
        checked_timeout(timeout_ms)
        self._core.check_open()
        return give()

    async def _fill(self, timeout_ms: int, *, batches: bool, method: str) -> None:
        """Fill the inbox with decoded rows; a cancelled poll leaves them to the next."""
        self._check_kind(batches=batches, method=method)
        timeout_ms = checked_timeout(timeout_ms)
        if not self._is_filled():
            await self._take(timeout_ms)
            await anyio.to_thread.run_sync(self._decode)

    async def _table_to_end(self, *, method: str) -> pa.Table:
        self._check_kind(batches=True, method=method)
        batches: list[pa.RecordBatch] = []
        async with (
            aclosing(self._core.read_to_end(takes_all=True)) as source,
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
        return _converted(self._engine, self._rest, self._as_batches)

    def to_arrow(self) -> Awaitable[pa.Table]:
        """All rows that are left, as a table."""
        return _converted(self._engine, self._rest, self._as_table)

    def to_pandas(self) -> Awaitable[pd.DataFrame]:
        """All rows that are left, as a DataFrame."""
        return _converted(self._engine, self._rest, self._as_frame)


class TableScan(TableScanBase[LogScanner, BatchScanner]):
    """Describes what to read of a table."""

    _log_scanner = LogScanner
    _batch_scanner = BatchScanner


class FlussTable(FlussTableBase[TableScan]):
    """A table to read and write."""

    _scan = TableScan


class FlussConnection(FlussConnectionBase[FlussTable]):
    """A connection to a cluster; `async with` and `with` close it."""

    _table = FlussTable

    def get_admin(self) -> FlussAdmin:
        """The administrator of the cluster."""
        return FlussAdmin(self._engine, admin_of(self._core))

    def get_multi_table(self) -> MultiTable:
        """Many tables, to write and to read by one writer and one scanner."""
        return MultiTable(self._core)

    def close(self) -> Awaitable[None]:
        """Deliver what was written, and close the connection."""
        return self._engine.submit(self._core.close())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: object = None, exc_value: object = None, traceback: object = None
    ) -> Literal[False]:
        await self.close()
        return False


def _converted(
    engine: Engine, begin: Callable[[], Coroutine[Any, Any, T]], convert: Callable[[T], R]
) -> Awaitable[R]:
    """Start work on the engine; its result is converted on a worker, to spare the caller's loop.

    Args:
        engine: Where the work runs.
        begin: Makes the work, on the engine: work that is cancelled before it begins is never made.
        convert: Makes the caller's result of the result of the work.
    """

    async def converted() -> R:
        return await anyio.to_thread.run_sync(convert, await begin())

    return engine.submit(converted())
