"""Encodes rows that were sealed together as one batch per bucket.

A target knows a table's formats, codec and keys, and serves any number of writers. `encode` runs on
the thread that seals. No batch is larger than a request may be: a larger one is halved until it
fits, and a row that does not fit alone is refused.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from fluss.errors import LimitExceededError
from fluss.model.paths import PhysicalTablePath
from fluss.model.tables.table_info import TableInfo
from fluss.model.tables.table_options import KvFormat, LogFormat
from fluss.records.arrow.arrow_body import BODY_BYTES_MAX
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.arrow.compression import BodyCodec
from fluss.records.arrow.numpy_arrays import from_numpy
from fluss.records.arrow.received_bytes import size_of
from fluss.records.kv.kv_batch import HEADER_BYTES as KV_HEADER_BYTES, kv_body
from fluss.records.kv.row_bytes import rows_from_batch
from fluss.records.log.log_header import format_of
from fluss.records.log.log_writer import LogBody, arrow_log_body
from fluss.records.log.row_log import row_log_body
from fluss.records.log.statistics import collect_statistics, write_statistics
from fluss.rows.buffers.columns import BoolArray, Int32Array, RowBytes
from fluss.write.caller_rows import rows_counted
from fluss.write.placement import Placement, Share, StoredKeys
from fluss.write.wire_rows import RowPartitions, WireRows
from fluss.write.write_batch import Route, WriteBatch, WriterSettings


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Encoded:
    """The batches of rows that were sealed together.

    Attributes:
        batches: Encoded batches, in order within each bucket.
        batch_of_row: The index of the batch of each row; None where there is one batch.
    """

    batches: list[WriteBatch]
    batch_of_row: Int32Array | None


class Target(ABC):
    """Encodes the rows of one table; any thread may use it."""

    def __init__(self, placement: Placement, settings: WriterSettings) -> None:
        self.table, self.layout = placement.table, placement.layout
        self._placement = placement
        self._settings = settings

    @abstractmethod
    def encode(self, rows: WireRows, deletes: BoolArray | None, *, is_frame: bool) -> Encoded:
        """Encode rows; `deletes` marks those that delete their key."""

    def bucket_count(self, path: PhysicalTablePath) -> int:
        """The bucket count by which rows of a table or partition are placed now."""
        return self._placement.bucket_count(path)

    def _again(
        self,
        ordered: pa.RecordBatch,
        share: Share,
        start: int,
        row_count: int,
        deletes: BoolArray | None = None,
    ) -> Callable[[], list[WriteBatch]] | None:
        """What encodes the rows of a batch again, if their bucket follows from their values.

        Only partitions have bucket counts that can be unknown when rows are placed.
        """
        if share.path.partition_name is None or not self.table.has_bucket_key:
            return None
        rows = WireRows(
            batch=ordered.slice(start, row_count), partitions=RowPartitions(paths=(share.path,))
        )
        marks = None if deletes is None else deletes[start : start + row_count]
        return lambda: self.encode(rows, marks, is_frame=True).batches


# The largest size of the uncompressed buffers of a batch that embedded servers and readers accept.
# Arrow counts a little more than `nbytes`, because it aligns each buffer.
UNCOMPRESSED_BYTES_MAX: Final = BODY_BYTES_MAX - (1 << 20)
# From this size on, Arrow's pool of threads compresses the columns of a batch beside the caller. On
# two cores a batch of 1 MB takes 0.67 of the time (2 MB 0.65, 4 MB 0.62) and 1.12 times as much
# processor time (1.07, 1.03); one of 250 KB would take 1.24 times as much.
COMPRESSED_ON_THREADS_MIN: Final = 1 << 20


class LogTarget(Target):
    """Log batches of a table without a primary key."""

    def __init__(
        self, placement: Placement, settings: WriterSettings, *, has_statistics: bool
    ) -> None:
        super().__init__(placement, settings)
        table, options = self.table, self.table.options
        self._route = Route(table_id=table.table_id, is_kv=False, schema_id=table.schema_id)
        self._format = options.log_format
        self._codec = BodyCodec(options.arrow_compression, options.zstd_level)
        self._statistics = _statistics_positions(table, self.layout) if has_statistics else ()

    def encode(self, rows: WireRows, deletes: BoolArray | None, *, is_frame: bool) -> Encoded:
        """Encode rows; nothing is ever deleted from a log."""
        if deletes is not None:
            raise AssertionError("rows cannot be deleted from a log")
        batch = rows.batch
        placed = self._placement.place(batch, partitions=rows.partitions, is_frame=is_frame)
        ordered = batch if placed.order is None else batch.take(from_numpy(placed.order))
        made: list[WriteBatch] = []
        edges = [0]
        with rows_counted(positions=placed.order):
            for share in placed.shares:
                for body in self._bodies(ordered, share.start, share.stop):
                    encoded = self._made(share, body)
                    encoded.place_again = self._again(ordered, share, edges[-1], body.record_count)
                    made.append(encoded)
                    edges.append(edges[-1] + body.record_count)
        return _encoded(made, edges, placed.order)

    def encode_rest(self, made: WriteBatch, rows: pa.RecordBatch) -> list[WriteBatch]:
        """Encode some rows of a batch, for the same bucket."""
        bodies = self._bodies(rows, 0, rows.num_rows)
        share = Share(
            path=made.path,
            bucket_id=made.bucket_id,
            bucket_count=made.bucket_count,
            start=0,
            stop=rows.num_rows,
        )
        return [self._made(share, each) for each in bodies]

    def _bodies(self, rows: pa.RecordBatch, start: int, stop: int) -> Iterator[LogBody]:
        piece = rows.slice(start, stop - start)
        memory_bytes = piece.nbytes
        if memory_bytes <= UNCOMPRESSED_BYTES_MAX:
            with rows_counted(first=start, names=self.layout.names):
                body = self._body(piece, memory_bytes)
            size = _log_size(body)
            limit = self._settings.request_bytes_max
            if size <= limit:
                yield body
                return
            if stop - start == 1:
                raise _too_large(size, limit, row=start)
        elif stop - start == 1:
            raise _too_large_in_memory(memory_bytes, row=start)
        half = (start + stop) // 2
        yield from self._bodies(rows, start, half)
        yield from self._bodies(rows, half, stop)

    def _body(self, rows: pa.RecordBatch, memory_bytes: int) -> LogBody:
        if self._format is not LogFormat.ARROW:
            return row_log_body(rows, self.layout, KvFormat(self._format.value))
        statistics = None
        if self._statistics:
            found = collect_statistics(rows, self.layout, self._statistics)
            statistics = write_statistics(found, self.layout.types)
        return arrow_log_body(
            rows,
            self._codec,
            statistics=statistics,
            use_threads=memory_bytes >= COMPRESSED_ON_THREADS_MIN,
        )

    def _made(self, share: Share, body: LogBody) -> WriteBatch:
        return WriteBatch(
            route=self._route,
            path=share.path,
            bucket_id=share.bucket_id,
            bucket_count=share.bucket_count,
            body=body,
            row_count=body.record_count,
            size_bytes=_log_size(body),
        )


class KvTarget(Target):
    """Key-value batches of a table with a primary key."""

    def __init__(
        self,
        placement: Placement,
        settings: WriterSettings,
        *,
        target_columns: Sequence[int] = (),
        agg_mode: int | None = None,
    ) -> None:
        super().__init__(placement, settings)
        table = self.table
        self.target_columns = tuple(target_columns)
        self._route = Route(
            table_id=table.table_id,
            is_kv=True,
            schema_id=table.schema_id,
            target_columns=self.target_columns,
            agg_mode=agg_mode,
        )
        self._format = table.options.kv_format
        self._keys = StoredKeys(placement, table.physical_primary_keys)

    def encode(self, rows: WireRows, deletes: BoolArray | None, *, is_frame: bool) -> Encoded:
        """Encode rows; `deletes` marks those that delete their key."""
        batch = rows.batch
        with rows_counted(names=self._keys.names):
            keys = self._keys.of(batch)
        placed = self._keys.place(batch, keys, partitions=rows.partitions, is_frame=is_frame)
        order = placed.order
        if order is not None:
            batch = batch.take(from_numpy(order))
            keys = self._keys.of(batch)
            deletes = None if deletes is None else deletes[order]
        made: list[WriteBatch] = []
        edges = [0]
        with rows_counted(positions=order, names=self.layout.names):
            values = rows_from_batch(batch, self.layout, self._format)
            for share in placed.shares:
                for start, stop in self._cuts(share, keys, values):
                    encoded = self._made(share, keys, values, deletes, start, stop)
                    encoded.place_again = self._again(batch, share, start, stop - start, deletes)
                    made.append(encoded)
                    edges.append(stop)
        return _encoded(made, edges, order)

    def _cuts(self, share: Share, keys: RowBytes, rows: RowBytes) -> Iterator[tuple[int, int]]:
        """Cut the rows of a bucket into batches of the configured size."""
        ends = keys.offsets + rows.offsets
        ends = ends + np.arange(len(ends)) * _KV_RECORD_BYTES
        start = share.start
        while start < share.stop:
            limit = ends[start] + self._settings.batch_bytes_max - KV_HEADER_BYTES
            stop = int(np.searchsorted(ends, limit, side="right")) - 1
            stop = min(max(stop, start + 1), share.stop, start + _KV_ROWS_MAX)
            size = int(ends[stop] - ends[start]) + KV_HEADER_BYTES
            if size > self._settings.request_bytes_max:
                raise _too_large(size, self._settings.request_bytes_max, row=start)
            yield start, stop
            start = stop

    def _made(
        self,
        share: Share,
        keys: RowBytes,
        rows: RowBytes,
        deletes: BoolArray | None,
        start: int,
        stop: int,
    ) -> WriteBatch:
        body = kv_body(
            _slice(keys, start, stop),
            _slice(rows, start, stop),
            deletes=None if deletes is None else deletes[start:stop],
        )
        return WriteBatch(
            route=self._route,
            path=share.path,
            bucket_id=share.bucket_id,
            bucket_count=share.bucket_count,
            body=body,
            row_count=stop - start,
            size_bytes=KV_HEADER_BYTES + len(body.records),
        )


# The server makes one log batch of a KV batch, and puts its change types, of which a replaced row
# has two, into one page after the header (Java: `ChangeTypeVectorWriter`; a page is 128 KiB, see
# `server.buffer.page-size`). A batch with more is refused.
_KV_ROWS_MAX = 65_000

# The bytes of the lengths of a record and of its key, as they usually are.
_KV_RECORD_BYTES = 5


def _slice(rows: RowBytes, start: int, stop: int) -> RowBytes:
    return RowBytes(data=rows.data, offsets=rows.offsets[start : stop + 1])


def _log_size(body: LogBody) -> int:
    statistics = body.statistics
    header = format_of(0 if statistics is None else 1).size
    return header + len(statistics or b"") + size_of(body.buffers)


def _statistics_positions(table: TableInfo, layout: BatchLayout) -> tuple[int, ...]:
    able = tuple(
        name for name, each in zip(layout.names, layout.types, strict=True) if each.has_statistics
    )
    return tuple(layout.names.index(each) for each in table.options.statistics_columns(able))


def _encoded(made: list[WriteBatch], edges: list[int], order: Any) -> Encoded:
    if len(made) == 1:
        return Encoded(batches=made, batch_of_row=None)
    in_order = np.repeat(np.arange(len(made), dtype=np.int32), np.diff(edges))
    if order is None:
        return Encoded(batches=made, batch_of_row=in_order)
    batch_of_row = np.empty(len(in_order), dtype=np.int32)
    batch_of_row[order] = in_order
    return Encoded(batches=made, batch_of_row=batch_of_row)


def _too_large_in_memory(size: int, *, row: int) -> LimitExceededError:
    return LimitExceededError(
        f"A row takes {size} bytes uncompressed, which exceeds the largest batch of "
        f"{UNCOMPRESSED_BYTES_MAX} bytes that readers accept.",
        hint="Keep large values elsewhere, or cut them into several rows.",
        size=size,
        limit=UNCOMPRESSED_BYTES_MAX,
    ).add_context(row=row)


def _too_large(size: int, limit: int, *, row: int) -> LimitExceededError:
    return LimitExceededError(
        f"One row takes {size} bytes, and a request may have {limit}.",
        hint="Raise 'writer.request-max-size' (servers take requests up to 100 MiB, their "
        "'netty.server.max-request-size'), or keep large values elsewhere.",
        size=size,
        limit=limit,
    ).add_context(row=row)
