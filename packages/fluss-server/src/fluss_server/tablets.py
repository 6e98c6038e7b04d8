"""The open buckets: their log, their rows by key, their lock, and the fetches that wait for them.

The lock of a bucket is fair. A request that writes, or that reads by key, holds it, on the event
loop or on a storage thread; requests get it in the order in which they arrive. Reading the log
needs no lock. A log is opened when it is first used, and all logs at the start after a crash. Arrow
and numpy are imported with the first log, so that a server starts without them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fluss.error_codes import ErrorCode
from fluss.errors import FlussError
from fluss.model.paths import TableBucket
from fluss_server.catalog.catalog_entries import PartitionEntry, TableEntry
from fluss_server.data_directory import OpenDirectory
from fluss_server.data_layout import kv_directory, log_directory, snapshot_directory
from fluss_server.fair_lock import FairLock
from fluss_server.put_request import KvTable
from fluss_server.server_config import ServerConfig
from fluss_server.server_errors import request_error
from fluss_server.snapshots.snapshot_files import SnapshotFiles

if TYPE_CHECKING:
    from fluss_server.kv.kv_tablet import KvTablet
    from fluss_server.log.bucket_log import BucketLog
    from fluss_server.table_schemas import TableSchemas

_LOG = logging.getLogger(__name__)
_FILES_OPEN_MAX: Final = 400

BucketKey = tuple[int, int | None, int]


class Tablet:
    """One open bucket.

    Args:
        table: Its table.
        log: Its log.
        directory: The directory of its table or partition.
        partition: Its partition, where the table has partitions.
    """

    def __init__(
        self,
        table: TableEntry,
        log: BucketLog,
        directory: Path,
        partition: PartitionEntry | None = None,
    ) -> None:
        self.table = table
        self.log = log
        self.lock = FairLock()
        self.state: KvTablet | None = None
        self.snapshots = SnapshotFiles(
            snapshot_directory(directory, log.bucket.bucket_id),
            log.bucket,
            log.identity.directory_id,
        )
        self.is_dropped = False
        self.schemas = _schemas_of(table)
        self._directory = directory
        self._partition = partition
        self._waiting: set[asyncio.Event] = set()

    @property
    def bucket(self) -> TableBucket:
        """The id of the bucket."""
        return self.log.bucket

    @property
    def kv_directory(self) -> Path:
        """The directory of its rows by key."""
        return kv_directory(self._directory, self.bucket.bucket_id)

    def check_exists(self) -> None:
        """Refuse a request that arrived before the bucket was dropped and runs afterwards.

        Raises:
            LeaderChangedError: The bucket has been dropped; the code is 21.
        """
        if self.is_dropped:
            raise _unknown(self.bucket)

    def check_routing(self, bucket_count: int | None) -> None:
        """Refuse a request whose client placed its rows or keys by another number of buckets.

        A client that sends no number predates rescaled tables, and is refused for these.

        Raises:
            ServerError: The number is wrong, or missing; the code is 74.
        """
        actual = self.table.buckets_of(self._partition)
        if bucket_count == actual:
            return
        is_given = bucket_count is not None and bucket_count > 0
        if not is_given and not self.table.bucket_count_epoch:
            return
        found = f"its client counts {bucket_count}" if is_given else "its client sends no count"
        raise request_error(
            ErrorCode.INVALID_BUCKET_ROUTING,
            f"The bucket routing information is missing or invalid: {self.bucket} is one of "
            f"{actual} buckets, and {found}. Refresh the partition metadata and rebuild the "
            "request.",
        )

    def open_state(self, take_numbers: Callable[[int, int, int], int]) -> KvTablet:
        """Return the rows by key, opened if need be.

        Runs on a storage thread; the caller holds the bucket's lock.

        Args:
            take_numbers: The counter of auto-increment columns: table id, column id, how many.

        Raises:
            FlussError: The rows or their log are damaged.
        """
        if self.state is None:
            from fluss_server.kv.kv_tablet import KvTablet

            # Opening applies the log to the store, so the log must be on the disk first.
            self.log.sync()
            self.state = KvTablet.open(
                directory=self.kv_directory,
                log=self.log,
                table=self._kv_table,
                take_range=self._range_taker(take_numbers),
                identity=self.log.identity.to_bytes(),
            )
        return self.state

    def change_table(self, table: TableEntry) -> None:
        """Apply ALTER TABLE. The caller holds the bucket's lock."""
        if table.schema_id != self.table.schema_id:
            self.schemas = _schemas_of(table)
        self.table = table
        if self.state is not None:
            self.state.change_table(self._kv_table)

    def close(self) -> None:
        """Close state and log, so that the next start is quick. Any thread may call it."""
        state, self.state = self.state, None
        if state is not None:
            self.log.sync()
            state.close()
        self.log.close()

    def abandon(self) -> None:
        """Close the files of a dropped bucket."""
        state, self.state = self.state, None
        if state is not None:
            with contextlib.suppress(FlussError):  # its rows are deleted anyway
                state.close()
        self.log.abandon()

    def await_rows(self, event: asyncio.Event) -> None:
        """Register an event that is set when rows are published or the bucket is dropped."""
        self._waiting.add(event)

    def forget(self, event: asyncio.Event) -> None:
        """Unregister the event."""
        self._waiting.discard(event)

    def wake(self) -> None:
        """Set the registered events."""
        for event in self._waiting:
            event.set()

    @property
    def _kv_table(self) -> KvTable:
        return KvTable(
            info=self.table.info,
            schemas=self.table.schemas,
            partition_name=None if self._partition is None else self._partition.name,
        )

    def _range_taker(
        self, take_numbers: Callable[[int, int, int], int]
    ) -> Callable[[int], int] | None:
        schema = self.table.descriptor.schema
        if not schema.auto_increment_columns:
            return None
        position = schema.column_index(schema.auto_increment_columns[0])
        return partial(take_numbers, self.table.table_id, position)


class Tablets:
    """All open buckets; used on the event loop.

    Args:
        config: The server's configuration.
        opened: Its data directory.
    """

    def __init__(self, config: ServerConfig, opened: OpenDirectory) -> None:
        self._config = config
        self._catalog = opened.catalog
        self._ledger = opened.ledger
        self._adopts = opened.adopts
        self._open: dict[BucketKey, Tablet] = {}

    def __iter__(self) -> Iterator[Tablet]:
        return iter(list(self._open.values()))

    def find(self, table_id: int, partition_id: int | None, bucket_id: int) -> Tablet:
        """Return a bucket, opened if need be.

        Raises:
            LeaderChangedError: The bucket does not exist; the code is 21.
            LocalServerError: Its files are damaged.
        """
        found = self._open.get((table_id, partition_id, bucket_id))
        return found if found is not None else self._open_one(table_id, partition_id, bucket_id)

    def find_routed(
        self,
        table_id: int,
        partition_id: int | None,
        bucket_id: int,
        *,
        bucket_count: int | None,
    ) -> Tablet:
        """Return a bucket for a request that was routed by a bucket count; None for no count.

        Raises:
            ServerError: The count is wrong, or missing for a rescaled table; the code is 74.
            LeaderChangedError: The bucket does not exist; the code is 21.
            LocalServerError: Its files are damaged.
        """
        tablet = self.find(table_id, partition_id, bucket_id)
        tablet.check_routing(bucket_count)
        return tablet

    def of_table(self, table_id: int, partition_id: int | None = None) -> list[Tablet]:
        """Return the open buckets of a table, or of one of its partitions."""
        return [
            tablet
            for (table, partition, _), tablet in self._open.items()
            if table == table_id and partition_id in {None, partition}
        ]

    def open_all(self) -> None:
        """Open every bucket that has files. Any thread may call it before the server listens."""
        for table in self._catalog.tables:
            for partition in self._parents_of(table):
                directory = self._config.directory / self._catalog.directory_of(table, partition)
                partition_id = None if partition is None else partition.partition_id
                for bucket in range(table.buckets_of(partition)):
                    if log_directory(directory, bucket).is_dir():
                        self.find(table.table_id, partition_id, bucket)

    async def change_table(self, table: TableEntry) -> None:
        """Apply ALTER TABLE to the open buckets."""
        for tablet in self.of_table(table.table_id):
            async with tablet.lock.reserve():
                tablet.change_table(table)

    async def drop(self, table_id: int, partition_id: int | None = None) -> None:
        """Close the buckets of a dropped table or partition; `find` no longer returns them."""
        for tablet in self.of_table(table_id, partition_id):
            del self._open[
                tablet.bucket.table_id, tablet.bucket.partition_id, tablet.bucket.bucket_id
            ]
            tablet.is_dropped = True
            tablet.wake()
            async with tablet.lock.reserve():
                await asyncio.to_thread(tablet.abandon)

    def close_idle_files(self) -> None:
        """Close the files of idle buckets where many are open."""
        if len(self._open) > _FILES_OPEN_MAX:
            for tablet in self:
                if not tablet.lock.is_held:
                    tablet.log.close_files()

    def close(self) -> None:
        """Close all buckets, so that the next start is quick. Any thread may call it.

        Raises:
            FlussError: A bucket could not be written; the others are closed all the same.
            OSError: The disk refused; the others are closed all the same.
        """
        failures: list[FlussError | OSError] = []
        for tablet in self:
            try:
                tablet.close()
            except (FlussError, OSError) as error:
                _LOG.exception("%s could not be closed", tablet.bucket)
                failures.append(error)
        if failures:
            raise failures[0]

    def _parents_of(self, table: TableEntry) -> list[PartitionEntry] | list[None]:
        if table.info.is_partitioned():
            return self._catalog.partitions_of(table)
        return [None]

    def _open_one(self, table_id: int, partition_id: int | None, bucket_id: int) -> Tablet:
        table = self._catalog.find_table_by_id(table_id)
        bucket = TableBucket(table_id, bucket_id, partition_id=partition_id)
        if table is None:
            raise _unknown(bucket)
        partition = None
        if partition_id is not None:
            partition = self._catalog.find_partition_by_id(partition_id)
        belongs = partition is not None and partition.table_id == table_id
        if table.info.is_partitioned() != belongs or (partition_id is not None and not belongs):
            raise _unknown(bucket)
        if not 0 <= bucket_id < table.buckets_of(partition):
            raise _unknown(bucket)
        directory = self._config.directory / self._catalog.directory_of(table, partition)
        from fluss_server.log.log_recovery import open_log

        log = open_log(
            bucket,
            log_directory(directory, bucket_id),
            segment_bytes=self._config.segment_bytes,
            is_durable=self._config.is_durable,
            entry=self._ledger.entry(bucket),
            adopts=self._adopts,
        )
        made = Tablet(table, log, directory, partition)
        # Before a write makes the log as long as a snapshot of changes that it has lost.
        made.snapshots.load(end_offset=log.end_offset)
        self._open[table_id, partition_id, bucket_id] = made
        return made


def _unknown(bucket: TableBucket) -> Exception:
    return request_error(
        ErrorCode.UNKNOWN_TABLE_OR_BUCKET_EXCEPTION, f"This server has no bucket {bucket}."
    )


def _schemas_of(table: TableEntry) -> TableSchemas:
    from fluss_server.table_schemas import TableSchemas

    return TableSchemas(table.schemas, table.descriptor.options.log_format)
