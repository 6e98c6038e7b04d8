"""All writers of a connection: they share its sender, its writer id and its memory for writes.

The pool is a service of the connection, which is made on first use and closed with it.
"""

from __future__ import annotations

import logging
import warnings
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeVar

import anyio
import anyio.to_thread

from fluss.connection.connection import ClientConnection, TableHandle, service
from fluss.errors import FlussError
from fluss.model.paths import PhysicalTablePath, TableBucket
from fluss.model.tables.auto_partition_names import is_expired, keeps_history
from fluss.model.tables.table_info import TableInfo
from fluss.net.cluster_client import Cluster
from fluss.net.engine_thread import Engine
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.wire.api import ApiKey
from fluss.write import write_targets as targets
from fluss.write.placement import Placement
from fluss.write.plan_pinned_sender import PinnedSendPlan
from fluss.write.sender import Sender
from fluss.write.write_batch import ACKS_ALL, WriterSettings
from fluss.write.write_encoding import KvTarget, LogTarget, Target
from fluss.write.writer_cores import AppendCore, UpsertCore, WireWriter

log = logging.getLogger("fluss.writer")

WriterT = TypeVar("WriterT", bound=WireWriter)

AGG_OVERWRITE = 1

# Less than the engine has at the end of the process.
CLOSE_WAIT_S = 25.0


class WriterPool:
    """All writers of one connection.

    Args:
        cluster: Reaches the servers.
        settings: The settings of the writers.
        engine: The engine of the cluster.
        keeper: Returns the object that must live as long as each writer; see `WriteBuffer`.
    """

    def __init__(
        self,
        cluster: Cluster,
        settings: WriterSettings,
        *,
        engine: Engine,
        keeper: Callable[[], object] = lambda: None,
    ) -> None:
        self.sender = Sender(cluster, settings, engine=engine)
        self._keeper = keeper
        self.settings = settings
        self._cluster = cluster
        self._writers: weakref.WeakSet[WireWriter] = weakref.WeakSet()

    def append_core(self, table: TableInfo) -> AppendCore:
        """A writer for a log table.

        Raises:
            UnsupportedOperationError: The table has a primary key.
        """
        return self._opened(AppendCore, self.log_target(table))

    def wire_writer(self, target: Target) -> WireWriter:
        """A writer of rows in wire form."""
        return self._opened(WireWriter, target)

    def log_target(
        self, table: TableInfo, *, choose: Callable[[PhysicalTablePath], int] | None = None
    ) -> LogTarget:
        """Make the target that encodes rows for a log table.

        Args:
            table: The table.
            choose: Chooses the bucket for rows without a bucket key; None to follow the settings.

        Raises:
            UnsupportedOperationError: The table has a primary key.
        """
        targets.check_appends(table)
        placement = self._placement(table, targets.whole_layout(table), choose)
        # Batches may carry statistics where the servers know these; 0.9.1 would misread them.
        asks_for_them = table.options.statistics_columns_text is not None
        has_statistics = asks_for_them and self._cluster.offers_now(ApiKey.SCAN_KV)
        return LogTarget(placement, self.settings, has_statistics=has_statistics)

    def pinned_sender(self, table: TableInfo) -> Sender:
        """Make a sender for batches with their own writer id and sequence; the caller closes it."""
        settings = replace(self.settings, acks=ACKS_ALL, is_idempotent=True)
        plan = PinnedSendPlan(settings, policy=self._cluster.retry_policy)
        sender = Sender(self._cluster, settings, engine=self.sender.engine, plan=plan)
        register_table(sender, table)
        return sender

    def upsert_core(
        self,
        table: TableInfo,
        *,
        target_columns: Sequence[int] | None = None,
        agg_mode: int | None = None,
    ) -> UpsertCore:
        """A writer for a table with a primary key; see `kv_target`."""
        target = self.kv_target(table, target_columns=target_columns, agg_mode=agg_mode)
        return self._opened(UpsertCore, target)

    def kv_target(
        self,
        table: TableInfo,
        *,
        target_columns: Sequence[int] | None = None,
        agg_mode: int | None = None,
    ) -> KvTarget:
        """Make the target that encodes rows for a table with a primary key.

        Args:
            table: The table.
            target_columns: The columns to write, by position; None for all that can be written.
            agg_mode: 1 to overwrite values of an aggregating table instead of aggregating them.

        Raises:
            UnsupportedOperationError: The table has no primary key, or its merge engine takes
                whole rows only.
            SchemaMismatchError: The table cannot be written by these columns.
        """
        targets.check_upserts(table)
        columns = targets.check_target_columns(table, target_columns)
        if columns and agg_mode != AGG_OVERWRITE:
            targets.check_partial_writes(table)
        placement = self._placement(table, targets.nullable_layout(table))
        return KvTarget(placement, self.settings, target_columns=columns, agg_mode=agg_mode or None)

    async def close(self, *, timeout_s: float = CLOSE_WAIT_S) -> int:
        """Deliver what was taken, within a time, and take no more. Idempotent.

        The connection calls this before it closes its sockets, also when the process ends. Rows
        that cannot be delivered are reported in the log and by a warning.

        Returns:
            How many rows were not delivered.
        """
        lost = 0
        try:
            with anyio.move_on_after(timeout_s):
                for writer in list(self._writers):
                    await _seal(writer)
            lost = await self.sender.close(timeout_s=timeout_s)
        finally:
            # A cancelled caller shortens the delivery; the batches are completed nevertheless.
            with anyio.CancelScope(shield=True):
                lost += await self.sender.close(timeout_s=0.0)
            if lost:
                sentence = f"{lost} rows that were written could not be delivered before the end."
                log.error("%s", sentence)
                warnings.warn(f"fluss: {sentence}", ResourceWarning, stacklevel=2)
        return lost

    def _opened(self, kind: type[WriterT], target: Any) -> WriterT:
        self.sender.check_open()
        writer = kind(self.sender, target, keeper=self._keeper())
        self._writers.add(writer)
        return writer

    def _placement(
        self,
        table: TableInfo,
        layout: BatchLayout,
        choose: Callable[[PhysicalTablePath], int] | None = None,
    ) -> Placement:
        register_table(self.sender, table)
        return Placement(
            table,
            layout,
            has_leader=self._leader_check(table),
            is_round_robin=self.settings.is_round_robin,
            choose=choose,
            bucket_count=self._cluster.view.bucket_count,
        )

    def _leader_check(self, table: TableInfo) -> Callable[[PhysicalTablePath, int], bool]:
        view = self._cluster.view

        def has_leader(path: PhysicalTablePath, bucket_id: int) -> bool:
            partition_id = None if path.partition_name is None else view.partition_id(path)
            bucket = TableBucket.with_partition(table.table_id, partition_id, bucket_id)
            return view.leader_of(bucket) is not None

        return has_leader


async def _seal(writer: WireWriter) -> None:
    try:
        await anyio.to_thread.run_sync(writer.seal, abandon_on_cancel=True)
    except RuntimeError:
        # While the process ends there are no new threads; sealed here, with or without memory.
        writer.seal(waits=False)
    except FlussError as error:
        log.warning("rows could not be sealed: %s", error.message)


@service
def writer_pool(connection: ClientConnection) -> WriterPool:
    """All writers of a connection, which share one sender."""
    settings = WriterSettings.of(connection.options)
    pool = WriterPool(
        connection.cluster,
        settings,
        engine=connection.engine,
        keeper=weakref.ref(connection),
    )
    connection.at_close(lambda delivery_s: pool.close(timeout_s=delivery_s))
    return pool


def register_table(sender: Sender, table: TableInfo) -> None:
    """Tell a sender what it needs to know of partitions that do not exist."""
    sender.register(table.table_path, table.partition_keys, has_expired=expiry_of(table))


def expiry_of(table: TableInfo) -> Callable[[str], bool] | None:
    """Return what finds out whether a partition has expired; None if the table keeps no history."""

    def has_expired(name: str) -> bool:
        return is_expired(table, name, datetime.now(UTC))

    return has_expired if keeps_history(table) else None


def append_core(table: TableHandle) -> AppendCore:
    """A writer of a log table."""
    return writer_pool(table.connection).append_core(table.info)


def upsert_core(table: TableHandle, columns: Sequence[int] | None = None) -> UpsertCore:
    """A writer of a table with a primary key; `columns` are the positions that it writes."""
    return writer_pool(table.connection).upsert_core(table.info, target_columns=columns)
