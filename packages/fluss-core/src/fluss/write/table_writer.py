"""Takes the rows of one table, for a writer of many tables (`write.many_writer`).

A core (`write.writer_cores`) encodes rows for one choice of columns. A table that is also updated
in part has several. Only one of them collects rows at a time, and all number the rows together: the
rows of a table are written in the order of the calls, and errors name them by it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final, Literal, TypeAlias

from fluss.connection.arguments import positions_by_name
from fluss.connection.connection import TableHandle
from fluss.errors import FlussError, InvalidValueError, LimitExceededError
from fluss.model.tables.table_info import TableInfo
from fluss.model.tables.table_options import MergeEngine
from fluss.typed.class_fields import kind_of
from fluss.waiting import InterruptibleLock
from fluss.write import write_targets as targets
from fluss.write.caller_rows import naming_frame
from fluss.write.frame_checks import CheckedRows, FrameCheck, Mode
from fluss.write.tabular import Frame, frame_of, frame_of_keys
from fluss.write.write_tally import WriteProgress
from fluss.write.writer_cores import RowWriter
from fluss.write.writer_pool import AGG_OVERWRITE, writer_pool

MergeMode: TypeAlias = Literal["default", "overwrite"]
_CoreKey: TypeAlias = tuple[tuple[int, ...] | None, int | None]

WHOLE_ROWS: Final[_CoreKey] = (None, None)
# How many choices of columns one table is written by between two flushes.
CORES_MAX: Final = 256
_CHECKS_MAX: Final = 256
_UPDATE_BEFORE: Final = "update_before"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOutcome:
    """What became of the rows of one table since the last report.

    Attributes:
        table: The table.
        progress: The numbers of rows.
        counts: How many rows were given of each kind; see `WriteReport`.
        failure: Why some of them were not written; None where all were.
    """

    table: TableInfo
    progress: WriteProgress
    counts: Mapping[str, int]
    failure: FlussError | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PreparedRows:
    """Rows that have been checked, and how they are taken.

    Attributes:
        writer: Takes them.
        key: By which core.
        check: How they were checked.
        pieces: The rows; those of a stream are checked as they are read.
    """

    writer: TableWriter
    key: _CoreKey
    check: FrameCheck
    pieces: Iterable[CheckedRows]


class TableWriter:
    """Takes the rows of one table. Any thread may use it.

    Args:
        table: The table.
        first: The number of its first row.
    """

    def __init__(self, table: TableHandle, *, first: int = 0) -> None:
        self.table = table
        self.info = table.info
        self._pool = writer_pool(table.connection)
        self._lock = InterruptibleLock()
        self._cores: OrderedDict[_CoreKey, RowWriter] = OrderedDict()
        self._current: RowWriter | None = None
        self._first = first
        self._is_retired = False
        self._checks: OrderedDict[object, FrameCheck] = OrderedDict()
        self._counts: dict[str, int] = {}
        self._counting = Lock()

    @property
    def rows_taken(self) -> int:
        """How many rows were taken; the number of the next one."""
        return max((each.rows_taken for each in self._cores.values()), default=self._first)

    @property
    def open_bytes(self) -> int:
        """How many bytes wait for being encoded."""
        current = self._current  # another thread may exchange it
        return current.open_rows.bytes if current is not None else 0

    def taker(self, otherwise: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """A function for single whole rows, appended or upserted.

        It does without the lock of this writer as long as whole rows are what is written. Another
        thread may end that at any moment; then the function seals the row that it has taken, so
        that no later row of its caller is written before it.

        Args:
            otherwise: Takes a row where this writer was retired, or has updated rows in part.
        """
        with self._lock:
            core = self._select(WHOLE_ROWS)
            self._seal_if_retired()
        take = core.taker

        def take_whole_row(row: Any) -> Any:
            if self._current is not core:
                return otherwise(row)
            handle = take(row)
            if self._current is not core:
                core.seal(waits=False)
            return handle

        return take_whole_row

    def retire(self) -> None:
        """Queue all rows, because another writer takes the rows of the table from now on.

        A thread that still holds this writer may take rows with it, which are queued immediately.

        Raises:
            LimitExceededError: There was no memory in time. The writer goes on.
        """
        with self._lock:
            self._current, self._is_retired = None, True
            try:
                self.seal()
            except BaseException:
                self._is_retired = False
                raise

    # --- single rows --------------------------------------------------------------------------

    def take_row(self, mode: Mode, row: Any, merge_mode: MergeMode | None = None) -> Any:
        """Take one row, a dict or a tuple; of an update a dict of the columns that are written.

        Raises:
            InvalidValueError: A value does not fit its column; nothing was taken.
            UnsupportedOperationError: The table is not written in this mode.
        """
        check_mode(self.info, mode)
        key: _CoreKey = (None, _agg_mode(merge_mode))
        if mode == "update":
            key = (self._updated(row), None)
        with self._lock:
            core = self._select(key)
            handle = core.take_plainly(row, deletes=mode == "delete")
            if mode in {"delete", "update"}:
                self._count({mode: 1})
            self._seal_if_retired()
            return handle

    def _updated(self, row: Any) -> tuple[int, ...]:
        if not isinstance(row, Mapping):
            raise InvalidValueError(
                f"An update of one row is a dict of the columns to write, not {row!r}.",
                hint="Give {column: value}, with the columns of the key.",
            )
        keys = self.info.primary_keys
        if set(row) <= set(keys):
            raise InvalidValueError(
                f"An update of {self.info.table_path} writes no column beside its key.",
                hint="Add the columns to update.",
            )
        return positions_by_name(self.info, row)

    # --- frames -------------------------------------------------------------------------------

    def prepare(
        self,
        mode: Mode,
        data: Any,
        columns: Sequence[str] | None = None,
        merge_mode: MergeMode | None = None,
    ) -> PreparedRows:
        """Check rows in memory, or prepare to check those of a stream; none is taken.

        Raises:
            UnsupportedOperationError: The table is not written in this mode.
            SchemaMismatchError: A column is missing, unknown, or of a type that cannot be cast.
            InvalidValueError: A value does not fit its column.
        """
        with naming_frame(data):
            keys = self.info.primary_keys
            frame = frame_of_keys(data, keys) if mode == "delete" else frame_of(data)
            check = self._check(frame, mode, columns)
            pieces: Iterable[CheckedRows] = check.pieces(frame)
            if frame.is_whole:
                pieces = list(pieces)
        key = self._key_of(check, merge_mode)
        return PreparedRows(writer=self, key=key, check=check, pieces=pieces)

    def take(self, prepared: PreparedRows) -> list[Any]:
        """Take rows; returns their handles."""
        handles: list[Any] = []
        for piece in prepared.pieces:
            with self._lock, piece.numbered():
                core = self._select(prepared.key)
                if piece.deletes is not None:
                    core.take_changes(piece.rows, piece.deletes)
                else:
                    is_delete = prepared.check.mode == "delete"
                    handles.append(core.take_rows([piece.rows], deletes=is_delete))
                if prepared.check.is_changelog or prepared.check.mode in {"delete", "update"}:
                    self._count(piece.counts)
                self._seal_if_retired()
        return handles

    def _check(self, frame: Frame, mode: Mode, columns: Sequence[str] | None) -> FrameCheck:
        chosen = None if columns is None else tuple(columns)
        key = (mode, chosen, tuple(frame.names), getattr(frame, "index", ()))
        with self._lock:
            check = self._checks.get(key)
            if check is None:
                check = self._checks[key] = FrameCheck.of(self.info, frame, mode, columns)
                if len(self._checks) > _CHECKS_MAX:
                    self._checks.popitem(last=False)
            return check

    def _key_of(self, check: FrameCheck, merge_mode: MergeMode | None) -> _CoreKey:
        if check.mode == "update":
            return positions_by_name(self.info, check.types), None
        aggregates = self.info.options.merge_engine is MergeEngine.AGGREGATION
        if merge_mode is None and check.is_changelog and aggregates:
            merge_mode = "overwrite"  # the rows of a changelog are results, not contributions
        return None, _agg_mode(merge_mode)

    # --- cores --------------------------------------------------------------------------------

    def _select(self, key: _CoreKey) -> RowWriter:
        """The core that takes the next row; all rows before it are queued by then."""
        core = self._cores.get(key)
        if core is None:
            core = self._opened(key)
        if core is not self._current:
            # Meanwhile, functions of `taker` wait for this lock.
            before, self._current = self._current, None
            try:
                self.seal(but=core)
            except BaseException:
                self._current = before
                raise
            core.number_from(self.rows_taken)
            self._cores[key] = core
            self._current = core
        elif key != WHOLE_ROWS and WHOLE_ROWS in self._cores:
            # A function of `taker` may have taken a row while the cores were exchanged.
            self._cores[WHOLE_ROWS].seal()
        return core

    def _opened(self, key: _CoreKey) -> RowWriter:
        columns, agg_mode = key
        if len(self._cores) >= CORES_MAX:
            self._drop_idle_core()
        if not self.info.has_primary_key():
            return self._pool.append_core(self.info)
        return self._pool.upsert_core(self.info, target_columns=columns, agg_mode=agg_mode)

    def _drop_idle_core(self) -> None:
        for key, core in self._cores.items():
            if core is not self._current and core.is_idle:
                del self._cores[key]
                return
        raise LimitExceededError(
            f"Since the last flush, rows of {self.info.table_path} were written by {CORES_MAX} "
            "different sets of columns.",
            hint="Flush more often, or write the same columns of all rows.",
        )

    def _seal_if_retired(self) -> None:
        """Queue a row that came late: the next rows of its caller go to another writer."""
        if self._is_retired:
            self._current = None  # before the sealing; see `taker`
            for core in self._cores.values():
                core.seal(waits=False)

    def seal(self, *, but: RowWriter | None = None) -> None:
        """Queue the collected rows; those of one core are left where they are."""
        for core in list(self._cores.values()):
            if core is not but:
                core.seal()

    # --- results ------------------------------------------------------------------------------

    async def completed(self) -> None:
        """Wait until all rows taken so far are written or have failed. On the engine's loop."""
        for core in list(self._cores.values()):
            await core.completed()

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to report."""
        return all(each.is_idle for each in list(self._cores.values()))

    def settle(self) -> TableOutcome | None:
        """Report, and count from here on; None where no row was taken. On the engine's loop."""
        cores = [each for each in list(self._cores.values()) if not each.is_idle]
        if not cores:
            return None
        failures = [failure for each in cores if (failure := each.settle()) is not None]
        failures.sort(key=lambda each: not each.facts.get("in_doubt"))
        progress = WriteProgress.joined([each.progress for each in cores])
        with self._counting:
            noted, self._counts = self._counts, {}
        plain = progress.total - sum(n for kind, n in noted.items() if kind != _UPDATE_BEFORE)
        usual = "upsert" if self.info.has_primary_key() else "append"
        counts = {usual: plain, **noted} if plain > 0 or not noted else noted
        failure = failures[0] if failures else None
        return TableOutcome(table=self.info, progress=progress, counts=counts, failure=failure)

    def _count(self, counts: Mapping[str, int]) -> None:
        with self._counting:
            for kind, number in counts.items():
                self._counts[kind] = self._counts.get(kind, 0) + number


def check_mode(table: TableInfo, mode: Mode) -> None:
    """Refuse to write a table in a mode that it does not allow."""
    if mode == "append":
        targets.check_appends(table)
        return
    targets.check_upserts(table, done=_DONE[mode])
    if mode == "delete":
        targets.check_row_deletes(table)
        targets.check_deletes(table)


def is_single_row(data: Any) -> bool:
    """Whether data is one row of a dict or a tuple, and not an object of a class, or rows."""
    return isinstance(data, Mapping | tuple) and kind_of(type(data)) is None


_DONE: Final = {"upsert": "replaced", "delete": "deleted", "update": "updated"}


def _agg_mode(merge_mode: MergeMode | None) -> int | None:
    return AGG_OVERWRITE if merge_mode == "overwrite" else None
