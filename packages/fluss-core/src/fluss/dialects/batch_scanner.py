"""Scanners of a few rows of one bucket.

The bucket is read once, by the first call. `next_batch` returns one batch after the other; the
other methods return the rows that `next_batch` has not returned, and the same rows when repeated.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pyarrow as pa

from fluss.dialects.scan_records import RecordBatch
from fluss.log.decode import DecodedBatch
from fluss.model.paths import TableBucket
from fluss.net.engine_thread import Engine
from fluss.state.limit_scan import LimitScanCore

if TYPE_CHECKING:
    import pandas as pd


class BatchScannerBase:
    """The part that both dialects share."""

    def __init__(self, engine: Engine, core: LimitScanCore) -> None:
        self._engine = engine
        self._core = core
        # Only the engine thread touches these.
        self._reading: asyncio.Future[list[DecodedBatch]] | None = None
        self._handed_out = 0

    @property
    def bucket(self) -> TableBucket:
        """The bucket that is read."""
        return self._core.bucket

    async def _next(self) -> RecordBatch | None:
        batches = await self._all()
        if self._handed_out == len(batches):
            return None
        self._handed_out += 1
        return RecordBatch(batches[self._handed_out - 1])

    async def _rest(self) -> list[DecodedBatch]:
        return (await self._all())[self._handed_out :]

    async def _all(self) -> list[DecodedBatch]:
        if self._reading is None:
            self._reading = asyncio.ensure_future(self._core.read())
        reading = self._reading
        try:
            return await asyncio.shield(reading)
        except BaseException:
            if reading.done() and self._reading is reading:
                self._reading = None  # the next call tries again
            raise

    def _as_batches(self, rest: list[DecodedBatch]) -> list[RecordBatch]:
        return [RecordBatch(each) for each in rest]

    def _as_table(self, rest: list[DecodedBatch]) -> pa.Table:
        return pa.Table.from_batches([each.batch for each in rest], schema=self._core.schema)

    def _as_frame(self, rest: list[DecodedBatch]) -> pd.DataFrame:
        frame: pd.DataFrame = self._as_table(rest).to_pandas()
        return frame

    def __repr__(self) -> str:
        return f"{type(self).__name__}(bucket={self.bucket})"


class BatchScanner(BatchScannerBase):
    """Reads a few rows of one bucket; reads block the calling thread."""

    def next_batch(self) -> RecordBatch | None:
        """The next batch of rows; None after the last."""
        return self._engine.run(self._next())

    def collect_all_batches(self) -> list[RecordBatch]:
        """All batches that are left."""
        return self._as_batches(self._engine.run(self._rest()))

    def to_arrow(self) -> pa.Table:
        """All rows that are left, as a table."""
        return self._as_table(self._engine.run(self._rest()))

    def to_pandas(self) -> pd.DataFrame:
        """All rows that are left, as a DataFrame."""
        return self._as_frame(self._engine.run(self._rest()))
