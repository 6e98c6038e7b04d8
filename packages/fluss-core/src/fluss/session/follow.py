"""Reading on and on: the only scan that has no end, and therefore cannot be collected.

Rows come as the servers have them. Partitions that are created later join as they are found. A
follower that is interrupted can be read on: its cursor says what has been given out.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from types import TracebackType
from typing import Literal, NoReturn, Self

import pyarrow as pa

from fluss.client.connection import TableCore
from fluss.client.scan import LogScanCore
from fluss.connector.log_reader import cheapest_column
from fluss.connector.metadata import Dresser
from fluss.connector.planning import plan_scan, shape_of
from fluss.connector.statistics import ScanStats
from fluss.errors import ClosedError, UnsupportedOperationError
from fluss.model.bounds import EARLIEST, Cursor
from fluss.model.paths import TableBucket
from fluss.model.scan_options import Mode, ScanOptions

WAIT_S = 0.5
PARTITIONS_EVERY_S = 5.0


class Follow:
    """A log, read as it grows; `table.follow(...)` makes it. For one thread at a time."""

    def __init__(self, core: TableCore, options: ScanOptions) -> None:
        self._shape = shape_of(core, options)
        if self._shape.mode not in {Mode.LOG, Mode.CHANGELOG}:
            raise UnsupportedOperationError(
                f"What is followed is a log; mode={self._shape.mode.value!r} is none.",
                hint="say mode='changelog'",
            )
        self._table = core
        self._options = self._shape.options
        self._core: LogScanCore | None = None
        self._dressers: dict[TableBucket, Dresser] = {}
        self._offsets: dict[TableBucket, int] = {}
        self._looked_at = 0.0
        self.stats = ScanStats()
        self._closed = False

    @property
    def schema(self) -> pa.Schema:
        """The columns of its rows."""
        return self._shape.schema

    def cursor(self) -> Cursor:
        """What has been given out so far: `follow(start=cursor)` goes on behind it."""
        self._open()
        return Cursor.of(self._table.info.table_id, self._offsets)

    def poll(self, timeout_s: float = WAIT_S) -> list[pa.RecordBatch]:
        """The batches that came in since the last time; waits for some, at most so long.

        Raises:
            ClosedError: It has been closed.
        """
        core = self._open()
        self._look_for_partitions(core)
        fetched = self._table.connection.engine.run(core.take(timeout_s))
        batches = []
        for each in fetched:
            self.stats.add(bytes_read=len(each.data))
            for decoded in core.decoder.decode(each):
                batch = self._dressers[decoded.bucket].dress(decoded)
                self._offsets[decoded.bucket] = decoded.last_offset + 1
                self.stats.add(rows_returned=batch.num_rows, batches_returned=1)
                batches.append(batch)
        return batches

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while not self._closed:
            try:
                batches = self.poll()
            except ClosedError:
                if self._has_ended():  # from another thread, while this one waited
                    return
                raise
            yield from batches

    @property
    def is_closed(self) -> bool:
        """Whether it has been closed."""
        return self._closed

    def close(self) -> None:
        """Read no more; whoever is iterating comes to the end. Twice is once."""
        self._closed = True
        if self._core is not None:
            self._table.connection.engine.run(self._core.close())

    def to_arrow(self) -> NoReturn:
        """Refused: what has no end cannot be collected."""
        raise UnsupportedOperationError(
            "follow() never ends, so its rows cannot be collected.",
            hint="iterate it, or take table.scan(...), which ends where the log does now",
        )

    to_pandas = to_arrow

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]:
        self.close()
        return False

    def __repr__(self) -> str:
        closed = ", closed" if self._closed else ""
        return f"Follow({self._table.info.table_path}, buckets={len(self._offsets)}{closed})"

    def _has_ended(self) -> bool:
        return self._closed

    # --- buckets ------------------------------------------------------------------------------

    def _open(self) -> LogScanCore:
        if self._closed:
            raise ClosedError("The follower has been closed.", hint="Follow the table again.")
        if self._core is None:
            self._core = self._table.log_scan(self._columns(), self._options.filter)
            self._looked_at = time.monotonic()
            self._subscribe(self._core, self._options)
        return self._core

    def _columns(self) -> list[int]:
        schema = self._table.info.schema
        wanted = schema.column_indexes(self._shape.output.table_columns)
        return list(wanted) or [cheapest_column(schema)]

    def _look_for_partitions(self, core: LogScanCore) -> None:
        now = time.monotonic()
        if not self._table.info.is_partitioned() or now - self._looked_at < PARTITIONS_EVERY_S:
            return
        self._looked_at = now
        # What is new since the last look is wanted from its beginning.
        self._subscribe(core, replace(self._options, start=EARLIEST, missing_partitions="skip"))

    def _subscribe(self, core: LogScanCore, options: ScanOptions) -> None:
        for split in plan_scan(self._table, options).splits:
            bucket = split.bucket
            if bucket in self._offsets:
                continue
            self._offsets[bucket] = split.start
            self._dressers[bucket] = Dresser(split.output, self.schema, split.partition_name)
            if bucket.partition_id is None:
                core.subscribe({bucket.bucket_id: split.start})
            else:
                core.subscribe_partitions({(bucket.partition_id, bucket.bucket_id): split.start})
