"""`df.fluss` and `lf.fluss`: write the rows of a frame to a table of Fluss.

A DataFrame is checked whole before any of it is written. A LazyFrame is never whole in memory: its
batches are written while it is computed, a few ahead, and an error reports how much had been
written before.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import Any, Final

import polars as pl
import pyarrow as pa

from fluss.hints import Door
from fluss.model.types.polars_types import exportable_schema
from fluss.session import Table
from fluss.session.frame_verbs import FrameVerbs
from fluss.waiting import join
from fluss.write.polars_frames import exportable

BATCHES_AHEAD: Final = 2
WAIT_S: Final = 0.1
END_S_MAX: Final = 5.0
ROWS_PER_BATCH: Final = 64 * 1024


@pl.api.register_dataframe_namespace("fluss")
class FlussFrame(FrameVerbs, door=Door.POLARS):
    """Writes a DataFrame; `df.fluss` makes it."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self._frame = frame

    def _rows(self, table: Table) -> pl.DataFrame:  # noqa: ARG002 - Polars' types need no schema
        return self._frame

    def _rows_for_new_table(self) -> pl.DataFrame:
        return self._frame


@pl.api.register_lazyframe_namespace("fluss")
class FlussLazyFrame(FrameVerbs, door=Door.POLARS):
    """Computes a LazyFrame and writes it in batches; `lf.fluss` makes it."""

    def __init__(self, frame: pl.LazyFrame) -> None:
        self._frame = frame

    def _rows(self, table: Table) -> pa.RecordBatchReader:  # noqa: ARG002 - see above
        return self._rows_for_new_table()

    def _rows_for_new_table(self) -> pa.RecordBatchReader:
        frame = self._frame
        exported = exportable_schema(frame.collect_schema())
        schema = pl.DataFrame(schema=exported).to_arrow().schema
        return pa.RecordBatchReader.from_batches(schema, _batches(frame, schema))


_END: Final[Any] = object()


def _batches(frame: pl.LazyFrame, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Compute a frame on another thread, a few batches ahead of the caller.

    Polars' own iterator of batches cannot be stopped: it computes a frame that nothing consumes to
    its end. A sink stops when its callback returns True.
    """
    waiting: queue.Queue[Any] = queue.Queue(maxsize=BATCHES_AHEAD)
    stopped = threading.Event()

    def take(part: pl.DataFrame) -> bool:
        return not _put(waiting, part, stopped)

    def compute() -> None:
        last: Any = _END
        try:
            frame.sink_batches(take, chunk_size=ROWS_PER_BATCH, engine="streaming")
        except BaseException as error:  # noqa: BLE001 - raised again on the caller's thread
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
