"""`df.fluss` and `lf.fluss`: the rows of a frame written to a table of Fluss.

Columns are matched by name and cast where no value changes. Of a DataFrame everything is checked
before any of it is written; a LazyFrame is never whole in memory: its batches are written while it
is computed, a few ahead, and an error says how much had been written before.
"""

from __future__ import annotations

import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

import polars as pl
import pyarrow as pa

from fluss.doors import at_door
from fluss.hints import Door
from fluss.model.types.polars_types import exportable_schema
from fluss.session import Table, TableName, source_of
from fluss.waiting import join
from fluss.write.polars_frames import exportable
from fluss.write.write_report import WriteReport

BATCHES_AHEAD: Final = 2
WAIT_S: Final = 0.1
END_S_MAX: Final = 5.0
ROWS_PER_BATCH: Final = 64 * 1024


@at_door(Door.POLARS)
class _Writes(ABC):
    """The four ways to write; what a frame is, its namespace says."""

    @abstractmethod
    def _rows(self) -> Any:
        """What is written: anything tabular."""

    def append(self, table: TableName, *, config: Any = None) -> WriteReport:
        """Append the rows to a log table, and wait until the servers have them.

        Args:
            table: `"database.table"`, a `fluss://` URL, or a `Table`.
            config: How to reach the cluster; see `scan_fluss`.

        Returns:
            How many rows there were, and the last offset of each bucket.

        Raises:
            TableNotFoundError: There is no such table; the hint names the nearest.
            SchemaMismatchError: A column is missing, unknown, or of a type that cannot be cast.
            InvalidValueError: A value does not fit its column.

        Example:
            >>> df.fluss.append("sales.orders")  # doctest: +SKIP
        """
        return _table(table, config).append(self._rows())

    def upsert(
        self,
        table: TableName,
        *,
        config: Any = None,
        merge_mode: Literal["default", "overwrite"] | None = None,
    ) -> WriteReport:
        """Insert the rows, or replace those with the same keys; see `append`.

        A frame with a column `_change_type` is applied as a changelog.

        Args:
            table: See `append`.
            config: See `append`.
            merge_mode: `overwrite` to put values in the place of aggregated ones.
        """
        return _table(table, config).upsert(self._rows(), merge_mode=merge_mode)

    def delete(self, table: TableName, *, config: Any = None) -> WriteReport:
        """Delete the rows of these keys; columns beside the key are not looked at.

        Args:
            table: See `append`.
            config: See `append`.
        """
        return _table(table, config).delete(self._rows())

    def update(
        self, table: TableName, *, columns: Sequence[str] | None = None, config: Any = None
    ) -> WriteReport:
        """Write some columns of rows by key; the others keep their values.

        Args:
            table: See `append`.
            columns: Which columns are written; those of the frame by default.
            config: See `append`.
        """
        return _table(table, config).update(self._rows(), columns=columns)


@pl.api.register_dataframe_namespace("fluss")
class FlussFrame(_Writes):
    """Writes a DataFrame; `df.fluss` makes it."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self._frame = frame

    def _rows(self) -> pl.DataFrame:
        return self._frame


@pl.api.register_lazyframe_namespace("fluss")
class FlussLazyFrame(_Writes):
    """Computes a LazyFrame and writes it as it comes; `lf.fluss` makes it."""

    def __init__(self, frame: pl.LazyFrame) -> None:
        self._frame = frame

    def _rows(self) -> pa.RecordBatchReader:
        frame = self._frame
        exported = exportable_schema(frame.collect_schema())
        schema = pl.DataFrame(schema=exported).to_arrow().schema
        batches = _batches(frame, schema)
        return pa.RecordBatchReader.from_batches(schema, batches)


def _table(table: TableName, config: Any) -> Table:
    return source_of(table, config=config).open()


_END: Final[Any] = object()


def _batches(frame: pl.LazyFrame, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of a frame while it is computed on another thread, which waits for who takes them.

    Polars computes for ever what nobody takes (its own iterator of batches cannot be stopped), so
    the sink is asked to stop by what it calls.
    """
    waiting: queue.Queue[Any] = queue.Queue(maxsize=BATCHES_AHEAD)
    stopped = threading.Event()

    def take(part: pl.DataFrame) -> bool:
        return not _put(waiting, part, stopped)

    def compute() -> None:
        last: Any = _END
        try:
            frame.sink_batches(take, chunk_size=ROWS_PER_BATCH, engine="streaming")
        except BaseException as error:  # noqa: BLE001 - raised again where the rows are taken
            last = error
        _put(waiting, last, stopped)

    thread = threading.Thread(target=compute, name="fluss-polars-sink", daemon=True)
    thread.start()
    rows = 0
    try:
        while (item := _get(waiting)) is not _END:
            if isinstance(item, BaseException):
                raise item
            yield from exportable(item, first_row=rows).to_arrow().cast(schema).to_batches()
            rows += len(item)
    finally:
        stopped.set()
        join(thread, END_S_MAX)


def _put(waiting: queue.Queue[Any], item: Any, stopped: threading.Event) -> bool:
    while not stopped.is_set():
        try:
            waiting.put(item, timeout=WAIT_S)
        except queue.Full:
            continue
        return True
    return False


def _get(waiting: queue.Queue[Any]) -> Any:
    while True:
        try:
            return waiting.get(timeout=WAIT_S)  # in slices, so that Ctrl-C is noticed
        except queue.Empty:
            continue
