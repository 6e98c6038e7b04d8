"""A writer of rows that are in wire form already: the lowest writer, which checks no values.

Frames are checked and cast before they get here (`write.frame_checks`, `write.writer_cores`). A
writer takes rows without waiting for a server, except while the memory of the connection for
writes is used up: then the thread that writes waits. Its coroutines run on the engine's loop.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from fluss.model.tables.table_info import TableInfo
from fluss.rows.buffers.columns import BoolArray
from fluss.write.caller_rows import rows_counted
from fluss.write.wire_rows import WireRows
from fluss.write.write_buffer import WriteBuffer
from fluss.write.write_encoding import Target
from fluss.write.write_result import EmptyWriteResult, JoinedResult, WriteResultHandle
from fluss.write.write_tally import WriteProgress


class WireWriter:
    """Writes rows to one table, and reports what became of them.

    Args:
        target: How the rows are encoded.
        buffer: Where they are collected.
    """

    def __init__(self, target: Target, buffer: WriteBuffer) -> None:
        self.table: TableInfo = target.table
        self.rows_taken = 0
        self._layout = target.layout
        self._buffer = buffer

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

    def take_rows(self, batches: Sequence[WireRows], *, deletes: bool = False) -> WriteResultHandle:
        """Take rows, or the keys of rows to delete; columns that are missing are NULL."""
        results: list[WriteResultHandle] = []
        first = 0
        for rows in batches:
            row_count = rows.batch.num_rows
            if row_count:
                with rows_counted(first=first):
                    results += self._buffer.add_frame(self._widened(rows), deletes=deletes)
                self.rows_taken += row_count
                first += row_count
        return self._one_of(results)

    def take_changes(self, rows: WireRows, deletes: BoolArray) -> WriteResultHandle:
        """Take rows in their order, some of which delete their keys.

        They are queued immediately; a caller with few at a time gathers them first.

        Args:
            rows: The rows.
            deletes: Which of them delete. Of these, only the key is looked at.
        """
        if not rows.batch.num_rows:
            return self._one_of(())
        results = self._buffer.add_changes(self._widened(rows), deletes)
        self.rows_taken += rows.batch.num_rows
        return self._one_of(results)

    def seal_if_quick(self) -> None:
        """Seal what was taken if that is quick on this thread; otherwise the next flush does."""
        self._buffer.seal_if_quick()

    def seal(self) -> None:
        """Send what was taken, from this thread; may wait for memory."""
        self._buffer.seal()

    async def flush(self) -> None:
        """Send everything taken so far immediately, and wait until it is written.

        Raises:
            FlussError: Something could not be written since the last flush. It is raised once.
        """
        await self._buffer.flush()

    async def close(self) -> None:
        """Flush, and take no more rows."""
        await self._buffer.close()

    def _widened(self, rows: WireRows) -> WireRows:
        layout, batch = self._layout, rows.batch
        if batch.num_columns == len(layout):
            return rows
        names = batch.schema.names
        arrays = [
            batch.column(names.index(field.name))
            if field.name in names
            else pa.nulls(batch.num_rows, field.type)
            for field in layout.wire_schema
        ]
        wide = pa.RecordBatch.from_arrays(arrays, schema=layout.wire_schema)
        return WireRows(batch=wide, partitions=rows.partitions)

    def _one_of(self, results: Sequence[WriteResultHandle]) -> WriteResultHandle:
        if not results:
            return EmptyWriteResult(self._buffer)
        return results[0] if len(results) == 1 else JoinedResult(results)
