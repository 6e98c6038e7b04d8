"""Scans logs: subscriptions, and rows as they come or up to the current end.

A core holds the subscriptions of a scanner. Its reading coroutines run on the engine's loop and
return fetched bytes; the caller decodes them on its own thread. Following a log uses one fetcher,
which runs ahead of the reader. Reading up to the end uses a `RangeReader` each time, from the
subscribed offsets to where the leaders' logs end when they are first asked.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import AsyncGenerator, Mapping, Sequence

from fluss.connection.arguments import check_bucket_id, check_partitioned
from fluss.connection.connection import TableHandle
from fluss.errors import ClosedError, FlussError, InvalidValueError
from fluss.log.decode import Decoder
from fluss.log.fetch_messages import Fetched
from fluss.log.fetcher import Fetcher
from fluss.log.log_services import fetch_limits
from fluss.log.plan_fetch import Position
from fluss.log.range_reader import RangeReader
from fluss.model.offsets import EARLIEST_OFFSET, LATEST_OFFSET, OffsetSpec
from fluss.model.paths import PhysicalTablePath, TableBucket
from fluss.model.predicates.predicate import Predicate
from fluss.model.tables.table_info import TableInfo
from fluss.net.engine_thread import Engine
from fluss.net.leader_requests import find_partition_path
from fluss.net.list_offsets import list_offsets


class LogScanCore:
    """The subscriptions of one scanner, and their rows. Any thread may call it.

    Args:
        table: The table.
        columns: The positions of the columns, in the requested order; None for all.
        predicate: Which rows to return; None for all.
    """

    def __init__(
        self,
        table: TableHandle,
        columns: Sequence[int] | None = None,
        predicate: Predicate | None = None,
    ) -> None:
        self._handle = table
        self.table: TableInfo = table.info
        self.decoder = Decoder(table, columns, predicate)
        self.schema = self.decoder.schema
        self._lock = threading.Lock()
        self._offsets: dict[TableBucket, int] = {}
        self._follower: Fetcher | None = None
        self._fetchers: set[Fetcher | RangeReader] = set()
        self._closed = False
        # A scanner without references stops fetching; its fetchers do not refer to it.
        finalizer = weakref.finalize(self, _close_all, table.connection.engine, self._fetchers)
        finalizer.atexit = False

    # --- subscriptions ------------------------------------------------------------------------

    def subscribe(self, bucket_offsets: Mapping[int, int]) -> None:
        """Read buckets of a table without partitions from these offsets on."""
        hint = (
            "Use subscribe_partition(partition_id, bucket_id, start_offset); "
            "admin.list_partition_infos() gives the ids."
        )
        check_partitioned(self.table, expected=False, hint=hint)
        self._subscribe([(None, bucket, offset) for bucket, offset in bucket_offsets.items()])

    def subscribe_partitions(self, offsets: Mapping[tuple[int, int], int]) -> None:
        """Read buckets of a partitioned table, by (partition id, bucket), from these offsets on."""
        hint = "Use subscribe(bucket_id, start_offset)."
        check_partitioned(self.table, expected=True, hint=hint)
        self._subscribe([(*place, offset) for place, offset in offsets.items()])

    def _subscribe(self, places: Sequence[tuple[int | None, int, int]]) -> None:
        checked = {}
        for partition_id, bucket_id, offset in places:
            self._check_bucket(partition_id, bucket_id)
            _check_offset(offset)
            bucket = TableBucket.with_partition(self.table.table_id, partition_id, bucket_id)
            checked[bucket] = offset
        self.check_open()
        latest = [bucket for bucket, offset in checked.items() if offset == LATEST_OFFSET]
        if latest:
            # Found now, and not when rows are fetched: a subscription at the latest offset includes
            # all rows that are written after it, by any client.
            checked |= self._handle.connection.engine.run(self._log_ends(latest))
        with self._lock:
            self.check_open()
            self._offsets |= checked
            self._handle.connection.engine.post(lambda: self._follow(checked))

    async def _log_ends(self, buckets: Sequence[TableBucket]) -> dict[TableBucket, int]:
        cluster, table = self._handle.connection.cluster, self.table.table_path
        places = {
            bucket: await find_partition_path(cluster, table, bucket.partition_id)
            for bucket in buckets
        }
        return await list_offsets(cluster, places, OffsetSpec.latest())

    def unsubscribe(self, bucket_id: int, *, partition_id: int | None = None) -> None:
        """Stop reading a bucket; no error if it is not subscribed."""
        bucket = TableBucket.with_partition(self.table.table_id, partition_id, bucket_id)
        with self._lock:
            self.check_open()
            self._offsets.pop(bucket, None)
            self._handle.connection.engine.post(lambda: self._follow_no_more(bucket))

    def subscriptions(self) -> dict[TableBucket, int]:
        """The subscribed buckets, and the offset from which each is read."""
        with self._lock:
            return dict(self._offsets)

    # --- reading (on the engine's loop) -------------------------------------------------------

    async def take(self, timeout_s: float) -> list[Fetched]:
        """Take what has come in since the last call; wait for it, at most `timeout_s`."""
        self.check_open()
        if not self._offsets:
            return []
        return await self._follower_now().take(timeout_s)

    async def read_to_end(self, *, takes_all: bool = False) -> AsyncGenerator[list[Fetched], None]:
        """Read all subscribed buckets from the subscribed offsets to where the logs end now.

        Args:
            takes_all: Whether the caller does not stop before the end.

        Raises:
            FlussError: Nothing is subscribed.
        """
        self.check_open()
        offsets = self.subscriptions()
        if not offsets:
            raise FlussError(
                "No buckets are subscribed, so there is nothing to read.",
                hint="Call subscribe_buckets({bucket: EARLIEST_OFFSET, ...}) first.",
            )
        path = PhysicalTablePath(self.table.table_path)
        positions = [
            Position(bucket=bucket, path=path, offset=offset) for bucket, offset in offsets.items()
        ]
        reader = RangeReader(
            self._handle, positions, self.decoder.fetch_target, takes_all=takes_all
        )
        self._fetchers.add(reader)
        try:
            while fetched := await reader.take():
                yield fetched
        finally:
            self._fetchers.discard(reader)
            reader.close()

    async def close(self) -> None:
        """Stop reading; a reader that waits gets an error. Idempotent."""
        with self._lock:
            self._closed = True
        for fetcher in list(self._fetchers):
            fetcher.close()

    def _follow(self, offsets: Mapping[TableBucket, int]) -> None:
        if not self._closed:
            follower = self._follower_now()
            for bucket, offset in offsets.items():
                path = PhysicalTablePath(self.table.table_path)
                follower.subscribe(Position(bucket=bucket, path=path, offset=offset))

    def _follow_no_more(self, bucket: TableBucket) -> None:
        if self._follower is not None:
            self._follower.unsubscribe(bucket)

    def _follower_now(self) -> Fetcher:
        if self._follower is None:
            self._follower = Fetcher(
                self._handle,
                self.decoder.fetch_target,
                limits=fetch_limits(self._handle.connection),
                is_bounded=False,
            )
            self._fetchers.add(self._follower)
        return self._follower

    # --- checks -------------------------------------------------------------------------------

    def _check_bucket(self, partition_id: int | None, bucket_id: int) -> None:
        if isinstance(bucket_id, bool) or not isinstance(bucket_id, int):
            raise InvalidValueError(f"A bucket is a number, not {bucket_id!r}.")
        connection = self._handle.connection
        count = partition = None
        if partition_id is not None:
            path = connection.cluster.view.partition_path(partition_id)
            if path is None and bucket_id >= self.table.num_buckets:
                # Only then a partition is looked up here: reading finds it anyway.
                path = connection.engine.run(
                    find_partition_path(connection.cluster, self.table.table_path, partition_id)
                )
            if path is not None:
                count = connection.cluster.view.bucket_count(path)
                partition = path.partition_name
        check_bucket_id(self.table, bucket_id, count=count, partition=partition)

    def check_open(self) -> None:
        """Raise if the scanner has been closed."""
        if self._closed:
            raise ClosedError("The scanner has been closed.", hint="Create a new one.")


def _close_all(engine: Engine, fetchers: set[Fetcher | RangeReader]) -> None:
    def close() -> None:
        for fetcher in fetchers:
            fetcher.close()

    engine.post_cleanup(close)


def _check_offset(offset: int) -> None:
    if isinstance(offset, bool) or not isinstance(offset, int):
        raise InvalidValueError(
            f"An offset is a number, not {offset!r}.",
            hint="admin.list_offsets() finds the offset of a time or an end.",
        )
    if offset < EARLIEST_OFFSET:
        raise InvalidValueError(
            f"There is no offset {offset}.",
            hint=f"EARLIEST_OFFSET is {EARLIEST_OFFSET}, LATEST_OFFSET is {LATEST_OFFSET}.",
            offset=offset,
        )
