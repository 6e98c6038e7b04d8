"""Splits as a source of Polars: frames as they arrive, and an empty one while none does.

Polars looks for Ctrl-C only between the frames of a source, so a source must return frames while it
waits for servers. That is why each run of a source reads on a thread of its own, a few batches
ahead: while no batch is there, the source returns an empty frame. A source is small and can be
pickled; threads and connections belong to its runs.
"""

from __future__ import annotations

import atexit
import contextlib
import queue
import threading
import time
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import polars as pl
import pyarrow as pa

from fluss.doors import at_door
from fluss.hints import Door
from fluss.scan import Cancellation, Order, ScanSplit, ScanStats, open_split

# Ctrl-C must be noticed within a second; Polars looks for it between frames.
IDLE_S: Final = 0.05
# The reader itself fetches and decodes ahead; these only spare both sides from waiting.
BATCHES_AHEAD: Final = 4
# How long a process that ends waits for sources to leave Python, which they cannot do later.
END_S_MAX: Final = 0.5


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
        with contextlib.closing(_Run(self)) as run:
            while left is None or left > 0:
                batch = run.next_batch(IDLE_S)
                if batch is None:
                    return
                if batch is _NOTHING_YET:
                    yield empty
                    continue
                frame = _to_frame(batch, predicate, with_columns)
                if left is not None:
                    frame = frame.head(left)
                    left -= frame.height
                yield frame


def schema_of(arrow: pa.Schema) -> pl.Schema:
    """Return an Arrow schema with Polars' types."""
    return pl.DataFrame(arrow.empty_table()).schema


def _to_frame(
    batch: pa.RecordBatch, predicate: pl.Expr | None, with_columns: list[str] | None
) -> pl.DataFrame:
    frame = pl.DataFrame(batch)
    if predicate is not None:
        frame = frame.filter(predicate)
    if with_columns is not None and with_columns != frame.columns:
        frame = frame.select(with_columns)
    return frame


_NOTHING_YET: Final[Any] = object()
_END: Final[Any] = object()


class _Run:
    """One run of a source: a thread that reads a few batches ahead of Polars."""

    def __init__(self, source: SplitSource) -> None:
        self._source = source
        self._cancellation = cancelled_at_exit()
        self._batches: queue.Queue[Any] = queue.Queue(maxsize=BATCHES_AHEAD)
        self._closed = threading.Event()
        self._cancellation.listen(self._closed.set)
        threading.Thread(target=self._read, name="fluss-polars", daemon=True).start()

    def next_batch(self, timeout_s: float) -> Any:
        """Return the next batch, `_NOTHING_YET`, or None after the last."""
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
                self._batches.put(item, timeout=IDLE_S)
            except queue.Full:
                continue
            return True
        return False


_tokens: weakref.WeakSet[Cancellation] = weakref.WeakSet()


def cancelled_at_exit() -> Cancellation:
    """Return a token that is cancelled when the process ends, if the query still runs then.

    A query that was abandoned goes on pulling its sources. A thread of Polars that is still in
    Python when the interpreter is gone would abort the process.
    """
    token = Cancellation()
    _tokens.add(token)
    return token


def _cancel_all() -> None:
    left = [token for token in _tokens if not token.is_cancelled]
    for token in left:
        token.cancel()
    if left:
        time.sleep(min(2 * IDLE_S, END_S_MAX))


atexit.register(_cancel_all)
