"""Many tables in the awaited dialect, by the names of Java's `MultiTable`.

`connection.get_multi_table()` has a writer that accepts records of many tables, and a scanner of
the logs of many tables. They share their implementation with sessions (`write.many_writer`,
`log.many_log_scan`). Two differences from Java: the writer is thread-safe, and the scanner returns
rows in the schema that the table had when it was subscribed, not each row in its own.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal, Self, TypeAlias

import anyio.to_thread

from fluss.connection.arguments import check_bucket_id, check_partitioned, table_path_of
from fluss.connection.connection import ClientConnection
from fluss.dialects.log_scanner import checked_timeout
from fluss.dialects.scan_records import ScanRecord, ScanRecords
from fluss.errors import FlussError, InvalidValueError
from fluss.log.decode import DecodedBatch, Decoder
from fluss.log.fetch_messages import Fetched, read_headers
from fluss.log.many_log_scan import ManyLogScan
from fluss.model.offsets import EARLIEST_OFFSET, LATEST_OFFSET, OffsetSpec
from fluss.model.paths import TableBucket, TablePath
from fluss.model.tables.table_info import TableInfo
from fluss.net.leader_requests import find_partition_path
from fluss.net.list_offsets import list_offsets
from fluss.write.flush_report import FlushReport
from fluss.write.many_writer import ManyWriter
from fluss.write.write_result import WriteResultHandle

Row: TypeAlias = Mapping[str, Any] | Sequence[Any]
Operation: TypeAlias = Literal["append", "upsert", "delete"]


@dataclass(frozen=True, slots=True)
class MultiTableWriteRecord:
    """One row and its table; `for_append`, `for_upsert` and `for_delete` create it.

    Attributes:
        table_path: The table.
        operation: `append`, `upsert` or `delete`.
        row: The row, or the key to delete: a dict by column name, or a tuple by position.
    """

    table_path: TablePath
    operation: Operation
    row: Row

    @classmethod
    def for_append(cls, table_path: TablePath | str, row: Row) -> Self:
        """A row for a log table."""
        return cls(table_path_of(table_path), "append", row)

    @classmethod
    def for_upsert(cls, table_path: TablePath | str, row: Row) -> Self:
        """A row for a primary-key table."""
        return cls(table_path_of(table_path), "upsert", row)

    @classmethod
    def for_delete(cls, table_path: TablePath | str, row: Row) -> Self:
        """The key of a row to delete."""
        return cls(table_path_of(table_path), "delete", row)


class MultiTableWriter:
    """Writes records to many tables; `async with` flushes at its end. Any thread may use it."""

    def __init__(self, connection: ClientConnection) -> None:
        self._engine = connection.engine
        self._core = ManyWriter(connection, None, clock=time.monotonic)

    def write(self, record: MultiTableWriteRecord) -> WriteResultHandle:
        """Accept one record. The first record of a table waits for the metadata of the table.

        Raises:
            TableNotFoundError: There is no such table.
            InvalidValueError: A value does not fit its column; the record was not accepted.
            UnsupportedOperationError: The table does not support the operation.
        """
        row = tuple(record.row) if isinstance(record.row, list) else record.row
        handle: WriteResultHandle
        (handle,) = self._core.take(record.table_path, record.operation, row)
        return handle

    def flush(self) -> Awaitable[FlushReport]:
        """Wait until all accepted records are written; the result is the report by table.

        Raises:
            FlussError: Rows of a table could not be written; those of the other tables were.
        """
        core, raised_before = self._core, self._core.failures_raised
        return self._engine.submit_and_convert(
            self._flushed(), lambda _: core.outcome(raised_before)
        )

    async def _flushed(self) -> None:
        await self._core.flush()

    def close(self) -> Awaitable[FlushReport]:
        """Flush, and accept no more records."""
        self._core.close()
        return self.flush()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: object = None, exc_value: object = None, traceback: object = None
    ) -> Literal[False]:
        if exc_type is None:
            await self.close()
        return False

    def __repr__(self) -> str:
        return f"MultiTableWriter(tables={len(self._core.tables)})"


@dataclass(frozen=True, slots=True)
class MultiTableRecord:
    """One record of a table."""

    table_path: TablePath
    table_id: int
    scan_record: ScanRecord


class MultiTableRecords:
    """The records of one poll, by table and bucket."""

    def __init__(
        self,
        found: Mapping[TablePath, tuple[TableInfo, ScanRecords]],
        consumed: Mapping[TableBucket, int],
    ) -> None:
        self._found = found
        self._consumed = consumed

    def table_paths(self) -> list[TablePath]:
        """The tables that have records."""
        return list(self._found)

    def buckets(self, table_path: TablePath | str) -> list[TableBucket]:
        """The buckets of a table that have records."""
        found = self._found.get(table_path_of(table_path))
        return [] if found is None else found[1].buckets()

    def records(
        self, table_path: TablePath | str, bucket: TableBucket | None = None
    ) -> list[MultiTableRecord]:
        """The records of a table, or of one of its buckets, in order."""
        path = table_path_of(table_path)
        if path not in self._found:
            return []
        info, records = self._found[path]
        given = list(records) if bucket is None else records.records(bucket)
        return [MultiTableRecord(path, info.table_id, record) for record in given]

    def count(self) -> int:
        """How many records there are."""
        return sum(records.count() for _, records in self._found.values())

    def is_empty(self) -> bool:
        """Whether there are none."""
        return not self.count()

    def has_progress(self) -> bool:
        """Whether the position in any bucket has advanced, even without a record."""
        return bool(self._consumed)

    def consumed_up_to_offset(self, bucket: TableBucket) -> int | None:
        """The offset after the last one that this poll read in a bucket; None if it read none."""
        return self._consumed.get(bucket)

    def __len__(self) -> int:
        return self.count()

    def __iter__(self) -> Iterator[MultiTableRecord]:
        for path in self._found:
            yield from self.records(path)

    def __repr__(self) -> str:
        return f"MultiTableRecords(tables={len(self._found)}, records={self.count()})"


@dataclass(frozen=True, slots=True, eq=False)
class _Subscribed:
    info: TableInfo
    decoder: Decoder
    subscribe: Callable[[Mapping[TableBucket, int]], None]


_NO_BUCKET_OFFSET: Final = "EARLIEST_OFFSET is -2, LATEST_OFFSET is -1."


class MultiTableLogScanner:
    """Reads the logs of many tables; calls are awaited. One task at a time may use it."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._engine = connection.engine
        self._scan = ManyLogScan(connection)
        self._tables: dict[TablePath, _Subscribed] = {}
        self._buckets: set[TableBucket] = set()
        self._waiting: list[Fetched] = []

    def subscribe(
        self, table_path: TablePath | str, bucket_id: int, start_offset: int
    ) -> Awaitable[None]:
        """Subscribe to a bucket of a table without partitions, from an offset on."""
        return self._engine.submit(self._subscribe(table_path, None, bucket_id, start_offset))

    def subscribe_from_beginning(
        self, table_path: TablePath | str, bucket_id: int
    ) -> Awaitable[None]:
        """Subscribe to a bucket, from the beginning of its log."""
        return self.subscribe(table_path, bucket_id, EARLIEST_OFFSET)

    def subscribe_partition(
        self, table_path: TablePath | str, partition_id: int, bucket_id: int, start_offset: int
    ) -> Awaitable[None]:
        """Subscribe to a bucket of a partition, from an offset on."""
        work = self._subscribe(table_path, partition_id, bucket_id, start_offset)
        return self._engine.submit(work)

    async def _subscribe(
        self, table_path: TablePath | str, partition_id: int | None, bucket_id: int, offset: int
    ) -> None:
        path = table_path_of(table_path)
        table = self._tables.get(path)
        if table is None:
            core = await self._connection.table(path)
            decoder = Decoder(core, None)
            subscribe = partial(self._scan.subscribe, core, decoder.fetch_target)
            table = _Subscribed(core.info, decoder, subscribe)
        check_partitioned(
            table.info,
            expected=partition_id is not None,
            hint="subscribe_partition(...) reads a partition, subscribe(...) a whole table.",
        )
        if offset < EARLIEST_OFFSET:
            raise InvalidValueError(f"There is no offset {offset}.", hint=_NO_BUCKET_OFFSET)
        if partition_id is None:
            check_bucket_id(table.info, bucket_id)
        bucket = TableBucket.with_partition(table.info.table_id, partition_id, bucket_id)
        if offset == LATEST_OFFSET:
            # Resolved now, so that no row that is written after the subscription is missed.
            cluster = self._connection.cluster
            place = await find_partition_path(cluster, path, partition_id)
            offset = (await list_offsets(cluster, {bucket: place}, OffsetSpec.latest()))[bucket]
        self._tables[path] = table
        self._buckets.add(bucket)
        self._forget(bucket)
        table.subscribe({bucket: offset})

    def unsubscribe(
        self, table_path: TablePath | str, bucket_id: int, *, partition_id: int | None = None
    ) -> None:
        """Stop reading a bucket. After its last one, a table may be dropped and created again."""
        path = table_path_of(table_path)
        table = self._tables.get(path)
        if table is None:
            return
        table_id = table.info.table_id
        bucket = TableBucket.with_partition(table_id, partition_id, bucket_id)
        self._buckets.discard(bucket)
        self._forget(bucket)
        self._scan.unsubscribe(bucket)
        if not any(left.table_id == table_id for left in self._buckets):
            del self._tables[path]

    def _forget(self, bucket: TableBucket) -> None:
        self._waiting = [fetch for fetch in self._waiting if fetch.bucket != bucket]

    def poll(self, timeout_ms: int) -> Awaitable[MultiTableRecords]:
        """Return the records that have arrived since the last poll, or wait for some.

        Args:
            timeout_ms: The longest wait.

        Raises:
            FlussError: A bucket cannot be read; the attribute `table` names its table. The other
                buckets can be read.
        """
        return self._engine.submit(self._polled(checked_timeout(timeout_ms)))

    async def _polled(self, timeout_ms: int) -> MultiTableRecords:
        if not self._waiting:
            self._waiting += await self._scan.take(timeout_ms / 1_000)
        found = await anyio.to_thread.run_sync(self._decoded, list(self._waiting))
        self._waiting.clear()  # last, so that the next poll returns the rows of a cancelled one
        return found

    def _decoded(self, fetched: Sequence[Fetched]) -> MultiTableRecords:
        by_id = {table.info.table_id: table for table in self._tables.values()}
        batches: dict[TablePath, list[DecodedBatch]] = {}
        consumed: dict[TableBucket, int] = {}
        for fetch in fetched:
            table = by_id.get(fetch.bucket.table_id)
            if table is None or fetch.bucket not in self._buckets:
                continue
            path = table.info.table_path
            try:
                batches.setdefault(path, []).extend(table.decoder.decode(fetch))
            except FlussError as error:
                raise error.add_context(table=str(path)) from None
            end = read_headers(fetch.data, magic_1=self._connection.magic_1).next_offset
            if end is not None:
                consumed[fetch.bucket] = end
        records = {
            path: (self._tables[path].info, ScanRecords(found, self._tables[path].decoder.types))
            for path, found in batches.items()
            if found
        }
        return MultiTableRecords(records, consumed)

    def close(self) -> Awaitable[None]:
        """Stop reading."""
        return self._engine.submit(self._scan.close())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: object = None, exc_value: object = None, traceback: object = None
    ) -> Literal[False]:
        await self.close()
        return False

    def __repr__(self) -> str:
        return f"MultiTableLogScanner(tables={len(self._tables)}, buckets={len(self._buckets)})"


class MultiTableWrite:
    """Creates writers of many tables."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection

    def create_writer(self) -> MultiTableWriter:
        """Create a writer."""
        return MultiTableWriter(self._connection)


class MultiTableScan:
    """Creates scanners of many tables."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection

    def create_log_scanner(self) -> MultiTableLogScanner:
        """Create a scanner of logs."""
        return MultiTableLogScanner(self._connection)


class MultiTable:
    """Writes and reads many tables of a connection."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection

    def new_multi_table_write(self) -> MultiTableWrite:
        """Return what creates writers."""
        return MultiTableWrite(self._connection)

    def new_multi_table_scan(self) -> MultiTableScan:
        """Return what creates scanners."""
        return MultiTableScan(self._connection)
