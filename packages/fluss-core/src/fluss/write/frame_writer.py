"""Writes whole frames: appends, upserts, deletes, partial updates, and changelogs.

Columns are matched by name and cast where no value changes, once. A frame in memory is checked
before any of it is written; of a stream each batch is, and an error reports how much was written
before. Rows of one bucket keep their order. How a frame is written depends on its columns alone,
so it is worked out once per connection, table and columns.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from threading import Lock
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from fluss.connection.arguments import positions_by_name
from fluss.connection.connection import ClientConnection, TableHandle
from fluss.errors import (
    ClosedError,
    ConnectError,
    FlussError,
    InvalidNameError,
    InvalidValueError,
    RequestTimeoutError,
    SchemaMismatchError,
)
from fluss.model.options.scan_options import CHANGE_TYPE
from fluss.model.paths import TablePath
from fluss.model.tables.table_info import TableInfo
from fluss.model.tables.table_options import MergeEngine
from fluss.model.types.data_type import DataType
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.convert.cast import to_wire_batch
from fluss.rows.buffers.columns import BoolArray, Int64Array
from fluss.write.caller_rows import rows_counted
from fluss.write.change_frames import (
    added_columns,
    change_batch,
    gathered,
    without_columns,
)
from fluss.write.frame_kinds import naming_frame
from fluss.write.pandas_frames import check_index
from fluss.write.tabular import ArrowFrame, Frame, frame_of, frame_of_keys
from fluss.write.wire_rows import PartitionPaths, WireRows
from fluss.write.wire_writer import WireWriter
from fluss.write.write_encoding import Target
from fluss.write.write_failures import failed_write
from fluss.write.write_report import Outcomes, WriteReport
from fluss.write.write_result import WriteResultHandle
from fluss.write.write_tally import WriteProgress
from fluss.write.write_targets import (
    check_appends,
    check_changes,
    check_deletes,
    check_row_deletes,
    check_upserts,
    nullable_layout,
)
from fluss.write.writer_pool import AGG_OVERWRITE, writer_pool

Mode = Literal["append", "upsert", "delete", "update"]
MergeMode = Literal["default", "overwrite"]

# The ways of writing frames that a connection remembers.
_PLANS_KEPT_MAX: Final = 256


def write_frame(
    table: TableHandle,
    data: Any,
    *,
    mode: Mode,
    columns: Sequence[str] | None = None,
    merge_mode: MergeMode | None = None,
) -> WriteReport:
    """Write all rows of a frame, and wait until they are acknowledged.

    Blocks the calling thread, which must not be the engine's.

    Args:
        table: The table.
        data: Anything tabular (`write.tabular`). An upserted frame with `_change_type` is applied
            as a changelog; other columns that scans add are not written.
        mode: `append` to a log; `upsert` whole rows by key; `delete` by key, where other columns
            of the table are ignored; `update` some columns of rows by key.
        columns: The columns of an update; None for those of the frame. The key need not be named.
        merge_mode: `overwrite` to replace aggregated values; the default for a changelog, whose
            rows are results and not contributions.

    Raises:
        UnsupportedOperationError: The table is not written in this mode.
        SchemaMismatchError: A column is missing, unknown, or of a type that cannot be cast.
        InvalidValueError: A value does not fit its column, or a key or partition is NULL.
        FlussError: Rows could not be written; `progress` counts what became of them.
    """
    with naming_frame(data):
        keys = table.info.primary_keys
        frame = frame_of_keys(data, keys) if mode == "delete" else frame_of(data)
        return _write_frame(table, frame, mode, columns=columns, merge_mode=merge_mode)


def write_to_recent_table(
    connection: ClientConnection, path: TablePath, data: Any, *, mode: Literal["append", "upsert"]
) -> WriteReport:
    """Write a frame to the table of this name; see `write_frame`.

    Callers that write row by row get the facts of the table from the connection, which asks for
    them once in a while. If these refuse the frame, or the table is gone, current facts decide. A
    stream can be read only once, so it is written with current facts.

    Raises:
        TableNotFoundError: There is no such table; the error names the nearest.
    """
    run = connection.engine.run
    with naming_frame(data):
        frame = frame_of(data)
        if not frame.is_whole:
            return _write_frame(run(connection.table(path)), frame, mode)
        recent = run(connection.recent_table(path))
        try:
            return _write_frame(recent, frame, mode)
        except (ClosedError, ConnectError, RequestTimeoutError):
            raise
        except FlussError as error:
            current = run(connection.table(path))
            if not _is_to_be_repeated(error, before=recent.info, now=current.info):
                raise
        return _write_frame(current, frame, mode)


def _is_to_be_repeated(error: FlussError, *, before: TableInfo, now: TableInfo) -> bool:
    """Whether a frame that failed with outdated facts of its table may be written again."""
    if before == now:
        return False
    progress = error.facts.get("progress")
    if not isinstance(progress, WriteProgress):
        return True  # it was refused before anything was written
    # Rows that may be in a table are in no table that was created later under its name.
    in_doubt = progress.in_doubt and before.table_id == now.table_id
    return not progress.acknowledged and not in_doubt


def _write_frame(
    table: TableHandle,
    frame: Frame,
    mode: Mode,
    *,
    columns: Sequence[str] | None = None,
    merge_mode: MergeMode | None = None,
) -> WriteReport:
    plan, target = table.connection.service(_FramePlans).get(
        table, frame, mode, columns, merge_mode
    )
    pieces: Iterable[_Piece] = plan.pieces(frame)
    if frame.is_whole:
        pieces = list(pieces)  # nothing is written before everything is checked
    return _write(table, target, plan, pieces)


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
    plan = _FramePlan.of(table, frame, mode, None)
    if frame.is_whole:
        for _ in plan.pieces(frame):
            pass
        return frame
    batches = frame.batches(plan.types)
    first = next(batches, None)
    if first is None:
        return ArrowFrame(frame.schema, [], is_whole=False)
    plan.prepare(first, 0)
    return ArrowFrame(frame.schema, chain([first], batches), is_whole=False)


def rows_to_append(table: TableHandle, data: Any) -> list[WireRows]:
    """The rows of a frame in wire form, as `write_frame` would append them; none is written.

    Args:
        table: A log table.
        data: See `write_frame`, which raises the same errors.
    """
    frame = frame_of(data)
    plan = _FramePlan.of(table.info, frame, "append", None)
    return [piece.rows for piece in plan.pieces(frame)]


def check_frame(
    table: TableHandle, data: Any, *, mode: Mode, columns: Sequence[str] | None = None
) -> None:
    """Raise the errors that `write_frame` would raise before it writes; nothing is written."""
    frame = frame_of_keys(data, table.info.primary_keys) if mode == "delete" else frame_of(data)
    for _ in _FramePlan.of(table.info, frame, mode, columns).pieces(frame):
        pass


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Piece:
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
class _FramePlan:
    """How frames of some columns are written to a table.

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
    ) -> _FramePlan:
        """The plan for a frame; its rows are not looked at.

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
            return nullable_layout(info).project(info.schema.column_indexes(types))
        return BatchLayout.of(tuple(types), tuple(types.values()), limits=info.value_limits)

    @cached_property
    def _partitions(self) -> PartitionPaths:
        return PartitionPaths(self.table, self.layout)

    def target(self, table: TableHandle, merge_mode: MergeMode | None) -> Target:
        """What encodes the rows."""
        info, pool = self.table, writer_pool(table.connection)
        if self.mode == "append":
            return pool.log_target(info)
        if merge_mode is None:
            aggregates = info.options.merge_engine is MergeEngine.AGGREGATION
            merge_mode = "overwrite" if self.is_changelog and aggregates else "default"
        return pool.kv_target(
            info,
            target_columns=positions_by_name(info, self.types) if self.mode == "update" else None,
            agg_mode=AGG_OVERWRITE if merge_mode == "overwrite" else None,
        )

    def pieces(self, frame: Frame) -> Iterator[_Piece]:
        """Check the rows of the frame, batch by batch."""
        batches = frame.batches(self.types)
        first = 0
        for batch in gathered(batches) if self.is_changelog else batches:
            yield self.prepare(batch, first)
            first += batch.num_rows

    def prepare(self, batch: pa.RecordBatch, first: int) -> _Piece:
        """Check a batch of the frame, whose first row is `first`, and bring it into wire form."""
        with rows_counted(first=first):
            given = without_columns(batch, self.left_out)
            if not self.is_changelog:
                rows = self._checked(to_wire_batch(given, self.layout))
                return _Piece(rows=rows, counts={self.mode: batch.num_rows}, first=first)
            changes = change_batch(given)
            with rows_counted(positions=changes.positions):
                wire = to_wire_batch(changes.rows, self.layout)
                check_changes(self.table, wire, changes.deletes)
                rows = self._checked(wire)
                if changes.deletes.any():
                    check_row_deletes(self.table, int(changes.deletes.argmax()))
                    check_deletes(self.table)
        return _Piece(
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

    def take(self, writer: WireWriter, piece: _Piece) -> WriteResultHandle:
        """Have the writer take rows."""
        if piece.deletes is not None:
            return writer.take_changes(piece.rows, piece.deletes)
        return writer.take_rows([piece.rows], deletes=self.mode == "delete")


_PlanKey: TypeAlias = tuple[object, ...]


class _FramePlans:
    """The plans of the frames written through a connection, by table and columns. Any thread."""

    def __init__(self, connection: ClientConnection) -> None:
        del connection  # the key of a service; a plan must not keep it alive
        self._lock = Lock()
        self._kept: OrderedDict[_PlanKey, tuple[_FramePlan, Target]] = OrderedDict()

    def get(
        self,
        table: TableHandle,
        frame: Frame,
        mode: Mode,
        columns: Sequence[str] | None,
        merge_mode: MergeMode | None,
    ) -> tuple[_FramePlan, Target]:
        """The plan for a frame, and what encodes its rows; see `_FramePlan.of` for errors."""
        info = table.info
        key = (
            info.table_path,
            mode,
            tuple(frame.names),
            getattr(frame, "index", ()),
            None if columns is None else tuple(columns),
            merge_mode,
        )
        with self._lock:
            known = self._kept.get(key)
            if known is not None and _is_same(known[0].table, info):
                self._kept.move_to_end(key)
                return known
        plan = _FramePlan.of(info, frame, mode, columns)
        made = plan, plan.target(table, merge_mode)
        with self._lock:
            self._kept[key] = made
            self._kept.move_to_end(key)
            while len(self._kept) > _PLANS_KEPT_MAX:
                self._kept.popitem(last=False)
        return made


def _is_same(one: TableInfo, other: TableInfo) -> bool:
    return one is other or one == other


def _check_mode(info: TableInfo, mode: Mode, columns: Sequence[str] | None) -> None:
    if columns is not None and mode != "update":
        raise InvalidValueError(
            f"Columns are chosen for an update, not for {mode}.",
            hint="Give a frame of the columns that are to be written.",
        )
    if mode == "append":
        check_appends(info)
    else:
        check_upserts(info)
    if mode == "delete":
        check_row_deletes(info)
        check_deletes(info)


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


# --- writing --------------------------------------------------------------------------------------


def _write(
    table: TableHandle, target: Target, plan: _FramePlan, pieces: Iterable[_Piece]
) -> WriteReport:
    writer = writer_pool(table.connection).wire_writer(target)
    outcomes = Outcomes()
    counts: dict[str, int] = dict.fromkeys([] if plan.is_changelog else [plan.mode], 0)
    taken = 0
    failed: Exception | None = None
    writer.stop_at_failure()
    try:
        for piece in pieces:
            with piece.numbered():
                handle = plan.take(writer, piece)
            outcomes.add(handle, piece.row_count)
            taken += piece.row_count
            for kind, count in piece.counts.items():
                counts[kind] = counts.get(kind, 0) + count
            if writer.has_failed:
                break
    except Exception as error:  # noqa: BLE001 - raised again; a stream raises what it likes
        failed = error  # what was taken before is in flight
    try:
        writer.seal()  # here, which spares the engine a worker thread
        table.connection.engine.run(writer.flush())
        outcomes.finish()
    except FlussError as error:
        failed = _first_cause(failed, error)
    if failed is not None:
        rows = sum(piece.row_count for piece in pieces) if isinstance(pieces, list) else None
        raise _failed(writer, plan, failed, rows)
    return WriteReport(rows=taken, counts=counts, last_offsets=outcomes.last_offsets)


def _first_cause(before: Exception | None, flushed: FlussError) -> Exception:
    """An error of the data comes before that of the rows that were written before it."""
    return before if before is not None and _is_of_the_data(before) else flushed


def _is_of_the_data(error: Exception) -> bool:
    """Whether it concerns the caller's rows, or was raised by the stream that yields them."""
    if not isinstance(error, FlussError):
        return True
    return isinstance(error, _OF_THE_DATA) or error.facts.get("row") is not None


def _failed(
    writer: WireWriter, plan: _FramePlan, failure: Exception, rows: int | None
) -> Exception:
    """One error for the frame, with a count of what became of its rows."""
    progress = writer.progress.of(rows)
    if not isinstance(failure, FlussError) or _is_of_the_data(failure):
        if isinstance(failure, FlussError):
            failure.facts["progress"] = progress
        if progress.first_untaken:
            failure.add_note(f"Of the rows before it: {progress}.")
        return failure
    return failed_write(
        plan.table, failure, progress, is_whole_again=plan.is_changelog or plan.mode == "delete"
    )


# Errors of rows that are found before they are taken; the message names the row.
_OF_THE_DATA: Final = (InvalidValueError, SchemaMismatchError, InvalidNameError)
