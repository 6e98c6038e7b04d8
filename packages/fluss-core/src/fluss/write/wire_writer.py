"""A writer of rows that are in wire form already: the lowest writer, which checks no values.

Frames are checked and cast before they get here (`write.frame_checks`, `write.writer_cores`). A
writer takes rows without waiting for a server, except while the memory of the connection for
writes is used up: then the thread that writes waits. Its coroutines run on the engine's loop.
Sending and flushing is that of the buffer (`write.write_buffer`).
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from fluss.rows.buffers.columns import BoolArray
from fluss.write.caller_rows import rows_counted
from fluss.write.sender import Sender
from fluss.write.wire_rows import WireRows
from fluss.write.write_buffer import WriteBuffer
from fluss.write.write_encoding import Target
from fluss.write.write_result import EmptyWriteResult, JoinedResult, WriteResultHandle


class WireWriter(WriteBuffer):
    """Writes rows to one table, and reports what became of them."""

    def __init__(self, sender: Sender, target: Target, *, keeper: object = None) -> None:
        super().__init__(sender, target, keeper=keeper)
        self.table = target.table
        self.rows_taken = 0
        self._layout = target.layout

    def take_rows(self, batches: Sequence[WireRows], *, deletes: bool = False) -> WriteResultHandle:
        """Take rows, or the keys of rows to delete; columns that are missing are NULL."""
        results: list[WriteResultHandle] = []
        first = 0
        for rows in batches:
            row_count = rows.batch.num_rows
            if row_count:
                with rows_counted(first=first):
                    results += self.add_frame(self._widened(rows), deletes=deletes)
                self.rows_taken += row_count
                first += row_count
        if not results:
            return EmptyWriteResult(self)
        return results[0] if len(results) == 1 else JoinedResult(results)

    def take_changes(self, rows: WireRows, deletes: BoolArray) -> None:
        """Take rows in their order, some of which delete their keys.

        They are queued immediately; a caller with few at a time gathers them first.

        Args:
            rows: The rows.
            deletes: Which of them delete. Of these, only the key is looked at.
        """
        if rows.batch.num_rows:
            self.add_changes(self._widened(rows), deletes)
            self.rows_taken += rows.batch.num_rows

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
