"""Splits as a source of Polars: frames as they arrive, and an empty one while none does.

Polars looks for Ctrl-C only between the frames of a source, so a source must return frames while it
waits for servers. That is why each run of a source reads on a thread of its own, a few batches
ahead: while no batch is there, the source returns an empty frame. A source is small and can be
pickled; threads and connections belong to its runs.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import polars as pl
import pyarrow as pa

from fluss.doors import at_door
from fluss.hints import Door
from fluss.scan import Order, ScanSplit, ScanStats, open_split
from fluss.waiting import in_thread
from fluss_polars import parquet_decoder
from fluss_polars.process_end import calls_of_polars, cancelled_at_exit

# Ctrl-C must be noticed within a second; Polars looks for it between frames.
IDLE_S: Final = 0.05
# The reader itself fetches and decodes ahead; these only spare both sides from waiting. They are
# given to Polars together, which takes 25 µs of processor time for each frame, whatever its size.
BATCHES_AHEAD: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
@at_door(Door.POLARS)
class SplitSource:
    """The function that Polars calls for the rows of some splits.

    Attributes:
        splits: The splits.
        config: How to reach the cluster.
        order: In which order rows come.
        max_parallel: How many splits are read concurrently.
        columns: The columns of the splits, with Polars' types.
        stats: Counts what is read.
    """

    splits: tuple[ScanSplit, ...]
    config: Any = field(repr=False)
    order: Order
    max_parallel: int | None
    columns: pl.Schema = field(repr=False)
    stats: ScanStats | None = field(default=None, repr=False, compare=False)

    def __call__(
        self,
        with_columns: list[str] | None,
        predicate: pl.Expr | None,
        n_rows: int | None,
        batch_size: int | None,  # noqa: ARG002 - batches have a useful size already
    ) -> Iterator[pl.DataFrame]:
        """Yield the rows; Polars applies neither the filter nor the limit again."""
        left = n_rows
        empty = pl.DataFrame(schema=self.columns)
        if with_columns is not None:
            empty = empty.select(with_columns)
        with calls_of_polars.one(), contextlib.closing(_Run(self)) as run:
            while left is None or left > 0:
                batches = run.next_batches(IDLE_S)
                if batches is None:
                    return
                if not batches:
                    yield empty
                    continue
                frame = to_frame(batches, predicate, with_columns)
                if left is not None:
                    frame = frame.head(left)
                    left -= frame.height
                yield frame


def schema_of(arrow: pa.Schema) -> pl.Schema:
    """Return an Arrow schema with Polars' types."""
    # Not by `arrow.empty_table()`: pyarrow imports pandas there, which takes half a second.
    return pl.DataFrame(pa.Table.from_batches([], schema=arrow)).schema


def to_frame(
    batches: Sequence[pa.RecordBatch],
    predicate: pl.Expr | None = None,
    with_columns: list[str] | None = None,
) -> pl.DataFrame:
    """The rows of batches as a frame, whose columns have a chunk for each batch.

    Args:
        batches: The batches, at least one.
        predicate: Which rows to keep; None for all.
        with_columns: Which columns to keep, in this order; None for all.
    """
    frames = [pl.DataFrame(batch) for batch in batches]
    frame = frames[0] if len(frames) == 1 else pl.concat(frames, rechunk=False)
    if predicate is not None:
        frame = frame.filter(predicate)
    if with_columns is not None and with_columns != frame.columns:
        frame = frame.select(with_columns)
    return frame


_END: Final[Any] = object()


class _Run:
    """One run of a source: a thread that reads a few batches ahead of Polars.

    Both queues are `SimpleQueue`s, which are in C. With a bounded `Queue`, and one frame for each
    batch, a top 10 of 2 million rows took 69 instead of 62 ms of processor time.
    """

    def __init__(self, source: SplitSource) -> None:
        self._source = source
        self._cancellation = cancelled_at_exit()
        self._batches: queue.SimpleQueue[Any] = queue.SimpleQueue()
        # As many items as batches may be added.
        self._room: queue.SimpleQueue[None] = queue.SimpleQueue()
        for _ in range(BATCHES_AHEAD):
            self._room.put(None)
        self._last: Any = None
        self._closed = threading.Event()
        self._cancellation.listen(self._closed.set)
        in_thread(self._read, "fluss-polars")

    def next_batches(self, timeout_s: float) -> list[pa.RecordBatch] | None:
        """Return the batches that are there, `BATCHES_AHEAD` at most; wait for the first.

        Returns:
            An empty list if there was none in time, and None after the last.
        """
        found: list[pa.RecordBatch] = []
        try:
            while self._may_take_more(len(found)):
                item = self._batches.get(not found, timeout_s)
                if isinstance(item, pa.RecordBatch):
                    self._room.put(None)
                    found.append(item)
                else:
                    self._last = item
        except queue.Empty:
            return found
        if found:
            return found
        if isinstance(self._last, BaseException):
            raise self._last
        return None

    def _may_take_more(self, count: int) -> bool:
        return count < BATCHES_AHEAD and self._last is None and not self._closed.is_set()

    def close(self) -> None:
        """Stop reading, without waiting for the thread. Idempotent and thread-safe."""
        self._cancellation.cancel()

    def _read(self) -> None:
        source = self._source
        last: Any = _END
        try:
            reader = open_split(
                source.splits,
                config=source.config,
                order=source.order,
                max_parallel=source.max_parallel,
                cancellation=self._cancellation,
                stats=source.stats,
                # Polars stores views: it takes them without touching the rows.
                as_views=True,
                decoder=parquet_decoder.decode,
            )
            for batch in reader:
                if not self._put(batch):
                    return
        except BaseException as error:  # noqa: BLE001 - raised again where the batches are taken
            last = error
        self._put(last)

    def _put(self, item: Any) -> bool:
        while not self._closed.is_set():
            try:
                self._room.get(timeout=IDLE_S)
            except queue.Empty:
                continue
            self._batches.put(item)
            return True
        return False
