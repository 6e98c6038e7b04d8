"""Writes whole frames: appends, upserts, deletes, partial updates, and changelogs.

A frame in memory is checked (`write.frame_checks`) before any of it is written; of a stream each
batch is, and an error reports how much was written before. Rows of one bucket keep their order.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from threading import Lock
from typing import Any, Final, Literal, NamedTuple, TypeAlias

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
from fluss.model.paths import TablePath
from fluss.model.tables.table_info import TableInfo
from fluss.model.tables.table_options import MergeEngine
from fluss.progress import Amount, Progress, ProgressDisplay
from fluss.write.caller_rows import naming_frame
from fluss.write.frame_checks import CheckedRows, FrameCheck, Mode
from fluss.write.tabular import Frame, frame_of, frame_of_keys
from fluss.write.write_encoding import Target
from fluss.write.write_tally import WriteProgress, WriteReport, failed_write
from fluss.write.writer_cores import WireWriter
from fluss.write.writer_pool import AGG_OVERWRITE, writer_pool

MergeMode = Literal["default", "overwrite"]

# The ways of writing frames that a connection remembers.
_CHECKS_KEPT_MAX: Final = 256


def write_frame(
    table: TableHandle,
    data: Any,
    *,
    mode: Mode,
    columns: Sequence[str] | None = None,
    merge_mode: MergeMode | None = None,
    progress: Progress = False,
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
        progress: Whether a bar is shown; see `fluss.progress`.

    Raises:
        UnsupportedOperationError: The table is not written in this mode.
        SchemaMismatchError: A column is missing, unknown, or of a type that cannot be cast.
        InvalidValueError: A value does not fit its column, or a key or partition is NULL.
        FlussError: Rows could not be written; `progress` counts what became of them.
    """
    with naming_frame(data):
        keys = table.info.primary_keys
        frame = frame_of_keys(data, keys) if mode == "delete" else frame_of(data)
        chosen = None if columns is None else tuple(columns)
        return _write_frame(table, frame, _How(mode, chosen, merge_mode), progress)


def write_to_recent_table(
    connection: ClientConnection,
    path: TablePath,
    data: Any,
    *,
    mode: Literal["append", "upsert"],
    progress: Progress = False,
) -> WriteReport:
    """Write a frame to the table of this name; see `write_frame`.

    Callers that write row by row get the facts of the table from the connection, which asks for
    them once in a while. If these refuse the frame, or the table is gone, current facts decide. A
    table that another client drops takes rows until its servers have dropped it, as it does from
    any writer. A stream can be read only once, so it is written with current facts.

    Raises:
        TableNotFoundError: There is no such table; the error names the nearest.
    """
    run, how = connection.engine.run, _How(mode)
    with naming_frame(data):
        frame = frame_of(data)
        if not frame.is_whole:
            return _write_frame(run(connection.table(path)), frame, how, progress)
        recent = run(connection.recent_table(path))
        try:
            return _write_frame(recent, frame, how, progress)
        except (ClosedError, ConnectError, RequestTimeoutError):
            raise
        except FlussError as error:
            current = run(connection.table(path))
            if not _is_to_be_repeated(error, before=recent.info, now=current.info):
                raise
        return _write_frame(current, frame, how, progress)


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


class _How(NamedTuple):
    """How a frame is written; see `write_frame`."""

    mode: Mode
    columns: tuple[str, ...] | None = None
    merge_mode: MergeMode | None = None


def _write_frame(table: TableHandle, frame: Frame, how: _How, progress: Progress) -> WriteReport:
    check, target = table.connection.service(_FrameChecks).get(table, frame, how)
    pieces: Iterable[CheckedRows] = check.pieces(frame)
    if frame.is_whole:
        pieces = list(pieces)  # nothing is written before everything is checked
    return _write(table, target, check, pieces, progress)


_Key: TypeAlias = tuple[object, ...]


class _FrameChecks:
    """The checks of the frames written through a connection, by table and columns. Any thread."""

    def __init__(self, connection: ClientConnection) -> None:
        del connection  # the argument of every service; checks must not keep it alive
        self._lock = Lock()
        self._kept: OrderedDict[_Key, tuple[FrameCheck, Target]] = OrderedDict()

    def get(self, table: TableHandle, frame: Frame, how: _How) -> tuple[FrameCheck, Target]:
        """The check of a frame (see `FrameCheck.of`), and the target that encodes its rows."""
        info = table.info
        key = (info.table_path, tuple(frame.names), getattr(frame, "index", ()), how)
        with self._lock:
            known = self._kept.get(key)
            if known is not None and (known[0].table is info or known[0].table == info):
                self._kept.move_to_end(key)
                return known
        check = FrameCheck.of(info, frame, how.mode, how.columns)
        made = check, _target_of(check, table, how.merge_mode)
        with self._lock:
            self._kept[key] = made
            self._kept.move_to_end(key)
            while len(self._kept) > _CHECKS_KEPT_MAX:
                self._kept.popitem(last=False)
        return made


def _target_of(check: FrameCheck, table: TableHandle, merge_mode: MergeMode | None) -> Target:
    """Make the target that encodes the rows."""
    info, pool = check.table, writer_pool(table.connection)
    if check.mode == "append":
        return pool.log_target(info)
    if merge_mode is None:
        aggregates = info.options.merge_engine is MergeEngine.AGGREGATION
        merge_mode = "overwrite" if check.is_changelog and aggregates else "default"
    return pool.kv_target(
        info,
        target_columns=positions_by_name(info, check.types) if check.mode == "update" else None,
        agg_mode=AGG_OVERWRITE if merge_mode == "overwrite" else None,
    )


def _write(
    table: TableHandle,
    target: Target,
    check: FrameCheck,
    pieces: Iterable[CheckedRows],
    progress: Progress,
) -> WriteReport:
    writer = writer_pool(table.connection).wire_writer(target)
    rows = _row_count(pieces)

    def amount() -> Amount:
        # The tally begins again with a flush, and `progress` is that of the last one.
        acknowledged = max(writer.tally.report().acknowledged, writer.progress.acknowledged)
        return Amount(rows=acknowledged, done=acknowledged, rows_max=rows)

    with ProgressDisplay(str(table.info.table_path), amount, progress):
        return _written(table, writer, check, pieces)


def _row_count(pieces: Iterable[CheckedRows]) -> int | None:
    """How many rows a frame in memory has; None for a stream."""
    return sum(piece.row_count for piece in pieces) if isinstance(pieces, list) else None


def _written(
    table: TableHandle, writer: WireWriter, check: FrameCheck, pieces: Iterable[CheckedRows]
) -> WriteReport:
    counts: dict[str, int] = dict.fromkeys([] if check.is_changelog else [check.mode], 0)
    taken = 0
    failed: Exception | None = None
    writer.stops_at_failure = True
    try:
        for piece in pieces:
            with piece.numbered():
                if piece.deletes is not None:
                    writer.take_changes(piece.rows, piece.deletes)
                else:
                    writer.take_rows([piece.rows], deletes=check.mode == "delete")
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
    except FlussError as error:
        failed = _first_cause(failed, error)
    if failed is not None:
        raise _failed(writer, check, failed, _row_count(pieces))
    return WriteReport(rows=taken, counts=counts, last_offsets=writer.progress.last_offsets)


def _first_cause(before: Exception | None, flushed: FlussError) -> Exception:
    """An error of the data comes before that of the rows that were written before it."""
    return before if before is not None and _is_of_the_data(before) else flushed


def _is_of_the_data(error: Exception) -> bool:
    """Whether it concerns the caller's rows, or was raised by the stream that yields them."""
    if not isinstance(error, FlussError):
        return True
    return isinstance(error, _OF_THE_DATA) or error.facts.get("row") is not None


def _failed(
    writer: WireWriter, check: FrameCheck, failure: Exception, rows: int | None
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
        check.table, failure, progress, is_whole_again=check.is_changelog or check.mode == "delete"
    )


# Errors of rows that are found before they are taken; the message names the row.
_OF_THE_DATA: Final = (InvalidValueError, SchemaMismatchError, InvalidNameError)
