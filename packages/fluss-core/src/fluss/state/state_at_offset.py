"""Reads the state of a bucket at its pin: stored rows, and the changes between them and the pin.

Rows that were stored before the pin are rolled forward: the last change of a key counts. Rows that
were stored after the pin are rolled back: the row before the first change after the pin counts, and
if that change is an insert there was no row. All of it happens on the caller's thread. The first
rows come as soon as all changes are known; stored rows are decoded one chunk at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, TypeVar

import pyarrow as pa

from fluss.connection.connection import TableHandle
from fluss.errors import OffsetOutOfRangeError
from fluss.lake.lake_format import the_format
from fluss.log.extents import fetch_extents
from fluss.lookup.stored_rows import ValueDecoder
from fluss.model.change_type import ChangeType
from fluss.model.extent import Extent
from fluss.model.paths import PhysicalTablePath
from fluss.model.predicates.predicate import Predicate
from fluss.model.tables.table_options import ChangelogImage
from fluss.net.cancellation import Cancellation
from fluss.net.leader_requests import find_partition_path
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.arrow.numpy_arrays import from_numpy
from fluss.records.filter.row_filter import RowFilter
from fluss.rows.buffers.columns import BoolArray
from fluss.state.key_changes import Changes
from fluss.state.key_column import RowKeys
from fluss.state.log_rows import Stretch, read_changes, stretches
from fluss.state.plan_state import ASKED_FOR, backwards_without_images
from fluss.state.state_planner import StatePlan, plan_state
from fluss.state.stored_state import StoredRows, StoredState

T = TypeVar("T")

MEMORY_BYTES_MAX: Final = 48 * 1024 * 1024


def read_state(
    table: TableHandle,
    plan: StatePlan,
    columns: Sequence[int] | None = None,
    row_filter: RowFilter | None = None,
    *,
    memory_bytes_max: int = MEMORY_BYTES_MAX,
    cancellation: Cancellation | None = None,
    predicate: Predicate | None = None,
    note: Callable[[int], None] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Read the rows of a bucket at the plan's pin, every key once, in no order.

    Args:
        table: The table; its id is the bucket's.
        plan: What to read, and how.
        columns: The positions of the columns, in the requested order; None for all.
        row_filter: Which rows to return; None for all.
        memory_bytes_max: How much memory changed rows may take; further ones wait on disk.
        cancellation: Ends the reading from another thread.
        predicate: What `row_filter` was made of; files of a lake are pruned by it.
        note: Is called with how many pieces of those files were left out.

    Raises:
        ClosedError: It has been cancelled.
        OffsetOutOfRangeError: Changes that are needed have been trimmed.
        UnsupportedOperationError: The rows were stored after the pin, and a changelog of image
            `wal` cannot be undone.
        FlussError: The bucket cannot be read.
    """
    reading = _Reading(table, plan, columns, row_filter, memory_bytes_max, cancellation)
    reading.prune_lake(predicate, note)
    return reading.batches()


class _Reading:
    """One reading of one plan."""

    def __init__(
        self,
        table: TableHandle,
        plan: StatePlan,
        columns: Sequence[int] | None,
        row_filter: RowFilter | None,
        memory_bytes_max: int,
        cancellation: Cancellation | None,
    ) -> None:
        self._table = table
        self._cancellation = cancellation
        self._plan = plan
        self._filter = row_filter
        self._memory_bytes_max = memory_bytes_max
        schema = table.info.schema
        requested = list(range(len(schema.columns)) if columns is None else columns)
        looked_at = [
            *schema.column_indexes(table.info.physical_primary_keys),
            *(() if row_filter is None else row_filter.columns),
        ]
        further = [each for each in dict.fromkeys(looked_at) if each not in requested]
        # Columns that only keys and the filter need come after the requested ones.
        self._columns = [*requested, *further]
        self._requested_count = len(requested)
        self._keys = RowKeys(table.info, self._columns)
        whole = BatchLayout.of_schema(schema)
        self._decoder = ValueDecoder(table, whole.project(self._columns))
        self._predicate: Predicate | None = None
        self._note: Callable[[int], None] | None = None

    def prune_lake(self, predicate: Predicate | None, note: Callable[[int], None] | None) -> None:
        """Leave out pieces of the lake's files that have no row that fulfils a condition."""
        self._predicate, self._note = predicate, note

    def batches(self) -> Iterator[pa.RecordBatch]:
        for rows in self._rows():
            batch = rows
            if self._filter is not None:
                batch = batch.take(from_numpy(self._filter.matching(batch)))
            if batch.num_rows:
                yield batch.select(range(self._requested_count))

    def _rows(self) -> Iterator[pa.RecordBatch]:
        if self._plan.pin == 0:
            return
        table, cluster = self._table.info.table_path, self._table.connection.cluster
        path = self._run(find_partition_path(cluster, table, self._plan.bucket.partition_id))
        try:
            yield from self._rows_of(path)
        except OffsetOutOfRangeError:
            # All changes are read before the first row is returned, so none has to be taken back.
            if self._plan.strategy != "changelog" or self._plan.why == ASKED_FOR:
                raise
            self._plan = self._planned_again(path)
            yield from self._rows_of(path)

    def _planned_again(self, path: PhysicalTablePath) -> StatePlan:
        """Choose another strategy: since the plan was made, the log has lost its beginning."""
        plan = self._plan
        return self._run(plan_state(self._table, path, plan.bucket, plan.pin, is_past=True))

    def _rows_of(self, path: PhysicalTablePath) -> Iterator[pa.RecordBatch]:
        plan = self._plan
        with self._stored(path) as stored:
            extent = self._extent(path)  # asked last, so that no stored row is newer
            seen = extent.end if stored.log_offset is None else stored.log_offset
            is_later = seen > plan.pin
            changes = Changes(
                self._decoder.schema,
                counts="first" if is_later else "last",
                memory_bytes_max=self._memory_bytes_max,
            )
            try:
                if is_later:
                    self._undo(changes, seen, extent)
                else:
                    self._replay(changes, seen)
                yield from changes.over(self._decoded(stored))
            finally:
                changes.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._table.connection.engine.run(work, cancellation=self._cancellation)

    # --- where it starts ----------------------------------------------------------------------

    def _stored(self, path: PhysicalTablePath) -> AbstractContextManager[StoredRows]:
        plan = self._plan
        stored = StoredState(
            table=self._table, path=path, bucket=plan.bucket, cancellation=self._cancellation
        )
        match plan.strategy:
            case "scan_kv":
                return stored.by_pages()
            case "limit_scan":
                return stored.in_one_message()
            case "snapshot":
                return stored.of_snapshot(plan.snapshot_id)
            case "changelog":
                return nullcontext(StoredRows(log_offset=0))
            case "lake":
                return nullcontext(StoredRows(batches=self._of_lake(), log_offset=plan.lake_end))

    def _of_lake(self) -> Iterator[pa.RecordBatch]:
        plan, info = self._plan, self._table.info
        if plan.lake is None:
            return
        names = [info.schema.column_names[each] for each in self._columns]
        lake = the_format(plan.lake.format, info)
        reading = lake.read(
            info,
            plan.lake,
            columns=names,
            start=plan.lake.start_of_state,
            stop=plan.lake_end,
            settings=self._table.connection.lake_settings(),
            predicate=self._predicate,
            with_places=False,
            note=self._note,
        )
        for rows in reading:
            if self._cancellation is not None:
                self._cancellation.check()
            yield rows.batch

    def _decoded(self, stored: StoredRows) -> Iterator[tuple[pa.Array, pa.RecordBatch]]:
        for values in stored.values:
            rows = self._decoder.decode(values)
            yield self._keys.of(rows), rows
        for batch in stored.batches:
            rows = pa.RecordBatch.from_arrays(batch.columns, schema=self._decoder.schema)
            yield self._keys.of(rows), rows

    # --- how it gets to the pin ---------------------------------------------------------------

    def _replay(self, changes: Changes, seen: int) -> None:
        """Collect the last change of each key between the stored rows and the pin."""
        for stretch in self._between(seen, self._plan.pin):
            types = stretch.change_types
            self._add(
                changes, stretch, types != ChangeType.UpdateBefore, types != ChangeType.Delete
            )

    def _undo(self, changes: Changes, seen: int, extent: Extent) -> None:
        """Collect the row before the first change of each key between the pin and the rows."""
        pin = self._plan.pin
        if self._table.info.options.changelog_image is not ChangelogImage.FULL:
            raise backwards_without_images(pin, seen)
        if extent.earliest > pin:
            raise self._unreachable(
                f"The changes of bucket {self._plan.bucket.bucket_id} of "
                f"{self._table.info.table_path} after the pin {pin} are gone: its log begins at "
                f"offset {extent.earliest}.",
                "Plan the scan again.",
            )
        # The pin may be inside an update: the row before it is then one offset earlier.
        for stretch in self._between(max(pin - 1, extent.earliest), seen):
            types = stretch.change_types
            counts = types != ChangeType.UpdateAfter
            if stretch.base_offset < pin:
                counts[0] = types[0] == ChangeType.UpdateBefore
            self._add(changes, stretch, counts, types != ChangeType.Insert)

    def _add(
        self, changes: Changes, stretch: Stretch, counts: BoolArray, is_there: BoolArray
    ) -> None:
        rows = stretch.rows
        if not counts.all():
            rows, is_there = rows.filter(from_numpy(counts)), is_there[counts]
        changes.add(self._keys.of(rows), rows, is_there)

    def _between(self, start: int, stop: int) -> Iterator[Stretch]:
        bucket, columns = self._plan.bucket, self._columns
        changes = read_changes(
            self._table, bucket, start, stop, columns, cancellation=self._cancellation
        )
        return stretches(changes)

    def _extent(self, path: PhysicalTablePath) -> Extent:
        """The range of the log now: it has all changes that the stored rows contain."""
        connection, bucket = self._table.connection, self._plan.bucket
        pinned = fetch_extents(connection.cluster, {bucket: path}, reached={bucket: self._plan.pin})
        extents = self._run(pinned)
        extent = extents[bucket]
        if extent.end < self._plan.pin:
            raise self._unreachable(
                f"The log of bucket {bucket.bucket_id} of {path} ends at offset {extent.end}, "
                f"before the pin {self._plan.pin}.",
                "A log whose servers all crashed together may have lost its end; plan the scan "
                "again.",
            )
        return extent

    def _unreachable(self, why: str, hint: str) -> OffsetOutOfRangeError:
        return OffsetOutOfRangeError(
            why,
            hint=hint,
            table=str(self._table.info.table_path),
            bucket=self._plan.bucket.bucket_id,
            offset=self._plan.pin,
        )
