"""Splits as a source of Polars: frames as they come, and an empty one whenever nothing does.

Polars looks whether somebody has pressed Ctrl-C only between the frames of a source. So splits are
read on a thread of their own, a few batches ahead, and while none is there, or it is not even known
which splits there are, an empty frame is given instead. A source is small and can be pickled; what
it opens belongs to one run of it.
"""

from __future__ import annotations

import atexit
import contextlib
import queue
import threading
import time
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import polars as pl
import pyarrow as pa

from fluss.connection.config_sources import completed
from fluss.doors import at_door
from fluss.hints import Door
from fluss.model.options.config import Config
from fluss.model.options.scan_options import Order
from fluss.scan import Cancellation, open_split
from fluss_polars.query_plan import Plan

# Ctrl-C must be noticed within a second; Polars asks between frames.
IDLE_S: Final = 0.05
BATCHES_AHEAD: Final = 2
# Strings and bytes, and what Polars holds them as.
_VIEWS: Final = {pa.string(): pa.string_view(), pa.binary(): pa.binary_view()}
# A process that ends waits so long for sources to leave Python, which Polars cannot do later.
END_S_MAX: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
@at_door(Door.POLARS)
class SplitSource:
    """What Polars calls for the rows of some splits.

    Attributes:
        plan: Of the query; its splits may not be known yet.
        number: Which of the sources that share them this is: it reads each `count`th split.
        count: How many share them.
        config: How to reach the cluster.
        order: In which order.
        max_parallel: How many are read at once.
        columns: What the splits give, as Polars calls it.
    """

    plan: Plan
    number: int
    count: int
    config: Config = field(repr=False)
    order: Order
    max_parallel: int | None
    columns: pl.Schema = field(repr=False)

    def __call__(
        self,
        with_columns: list[str] | None,
        predicate: pl.Expr | None,
        n_rows: int | None,
        batch_size: int | None,  # noqa: ARG002 - batches have a useful size already
    ) -> Iterator[pl.DataFrame]:
        """The rows; Polars checks neither the filter nor the number of rows again."""
        left = n_rows
        empty = pl.DataFrame(schema=self.columns)
        if with_columns is not None:
            empty = empty.select(with_columns)
        with contextlib.closing(_Reading(self)) as reading:
            while left is None or left > 0:
                batch = reading.next_batch(IDLE_S)
                if batch is None:
                    return
                if batch is _NOTHING_YET:
                    yield empty
                    continue
                frame = _framed(batch, predicate, with_columns)
                if left is not None:
                    frame = frame.head(left)
                    left -= frame.height
                yield frame


def schema_of(arrow: pa.Schema) -> pl.Schema:
    """An Arrow schema, as Polars sees it."""
    return pl.DataFrame(arrow.empty_table()).schema


def _framed(
    batch: pa.RecordBatch, predicate: pl.Expr | None, with_columns: list[str] | None
) -> pl.DataFrame:
    frame = pl.DataFrame(batch)
    if predicate is not None:
        frame = frame.filter(predicate)
    if with_columns is not None and with_columns != frame.columns:
        frame = frame.select(with_columns)
    return frame


def _viewed(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows, with texts as Polars holds them, so that it need not convert them."""
    schema = batch.schema
    for number, column in enumerate(schema):
        view = _VIEWS.get(column.type)
        if view is not None:
            schema = schema.set(number, column.with_type(view))
    return batch if schema is batch.schema else batch.cast(schema)


_NOTHING_YET: Final[Any] = object()
_END: Final[Any] = object()


class _Reading:
    """One run of a source: a thread that reads, a few batches ahead of who takes them."""

    def __init__(self, source: SplitSource) -> None:
        self._source = source
        self._cancellation = Cancellation()
        self._batches: queue.Queue[Any] = queue.Queue(maxsize=BATCHES_AHEAD)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._read, name="fluss-polars", daemon=True)
        _running.add(self)
        self._thread.start()

    def next_batch(self, timeout_s: float) -> Any:
        """The next batch, `_NOTHING_YET`, or None behind the last."""
        if self._closed.is_set():
            return None
        try:
            item = self._batches.get(timeout=timeout_s)
        except queue.Empty:
            return _NOTHING_YET
        if item is _END:
            return None
        if isinstance(item, BaseException):
            raise item
        return item

    def close(self) -> None:
        """Read no more. Twice is once, and any thread may; it waits for nobody."""
        self._closed.set()
        _running.discard(self)
        if self._thread.is_alive():
            # To end a request takes as long as the engine needs, and Polars waits for who closes.
            cancel = self._cancellation.cancel
            threading.Thread(target=cancel, name="fluss-polars-end", daemon=True).start()

    def _read(self) -> None:
        last: Any = _END
        try:
            for batch in self._rows():
                if not self._put(_viewed(batch)):
                    return
        except BaseException as error:  # noqa: BLE001 - raised again where it is read
            last = error
        self._put(last)

    def _rows(self) -> Iterable[pa.RecordBatch]:
        source = self._source
        while (planned := source.plan.splits(IDLE_S)) is None:
            if self._closed.is_set():
                return ()
        splits = planned[source.number :: source.count]
        if not splits:
            return ()
        reader: Iterable[pa.RecordBatch] = open_split(
            splits,
            config=completed(source.config),
            order=source.order,
            max_parallel=source.max_parallel,
            cancellation=self._cancellation,
        )
        return reader

    def _put(self, item: Any) -> bool:
        while not self._closed.is_set():
            try:
                self._batches.put(item, timeout=IDLE_S)
            except queue.Full:
                continue
            return True
        return False


_running: weakref.WeakSet[_Reading] = weakref.WeakSet()


def _end_all() -> None:
    # Polars goes on pulling what nobody waits for any more; a thread of its own that is still in
    # Python when the interpreter is gone would abort the process.
    left = list(_running)
    for each in left:
        each.close()
    if left:
        time.sleep(min(2 * IDLE_S, END_S_MAX))


atexit.register(_end_all)
