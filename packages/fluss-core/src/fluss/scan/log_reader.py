"""Reads ranges of logs: fetched ahead on the engine, decoded ahead of the thread that iterates.

One reader takes any number of buckets of one table, with one request per server in flight for all
of them. It ends where the splits are pinned, does not wait for later rows, and can be closed from
any thread.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import pyarrow as pa

from fluss.connection.connection import TableHandle
from fluss.log.decode import DecodedBatch, Decoder
from fluss.log.decode_pool import Decoded, decode_ahead, decode_one
from fluss.log.fetch_messages import Fetched
from fluss.log.plan_fetch import Position
from fluss.log.range_reader import RangeReader
from fluss.model.paths import PhysicalTablePath
from fluss.model.schema.schema import Schema
from fluss.scan.metadata_arrays import MetadataFilter, OutputBuilder, columns_to_read, output_schema
from fluss.scan.scan_stats import ScanStats
from fluss.scan.split import ScanSplit


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Rows of one split.

    Attributes:
        index: The number of the split among those that were opened together.
        batch: The rows, in the columns of the scan.
        timestamp_ms: When they were committed.
        offset: The offset of the first.
    """

    index: int
    batch: pa.RecordBatch
    timestamp_ms: int = 0
    offset: int = 0


def positions_of(splits: Sequence[ScanSplit]) -> list[Position]:
    """Where the logs of some splits are read."""
    return [
        Position(
            bucket=split.bucket,
            path=PhysicalTablePath(split.table_path, split.partition_name),
            offset=split.start,
            stop=split.stop,
            skips_trimmed=split.skips_trimmed,
            begins_at_earliest=split.begins_at_earliest,
        )
        for split in splits
    ]


class LogPieces(ABC):
    """The rows or changes of splits of one log.

    Args:
        table: The table.
        splits: The splits to read; all of one scan, each of another bucket.
        indexes: The number of each split in its scan.
        stats: Counts what is read.
        unread_bytes_max: How many bytes may lie fetched and undecoded.
        may_stop_soon: Whether the caller may stop after the first rows.
        takes_all: Whether the caller reads to the end in any case.
    """

    def __init__(
        self,
        table: TableHandle,
        splits: Sequence[ScanSplit],
        indexes: Sequence[int],
        *,
        stats: ScanStats,
        unread_bytes_max: int,
        may_stop_soon: bool = False,
        takes_all: bool = False,
    ) -> None:
        first = splits[0]
        self._decoder = self._prepared(table, splits)
        self._index_of = dict(zip((split.bucket for split in splits), indexes, strict=True))
        if len(self._index_of) < len(splits):
            raise ValueError(
                "a reader takes each bucket once: the second split of one would be lost"
            )
        self._window = first.window
        self._stats = stats
        self._may_stop_soon = may_stop_soon or first.limit is not None
        self._source = RangeReader(
            table,
            positions_of(splits),
            self._decoder.fetch_target,
            unread_bytes_max=unread_bytes_max,
            rows_max=first.limit,
            may_stop_soon=may_stop_soon,
            takes_all=takes_all,
            skips_missing=first.skips_missing,
        )

    @abstractmethod
    def _prepared(self, table: TableHandle, splits: Sequence[ScanSplit]) -> Decoder:
        """Prepare for the columns of the splits; the decoder that reads them."""

    def close(self) -> None:
        """Read no more. Any thread may call it."""
        self._source.close()

    def _is_in_time(self, decoded: DecodedBatch) -> bool:
        return self._window is None or self._window.holds(decoded.timestamp)


class LogReader(LogPieces):
    """The rows of splits of one log; see `LogPieces`."""

    def _prepared(self, table: TableHandle, splits: Sequence[ScanSplit]) -> Decoder:
        first, schema = splits[0], table.info.schema
        self._conditions = MetadataFilter.of(first, schema)
        arrow = output_schema(first.output, schema.to_arrow())
        self._builders = {
            split.bucket: OutputBuilder(split.output, arrow, split.partition_name)
            for split in splits
        }
        self._limit = first.limit
        self._magic_1 = table.connection.magic_1
        names = columns_to_read(first, schema)
        positions = list(schema.column_indexes(names)) or [cheapest_column(schema)]
        is_whole = positions == list(range(len(schema.columns)))
        return Decoder(table, None if is_whole else positions, first.filter)

    def __iter__(self) -> Iterator[Piece]:
        rows = 0
        for decoded in self._decoded():
            for batch in decoded.batches:
                piece = self._piece(batch)
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
        if self._may_stop_soon:
            # The first batches may be enough; decoding ahead would wait for those after them.
            for fetched in islice(counted, 1):
                yield decode_one(self._decoder, fetched)
        yield from decode_ahead(self._decoder, counted)

    def _counted(self) -> Iterator[Fetched]:
        for fetched in self._source:
            batches = rows = 0
            for _, header in fetched.placed_headers(self._magic_1):
                batches += 1
                rows += rows_within(header.base_offset, header.record_count, fetched)
            self._stats.add(bytes_read=len(fetched.data), batches_read=batches, rows_read=rows)
            yield fetched

    def _piece(self, decoded: DecodedBatch) -> Piece | None:
        if not self._is_in_time(decoded):
            return None
        builder = self._builders[decoded.bucket]
        kept: DecodedBatch | None = decoded
        if self._conditions is not None:
            kept = self._conditions.kept(decoded, builder.partition_name)
        if kept is None:
            return None
        return Piece(
            index=self._index_of[kept.bucket],
            batch=builder.finish(kept),
            timestamp_ms=kept.timestamp,
            offset=kept.base_offset,
        )


def rows_within(base_offset: int, record_count: int, fetched: Fetched) -> int:
    """How many rows of a batch lie between the start and the stop of what was fetched."""
    end = base_offset + record_count
    stop = end if fetched.stop is None else min(end, fetched.stop)
    return max(0, stop - max(base_offset, fetched.start))


def cheapest_column(schema: Schema) -> int:
    """The column that weighs least, to fetch where only headers are read."""

    def weight(index: int) -> tuple[int, int]:
        # Bits, numbers, then what varies; BOOLEAN was measured at a fortieth of a text.
        data_type = schema.columns[index].data_type
        return data_type.layout.value, data_type.row_width

    return min(range(len(schema.columns)), key=weight)
