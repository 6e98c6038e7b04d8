"""Writing to tables: `AppendCore` for logs, `UpsertCore` for tables with a primary key.

One `WriterPool` serves all writers of a connection: they share its sender, its writer id and its
room. A core takes rows and frames without waiting for a server, except where the room of the
connection is used up: then the thread that writes waits. Its coroutines run on the engine's loop.
What a row or frame must look like is refused here; everything behind that is elsewhere
(`write.write_buffer`, `write.write_encoding`, `write.sender`).
"""

from __future__ import annotations

import logging
import warnings
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import anyio
import anyio.to_thread
import pyarrow as pa

from fluss.connection.connection import ClientConnection, TableHandle
from fluss.errors import FlussError, InvalidValueError, UnsupportedOperationError
from fluss.hints import Hint, HintKey
from fluss.model.paths import PhysicalTablePath, TableBucket
from fluss.model.tables.table_info import TableInfo
from fluss.model.tables.table_options import DeleteBehavior
from fluss.net.cluster_client import Cluster
from fluss.net.engine_thread import Engine
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.convert.cast import to_wire_batch
from fluss.rows.buffers.columns import BoolArray
from fluss.wire.api import ApiKey
from fluss.write.caller_rows import rows_counted
from fluss.write.placement import Placement
from fluss.write.plan_pinned_sender import PinnedSendPlan
from fluss.write.row_function import RowFunction
from fluss.write.row_values import RowReader
from fluss.write.sender import Sender
from fluss.write.write_batch import ACKS_ALL, WriterSettings
from fluss.write.write_buffer import WriteBuffer
from fluss.write.write_encoding import KvTarget, LogTarget, Target
from fluss.write.write_result import (
    EmptyWriteResult,
    JoinedResult,
    WriteOutcome,
    WriteResultHandle,
    WrittenBatch,
)
from fluss.write.write_tally import WriteProgress
from fluss.write.write_targets import (
    check_changes,
    check_partial_writes,
    check_target_columns,
    nullable_layout,
)

__all__ = [
    "AppendCore",
    "UpsertCore",
    "WriteOutcome",
    "WriteResultHandle",
    "WriterPool",
    "WrittenBatch",
]

log = logging.getLogger("fluss.writer")

Frame: TypeAlias = Any  # a pyarrow.RecordBatch or pyarrow.Table, of which mypy knows nothing
AGG_OVERWRITE = 1

# Less than the engine has at the end of the process.
CLOSE_WAIT_S = 25.0

# A row this large, compared with a request, is tried by itself before it is taken.
_LARGE_ROW = 4


class WriterPool:
    """All writers of one connection.

    Args:
        cluster: The connection's way to the servers.
        settings: How to write.
        engine: The engine that the cluster lives on.
        keeper: Gives what must live as long as each writer; see `WriteBuffer`.
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
        self._buffers: weakref.WeakSet[WriteBuffer] = weakref.WeakSet()

    def append_core(self, table: TableInfo) -> AppendCore:
        """A writer for a log table.

        Raises:
            UnsupportedOperationError: The table has a primary key.
        """
        target = self.log_target(table)
        return AppendCore(table, self._buffer(target))

    def log_target(
        self, table: TableInfo, *, choose: Callable[[PhysicalTablePath], int] | None = None
    ) -> LogTarget:
        """What encodes rows for a log table.

        Args:
            table: The table.
            choose: The bucket for rows that have no bucket key; None for the settings' way.

        Raises:
            UnsupportedOperationError: The table has a primary key.
        """
        check_appends(table)
        layout = BatchLayout.of_schema(table.schema)
        return LogTarget(
            table,
            self.settings,
            self._placement(table, layout, choose),
            layout,
            has_statistics=self._takes_statistics(table),
        )

    def pinned_sender(self, table: TableInfo) -> Sender:
        """A sender for batches that bring their own writer id and numbers; to be closed."""
        settings = replace(self.settings, acks=ACKS_ALL, is_idempotent=True)
        plan = PinnedSendPlan(settings, policy=self._cluster.retry_policy)
        sender = Sender(self._cluster, settings, engine=self.sender.engine, plan=plan)
        sender.register(table.table_path, table.partition_keys)
        return sender

    def upsert_core(
        self,
        table: TableInfo,
        *,
        target_columns: Sequence[int] | None = None,
        agg_mode: int | None = None,
    ) -> UpsertCore:
        """A writer for a table with a primary key.

        Args:
            table: The table.
            target_columns: The columns to write, by position; None for all that can be written.
            agg_mode: 1 to overwrite values of an aggregating table instead of aggregating them.

        Raises:
            UnsupportedOperationError: The table has no primary key, or its merge engine takes
                whole rows only.
            SchemaMismatchError: The table cannot be written by these columns.
        """
        check_upserts(table)
        columns = check_target_columns(table, target_columns)
        if columns and agg_mode != AGG_OVERWRITE:
            check_partial_writes(table)
        layout = nullable_layout(table)
        target = KvTarget(
            table,
            self.settings,
            self._placement(table, layout),
            layout,
            target_columns=columns,
            agg_mode=agg_mode or None,
        )
        return UpsertCore(table, self._buffer(target), columns)

    async def close(self, *, timeout_s: float = CLOSE_WAIT_S) -> int:
        """Deliver what was taken, within a time, and take no more. Twice is once.

        Whoever owns the connection calls this before it closes its sockets, also when the process
        ends. What cannot be delivered is reported in the log and as a warning.

        Returns:
            How many rows were not delivered.
        """
        lost = 0
        try:
            with anyio.move_on_after(timeout_s):
                for buffer in list(self._buffers):
                    await _seal(buffer)
            lost = await self.sender.close(timeout_s=timeout_s)
        finally:
            # A caller who gives up shortens the delivery; the batches end all the same.
            with anyio.CancelScope(shield=True):
                lost += await self.sender.close(timeout_s=0.0)
            if lost:
                sentence = f"{lost} rows that were written could not be delivered before the end."
                log.error("%s", sentence)
                warnings.warn(f"fluss: {sentence}", ResourceWarning, stacklevel=2)
        return lost

    def _buffer(self, target: Target) -> WriteBuffer:
        self.sender.check_open()
        buffer = WriteBuffer(self.sender, target, keeper=self._keeper())
        self._buffers.add(buffer)
        return buffer

    def _placement(
        self,
        table: TableInfo,
        layout: BatchLayout,
        choose: Callable[[PhysicalTablePath], int] | None = None,
    ) -> Placement:
        self.sender.register(table.table_path, table.partition_keys)
        return Placement(
            table,
            layout,
            has_leader=self._leader_check(table),
            is_round_robin=self.settings.is_round_robin,
            choose=choose,
        )

    def _leader_check(self, table: TableInfo) -> Callable[[PhysicalTablePath, int], bool]:
        view = self._cluster.view

        def has_leader(path: PhysicalTablePath, bucket_id: int) -> bool:
            partition_id = None if path.partition_name is None else view.partition_id(path)
            bucket = TableBucket.with_partition(table.table_id, partition_id, bucket_id)
            return view.leader_of(bucket) is not None

        return has_leader

    def _takes_statistics(self, table: TableInfo) -> bool:
        """Whether batches may carry statistics: 0.9.1 would take them for something else."""
        return table.options.statistics_columns_text is not None and self._cluster.offers_now(
            ApiKey.SCAN_KV
        )


class _Core:
    """What both kinds of writers have."""

    def __init__(self, table: TableInfo, buffer: WriteBuffer) -> None:
        self.table = table
        self.rows_taken = 0
        self._buffer = buffer
        self._read: RowFunction
        self._read_key: RowFunction
        self._large_row_bytes = buffer.request_bytes_max // _LARGE_ROW

    def stop_at_failure(self) -> None:
        """Take no more of a frame once a batch has failed; the next flush raises its error."""
        self._buffer.stops_at_failure = True

    @property
    def has_failed(self) -> bool:
        """Whether a batch has failed since the last flush."""
        return self._buffer.has_failed

    @property
    def progress(self) -> WriteProgress:
        """What had become of the rows when the last flush ended."""
        return self._buffer.progress

    def hurry(self) -> None:
        """Have what was taken sealed: at once where that is quick, otherwise by the next flush."""
        self._buffer.hurry_all()

    def seal(self) -> None:
        """Send what was taken on its way now, from this thread; may wait for room."""
        self._buffer.seal()

    async def flush(self) -> None:
        """Wait until everything taken so far is written; sends it at once.

        Raises:
            FlussError: Something could not be written since the last flush; it is said once.
        """
        await self._buffer.flush()

    async def close(self) -> None:
        """Flush, and take no more rows."""
        await self._buffer.close()

    def take(self, row: Any, *, deletes: bool = False) -> WriteResultHandle:
        """Take one row: a dict by column name, a list or tuple by position.

        Raises:
            InvalidValueError: A value does not fit its column; nothing was taken.
            LimitExceededError: The row, or what is on its way already, is too large.
            ClosedError: The writer or the connection has been closed.
        """
        # The hot path of all rows: a microsecond or two, so nothing is done that can be spared.
        try:
            values, size = self._read_key(row) if deletes else self._read(row)
        except InvalidValueError as error:
            raise error.with_context(row=self.rows_taken) from None
        buffer = self._buffer
        add = buffer.add_row if size <= self._large_row_bytes else buffer.add_alone
        result = add(values, size, deletes)
        self.rows_taken += 1
        return result

    def _take_frames(
        self, batches: Iterable[pa.RecordBatch], *, deletes: bool = False
    ) -> WriteResultHandle:
        results: list[WriteResultHandle] = []
        first = 0
        for batch in batches:
            if batch.num_rows:
                with rows_counted(first=first):
                    results += self._buffer.add_frame(batch, deletes=deletes)
                self.rows_taken += batch.num_rows
                first += batch.num_rows
        return _one_of(self._buffer, results)


class AppendCore(_Core):
    """Appends rows to a log table."""

    def __init__(self, table: TableInfo, buffer: WriteBuffer) -> None:
        super().__init__(table, buffer)
        names, types = table.schema.column_names, table.schema.column_types
        self._layout = BatchLayout.of_schema(table.schema, limits=table.value_limits)
        self._read = RowReader(
            names,
            types,
            places=range(len(names)),
            width=len(names),
            limits=table.value_limits,
        ).read

    append = _Core.take

    def append_arrow(self, frame: Frame) -> WriteResultHandle:
        """Take the rows of a frame; columns are matched by name and cast where that is safe.

        Raises:
            SchemaMismatchError: A column is missing, unknown, or of a type that cannot be cast.
            InvalidValueError: A value does not fit its column; nothing was taken.
        """
        return self._take_frames(_cast_batches(frame, self._layout))


class UpsertCore(_Core):
    """Inserts, replaces and deletes rows of a table with a primary key."""

    def __init__(self, table: TableInfo, buffer: WriteBuffer, columns: Sequence[int]) -> None:
        super().__init__(table, buffer)
        schema = table.schema
        names, types = schema.column_names, schema.column_types
        width = len(names)
        written = tuple(columns) or tuple(range(width))
        self._read = RowReader(
            [names[each] for each in written],
            [types[each] for each in written],
            places=written,
            width=width,
            limits=table.value_limits,
        ).read
        keys = schema.primary_key_indexes
        self._read_key = RowReader(
            [names[each] for each in keys],
            [types[each].not_null() for each in keys],
            places=keys,
            width=width,
            ignored=frozenset(names),
            what="key",
            limits=table.value_limits,
        ).read
        whole = BatchLayout.of_schema(schema, limits=table.value_limits)
        self._whole = nullable_layout(table)
        self._row_layout = whole if len(written) == width else whole.project(written)
        self._key_layout = whole.project(keys)
        self._change_layout = self._whole if len(written) == width else self._whole.project(written)

    # A row replaces the one with its key, or its columns in a partial update.
    upsert = _Core.take

    def delete(self, key: Any) -> WriteResultHandle:
        """Take the key of a row to delete: a dict by column name, or the values in key order.

        Raises:
            InvalidValueError: A key column is missing or does not fit; nothing was taken.
            UnsupportedOperationError: The table does not allow deletes.
        """
        self._check_deletes()
        return self.take(key, deletes=True)

    def upsert_arrow(self, frame: Frame) -> WriteResultHandle:
        """Take the rows of a frame; see `upsert` and `AppendCore.append_arrow`."""
        batches = _cast_batches(frame, self._row_layout)
        return self._take_frames([self._widened(each, self._row_layout) for each in batches])

    def delete_arrow(self, frame: Frame) -> WriteResultHandle:
        """Take the keys of rows to delete; further columns of the table are not looked at."""
        self._check_deletes()
        known = set(self._whole.names) - set(self._key_layout.names)
        batches = _cast_batches(frame, self._key_layout, left_out=known)
        widened = [self._widened(each, self._key_layout) for each in batches]
        return self._take_frames(widened, deletes=True)

    def apply_arrow(self, batch: pa.RecordBatch, deletes: BoolArray) -> WriteResultHandle:
        """Take the rows of a batch in their order, some of which delete their keys.

        They are queued at once; whoever has few at a time gathers them first.

        Args:
            batch: Whole rows, but of those that delete only the key is looked at; see
                `upsert_arrow`.
            deletes: Which of them delete.
        """
        if deletes.any():
            self._check_deletes()
        cast = to_wire_batch(batch, self._change_layout)
        check_changes(self.table, cast, deletes)
        if not cast.num_rows:
            return EmptyWriteResult(self._buffer)
        results = self._buffer.add_changes(self._widened(cast, self._row_layout), deletes)
        self.rows_taken += batch.num_rows
        return _one_of(self._buffer, results)

    def _widened(self, batch: pa.RecordBatch, layout: BatchLayout) -> pa.RecordBatch:
        if len(layout) == len(self._whole):
            return batch
        arrays = [
            batch.column(layout.names.index(field.name))
            if field.name in layout.names
            else pa.nulls(batch.num_rows, field.type)
            for field in self._whole.wire_schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._whole.wire_schema)

    def _check_deletes(self) -> None:
        if self.table.options.effective_delete_behavior is DeleteBehavior.DISABLE:
            raise UnsupportedOperationError(
                f"{self.table.table_path} does not allow deletes.",
                hint="Its 'table.delete.behavior' is 'disable'.",
                table=str(self.table.table_path),
            )


def _one_of(buffer: WriteBuffer, results: Sequence[WriteResultHandle]) -> WriteResultHandle:
    if not results:
        return EmptyWriteResult(buffer)
    return results[0] if len(results) == 1 else JoinedResult(results)


def check_appends(table: TableInfo) -> None:
    """Refuse a table whose rows are not appended."""
    if table.has_primary_key():
        raise UnsupportedOperationError(
            f"{table.table_path} has a primary key; rows are not appended to it.",
            hint=Hint(HintKey.UPSERT_INSTEAD, table=str(table.table_path)),
            table=str(table.table_path),
        )


def check_upserts(table: TableInfo) -> None:
    """Refuse a table whose rows have no key to replace them by."""
    if not table.has_primary_key():
        raise UnsupportedOperationError(
            f"{table.table_path} has no primary key; its rows cannot be replaced.",
            hint=Hint(HintKey.APPEND_INSTEAD, table=str(table.table_path)),
            table=str(table.table_path),
        )


def _batches(frame: Frame) -> Iterable[pa.RecordBatch]:
    if isinstance(frame, pa.RecordBatch):
        return [frame]
    if isinstance(frame, pa.Table):
        batches: list[pa.RecordBatch] = frame.to_batches()
        # Casting checks the columns even where there are no rows.
        return batches or [pa.RecordBatch.from_pylist([], schema=frame.schema)]
    raise InvalidValueError(
        f"A frame is a pyarrow.RecordBatch or a pyarrow.Table, not {type(frame).__name__}.",
        hint="pyarrow.RecordBatch.from_pylist(...) makes one of dicts.",
    )


def _cast_batches(
    frame: Frame, layout: BatchLayout, *, left_out: set[str] | None = None
) -> list[pa.RecordBatch]:
    """The batches of a frame in wire form, without some columns; errors count its rows."""
    made: list[pa.RecordBatch] = []
    first = 0
    for batch in _batches(frame):
        with rows_counted(first=first):
            made.append(to_wire_batch(_without(batch, left_out or set()), layout))
        first += batch.num_rows
    return made


def _without(batch: pa.RecordBatch, names: set[str]) -> pa.RecordBatch:
    if names.isdisjoint(batch.schema.names):
        return batch
    return batch.select([each for each in batch.schema.names if each not in names])


async def _seal(buffer: WriteBuffer) -> None:
    try:
        await anyio.to_thread.run_sync(buffer.seal, abandon_on_cancel=True)
    except RuntimeError:
        # While the process ends there are no new threads; sealed here, room or not.
        buffer.seal(waits=False)
    except FlussError as error:
        log.warning("rows could not be sealed: %s", error.message)


def writer_pool(connection: ClientConnection) -> WriterPool:
    """All writers of a connection, which share one sender."""
    return connection.service(_make_pool)


def append_core(table: TableHandle) -> AppendCore:
    """A writer of a log table."""
    return writer_pool(table.connection).append_core(table.info)


def upsert_core(table: TableHandle, columns: Sequence[int] | None = None) -> UpsertCore:
    """A writer of a table with a primary key; `columns` are the positions that it writes."""
    return writer_pool(table.connection).upsert_core(table.info, target_columns=columns)


def _make_pool(connection: ClientConnection) -> WriterPool:
    settings = WriterSettings.of(connection.options)
    pool = WriterPool(
        connection.cluster,
        settings,
        engine=connection.engine,
        keeper=weakref.ref(connection),
    )
    connection.at_close(lambda delivery_s: pool.close(timeout_s=delivery_s))
    return pool
