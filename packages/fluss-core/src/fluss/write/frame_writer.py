"""Writes whole frames: appends, upserts, deletes, partial updates, and changelogs.

Columns are matched by name and cast where no value changes. What is in memory is checked before
any of it is written; of a stream each batch is, and an error says how much had been written before.
Rows of one bucket keep their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa

from fluss.connection.arguments import positions_by_name
from fluss.connection.connection import TableHandle
from fluss.errors import FlussError, InvalidNameError, InvalidValueError, SchemaMismatchError
from fluss.model.options.scan_options import CHANGE_TYPE
from fluss.model.paths import PhysicalTablePath
from fluss.model.tables.partitions import SEPARATOR
from fluss.model.tables.table_info import TableInfo
from fluss.model.tables.table_options import MergeEngine
from fluss.model.types.data_type import DataType
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.convert.cast import to_wire_batch
from fluss.records.convert.numpy_columns import to_column
from fluss.rows.buffers.columns import Int64Array
from fluss.rows.keys.partition_codes import partition_codes
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
from fluss.write.write_failures import failed_write
from fluss.write.write_report import Outcomes, WriteReport
from fluss.write.write_targets import check_changes, check_row_deletes, nullable_layout
from fluss.write.writer_cores import (
    AGG_OVERWRITE,
    AppendCore,
    UpsertCore,
    WriteResultHandle,
    append_core,
    check_appends,
    check_upserts,
    writer_pool,
)

Mode = Literal["append", "upsert", "delete", "update"]
MergeMode = Literal["default", "overwrite"]


def write_frame(
    table: TableHandle,
    data: Any,
    *,
    mode: Mode,
    columns: Sequence[str] | None = None,
    merge_mode: MergeMode | None = None,
) -> WriteReport:
    """Write all rows of a frame, and wait until the servers have them.

    Blocks the calling thread, which must not be the engine's.

    Args:
        table: The table.
        data: Anything tabular (`frames.tabular`). An upserted frame with `_change_type` is applied
            as a changelog; other columns that scans add are left out of it.
        mode: `append` to a log; `upsert` whole rows by key; `delete` by key, where further columns
            of the table are not looked at; `update` some columns of rows by key.
        columns: Of an update, the columns to write; None for those that the frame has. The key
            need not be named.
        merge_mode: `overwrite` to put values in the place of aggregated ones; in a changelog that
            is the default, because its rows are results and not contributions.

    Raises:
        UnsupportedOperationError: The table is not written in this mode.
        SchemaMismatchError: A column is missing, unknown, or of a type that cannot be cast.
        InvalidValueError: A value does not fit its column, or a key or partition is NULL.
        FlussError: Rows could not be written; a note says how many were, as far as is known.
    """
    with naming_frame(data):
        keys = table.info.primary_keys
        frame = frame_of_keys(data, keys) if mode == "delete" else frame_of(data)
        way = _way_of(table.info, frame, mode, columns)
        core = _core(table, way, merge_mode)
        pieces: Iterable[_Piece] = _pieces(way, frame)
        if frame.is_whole:
            pieces = list(pieces)  # nothing is written before everything has been looked at
        return _write(table, core, way, pieces)


def checked_frame(table: TableInfo, frame: Frame, *, mode: Mode) -> Frame:
    """Look at the rows of a frame as `write_frame` would, and write none.

    Of a stream, the first batch is looked at; the rows can be read once.

    Args:
        table: The table, which need not exist yet.
        frame: The rows.
        mode: See `write_frame`, which raises the same errors.

    Returns:
        A frame of the same rows.
    """
    way = _way_of(table, frame, mode, None)
    if frame.is_whole:
        for _ in _pieces(way, frame):
            pass
        return frame
    batches = frame.batches(way.types)
    first = next(batches, None)
    if first is None:
        return ArrowFrame(frame.schema, [], is_whole=False)
    way.prepare(first, 0)
    return ArrowFrame(frame.schema, chain([first], batches), is_whole=False)


def rows_to_append(table: TableHandle, data: Any) -> list[pa.RecordBatch]:
    """The rows of a frame in wire form, as `write_frame` would append them; none is written.

    Args:
        table: A log table.
        data: See `write_frame`, which raises the same errors.
    """
    frame = frame_of(data)
    way = _way_of(table.info, frame, "append", None)
    return [piece.rows for piece in _pieces(way, frame)]


def check_frame(
    table: TableHandle, data: Any, *, mode: Mode, columns: Sequence[str] | None = None
) -> None:
    """Refuse a frame as `write_frame` would, which see; none of it is written."""
    frame = frame_of_keys(data, table.info.primary_keys) if mode == "delete" else frame_of(data)
    for _ in _pieces(_way_of(table.info, frame, mode, columns), frame):
        pass


def _pieces(way: _Way, frame: Frame) -> Iterator[_Piece]:
    batches = frame.batches(way.types)
    first = 0
    for batch in gathered(batches) if way.is_changelog else batches:
        yield way.prepare(batch, first)
        first += batch.num_rows


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Piece:
    """Rows in wire form, ready to be taken.

    Attributes:
        rows: The rows.
        counts: What happens to them, and to how many.
        deletes: Which of them delete, in a changelog.
        first: Which row of the frame the first of them is.
        places: Which rows of the frame from there on they are, where some are left out.
    """

    rows: pa.RecordBatch
    counts: Mapping[str, int]
    deletes: Any = None
    first: int = 0
    places: Int64Array | None = None

    def numbered(self) -> AbstractContextManager[None]:
        """Errors in the block name rows as the frame has them."""
        places = None if self.places is None else self.places + self.first
        return rows_counted(first=self.first if places is None else 0, places=places)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Way:
    """How the rows of one frame are written.

    Attributes:
        table: The table.
        mode: What happens to rows, and what they are counted as.
        types: The columns that are written.
        left_out: Columns of the frame that are not written.
        is_changelog: Whether rows say themselves what happens to them.
        layout: The columns that are written, as the table keeps them.
    """

    table: TableInfo
    mode: Mode
    types: Mapping[str, DataType]
    left_out: Sequence[str]
    is_changelog: bool
    layout: BatchLayout

    def prepare(self, batch: pa.RecordBatch, first: int) -> _Piece:
        """Check a batch of the frame, whose first row is `first`, and bring it into wire form."""
        with rows_counted(first=first):
            rows = without_columns(batch, self.left_out)
            if not self.is_changelog:
                rows = self._cast(rows)
                return _Piece(rows=rows, counts={self.mode: rows.num_rows}, first=first)
            changes = change_batch(rows)
            with rows_counted(places=changes.places):
                rows = self._cast(changes.rows)
                check_changes(self.table, rows, changes.deletes)
                if changes.deletes.any():
                    check_row_deletes(self.table, int(changes.deletes.argmax()))
        return _Piece(
            rows=rows,
            deletes=changes.deletes,
            counts=changes.counts,
            first=first,
            places=changes.places,
        )

    def _cast(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        rows = to_wire_batch(batch, self.layout)
        _check_places(self.table, rows, self.layout)
        return rows


def _way_of(info: TableInfo, frame: Frame, mode: Mode, columns: Sequence[str] | None) -> _Way:
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
    added = added_columns(info, frame.names)
    is_changelog = mode == "upsert" and CHANGE_TYPE in added
    if CHANGE_TYPE in added and mode in {"delete", "update"}:
        raise InvalidValueError(
            f"The frame says in {CHANGE_TYPE!r} what happens to each row, and is to be applied as "
            f"{mode} throughout.",
            hint="Upsert it, which applies the changes, or leave the column out.",
            column=CHANGE_TYPE,
        )
    if added and not is_changelog and mode != "delete" and columns is None:
        raise _added_by_a_scan(info, added)
    if mode != "delete":
        check_index(getattr(frame, "index", ()), info)
    names = _written(info, frame, mode, columns, added)
    types = {name: info.schema.column(name).data_type for name in names}
    left_out = [each for each in added if not (is_changelog and each == CHANGE_TYPE)]
    if columns is not None or mode == "delete":
        known = info.schema.column_names
        left_out += [each for each in frame.names if each in known and each not in types]
    return _Way(
        table=info,
        mode=mode,
        types=types,
        left_out=left_out,
        is_changelog=is_changelog,
        layout=nullable_layout(info).project(info.schema.column_indexes(names))
        if is_changelog
        else BatchLayout.of(tuple(types), tuple(types.values()), limits=info.value_limits),
    )


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


def _core(table: TableHandle, way: _Way, merge_mode: MergeMode | None) -> AppendCore | UpsertCore:
    info, mode = table.info, way.mode
    if mode == "append":
        return append_core(table)
    targets = positions_by_name(info, way.types) if mode == "update" else None
    if merge_mode is None:
        aggregates = info.options.merge_engine is MergeEngine.AGGREGATION
        merge_mode = "overwrite" if way.is_changelog and aggregates else "default"
    return writer_pool(table.connection).upsert_core(
        info,
        target_columns=targets,
        agg_mode=AGG_OVERWRITE if merge_mode == "overwrite" else None,
    )


def _taker(
    core: AppendCore | UpsertCore, mode: Mode, *, is_changelog: bool
) -> Callable[[_Piece], WriteResultHandle]:
    if isinstance(core, AppendCore):
        return lambda piece: core.append_arrow(piece.rows)
    if is_changelog:
        return lambda piece: core.apply_arrow(piece.rows, piece.deletes)
    if mode == "delete":
        return lambda piece: core.delete_arrow(piece.rows)
    return lambda piece: core.upsert_arrow(piece.rows)


def _written(
    table: TableInfo,
    frame: Frame,
    mode: Mode,
    columns: Sequence[str] | None,
    added: Sequence[str],
) -> list[str]:
    """The columns that are written, in the order in which rows without names have them."""
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


# --- doing it -------------------------------------------------------------------------------------


def _write(
    table: TableHandle, core: AppendCore | UpsertCore, way: _Way, pieces: Iterable[_Piece]
) -> WriteReport:
    take = _taker(core, way.mode, is_changelog=way.is_changelog)
    outcomes = Outcomes()
    counts: dict[str, int] = dict.fromkeys([] if way.is_changelog else [way.mode], 0)
    taken = 0
    failed: Exception | None = None
    core.stop_at_failure()
    try:
        for piece in pieces:
            with piece.numbered():
                handle = take(piece)
            outcomes.add(handle, piece.rows.num_rows)
            taken += piece.rows.num_rows
            for kind, count in piece.counts.items():
                counts[kind] = counts.get(kind, 0) + count
            if core.has_failed:
                break
    except Exception as error:  # noqa: BLE001 - raised again; a stream raises what it likes
        failed = error  # what was taken before is under way
    try:
        table.connection.engine.run(core.flush())
        outcomes.finish()
    except FlussError as error:
        failed = _first_cause(failed, error)
    if failed is not None:
        rows = sum(each.rows.num_rows for each in pieces) if isinstance(pieces, list) else None
        raise _failed(core, way, failed, rows)
    return WriteReport(rows=taken, counts=counts, last_offsets=outcomes.last_offsets)


def _first_cause(before: Exception | None, flushed: FlussError) -> Exception:
    """A value that does not fit, or a stream that fails, comes before what became of the others."""
    return before if before is not None and _is_of_the_data(before) else flushed


def _is_of_the_data(error: Exception) -> bool:
    """Whether it is about the rows of the caller, or raised by what gives them."""
    if not isinstance(error, FlussError):
        return True
    return isinstance(error, _OF_THE_DATA) or error.facts.get("row") is not None


def _failed(
    core: AppendCore | UpsertCore, way: _Way, failure: Exception, rows: int | None
) -> Exception:
    """One error for the frame, with a count of what became of its rows."""
    progress = core.progress.of(rows)
    if not isinstance(failure, FlussError) or _is_of_the_data(failure):
        if isinstance(failure, FlussError):
            failure.facts["progress"] = progress
        if progress.first_untaken:
            failure.add_note(f"Of the rows before it: {progress}.")
        return failure
    return failed_write(
        way.table, failure, progress, is_whole_again=way.is_changelog or way.mode == "delete"
    )


# What is wrong with rows is found before they are taken; its message names the row.
_OF_THE_DATA: Final = (InvalidValueError, SchemaMismatchError, InvalidNameError)


# --- looking before -------------------------------------------------------------------------------


def _check_places(table: TableInfo, rows: pa.RecordBatch, layout: BatchLayout) -> None:
    """Refuse rows that belong nowhere: encoding would find them, but later than the caller."""
    if not rows.num_rows:
        return
    for name in table.bucket_keys:
        column = rows.column(layout.names.index(name))
        if column.null_count:
            row = int(np.argmax(np.asarray(column.is_null())))
            raise InvalidValueError(
                f"The column {name!r} chooses the bucket, and is NULL.",
                hint="Fill the column, or leave out the row.",
                column=name,
            ).add_context(row=row)
    if table.partition_keys:
        for values in _partitions(table, rows, layout):
            PhysicalTablePath(table.table_path, SEPARATOR.join(values))  # refuses other names


def _partitions(
    table: TableInfo, rows: pa.RecordBatch, layout: BatchLayout
) -> Iterator[tuple[str, ...]]:
    places = [layout.names.index(each) for each in table.partition_keys]
    columns = [to_column(rows.column(each), layout.types[each]) for each in places]
    found, _ = partition_codes(columns, names=table.partition_keys)
    yield from found
