"""Runs a task: reads an offset range of a bucket, and writes its files.

`write_range` is the only function that writes rows into a lake, for workers, Spark and programs.
Rows of a log are appended. Changes by key are folded first: the last change of a key decides, and a
key whose first change is not an insert had a row before, which is deleted. Folding takes bounded
memory; changes that do not fit are spilled to disk (`fluss.state.key_changes`).
"""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from pyiceberg.io import FileIO

from fluss.connection.config_sources import Settings, completed
from fluss.connection.connection import TableHandle
from fluss.connection.shared_connections import config_of, connection_for
from fluss.errors import FlussError, TableNotFoundError
from fluss.model.change_type import ChangeType
from fluss.net.cancellation import Cancellation
from fluss.records.arrow.numpy_arrays import from_numpy
from fluss.rows.buffers.columns import BoolArray
from fluss.state.key_changes import Changes
from fluss.state.key_column import RowKeys
from fluss.state.state_at_offset import read_state
from fluss_lake.tiering.change_reader import Stretch, read_range, with_place, with_place_schema
from fluss_lake.tiering.file_writer import FileWriter
from fluss_lake.tiering.lake_table import file_io
from fluss_lake.tiering.lake_target import file_partition
from fluss_lake.tiering.present_rows import ChangedKeys, PresentFiles, paths_of
from fluss_lake.tiering.range_task import RangeTask, WriteMode, WrittenRange, describe


def write_range(
    task: RangeTask,
    table: TableHandle,
    io: FileIO,
    *,
    cancellation: Cancellation | None = None,
    is_late: Callable[[], bool] = lambda: False,
) -> WrittenRange:
    """Write the files of a task.

    Args:
        task: The task.
        table: The table, of a connection of this process.
        io: The file system of the lake; `lake_table.file_io` opens it without a catalog.
        cancellation: Cancels the task from another thread.
        is_late: Whether the task should stop at the offset it has reached; the next round reads
            the rest of the range.

    Returns:
        The written files; they are not part of the table before the commit.

    Raises:
        TableNotFoundError: The table was dropped and created again since the task was planned.
        FlussError: The range cannot be read, or the files cannot be written; none is left.
    """
    _check_table(task, table)
    writing = _Writing(task, table, io, cancellation or Cancellation(), is_late)
    try:
        return writing.result()
    except FlussError as error:
        writing.abandon()
        raise error.with_context(**describe(task)) from error
    except OSError as error:
        writing.abandon()
        raise unwritable(task, error) from error
    except BaseException:
        writing.abandon()
        raise


def carry_out(
    task: RangeTask,
    config: Settings = None,
    settings: Mapping[str, str] | None = None,
    *,
    cancellation: Cancellation | None = None,
    read_s_max: float = math.inf,
) -> WrittenRange:
    """Run a task in a process that has no connection yet.

    Args:
        task: The task.
        config: How to reach the cluster; None for the environment or the profile.
        settings: Additional settings of the lake, such as keys of object storage. Missing ones are
            read from the environment and from `.pyiceberg.yaml`.
        cancellation: Cancels the task from another thread.
        read_s_max: How long the task reads; the next round reads the rest of the range.

    Raises:
        FlussError: As for `write_range`.
    """
    is_late = ends_after(read_s_max)
    connection = connection_for(completed(config_of(config)))
    asked = connection.recent_table(task.table_path, lambda info: info.table_id == task.table_id)
    table = connection.engine.run(asked, cancellation=cancellation)
    io = file_io(
        table.info, task.target.location, {**connection.lake_settings(), **(settings or {})}
    )
    return write_range(task, table, io, cancellation=cancellation, is_late=is_late)


def ends_after(seconds: float) -> Callable[[], bool]:
    """Return a function that says whether so many seconds have passed since now."""
    deadline = time.monotonic() + seconds
    return lambda: time.monotonic() >= deadline


def unwritable(task: RangeTask, error: OSError) -> FlussError:
    """The error of a lake whose files cannot be written."""
    why = " ".join(str(error).split())[:300] or type(error).__name__
    return FlussError(
        f"The files of the lake of {task.table_path} cannot be written: {why}.",
        hint="The disk may be full, or the worker may not be allowed to write. Nothing of the round "
        "was committed; the next one starts where this one did.",
        **describe(task),
    )


def _check_table(task: RangeTask, table: TableHandle) -> None:
    if table.info.table_id != task.table_id:
        raise TableNotFoundError(
            f"The table {task.table_path} was dropped and created again since the round started.",
            hint="The next round copies the new one.",
            table=str(task.table_path),
        )


@dataclass(slots=True)
class _Writing:
    """One run of a task."""

    task: RangeTask
    table: TableHandle
    io: FileIO
    cancellation: Cancellation
    is_late: Callable[[], bool]
    end: int | None = None
    writers: list[FileWriter] = field(default_factory=list)
    changes: int = 0
    max_timestamp_ms: int | None = None

    def result(self) -> WrittenRange:
        """Read the range and write its files."""
        removed: frozenset[str] = frozenset()
        rows, deletes = self._new_writer("rows"), None
        if self.task.state is not None:
            self._write_state(rows)
            removed = paths_of(self.task.present, self.task.present)
        elif not self.table.info.has_primary_key():
            for stretch in self._stretches():
                rows.write(stretch.rows)
        elif self.task.mode is WriteMode.COPY_ON_WRITE:
            removed = self._write_over_present(rows)
        else:
            deletes = self._new_writer("deletes", is_deletes=True)
            self._write_changes(rows, deletes)
        files = [*rows.finish(), *(() if deletes is None else deletes.finish())]
        return WrittenRange(
            bucket=self.task.bucket,
            end=self.task.stop if self.end is None else self.end,
            max_timestamp_ms=self.max_timestamp_ms,
            files=tuple(files),
            removed=removed,
            changes=self.changes,
            rows=rows.rows,
            deletes=0 if deletes is None else deletes.rows,
        )

    def abandon(self) -> None:
        """Remove what was written."""
        for writer in self.writers:
            writer.abandon()

    def _new_writer(self, kind: str, *, is_deletes: bool = False) -> FileWriter:
        task = self.task
        place = "" if task.partition_name is None else f"{task.bucket.partition_id}-"
        # Two runs of one task never write the same file.
        name = f"{task.round_id}-{place}{task.bucket.bucket_id}-{uuid.uuid4().hex[:12]}-{kind}"
        writer = FileWriter(
            io=self.io,
            target=task.target,
            record=file_partition(task.partition_name, task.bucket.bucket_id),
            name=name,
            file_bytes=task.file_bytes,
            equality_ids=task.target.schema.identifier_field_ids if is_deletes else (),
        )
        self.writers.append(writer)
        return writer

    # --- what is read -------------------------------------------------------------------------

    def _stretches(self) -> Iterator[Stretch]:
        for stretch in read_range(self.task, self.table, self.cancellation):
            self.cancellation.check()
            self.changes += stretch.rows.num_rows
            self.max_timestamp_ms = max(self.max_timestamp_ms or 0, stretch.max_timestamp_ms)
            yield stretch
            if self.is_late():
                self.end = stretch.end
                return

    def _write_state(self, rows: FileWriter) -> None:
        """Write the state at the end of the range, as if one commit had made all of it."""
        task = self.task
        if task.state is None:
            raise AssertionError("the driver plans the state together with the task")
        self.max_timestamp_ms = task.at_ms
        batches = read_state(
            self.table,
            task.state,
            memory_bytes_max=task.memory_bytes,
            cancellation=self.cancellation,
        )
        for batch in batches:
            self.changes += batch.num_rows
            offsets = np.full(batch.num_rows, task.stop - 1, dtype=np.int64)
            times = np.full(batch.num_rows, task.at_ms, dtype=np.int64)
            rows.write(with_place(batch, task.bucket.bucket_id, offsets, times))

    # --- changes by key -----------------------------------------------------------------------

    def _write_changes(self, rows: FileWriter, deletes: FileWriter) -> None:
        info = self.table.info
        keys = RowKeys(info, range(len(info.schema.columns)))
        last, first = self._last_changes(), self._first_changes()
        names = list(info.primary_keys)
        # Rows expire without a change: an insert may follow a row that the lake still has.
        may_miss = info.options.has_row_ttl
        try:
            for stretch in self._stretches():
                types, found = stretch.change_types, keys.of(stretch.rows)
                self._add_last(last, stretch, found)
                counts = ~_follows(types)
                is_there = (types != ChangeType.Insert) | may_miss
                _add(first, found, stretch.rows.select(names), counts, is_there)
            for batch in last.over(()):
                rows.write(batch)
            for batch in first.over(()):
                deletes.write(batch)
        finally:
            last.close()
            first.close()

    def _write_over_present(self, rows: FileWriter) -> frozenset[str]:
        """Rewrite the files of the bucket that have rows with changed keys."""
        info = self.table.info
        keys = RowKeys(info, range(len(info.schema.columns)))
        last, changed = self._last_changes(), ChangedKeys(self.task.memory_bytes // 4)
        present = PresentFiles(info, self.io, self.task.target.schema, self.cancellation)
        try:
            for stretch in self._stretches():
                found = keys.of(stretch.rows)
                changed.add(found)
                self._add_last(last, stretch, found)
            again = present.with_keys(self.task.present, changed)
            stored = ((keys.of(batch), batch) for batch in present.rows(again))
            for batch in last.over(stored):
                rows.write(batch)
        finally:
            last.close()
        return paths_of(again, self.task.present)

    def _add_last(self, last: Changes, stretch: Stretch, found: pa.Array) -> None:
        types = stretch.change_types
        _add(
            last, found, stretch.rows, types != ChangeType.UpdateBefore, types != ChangeType.Delete
        )

    def _last_changes(self) -> Changes:
        schema = with_place_schema(self.table.info.schema.to_arrow())
        return Changes(schema, counts="last", memory_bytes_max=self.task.memory_bytes)

    def _first_changes(self) -> Changes:
        arrow = self.table.info.schema.to_arrow()
        keys = pa.schema([arrow.field(each) for each in self.table.info.primary_keys])
        return Changes(keys, counts="first", memory_bytes_max=self.task.memory_bytes)


def _follows(types: np.ndarray) -> BoolArray:
    """Which changes are the second half of an update whose first half is directly before them."""
    follows: BoolArray = types == ChangeType.UpdateAfter
    follows[1:] &= types[:-1] == ChangeType.UpdateBefore
    follows[:1] = False
    return follows


def _add(
    changes: Changes, keys: pa.Array, rows: pa.RecordBatch, counts: BoolArray, is_there: BoolArray
) -> None:
    if not counts.all():
        kept = from_numpy(counts)
        keys, rows, is_there = keys.filter(kept), rows.filter(kept), is_there[counts]
    if rows.num_rows:
        changes.add(keys, rows, is_there)
