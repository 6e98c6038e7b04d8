"""Writes the chunks of an import: once into logs, by key into tables with a primary key.

A chunk is written on a thread of its own while the next one is read, so memory holds a few chunks
whatever the size of the files. `OnceWriter` repeats nothing after a kill; `ChunkWriter` serves
tables with a primary key, whose upserts may be repeated, and pipes, which cannot be read again.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from fluss.cli.files.import_state import ImportState
from fluss.cli.files.row_files import RowFile
from fluss.errors import ClosedError, FlussError, InvalidValueError
from fluss.exactly_once import Task, append_exactly_once, end_run
from fluss.model.tables.table_options import MergeEngine
from fluss.session import Table

# A segment takes about as many rows as have these bytes.
SEGMENT_BYTES: Final = 64 << 20
SEGMENT_ROWS_MIN: Final = 1_000
SEGMENT_ROWS_MAX: Final = 5_000_000
CHUNKS_AHEAD: Final = 2
_SLICE_S: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Rows of one file that are written together.

    Args:
        file: The file.
        first_row: The number of their first row in it, from 0.
        rows: The rows.
    """

    file: RowFile
    first_row: int
    rows: pa.Table


class RowWriter(ABC):
    """Writes chunks on a thread, and keeps count.

    Args:
        table: The table.
        state: How far the import has come.
        on_written: Called with numbers of rows that are sent.

    Attributes:
        rows_in: How many rows of this run are acknowledged: the first ones of the files.
        in_flight: The chunk that is being written, or that failed.
        in_doubt_max: How many rows after those may be in the table as well.
    """

    def __init__(self, table: Table, state: ImportState, on_written: Callable[[int], None]) -> None:
        self.table = table
        self.state = state
        self.on_written = on_written
        self.rows_in = 0
        self.in_flight: Chunk | None = None
        self.in_doubt_max = 0

    @abstractmethod
    def write(self, chunk: Chunk) -> None:
        """Start to write a chunk.

        Raises:
            FlussError: It does not fit, an earlier one could not be written, or `stop` was called.
        """

    @abstractmethod
    def finish(self) -> None:
        """Wait until all rows are acknowledged.

        Raises:
            FlussError: Some could not be written.
        """

    @abstractmethod
    def stop(self, timeout_s: float) -> None:
        """Send no further rows, and wait up to `timeout_s` for those in flight."""


class ChunkWriter(RowWriter):
    """Writes one chunk after the other: all rows of the chunks before `in_flight` are in."""

    def __init__(self, table: Table, state: ImportState, on_written: Callable[[int], None]) -> None:
        super().__init__(table, state, on_written)
        self._idle = threading.Event()
        self._idle.set()
        self._stopped = False
        self._error: FlussError | None = None
        adds_up = table.info.options.merge_engine is MergeEngine.AGGREGATION
        if adds_up and state.progress.segment_rows:
            raise _unknown_aggregates(table, state)

    def write(self, chunk: Chunk) -> None:
        self.finish()
        self._idle.clear()
        self.in_flight = chunk
        if self._stopped:  # checked after `in_flight` is set, so that `stop` misses no chunk
            self.in_flight = None
            self._idle.set()
            raise ClosedError("The import was stopped.")
        threading.Thread(target=self._work, args=(chunk,), name="import", daemon=True).start()

    def finish(self) -> None:
        self._idle.wait()
        if self._error is not None:
            raise self._error

    def stop(self, timeout_s: float) -> None:
        self._stopped = True
        self._idle.wait(timeout_s)

    def _work(self, chunk: Chunk) -> None:
        count = chunk.rows.num_rows
        try:
            self.state.begin_segment(count)
            if self.table.primary_key:
                self.table.upsert(chunk.rows, progress=False)
            else:
                self.table.append(chunk.rows, progress=False)
            self.state.end_segment(count)
        except FlussError as error:
            self._error = error
            if "progress" not in error.facts:  # nothing was sent
                self.state.abandon_segment()
        except OSError as error:
            self._error = _unsaved(error)
        else:
            self.rows_in += count
            self.in_flight = None
            self.on_written(count)
        finally:
            self._idle.set()


class OnceWriter(RowWriter):
    """Appends to a log, segment by segment: a segment that is repeated is written once."""

    def __init__(self, table: Table, state: ImportState, on_written: Callable[[int], None]) -> None:
        super().__init__(table, state, on_written)
        self._chunks: queue.Queue[Chunk | None] = queue.Queue(CHUNKS_AHEAD)
        self._ended = threading.Event()
        self._is_stopping = False
        self._has_all = False
        self._is_at_end = False
        self._error: FlussError | None = None
        self._rest: pa.Table | None = None
        self._row_bytes = 0.0
        threading.Thread(target=self._work, name="import", daemon=True).start()

    def write(self, chunk: Chunk) -> None:
        self._raise_error()
        self.in_flight = chunk
        try:
            self.table.check(chunk.rows, mode="append")
        except FlussError as error:
            # The rows before the bad one are written, so every attempt ends at the same row.
            row = error.facts.get("row")
            if isinstance(row, int) and row:
                self._put(replace(chunk, rows=chunk.rows.slice(0, row)))
            raise
        self.in_flight = None
        self._put(chunk)

    def finish(self) -> None:
        if not self._has_all:
            self._has_all = True
            self._put(None)
        self._ended.wait()
        self._raise_error()

    def stop(self, timeout_s: float) -> None:
        self._is_stopping = True
        self._ended.wait(timeout_s)

    def _put(self, chunk: Chunk | None) -> None:
        while not self._ended.is_set() and not self._is_stopping:
            with contextlib.suppress(queue.Full):
                self._chunks.put(chunk, timeout=_SLICE_S)
                return
        if chunk is not None:
            self._raise_error()
            raise ClosedError("The import was stopped.")

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    # --- the writing thread -------------------------------------------------------------------

    def _work(self) -> None:
        try:
            while self._has_rows():
                self._write_segment()
        except FlussError as error:
            self._error = error
        except OSError as error:
            self._error = _unsaved(error)
        finally:
            self._ended.set()

    def _write_segment(self) -> None:
        self.state.begin_segment(self._planned_rows())
        progress = self.state.progress
        task = Task(
            run=f"import-{progress.run}-{progress.segment}", step=0, part=0, is_chained=False
        )
        receipt = append_exactly_once(self.table, task, self._rows(progress.segment_rows))
        # Saved before servers forget the segment: a kill in between repeats it and adds nothing.
        self.state.end_segment(receipt.rows)
        self.rows_in += receipt.rows
        self.in_doubt_max = 0
        with contextlib.suppress(FlussError):  # the entries expire by themselves
            end_run(self.table, task.run, [receipt])

    def _planned_rows(self) -> int:
        if not self._row_bytes:
            return 10 * SEGMENT_ROWS_MIN if self._rest is None else self._rest.num_rows
        planned = int(SEGMENT_BYTES / self._row_bytes)
        return min(max(planned, SEGMENT_ROWS_MIN), SEGMENT_ROWS_MAX)

    def _rows(self, limit: int) -> Iterator[pa.RecordBatch]:
        """Yield the next rows, up to a number."""
        left = limit
        while left and self._has_rows():
            rows = self._rest
            if rows is None:
                break
            part, rest = rows.slice(0, left), rows.slice(left)
            self._rest = rest if rest.num_rows else None
            left -= part.num_rows
            self.in_doubt_max += part.num_rows
            self._row_bytes = part.nbytes / part.num_rows
            yield from part.to_batches()
            self.on_written(part.num_rows)

    def _has_rows(self) -> bool:
        """Whether there are more rows; waits for them."""
        while self._rest is None and not self._is_stopping and not self._is_at_end:
            try:
                chunk = self._chunks.get(timeout=_SLICE_S)
            except queue.Empty:
                continue
            if chunk is None:
                self._is_at_end = True
            else:
                self._rest = chunk.rows
        return self._rest is not None and not self._is_stopping


def _unsaved(error: OSError) -> FlussError:
    return InvalidValueError(
        f"The state of the import cannot be saved: {error.strerror or error}.",
        hint="set XDG_STATE_HOME to a folder with free space",
    )


def _unknown_aggregates(table: Table, state: ImportState) -> InvalidValueError:
    progress = state.progress
    return InvalidValueError(
        f"An import of these files was killed while rows {progress.rows + 1:,} to "
        f"{progress.rows + progress.segment_rows:,} were in flight, and {table.name} adds up what is "
        "written: rows that come a second time would count twice.",
        hint=f"compare the table with the files; then --skip {progress.rows} continues before these "
        f"rows, --skip {progress.rows + progress.segment_rows} after them",
    )
