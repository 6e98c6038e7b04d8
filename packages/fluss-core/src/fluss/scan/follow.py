"""Follows a log: the only scan without an end, whose rows therefore cannot be collected.

Rows come as the servers have them. Partitions that are created later join when they are found. A
follower that was interrupted can be read on: rows that were fetched and not given out wait in it,
and its cursor stands after the last batch that was given out.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NoReturn, Self

import pyarrow as pa

from fluss.admin.admin import admin_of
from fluss.connection.connection import TableHandle
from fluss.doors import at_door
from fluss.errors import ClosedError, PartitionNotFoundError, UnsupportedOperationError
from fluss.hints import Door, Hint, HintKey
from fluss.log.decode import DecodedBatch
from fluss.log.fetch_messages import Fetched, read_headers
from fluss.log.log_scan import LogScanCore
from fluss.model.options.bounds import EARLIEST, Cursor
from fluss.model.options.scan_options import LakeUse, Mode, ScanOptions
from fluss.model.paths import TableBucket
from fluss.scan.log_reader import cheapest_column
from fluss.scan.metadata_arrays import MetadataFilter, OutputBuilder
from fluss.scan.plan_scan import window_of
from fluss.scan.scan_planner import plan_scan
from fluss.scan.scan_stats import ScanStats
from fluss.scan.shape import shape_of
from fluss.scan.table_source import TableSource, endless

WAIT_S = 0.5
PARTITIONS_EVERY_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Ready:
    """Rows to give out, None for a stretch without rows; and where their bucket stands then."""

    bucket: TableBucket
    next_offset: int
    batch: pa.RecordBatch | None


@at_door(Door.SESSION)
class Follow:
    """A log, read as it grows; `table.follow(...)` makes it. For one thread at a time."""

    def __init__(self, core: TableHandle, options: ScanOptions) -> None:
        self._shape = shape_of(core.info, options)
        if self._shape.mode not in {Mode.LOG, Mode.CHANGELOG}:
            raise UnsupportedOperationError(
                f"A log is followed, and mode={self._shape.mode.value!r} is none.",
                hint="use mode='changelog'",
            )
        self._table = core
        options, schema = self._shape.options, core.info.schema
        start = None if options.start is None else options.start.at(time.time_ns() // 1_000_000)
        self._options = replace(options, start=start)
        self._window = window_of(start, None)
        filtered = self._shape.plan_filter()
        self._pushed = filtered.pushed
        rest, prefix = filtered.metadata_residual, options.metadata_prefix
        self._conditions = None if rest is None else MetadataFilter(rest, schema, prefix=prefix)
        self._core: LogScanCore | None = None
        self._builders: dict[TableBucket, OutputBuilder] = {}
        self._offsets: dict[TableBucket, int] = {}
        self._fetched: deque[Fetched] = deque()
        self._ready: deque[_Ready] = deque()
        self._listed_at_s = 0.0
        self.stats = ScanStats()
        self._closed = False

    @property
    def name(self) -> str:
        """`database.table`."""
        return str(self._table.info.table_path)

    @property
    def schema(self) -> pa.Schema:
        """The columns of its rows."""
        return self._shape.schema

    def cursor(self) -> Cursor:
        """Where the rows given out so far end: `follow(start=cursor)` goes on from there."""
        self._open()
        return Cursor.of(self._table.info.table_id, self._offsets)

    def poll(self, timeout_s: float = WAIT_S) -> list[pa.RecordBatch]:
        """Take the batches that have arrived since the last call, or wait for some.

        Args:
            timeout_s: How long to wait at most.

        Raises:
            ClosedError: The follower has been closed.
        """
        self._fill(timeout_s)
        batches = [each.batch for each in self._ready if each.batch is not None]
        self._offsets |= {each.bucket: each.next_offset for each in self._ready}
        self._ready.clear()
        return batches

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while not self._closed:
            try:
                self._fill(WAIT_S)
            except ClosedError:
                if self._has_ended():  # from another thread, while this one waited
                    return
                raise
            while self._ready and not self._has_ended():
                given = self._ready.popleft()
                self._offsets[given.bucket] = given.next_offset
                if given.batch is not None:
                    yield given.batch

    @property
    def is_closed(self) -> bool:
        """Whether it has been closed."""
        return self._closed

    def close(self) -> None:
        """Read no more; a thread that iterates comes to the end. Idempotent."""
        self._closed = True
        if self._core is not None:
            self._table.connection.engine.run(self._core.close())

    def to_arrow(self) -> NoReturn:
        """Refuse: a scan without an end cannot be collected."""
        raise UnsupportedOperationError(
            "follow() never ends, so its rows cannot be collected.",
            hint="iterate it, or take table.scan(...), which ends where the log does now",
        )

    to_pandas = to_arrow

    def to_source(self) -> TableSource:
        """Refuse: engines collect the rows that they read."""
        raise endless("follow()")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        closed = ", closed" if self._closed else ""
        return f"Follow({self._table.info.table_path}, buckets={len(self._offsets)}{closed})"

    def _has_ended(self) -> bool:
        return self._closed

    # --- rows ---------------------------------------------------------------------------------

    def _fill(self, timeout_s: float) -> None:
        """Fetch and decode rows to give out, if any arrive in time."""
        core = self._open()
        if self._ready:
            return
        self._look_for_partitions(core)
        if not self._fetched:
            try:
                self._table.connection.engine.run(self._take(core, timeout_s))
            except PartitionNotFoundError as error:
                if self._options.missing_partitions != "skip":
                    error.add_context(hint=Hint(HintKey.FOLLOW_THE_OTHERS))
                    raise
                if not self._forget_partitions(core):
                    raise
        while self._fetched:
            # Removed last: a call that is interrupted here finds it again the next time.
            ready = self._read(core, self._fetched[0])
            self._ready.extend(ready)
            self._fetched.popleft()

    async def _take(self, core: LogScanCore, timeout_s: float) -> None:
        # On the engine: an interrupted caller does not lose what has been taken for it.
        self._fetched.extend(await core.take(timeout_s))

    def _read(self, core: LogScanCore, fetched: Fetched) -> list[_Ready]:
        ready = []
        for decoded in core.decoder.decode(fetched):
            rows = self._kept(decoded)
            if rows is None:
                continue
            batch = self._builders[decoded.bucket].finish(rows)
            next_offset = decoded.last_offset + 1
            ready.append(_Ready(bucket=decoded.bucket, next_offset=next_offset, batch=batch))
        headers = read_headers(fetched.data, magic_1=self._table.connection.magic_1)
        if headers.next_offset is not None:
            # The cursor moves on even where a filter leaves no row.
            end = headers.next_offset
            ready.append(_Ready(bucket=fetched.bucket, next_offset=end, batch=None))
        given = [each.batch.num_rows for each in ready if each.batch is not None]
        self.stats.add(
            bytes_read=len(fetched.data),
            batches_read=headers.batches,
            rows_read=headers.rows,
            rows_returned=sum(given),
            batches_returned=len(given),
        )
        return ready

    def _kept(self, decoded: DecodedBatch) -> DecodedBatch | None:
        if self._window is not None and not self._window.holds(decoded.timestamp):
            return None
        if self._conditions is None:
            return decoded
        return self._conditions.kept(decoded, self._builders[decoded.bucket].partition_name)

    # --- buckets ------------------------------------------------------------------------------

    def _open(self) -> LogScanCore:
        if self._closed:
            raise ClosedError("The follower has been closed.", hint="Follow the table again.")
        if self._core is None:
            self._core = LogScanCore(self._table, self._columns(), self._pushed)
            self._listed_at_s = time.monotonic()
            self._subscribe(self._core, self._options)
        return self._core

    def _columns(self) -> list[int]:
        schema = self._table.info.schema
        names = list(self._shape.output.table_columns)
        if self._conditions is not None:
            names += [each for each in self._conditions.columns if each not in names]
        return list(schema.column_indexes(names)) or [cheapest_column(schema)]

    def _look_for_partitions(self, core: LogScanCore) -> None:
        now = time.monotonic()
        if not self._table.info.is_partitioned() or now - self._listed_at_s < PARTITIONS_EVERY_S:
            return
        self._listed_at_s = now
        # Partitions that are new since then are read from their beginning.
        self._subscribe(core, replace(self._options, start=EARLIEST, missing_partitions="skip"))

    def _subscribe(self, core: LogScanCore, options: ScanOptions) -> None:
        options = replace(options, lake=LakeUse.OFF)
        for split in plan_scan(self._table, replace(self._shape, options=options)).splits:
            bucket = split.bucket
            if bucket in self._offsets:
                continue
            self._offsets[bucket] = split.start
            self._builders[bucket] = OutputBuilder(split.output, self.schema, split.partition_name)
            if bucket.partition_id is None:
                core.subscribe({bucket.bucket_id: split.start})
            else:
                core.subscribe_partitions({(bucket.partition_id, bucket.bucket_id): split.start})

    def _forget_partitions(self, core: LogScanCore) -> bool:
        """Stop reading partitions that were dropped; whether there were any."""
        table = self._table
        admin = admin_of(table.connection)
        listed = table.connection.engine.run(admin.list_partition_infos(table.info.table_path))
        there = {each.partition_id for each in listed}
        gone = [each for each in self._offsets if each.partition_id not in there]
        for bucket in gone:
            core.unsubscribe(bucket.bucket_id, partition_id=bucket.partition_id)
            del self._offsets[bucket]
        return bool(gone)
