"""Reads ranges of logs: fetched ahead on the engine, decoded ahead of the thread that iterates.

One reader takes any number of buckets of one table, with one request per server under way for all
of them. It ends where the splits are pinned, waits for no rows that are still to come, and can be
closed from any thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import pyarrow as pa

from fluss.connection.connection import TableHandle
from fluss.errors import ClosedError, PartitionNotFoundError
from fluss.log.decode import DecodedBatch, Decoder
from fluss.log.decode_pool import Decoded, decode_ahead, decode_one
from fluss.log.fetch_messages import Fetched, FetchTarget
from fluss.log.fetcher import Fetcher
from fluss.log.log_services import fetch_limits
from fluss.log.plan_fetch import FetchLimits, Position
from fluss.log.server_filter import pruning_predicate
from fluss.log.table_reading import table_decoder, table_fetcher
from fluss.model.paths import PhysicalTablePath
from fluss.model.schema.schema import Schema
from fluss.model.types.data_type import (
    BigIntType,
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    IntType,
    SmallIntType,
    TimestampLtzType,
    TimestampType,
    TimeType,
    TinyIntType,
)
from fluss.net.cancellation import Cancellation
from fluss.records.log.log_batch import iter_log_headers
from fluss.scan.metadata_arrays import (
    MetadataFilter,
    OutputBuilder,
    columns_to_read,
    output_schema,
)
from fluss.scan.scan_stats import ScanStats
from fluss.scan.split import ScanSplit

# Whoever reads on is fetched for ever further ahead; whoever leaves soon has cost little.
UNREAD_BYTES_FIRST = 4 * 1024 * 1024
BUCKET_BYTES_FIRST = 64 * 1024
ROW_BYTES_GUESSED = 128
GROWTH = 2

# The less a column weighs, the less is moved; BOOLEAN was measured at a fortieth of a text.
_CHEAP_FIRST: tuple[type[DataType], ...] = (
    BooleanType,
    TinyIntType,
    SmallIntType,
    IntType,
    DateType,
    FloatType,
    TimeType,
    BigIntType,
    DoubleType,
    TimestampType,
    TimestampLtzType,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Rows of one split.

    Attributes:
        index: Which of the splits that were opened together.
        batch: The rows, in the columns of the scan.
        timestamp_ms: When they were committed.
        offset: The offset of the first.
    """

    index: int
    batch: pa.RecordBatch
    timestamp_ms: int = 0
    offset: int = 0

    @property
    def size_bytes(self) -> int:
        """How much it counts against what may lie unread."""
        size: int = self.batch.nbytes
        return size


class FetchSource:
    """The undecoded batches of some buckets, from start to stop each.

    Args:
        table: The table.
        ranges: For each bucket its partition, where to begin, and where to end.
        target: Which columns are fetched.
        unread_bytes_max: How much may lie fetched and unread.
        rows_max: How many rows whoever reads will take, where that is known.
        skips_missing: Whether partitions that are gone are passed over.
        cancellation: Ends the fetching from another thread.
    """

    def __init__(
        self,
        table: TableHandle,
        ranges: Sequence[ScanSplit],
        target: FetchTarget,
        *,
        unread_bytes_max: int,
        rows_max: int | None = None,
        skips_missing: bool = False,
        cancellation: Cancellation | None = None,
    ) -> None:
        self._table = table
        self._ranges = ranges
        self._target = target
        limits = fetch_limits(table.connection)
        self._limits_max = replace(limits, unread_bytes_max=unread_bytes_max)
        self._limits = first_limits(self._limits_max, rows_max)
        self._skips_missing = skips_missing
        self._engine = table.connection.engine
        self._fetcher: Fetcher | None = None
        self._cancellation = cancellation
        self._closed = False

    def __iter__(self) -> Iterator[Fetched]:
        try:
            while fetched := self._engine.run(self._take(), cancellation=self._cancellation):
                yield from fetched
        finally:
            self.close()

    def close(self) -> None:
        """Fetch no more; a reader that waits is told so. Any thread may call it."""
        if self._closed:
            return
        self._closed = True

        def close() -> None:
            if self._fetcher is not None:
                self._fetcher.close()

        self._engine.post_cleanup(close)

    async def _take(self) -> list[Fetched]:
        if self._closed:
            raise ClosedError("The scan has been closed.", hint="Open it again to read it.")
        if self._fetcher is None:
            self._fetcher = self._open()
        while True:
            try:
                taken = await self._fetcher.take(None)
            except PartitionNotFoundError:
                if not (self._skips_missing and self._skip(self._fetcher)):
                    raise
                continue
            self._limits = grown(self._limits, self._limits_max)
            self._fetcher.plan.limits = self._limits
            return taken

    def _skip(self, fetcher: Fetcher) -> bool:
        gone = [
            bucket
            for bucket, position in fetcher.plan.positions.items()
            if isinstance(position.error, PartitionNotFoundError)
        ]
        for bucket in gone:
            fetcher.unsubscribe(bucket)
        return bool(gone)

    def _open(self) -> Fetcher:
        return bounded_fetcher(self._table, self._ranges, self._target, self._limits)


def bounded_fetcher(
    table: TableHandle, ranges: Sequence[ScanSplit], target: FetchTarget, limits: FetchLimits
) -> Fetcher:
    """What fetches some buckets from start to stop each; to be made on the engine's loop."""
    fetcher = table_fetcher(table, target, limits=limits, is_bounded=True)
    for each in ranges:
        if each.start < each.stop:
            path = PhysicalTablePath(each.table_path, each.partition_name)
            fetcher.subscribe(
                Position(
                    bucket=each.bucket,
                    path=path,
                    offset=each.start,
                    stop=each.stop,
                    skips_trimmed=each.skips_trimmed,
                    begins_at_earliest=each.begins_at_earliest,
                )
            )
    return fetcher


def first_limits(limits: FetchLimits, rows_max: int | None) -> FetchLimits:
    """How much is fetched ahead at first."""
    for_bucket = limits.bytes_max_for_bucket
    if rows_max is not None:
        wanted = max(rows_max * ROW_BYTES_GUESSED, BUCKET_BYTES_FIRST)
        for_bucket = min(for_bucket, wanted)
    unread = min(limits.unread_bytes_max, UNREAD_BYTES_FIRST if rows_max is None else for_bucket)
    return replace(limits, bytes_max_for_bucket=for_bucket, unread_bytes_max=unread)


def grown(limits: FetchLimits, most: FetchLimits) -> FetchLimits:
    """How much is fetched ahead of a reader that has come back for more."""
    if limits in {most, most.scanning}:
        return most.scanning  # whoever has read so far reads on
    return replace(
        limits,
        bytes_max_for_bucket=min(limits.bytes_max_for_bucket * GROWTH, most.bytes_max_for_bucket),
        unread_bytes_max=min(limits.unread_bytes_max * GROWTH, most.unread_bytes_max),
    )


class LogReader:
    """The rows of splits of one log.

    Args:
        table: The table.
        splits: What to read of it; all of one scan.
        indexes: The number of each split in its scan.
        stats: What to count in.
        unread_bytes_max: How much may lie fetched and undecoded.
    """

    def __init__(
        self,
        table: TableHandle,
        splits: Sequence[ScanSplit],
        indexes: Sequence[int],
        *,
        stats: ScanStats,
        unread_bytes_max: int,
    ) -> None:
        first = splits[0]
        schema = table.info.schema
        names = columns_to_read(first, schema)
        self._conditions = MetadataFilter.of(first, schema)
        self._decoder = log_decoder(table, names, first)
        self._target = fetch_target(table, self._decoder, first)
        arrow = output_schema(first.output, schema.to_arrow())
        self._dressers = {
            each.bucket: OutputBuilder(each.output, arrow, each.partition_name) for each in splits
        }
        if len(self._dressers) < len(splits):
            raise ValueError("a reader takes each bucket once: what comes second would be lost")
        self._index_of = dict(zip((each.bucket for each in splits), indexes, strict=True))
        self._window = first.window
        self._limit = first.limit
        self._stats = stats
        self._source = FetchSource(
            table,
            splits,
            self._target,
            unread_bytes_max=unread_bytes_max,
            rows_max=first.limit,
            skips_missing=first.skips_missing,
        )
        self._magic_1 = table.connection.magic_1

    def __iter__(self) -> Iterator[Piece]:
        rows = 0
        for decoded in self._decoded():
            for each in decoded.batches:
                piece = self._piece(each)
                if piece is not None:
                    yield piece
                    rows += piece.batch.num_rows
                    if self._limit is not None and rows >= self._limit:
                        self.close()
                        return
            if decoded.error is not None:
                raise decoded.error

    def _decoded(self) -> Iterator[Decoded]:
        counted = self._counted()
        if self._limit is not None:
            # What comes first may be enough; decoding ahead would wait for what comes behind it.
            for fetched in islice(counted, 1):
                yield decode_one(self._decoder, fetched)
        yield from decode_ahead(self._decoder, counted)

    def _counted(self) -> Iterator[Fetched]:
        for fetched in self._source:
            self._count(fetched)
            yield fetched

    def _piece(self, decoded: DecodedBatch) -> Piece | None:
        if self._window is not None and not self._window.holds(decoded.timestamp):
            return None
        dresser = self._dressers[decoded.bucket]
        kept: DecodedBatch | None = decoded
        if self._conditions is not None:
            kept = self._conditions.kept(decoded, dresser.partition_name)
        if kept is None:
            return None
        return Piece(
            index=self._index_of[kept.bucket],
            batch=dresser.dress(kept),
            timestamp_ms=kept.timestamp,
            offset=kept.base_offset,
        )

    def close(self) -> None:
        """Read no more. Any thread may call it."""
        self._source.close()

    def _count(self, fetched: Fetched) -> None:
        batches = rows = 0
        for _, header in iter_log_headers(fetched.data, magic_1=self._magic_1):
            batches += 1
            rows += rows_within(header.base_offset, header.record_count, fetched)
        self._stats.add(bytes_read=len(fetched.data), batches_read=batches, rows_read=rows)


def rows_within(base_offset: int, record_count: int, fetched: Fetched) -> int:
    """How many rows of a batch lie between the start and the stop of what was fetched."""
    end = base_offset + record_count
    stop = end if fetched.stop is None else min(end, fetched.stop)
    return max(0, stop - max(base_offset, fetched.start))


def log_decoder(table: TableHandle, names: Sequence[str], split: ScanSplit) -> Decoder:
    """What decodes a split's columns, of the rows its filter wants."""
    schema = table.info.schema
    positions = list(schema.column_indexes(names)) if names else [cheapest_column(schema)]
    if positions == list(range(len(schema.columns))):
        positions = None  # type: ignore[assignment] # all, as they are
    return table_decoder(table, positions, split.filter)


def fetch_target(table: TableHandle, decoder: Decoder, split: ScanSplit) -> FetchTarget:
    """What is fetched; servers that know statistics leave out what the filter rules out."""
    target = decoder.fetch_target
    if split.filter is None or table.connection.magic_1 != "statistics":
        return target
    return replace(
        target,
        pruning=pruning_predicate(split.filter, table.info.schema),
        pruning_schema_id=table.info.schema_id,
    )


def cheapest_column(schema: Schema) -> int:
    """The column that weighs least, to read where only headers are wanted."""

    def weight(index: int) -> int:
        kind = type(schema.columns[index].data_type)
        return _CHEAP_FIRST.index(kind) if kind in _CHEAP_FIRST else len(_CHEAP_FIRST)

    return min(range(len(schema.columns)), key=weight)
