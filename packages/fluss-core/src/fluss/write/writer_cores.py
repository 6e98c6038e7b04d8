"""Writers of single rows and of Arrow frames: `AppendCore` for logs, `UpsertCore` for keyed tables.

What a row or frame must look like is refused here, before anything of it is queued. What happens
to rows afterwards is in `write.wire_writer` and below it. The function that reads single rows is
compiled when the first row comes: a writer that only takes frames has no use for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import pyarrow as pa

from fluss.errors import InvalidValueError
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.convert.cast import to_wire_batch
from fluss.write.caller_rows import rows_counted
from fluss.write.row_values import RowReader
from fluss.write.wire_rows import WireRows
from fluss.write.wire_writer import WireWriter
from fluss.write.write_buffer import WriteBuffer
from fluss.write.write_encoding import KvTarget, Target
from fluss.write.write_result import WriteResultHandle
from fluss.write.write_targets import check_deletes, whole_layout

ArrowFrame: TypeAlias = Any  # a pyarrow.RecordBatch or pyarrow.Table, of which mypy knows nothing

# A row this large, compared with a request, is tried by itself before it is taken.
_LARGE_ROW = 4


class RowWriter(WireWriter):
    """What writers of logs and of keyed tables have in common: they take single rows."""

    def __init__(self, target: Target, buffer: WriteBuffer) -> None:
        super().__init__(target, buffer)
        self._large_row_bytes = buffer.request_bytes_max // _LARGE_ROW
        self._rows: RowReader
        self._keys: RowReader

    def take(self, row: Any, *, deletes: bool = False) -> WriteResultHandle:
        """Take one row: a dict by column name, a list or tuple by position.

        Raises:
            InvalidValueError: A value does not fit its column; nothing was taken.
            LimitExceededError: The row, or what is in flight already, is too large.
            ClosedError: The writer or the connection has been closed.
        """
        # The hot path of all rows: a microsecond or two, so nothing is done that can be spared.
        try:
            values, size = self._keys.read(row) if deletes else self._rows.read(row)
        except InvalidValueError as error:
            raise error.with_context(row=self.rows_taken) from None
        buffer = self._buffer
        add = buffer.add_row if size <= self._large_row_bytes else buffer.add_alone
        result = add(values, size, deletes)
        self.rows_taken += 1
        return result


class AppendCore(RowWriter):
    """Appends rows to a log table."""

    def __init__(self, target: Target, buffer: WriteBuffer) -> None:
        super().__init__(target, buffer)
        names = self._layout.names
        self._rows = RowReader(
            names,
            self._layout.types,
            positions=range(len(names)),
            width=len(names),
            limits=self.table.value_limits,
        )

    append = RowWriter.take

    def append_arrow(self, frame: ArrowFrame) -> WriteResultHandle:
        """Take the rows of a frame; columns are matched by name and cast where that is safe.

        Raises:
            SchemaMismatchError: A column is missing, unknown, or of a type that cannot be cast.
            InvalidValueError: A value does not fit its column; nothing was taken.
        """
        return self.take_rows(_cast_batches(frame, self._layout))


class UpsertCore(RowWriter):
    """Inserts, replaces and deletes rows of a table with a primary key."""

    def __init__(self, target: KvTarget, buffer: WriteBuffer) -> None:
        super().__init__(target, buffer)
        schema, limits = self.table.schema, self.table.value_limits
        names, types = schema.column_names, schema.column_types
        columns = target.target_columns or tuple(range(len(names)))
        keys = schema.primary_key_indexes
        self._rows = RowReader(
            [names[position] for position in columns],
            [types[position] for position in columns],
            positions=columns,
            width=len(names),
            limits=limits,
        )
        self._keys = RowReader(
            [names[position] for position in keys],
            [types[position].not_null() for position in keys],
            positions=keys,
            width=len(names),
            ignored=frozenset(names),
            what="key",
            limits=limits,
        )
        whole = whole_layout(self.table)
        self._row_layout = whole if len(columns) == len(names) else whole.project(columns)
        self._key_layout = whole.project(keys)

    # A row replaces the one with its key, or its columns in a partial update.
    upsert = RowWriter.take

    def delete(self, key: Any) -> WriteResultHandle:
        """Take the key of a row to delete: a dict by column name, or the values in key order.

        Raises:
            InvalidValueError: A key column is missing or does not fit; nothing was taken.
            UnsupportedOperationError: The table does not allow deletes.
        """
        check_deletes(self.table)
        return self.take(key, deletes=True)

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
            kept = _without(batch, left_out or set())
            made.append(WireRows(batch=to_wire_batch(kept, layout)))
        first += batch.num_rows
    return made


def _without(batch: pa.RecordBatch, names: set[str]) -> pa.RecordBatch:
    if names.isdisjoint(batch.schema.names):
        return batch
    return batch.select([name for name in batch.schema.names if name not in names])
