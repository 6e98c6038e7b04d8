"""One writer for many tables: routers and CDC sinks write rows to tables by name, and flush once.

All writers of a connection share its sender, its writer id and its memory for writes. This file
finds the table of a row, refreshes the metadata of tables, and makes one report of all tables. The
rows of one table are written in the order of the calls; there is no order between tables.
`write.route_frames` splits frames by table.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import Any, Final, TypeVar

import pyarrow as pa

from fluss.connection.connection import ClientConnection, TableHandle
from fluss.errors import (
    ClosedError,
    FlussError,
    InvalidNameError,
    InvalidSchemaError,
    InvalidValueError,
    LimitExceededError,
    SchemaMismatchError,
)
from fluss.model.did_you_mean import did_you_mean
from fluss.model.paths import TablePath
from fluss.waiting import InterruptibleLock
from fluss.write.caller_rows import frame_kind_of, naming_frame
from fluss.write.flush_report import FlushReport, failed_flush, flush_report
from fluss.write.frame_checks import Mode
from fluss.write.table_writer import (
    MergeMode,
    PreparedRows,
    TableOutcome,
    TableWriter,
    is_single_row,
)
from fluss.write.tabular import frame_of, frame_of_keys
from fluss.write.writer_pool import writer_pool

T = TypeVar("T")

TABLES_MAX: Final = 10_000
# The metadata of so many tables is requested concurrently.
OPENED_AT_ONCE: Final = 32
# Memory is checked once per so many single rows.
ROWS_PER_LOOK: Final = 256
_ROWS_PER_SUM: Final = 4_096
# So many writers with outdated metadata are kept: a thread may still hold one.
_RETIRED_MAX: Final = 1_000
# Rows that are not encoded yet take at most one part in so many of the memory for writes.
_OPEN_PART: Final = 4
# After a refused row, the metadata of its table is refreshed, at most this often for one column.
ASKED_AGAIN_S: Final = 1.0
# The same where the table has no such column: it may have been added a moment ago.
COLUMN_ASKED_AGAIN_S: Final = 0.1
_ASKED_MAX: Final = 10_000
# Refusals that may disappear with current metadata of the table.
_BY_FACTS: Final = (InvalidValueError, SchemaMismatchError, InvalidSchemaError, InvalidNameError)


class ManyWriter:
    """Writes to many tables. Any thread may use it.

    Args:
        connection: The connection.
        tables: The tables that may be written to; None for all. More can be added.
        clock: Returns the current time in seconds.
    """

    def __init__(
        self,
        connection: ClientConnection,
        tables: Iterable[TablePath] | None,
        *,
        clock: Callable[[], float],
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._lock = InterruptibleLock()
        self._listed: dict[TablePath, None] | None = None
        self._writers: dict[TablePath, TableWriter] = {}
        self._retired: list[TableWriter] = []  # with outdated metadata, until the next flush
        self._outcomes: list[TableOutcome] = []  # not reported by a flush yet
        self._failed: list[TableOutcome] = []  # what the last error reported
        self.failures_raised = 0
        self._asked_at: dict[tuple[TablePath, str | None], float] = {}
        self._suspects: set[TablePath] = set()
        self._flushing = asyncio.Lock()
        self._closed = False
        self._memory = writer_pool(connection).sender.memory
        self._rows_unlooked = 0
        # Called when functions that `taker` returned must not be used any more.
        self.when_changed: Callable[[], None] = lambda: None
        if tables is not None:
            self._listed = {}
            self.add(tables)

    # --- tables -------------------------------------------------------------------------------

    @property
    def tables(self) -> tuple[TablePath, ...]:
        """The tables given to the writer, or else those it has written to."""
        with self._lock:
            return tuple(self._writers if self._listed is None else self._listed)

    def add(self, tables: Iterable[TablePath]) -> None:
        """Open tables, many at a time.

        Raises:
            TableNotFoundError: There is no such table.
        """
        self._check_open()
        with self._lock:
            new = [each for each in dict.fromkeys(tables) if each not in self._writers]
            self._check_count(len(new))
            for handle in self._run(opened_tables(self._connection, new)):
                self._writers[handle.info.table_path] = TableWriter(handle)
            if self._listed is not None:
                self._listed |= dict.fromkeys(new)

    def remove(self, table: TablePath) -> None:
        """Accept no more rows for a table. Accepted rows are still written and reported."""
        with self._lock:
            writer = self._writers.get(table)
            if writer is not None:
                self._retire(writer)
                del self._writers[table]
                self.when_changed()
            if self._listed is not None:
                self._listed.pop(table, None)

    def writer(self, path: TablePath) -> TableWriter:
        """The writer of a table, with current metadata if the last flush of the table failed.

        Raises:
            InvalidValueError: The table is not among those of this writer.
            TableNotFoundError: There is no such table.
        """
        with self._lock:
            self._check_open()
            writer = self._writers.get(path)
            if writer is not None and path not in self._suspects:
                return writer
            if writer is None and self._listed is not None:
                raise self._not_listed(path)
            if writer is None:
                self._check_count(1)
            current = self._run(self._connection.table(path))
            self._suspects.discard(path)
            if writer is None:
                self._writers[path] = TableWriter(current)
            else:
                self._replace(writer, current)
            return self._writers[path]

    def _replace(self, writer: TableWriter, current: TableHandle) -> bool:
        """Write with the current metadata of a table from now on; return whether it has changed."""
        if writer.info == current.info:
            return False
        self._retire(writer)
        self._writers[current.info.table_path] = TableWriter(current, first=writer.rows_taken)
        self.when_changed()
        return True

    def _retire(self, writer: TableWriter) -> None:
        writer.retire()  # its rows are sent before those of a new writer
        # It is added here before it is removed there, so that a concurrent flush finds it.
        self._retired.append(writer)
        if len(self._retired) > _RETIRED_MAX:
            idle = next((each for each in self._retired if each.is_idle), None)
            if idle is None:
                raise LimitExceededError(
                    f"{_RETIRED_MAX:,} tables were removed or altered since the last flush.",
                    hint="Flush more often.",
                )
            self._retired.remove(idle)

    def _has_changed(self, writer: TableWriter, refusal: FlussError) -> bool:
        """Whether the metadata of a writer is outdated; asks the server once per interval."""
        path, column = writer.info.table_path, refusal.facts.get("column")
        is_unknown = column is not None and column not in writer.info.schema.column_names
        pause_s = COLUMN_ASKED_AGAIN_S if is_unknown else ASKED_AGAIN_S
        with self._lock:
            if self._writers.get(path) is not writer:
                return path in self._writers
            now, key = self._clock(), (path, column if is_unknown else None)
            if now - self._asked_at.get(key, -pause_s) < pause_s:
                return False
            if len(self._asked_at) >= _ASKED_MAX:
                self._asked_at.clear()
            self._asked_at[key] = now
            return self._replace(writer, self._run(self._connection.table(path)))

    def _check_count(self, more: int) -> None:
        if len(self._writers) + more > TABLES_MAX:
            raise LimitExceededError(
                f"A writer takes at most {TABLES_MAX:,} tables.",
                hint="Remove tables that are no longer written to, or use several writers.",
            )

    def _not_listed(self, path: TablePath) -> InvalidValueError:
        known = [str(each) for each in self._listed or ()]
        near = did_you_mean(str(path), known)
        return InvalidValueError(
            f"{path} is not among the {len(known)} tables of this writer.",
            hint=near or "Add it to the tables of the writer.",
            table=str(path),
        )

    # --- rows ---------------------------------------------------------------------------------

    def take(
        self,
        path: TablePath,
        mode: Mode,
        data: Any,
        columns: Sequence[str] | None = None,
        merge_mode: MergeMode | None = None,
    ) -> list[Any]:
        """Accept one row (a dict or a tuple), or the rows of a frame; return their handles.

        All rows in memory are checked before the first one is accepted.
        """
        self.look(1)
        if columns is None and is_single_row(data):
            return [self._take_row(path, mode, data, merge_mode)]
        with naming_frame(data):
            try:
                return self._take_frame(path, mode, data, columns, merge_mode)
            except _BY_FACTS as error:
                raise error.add_context(table=str(path)) from None

    def _take_row(self, path: TablePath, mode: Mode, row: Any, merge_mode: MergeMode | None) -> Any:
        writer = self.writer(path)
        try:
            return writer.take_row(mode, row, merge_mode)
        except _BY_FACTS as error:
            error.add_context(frame=frame_kind_of(row))
            if not self._has_changed(writer, error):
                raise error.add_context(table=str(path)) from None
        return self.writer(path).take_row(mode, row, merge_mode)

    def _take_frame(
        self,
        path: TablePath,
        mode: Mode,
        data: Any,
        columns: Sequence[str] | None,
        merge_mode: MergeMode | None,
    ) -> list[Any]:
        writer = self.writer(path)
        keys = writer.info.primary_keys
        frame = frame_of_keys(data, keys) if mode == "delete" else frame_of(data)
        try:
            prepared = writer.prepare(mode, frame, columns, merge_mode)
            if not frame.is_whole:
                # It can be read only once, so its columns are checked before it is read.
                prepared.check.prepare(pa.RecordBatch.from_pylist([], schema=frame.schema), 0)
        except _BY_FACTS as error:
            if not self._has_changed(writer, error):
                raise
            writer = self.writer(path)
            prepared = writer.prepare(mode, frame, columns, merge_mode)
        return writer.take(prepared)

    def taker(self, path: TablePath, mode: Mode) -> Callable[[Any], Any]:
        """A function for single whole rows of a table; see `TableWriter.taker`."""
        return self.writer(path).taker(partial(self.take, path, mode))

    def prepare(self, path: TablePath, mode: Mode | None, data: Any) -> PreparedRows:
        """Check rows for a table, but accept none. Without a mode, the table's kind decides."""
        writer = self.writer(path)
        try:
            return _prepared(writer, mode, data)
        except _BY_FACTS as error:
            if not self._has_changed(writer, error):
                raise error.add_context(table=str(path)) from None
        return _prepared(self.writer(path), mode, data)

    def take_prepared(self, prepared: PreparedRows) -> None:
        """Accept checked rows."""
        self.look(ROWS_PER_LOOK)
        prepared.writer.take(prepared)

    def look(self, rows: int) -> None:
        """Wait while the memory for writes is full; encode open rows if there are too many.

        Args:
            rows: About how many rows were accepted since the last call.
        """
        self._check_open()
        if not self._memory.is_left:
            self._memory.wait()
        self._rows_unlooked += rows
        if self._rows_unlooked >= _ROWS_PER_SUM:
            self._rows_unlooked = 0
            self._seal_much()

    def _seal_much(self) -> None:
        writers = self._all()
        if sum(each.open_bytes for each in writers) > self._memory.bytes_max // _OPEN_PART:
            for writer in writers:
                writer.seal()

    # --- results ------------------------------------------------------------------------------

    def seal(self) -> None:
        """Encode and queue the accepted rows on the calling thread, instead of on a worker's."""
        for writer in self._all():
            writer.seal()

    async def flush(self) -> None:
        """Wait until all accepted rows are written or have failed. Runs on the engine's loop.

        `outcome` returns the result, so an interrupted caller loses nothing.
        """
        async with self._flushing:
            busy = [each for each in self._all() if not each.is_idle]
            await asyncio.gather(*(each.completed() for each in busy))
            for writer in busy:
                done = writer.settle()
                if done is not None:
                    self._outcomes.append(done)
                    if done.failure is not None:
                        self._suspects.add(done.table.table_path)
            if self._suspects:
                self.when_changed()

    def outcome(self, raised_before: int) -> FlushReport:
        """The report of all rows that were flushed and not reported yet.

        Flushes that run concurrently wait for the same rows, and all of them raise the error.

        Args:
            raised_before: The number of `failures_raised` when the flush was called.

        Raises:
            FlussError: Rows of a table could not be written; see `flush_report.failed_flush`. The
                error is raised once otherwise.
        """
        with self._lock:
            outcomes, self._outcomes = self._outcomes, []
            failed = [each for each in outcomes if each.failure is not None]
            if failed:
                self._failed = failed
                self.failures_raised += 1
            elif self.failures_raised != raised_before:
                outcomes += self._failed
        error = failed_flush(outcomes)
        if error is not None:
            raise error
        return flush_report(outcomes)

    def _all(self) -> list[TableWriter]:
        # Without the lock: the engine must not wait for a thread that waits for the engine. A
        # writer that is retired concurrently is in one of the two lists, or in both.
        current = list(self._writers.values())
        return list(dict.fromkeys([*self._retired, *current]))

    @property
    def is_closed(self) -> bool:
        """Whether it has been closed."""
        return self._closed

    def close(self) -> None:
        """Accept no more rows. Accepted rows are still written."""
        self._closed = True
        self.when_changed()

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("The writer has been closed.", hint="Open another one.")

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._connection.engine.run(work)


def _prepared(writer: TableWriter, mode: Mode | None, data: Any) -> PreparedRows:
    chosen: Mode = mode or ("upsert" if writer.info.has_primary_key() else "append")
    return writer.prepare(chosen, data)


async def opened_tables(
    connection: ClientConnection, paths: Sequence[TablePath]
) -> list[TableHandle]:
    """Request the current metadata of tables, many of them concurrently.

    Raises:
        TableNotFoundError: There is no such table.
    """
    limit = asyncio.Semaphore(OPENED_AT_ONCE)

    async def opened(path: TablePath) -> TableHandle:
        async with limit:
            return await connection.table(path)

    tasks = [asyncio.ensure_future(opened(each)) for each in paths]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
