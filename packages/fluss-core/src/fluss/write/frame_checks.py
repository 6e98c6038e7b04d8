"""Checks frames and brings them into wire form, once and before any of their rows is queued.

Columns are matched by name and cast where no value changes. How the rows of a frame are checked
depends on its columns and its table alone, so one `FrameCheck` serves all frames of these columns.
Writing is in `write.frame_writer`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa

from fluss.connection.connection import TableHandle
from fluss.errors import InvalidValueError, SchemaMismatchError
from fluss.model.options.scan_options import CHANGE_TYPE
from fluss.model.tables.table_info import TableInfo
from fluss.model.types.data_type import DataType
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.convert.cast import to_wire_batch
from fluss.rows.buffers.columns import BoolArray, Int64Array
from fluss.write import write_targets as targets
from fluss.write.caller_rows import rows_counted
from fluss.write.change_frames import added_columns, change_batch, gathered, without_columns
from fluss.write.pandas_frames import check_index
from fluss.write.tabular import ArrowFrame, Frame, frame_of, frame_of_keys
from fluss.write.wire_rows import PartitionPaths, WireRows

Mode = Literal["append", "upsert", "delete", "update"]
_DONE: Final = {"upsert": "replaced", "delete": "deleted", "update": "updated"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CheckedRows:
    """Rows of a frame that have been checked, ready to be taken.

    Attributes:
        rows: The rows.
        counts: What happens to them, and to how many.
        deletes: Which of them delete, in a changelog.
        first: Which row of the frame the first of them is.
        positions: Which rows of the frame from there on they are, where some are left out.
    """

    rows: WireRows
    counts: Mapping[str, int]
    deletes: BoolArray | None = None
    first: int = 0
    positions: Int64Array | None = None

    @property
    def row_count(self) -> int:
        """How many rows these are."""
        return int(self.rows.batch.num_rows)

    def numbered(self) -> AbstractContextManager[None]:
        """Errors in the block name rows as the frame has them."""
        positions = None if self.positions is None else self.positions + self.first
        return rows_counted(first=self.first if positions is None else 0, positions=positions)


@dataclass(frozen=True, kw_only=True, eq=False)
class FrameCheck:
    """Checks frames of the same columns for one table; any thread may use it.

    Attributes:
        table: The table.
        mode: What happens to rows, and what they are counted as.
        types: The columns that are written.
        left_out: Columns of the frame that are not written.
        is_changelog: Whether each row names what happens to it.
    """

    table: TableInfo
    mode: Mode
    types: Mapping[str, DataType]
    left_out: Sequence[str]
    is_changelog: bool

    @classmethod
    def of(
        cls, info: TableInfo, frame: Frame, mode: Mode, columns: Sequence[str] | None
    ) -> FrameCheck:
        """The check of a frame; its rows are not looked at yet.

        Raises:
            UnsupportedOperationError: The table is not written in this mode.
            SchemaMismatchError: A column is there that cannot be written.
            InvalidValueError: The columns do not make sense in this mode.
        """
        added = added_columns(info, frame.names)
        is_changelog = mode == "upsert" and CHANGE_TYPE in added
        _check_mode(info, mode, columns)
        _check_added(info, mode, added, is_free=is_changelog or columns is not None)
        if mode != "delete":
            check_index(getattr(frame, "index", ()), info)
        names = _written(info, frame, mode, columns, added)
        types = {name: info.schema.column(name).data_type for name in names}
        left_out = [name for name in added if not (is_changelog and name == CHANGE_TYPE)]
        if columns is not None or mode == "delete":
            known = info.schema.column_names
            left_out += [name for name in frame.names if name in known and name not in types]
        return cls(table=info, mode=mode, types=types, left_out=left_out, is_changelog=is_changelog)

    @cached_property
    def layout(self) -> BatchLayout:
        """The columns that are written, as the table keeps them."""
        info, types = self.table, self.types
        if self.is_changelog:
            return targets.nullable_layout(info).project(info.schema.column_indexes(types))
        # In the order of the table, in which rows are encoded; `types` has that of the frame.
        names = tuple(each for each in info.schema.column_names if each in types)
        return BatchLayout.of(names, tuple(map(types.__getitem__, names)), limits=info.value_limits)

    @cached_property
    def _partitions(self) -> PartitionPaths:
        return PartitionPaths(self.table, self.layout)

    def pieces(self, frame: Frame) -> Iterator[CheckedRows]:
        """Check the rows of the frame, batch by batch."""
        batches = frame.batches(self.types)
        first = 0
        for batch in gathered(batches) if self.is_changelog else batches:
            yield self.prepare(batch, first)
            first += batch.num_rows

    def prepare(self, batch: pa.RecordBatch, first: int) -> CheckedRows:
        """Check a batch of the frame, whose first row is `first`, and bring it into wire form."""
        with rows_counted(first=first):
            given = without_columns(batch, self.left_out)
            if not self.is_changelog:
                rows = self._checked(to_wire_batch(given, self.layout))
                return CheckedRows(rows=rows, counts={self.mode: batch.num_rows}, first=first)
            changes = change_batch(given)
            with rows_counted(positions=changes.positions):
                wire = to_wire_batch(changes.rows, self.layout)
                targets.check_changes(self.table, wire, changes.deletes)
                rows = self._checked(wire)
                if changes.deletes.any():
                    targets.check_row_deletes(self.table, int(changes.deletes.argmax()))
                    targets.check_deletes(self.table)
        return CheckedRows(
            rows=rows,
            deletes=changes.deletes,
            counts=changes.counts,
            first=first,
            positions=changes.positions,
        )

    def _checked(self, batch: pa.RecordBatch) -> WireRows:
        """Refuse rows without bucket or partition, which encoding would find too late."""
        if not batch.num_rows:
            return WireRows(batch=batch)
        for name in self.table.bucket_keys:
            column = batch.column(self.layout.names.index(name))
            if column.null_count:
                row = int(np.argmax(np.asarray(column.is_null())))
                raise InvalidValueError(
                    f"The column {name!r} chooses the bucket, and is NULL.",
                    hint="Fill the column, or leave out the row.",
                    column=name,
                ).add_context(row=row)
        return WireRows(batch=batch, partitions=self._partitions.of(batch))


def checked_frame(table: TableInfo, frame: Frame, *, mode: Mode) -> Frame:
    """Check the rows of a frame as `write_frame` would, and write none.

    Of a stream, the first batch is checked; the rows can be read once.

    Args:
        table: The table, which need not exist yet.
        frame: The rows.
        mode: See `write_frame`, which raises the same errors.

    Returns:
        A frame of the same rows.
    """
    check = FrameCheck.of(table, frame, mode, None)
    if frame.is_whole:
        for _ in check.pieces(frame):
            pass
        return frame
    batches = frame.batches(check.types)
    first = next(batches, None)
    if first is None:
        return ArrowFrame(frame.schema, [], is_whole=False)
    check.prepare(first, 0)
    return ArrowFrame(frame.schema, chain([first], batches), is_whole=False)


def rows_to_append(table: TableHandle, data: Any) -> list[WireRows]:
    """The rows of a frame in wire form, as `write_frame` would append them; none is written.

    Args:
        table: A log table.
        data: See `write_frame`, which raises the same errors.
    """
    frame = frame_of(data)
    check = FrameCheck.of(table.info, frame, "append", None)
    return [piece.rows for piece in check.pieces(frame)]


def check_frame(
    table: TableHandle, data: Any, *, mode: Mode, columns: Sequence[str] | None = None
) -> None:
    """Raise the errors that `write_frame` would raise before it writes; nothing is written."""
    frame = frame_of_keys(data, table.info.primary_keys) if mode == "delete" else frame_of(data)
    for _ in FrameCheck.of(table.info, frame, mode, columns).pieces(frame):
        pass


def _check_mode(info: TableInfo, mode: Mode, columns: Sequence[str] | None) -> None:
    if columns is not None and mode != "update":
        raise InvalidValueError(
            f"Columns are chosen for an update, not for {mode}.",
            hint="Give a frame of the columns that are to be written.",
        )
    if mode == "append":
        targets.check_appends(info)
    else:
        targets.check_upserts(info, done=_DONE[mode])
    if mode == "delete":
        targets.check_row_deletes(info)
        targets.check_deletes(info)


def _check_added(info: TableInfo, mode: Mode, added: Sequence[str], *, is_free: bool) -> None:
    """Refuse columns that a scan added where they would be ignored or misunderstood."""
    if CHANGE_TYPE in added and mode in {"delete", "update"}:
        raise InvalidValueError(
            f"The frame has the change of each row in {CHANGE_TYPE!r}, and cannot be written by "
            f"{mode}.",
            hint="Upsert it, which applies the changes, or leave the column out.",
            column=CHANGE_TYPE,
        )
    if added and not is_free and mode != "delete":
        raise _added_by_a_scan(info, added)


def _added_by_a_scan(table: TableInfo, added: Sequence[str]) -> SchemaMismatchError:
    shown = ", ".join(map(repr, added))
    hint = "Leave them out of the frame, or rename them to keep them as columns of a table."
    if CHANGE_TYPE in added:
        hint += " Changes are applied to tables with a primary key, by an upsert."
    return SchemaMismatchError(
        f"{table.table_path} has no column {shown}: a scan adds such columns to the rows.",
        hint=hint,
        column=added[0],
    )


def _written(
    table: TableInfo,
    frame: Frame,
    mode: Mode,
    columns: Sequence[str] | None,
    added: Sequence[str],
) -> list[str]:
    """The columns that are written, in the order of rows without names."""
    schema = table.schema
    counted = schema.auto_increment_columns
    if mode == "delete":
        return list(schema.primary_keys)
    for name in frame.names:
        if name in counted and (columns is None or name in columns):
            raise SchemaMismatchError(
                f"The column {name!r} is counted up by the server and cannot be written.",
                hint="Leave it out of the frame.",
                column=name,
            )
    if mode != "update":
        return [each for each in schema.column_names if each not in counted]
    named = [each for each in frame.names if each not in added] if columns is None else columns
    names = [*(each for each in schema.primary_keys if each not in named), *named]
    if set(names) == set(schema.primary_keys):
        raise InvalidValueError(
            f"An update of {table.table_path} writes no column beside its key.",
            hint="Name the columns to update, or give a frame that has some.",
        )
    return names
