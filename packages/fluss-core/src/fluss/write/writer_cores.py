"""Writers of single rows and of Arrow frames: `AppendCore` for logs, `UpsertCore` for keyed tables.

What a row or frame must look like is refused here, before anything of it is queued. Below both is
`WireWriter`, which takes rows in wire form and checks no values; sending and flushing are those of
the buffer (`write.write_buffer`). A writer takes rows without waiting for a server, except while
the memory of the connection for writes is used up: then the thread that writes waits. Its
coroutines run on the engine's loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import pyarrow as pa

from fluss.errors import InvalidValueError
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.convert.cast import to_wire_batch
from fluss.rows.buffers.columns import BoolArray
from fluss.write.caller_rows import rows_counted
from fluss.write.change_frames import without_columns
from fluss.write.open_rows import Cells, Runs
from fluss.write.row_function import RowReader
from fluss.write.row_taker import row_taker
from fluss.write.sender import Sender
from fluss.write.wire_rows import WireRows
from fluss.write.write_buffer import WriteBuffer
from fluss.write.write_encoding import KvTarget, LogTarget, Target
from fluss.write.write_result import EmptyWriteResult, JoinedResult, WriteResultHandle
from fluss.write.write_targets import check_deletes, whole_layout


class WireWriter(WriteBuffer):
    """Writes rows to one table, and reports what became of them."""

    def __init__(self, sender: Sender, target: Target, *, keeper: object = None) -> None:
        super().__init__(sender, target, keeper=keeper)
        self.table = target.table
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
                first += row_count
        if not results:
            return EmptyWriteResult(self)
        return results[0] if len(results) == 1 else JoinedResult(results)

    def take_changes(self, rows: WireRows, deletes: BoolArray) -> None:
        """Take rows in their order, some of which delete their keys.

        Args:
            rows: The rows.
            deletes: Which of them delete. Of these, only the key is looked at.
        """
        if rows.batch.num_rows:
            self.add_changes(self._widened(rows), deletes)

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


ArrowFrame: TypeAlias = Any  # a pyarrow.RecordBatch or pyarrow.Table, of which mypy knows nothing

# A row this large, compared with a request, is tried by itself before it is taken.
_LARGE_ROW = 4


class RowWriter(WireWriter):
    """What writers of logs and of keyed tables have in common: they take single rows."""

    def __init__(self, sender: Sender, target: Target, *, keeper: object = None) -> None:
        super().__init__(sender, target, keeper=keeper)
        self._large_row_bytes = sender.settings.request_bytes_max // _LARGE_ROW
        self._row_reader: RowReader
        self._key_reader: RowReader
        self._row_layout = self._layout  # the columns of a frame

    def take(self, row: Any) -> WriteResultHandle:
        """Take one row: a dict by column name, a list or tuple by position.

        Raises:
            InvalidValueError: A value does not fit its column; nothing was taken.
            LimitExceededError: The row, or what is in flight already, is too large.
            ClosedError: The writer or the connection has been closed.
        """
        return self.taker(row)

    @cached_property
    def taker(self) -> Callable[[Any], WriteResultHandle]:
        """The function behind `take`, made on first use: writers of frames never need it."""
        return row_taker(self._row_reader, self, large_row_bytes=self._large_row_bytes)

    def take_plainly(self, row: Any, *, deletes: bool = False) -> WriteResultHandle:
        """The same as `take`, step by step; or take the key of a row to delete."""
        try:
            values, size = (self._key_reader if deletes else self._row_reader).read(row)
        except InvalidValueError as error:
            raise error.with_context(row=self.rows_taken) from None
        cells, runs = self.flat_rows.flatten(values)
        return self.take_flat(cells, runs, size, deletes=deletes)

    def take_flat(
        self, cells: Cells, runs: Runs, size: int, *, deletes: bool = False
    ) -> WriteResultHandle:
        """Take the flattened physical values of one row, which take about `size` bytes."""
        add = self.add_row if size <= self._large_row_bytes else self.add_alone
        return add(cells, runs, size, deletes)

    def take_frame(self, frame: ArrowFrame) -> WriteResultHandle:
        """Take the rows of a frame; columns are matched by name and cast where that is safe.

        Raises:
            SchemaMismatchError: A column is missing, unknown, or of a type that cannot be cast.
            InvalidValueError: A value does not fit its column; nothing was taken.
        """
        return self.take_rows(_cast_batches(frame, self._row_layout))


class AppendCore(RowWriter):
    """Appends rows to a log table."""

    def __init__(self, sender: Sender, target: LogTarget, *, keeper: object = None) -> None:
        super().__init__(sender, target, keeper=keeper)
        self._row_reader = RowReader.of(self.table, range(len(self._layout.names)))

    append = RowWriter.take
    append_arrow = RowWriter.take_frame


class UpsertCore(RowWriter):
    """Inserts, replaces and deletes rows of a table with a primary key."""

    def __init__(self, sender: Sender, target: KvTarget, *, keeper: object = None) -> None:
        super().__init__(sender, target, keeper=keeper)
        columns = target.target_columns or range(len(self._layout.names))
        self._row_reader = RowReader.of(self.table, columns)
        self._key_reader = RowReader.of_keys(self.table)
        whole = whole_layout(self.table)
        self._row_layout = whole if len(columns) == len(whole) else whole.project(columns)
        self._key_layout = whole.project(self.table.schema.primary_key_indexes)

    # A row replaces the one with its key, or its columns in a partial update.
    upsert = RowWriter.take

    def delete(self, key: Any) -> WriteResultHandle:
        """Take the key of a row to delete: a dict by column name, or the values in key order.

        Raises:
            InvalidValueError: A key column is missing or does not fit; nothing was taken.
            UnsupportedOperationError: The table does not allow deletes.
        """
        check_deletes(self.table)
        return self.take_plainly(key, deletes=True)

    def upsert_arrow(self, frame: ArrowFrame) -> WriteResultHandle:
        """Take the rows of a frame; see `upsert` and `AppendCore.append_arrow`."""
        return self.take_rows(_cast_batches(frame, self._row_layout))

    def delete_arrow(self, frame: ArrowFrame) -> WriteResultHandle:
        """Take the keys of rows to delete; further columns of the table are not looked at."""
        check_deletes(self.table)
        others = set(self._layout.names) - set(self._key_layout.names)
        batches = _cast_batches(frame, self._key_layout, left_out=others)
        return self.take_rows(batches, deletes=True)


def _batches(frame: ArrowFrame) -> Iterable[pa.RecordBatch]:
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
    frame: ArrowFrame, layout: BatchLayout, *, left_out: set[str] | None = None
) -> list[WireRows]:
    """The batches of a frame in wire form, without some columns; errors count its rows."""
    made: list[WireRows] = []
    first = 0
    for batch in _batches(frame):
        with rows_counted(first=first):
            kept = without_columns(batch, left_out or ())
            made.append(WireRows(batch=to_wire_batch(kept, layout)))
        first += batch.num_rows
    return made
