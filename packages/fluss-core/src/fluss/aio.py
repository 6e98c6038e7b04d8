"""The awaited dialect, which is that of pyfluss 1.x: `import fluss.aio as fluss`.

What waits is awaited, reads included; `get_admin` is plain; connections and writers work with
`async with`, scanners with `async for`. A call that is awaited has started when it returns, needs a
running event loop (asyncio or trio), and goes on if nobody awaits it. Only what differs from the
documented dialect is here; the rest is the same.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from contextlib import aclosing
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

import anyio.to_thread
import pyarrow as pa

from fluss import __version__
from fluss.client.batch_scanner import BatchScannerBase
from fluss.client.calls import awaited
from fluss.client.fluss_admin import FlussAdmin
from fluss.client.fluss_connection import FlussConnectionBase
from fluss.client.fluss_table import FlussTableBase
from fluss.client.log_scanner import LogScannerBase, checked_timeout
from fluss.client.lookupers import Lookuper, PrefixLookuper, TableLookup, TablePrefixLookup
from fluss.client.scan_records import RecordBatch, ScanRecord, ScanRecords
from fluss.client.table_scan import TableScanBase
from fluss.client.writers import (
    AppendWriter,
    TableAppend,
    TableUpsert,
    UpsertWriter,
    WriteResultHandle,
)
from fluss.engine.fetcher import Fetched
from fluss.error_codes import ErrorCode
from fluss.errors import FlussError
from fluss.model.change_type import ChangeType
from fluss.model.cluster import LakeSnapshot, ServerNode
from fluss.model.config import Config
from fluss.model.data_types import DataTypes
from fluss.model.database import DatabaseDescriptor, DatabaseInfo
from fluss.model.offsets import EARLIEST_OFFSET, LATEST_OFFSET, OffsetSpec, OffsetType
from fluss.model.partitions import PartitionInfo, PartitionSpec
from fluss.model.paths import TableBucket, TablePath
from fluss.model.predicate import ColumnRef, Predicate, col
from fluss.model.schema import Schema
from fluss.model.table import TableDescriptor
from fluss.model.table_info import TableInfo
from fluss.model.table_options import KvFormat, LogFormat
from fluss.model.types import DataField

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "EARLIEST_OFFSET",
    "LATEST_OFFSET",
    "AppendWriter",
    "BatchScanner",
    "ChangeType",
    "ColumnRef",
    "Config",
    "DataField",
    "DataTypes",
    "DatabaseDescriptor",
    "DatabaseInfo",
    "ErrorCode",
    "FlussAdmin",
    "FlussConnection",
    "FlussError",
    "FlussTable",
    "KvFormat",
    "LakeSnapshot",
    "LogFormat",
    "LogScanner",
    "Lookuper",
    "OffsetSpec",
    "OffsetType",
    "PartitionInfo",
    "PartitionSpec",
    "Predicate",
    "PrefixLookuper",
    "RecordBatch",
    "ScanRecord",
    "ScanRecords",
    "Schema",
    "ServerNode",
    "TableAppend",
    "TableBucket",
    "TableDescriptor",
    "TableInfo",
    "TableLookup",
    "TablePath",
    "TablePrefixLookup",
    "TableScan",
    "TableUpsert",
    "UpsertWriter",
    "WriteResultHandle",
    "__version__",
    "col",
]

# How long `async for` waits for rows at a time; it goes on waiting in any case.
FOLLOW_WAIT_MS = 1_000


class LogScanner(LogScannerBase):
    """Reads a table's log; what reads is awaited, and `async for` reads on and on."""

    def poll(self, timeout_ms: int) -> Awaitable[ScanRecords]:
        """The records that came in since the last poll; waits for some, at most `timeout_ms`."""
        taken = partial(self._polled, timeout_ms, batches=False, method="poll()")
        return awaited(self._engine, taken, self._as_records)

    def poll_arrow(self, timeout_ms: int) -> Awaitable[pa.Table]:
        """The rows that came in since the last poll; waits for some, at most `timeout_ms`."""
        taken = partial(self._polled, timeout_ms, batches=True, method="poll_arrow()")
        return awaited(self._engine, taken, self._as_table)

    def poll_record_batch(self, timeout_ms: int) -> Awaitable[list[RecordBatch]]:
        """The batches that came in since the last poll, with buckets and offsets."""
        taken = partial(self._polled, timeout_ms, batches=True, method="poll_record_batch()")
        return awaited(self._engine, taken, self._as_batches)

    poll_batches = poll_record_batch

    def to_arrow(self) -> Awaitable[pa.Table]:
        """All rows from the subscribed offsets to the end of now; again the same when repeated."""
        return self._engine.submit(self._table_to_end(method="to_arrow()"))

    def to_pandas(self) -> Awaitable[pd.DataFrame]:
        """The same as `to_arrow`, as a DataFrame."""
        table = partial(self._table_to_end, method="to_pandas()")
        return awaited(self._engine, table, _frame_of)

    # A scanner of the other kind is told when the answer is awaited, as pyfluss does it.

    async def _polled(self, timeout_ms: int, *, batches: bool, method: str) -> list[Fetched]:
        self._check_kind(batches=batches, method=method)
        return await self._take(checked_timeout(timeout_ms))

    async def _table_to_end(self, *, method: str) -> pa.Table:
        self._check_kind(batches=True, method=method)
        batches: list[pa.RecordBatch] = []
        async with aclosing(self._core.read_to_end()) as source:
            async for fetched in source:
                # Decoded by workers while more is fetched, and on no event loop.
                batches += await anyio.to_thread.run_sync(self._batches_of, fetched)
        return pa.Table.from_batches(batches, schema=self._core.schema)

    def _batches_of(self, fetched: list[Fetched]) -> list[pa.RecordBatch]:
        return [each.batch for each in self._decode(fetched)]

    def __aiter__(self) -> AsyncIterator[ScanRecord | RecordBatch]:
        """Records, or batches, as they come, without an end.

        Raises:
            FlussError: Nothing is subscribed when it begins.
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
    """Reads a few rows of one bucket; what reads is awaited."""

    def next_batch(self) -> Awaitable[RecordBatch | None]:
        """The next batch of rows; None behind the last."""
        return self._engine.submit(self._next())

    def collect_all_batches(self) -> Awaitable[list[RecordBatch]]:
        """All batches that are left."""
        return awaited(self._engine, self._rest, self._as_batches)

    def to_arrow(self) -> Awaitable[pa.Table]:
        """All rows that are left, as a table."""
        return awaited(self._engine, self._rest, self._as_table)

    def to_pandas(self) -> Awaitable[pd.DataFrame]:
        """All rows that are left, as a DataFrame."""
        return awaited(self._engine, self._rest, self._as_frame)


class TableScan(TableScanBase[LogScanner, BatchScanner]):
    """What to read of a table."""

    _log_scanner = LogScanner
    _batch_scanner = BatchScanner


class FlussTable(FlussTableBase[TableScan]):
    """A table to read and write."""

    _scan = TableScan


class FlussConnection(FlussConnectionBase[FlussTable]):
    """A connection to a cluster; `async with` and `with` close it."""

    _table = FlussTable

    def get_admin(self) -> FlussAdmin:
        """What administers the cluster."""
        return FlussAdmin(self._engine, self._core.admin)

    def close(self) -> Awaitable[None]:
        """Deliver what was written, and close it."""
        return self._engine.submit(self._core.close())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> Literal[False]:
        await self.close()
        return False
