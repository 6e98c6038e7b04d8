"""One table of a follower: its buckets, its offsets, and the decoding of its fetched bytes.

`scan.follow` fetches for one table, and `scan.follow_many` for several.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from fluss.admin.admin import admin_of
from fluss.connection.connection import TableHandle
from fluss.errors import UnsupportedOperationError
from fluss.log.decode import DecodedBatch, Decoder
from fluss.log.fetch_messages import Fetched, read_headers
from fluss.model.options.bounds import EARLIEST, Cursor
from fluss.model.options.scan_options import LakeUse, Mode, ScanOptions
from fluss.model.paths import TableBucket
from fluss.scan.log_reader import cheapest_column
from fluss.scan.metadata_arrays import MetadataFilter, OutputBuilder
from fluss.scan.plan_scan import window_of
from fluss.scan.scan_planner import plan_scan
from fluss.scan.scan_stats import ScanStats
from fluss.scan.shape import shape_of

PARTITIONS_EVERY_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ready:
    """Rows to return, or None for offsets without rows; and the next offset of their bucket."""

    bucket: TableBucket
    next_offset: int
    batch: pa.RecordBatch | None


class FollowedTable:
    """The read state of one table. One thread at a time may use it.

    Args:
        core: The table.
        options: The options of the scan.
        stats: Counts what is read.

    Raises:
        UnsupportedOperationError: The mode is not one of logs.
    """

    def __init__(self, core: TableHandle, options: ScanOptions, stats: ScanStats) -> None:
        self._shape = shape_of(core.info, options)
        if self._shape.mode not in {Mode.LOG, Mode.CHANGELOG}:
            raise UnsupportedOperationError(
                f"A log is followed, and mode={self._shape.mode.value!r} is none.",
                hint="use mode='changelog'",
            )
        self.table = core
        self.name = str(core.info.table_path)
        options, schema = self._shape.options, core.info.schema
        start = None if options.start is None else options.start.at(time.time_ns() // 1_000_000)
        self.options = replace(options, start=start)
        self._window = window_of(start, None)
        filtered = self._shape.plan_filter()
        self.pushed = filtered.pushed
        rest, prefix = filtered.metadata_residual, options.metadata_prefix
        self._conditions = None if rest is None else MetadataFilter(rest, schema, prefix=prefix)
        self._builders: dict[TableBucket, OutputBuilder] = {}
        # One past the last offset of the returned rows, by bucket.
        self.offsets: dict[TableBucket, int] = {}
        self._listed_at_s = 0.0
        self.stats = stats

    @property
    def schema(self) -> pa.Schema:
        """The columns of its rows."""
        return self._shape.schema

    def cursor(self) -> Cursor:
        """The position after the rows returned so far."""
        return Cursor.of(self.table.info.table_id, self.offsets)

    def columns(self) -> list[int]:
        """The positions of the columns that are fetched."""
        schema = self.table.info.schema
        names = list(self._shape.output.table_columns)
        if self._conditions is not None:
            names += [each for each in self._conditions.columns if each not in names]
        return list(schema.column_indexes(names)) or [cheapest_column(schema)]

    # --- buckets ------------------------------------------------------------------------------

    def begin(self) -> dict[TableBucket, int]:
        """The buckets to read, with their start offsets."""
        self._listed_at_s = time.monotonic()
        return self._find(self.options)

    def new_partitions(self) -> dict[TableBucket, int]:
        """The buckets of new partitions; asks the server once per interval."""
        now = time.monotonic()
        if not self.table.info.is_partitioned() or now - self._listed_at_s < PARTITIONS_EVERY_S:
            return {}
        self._listed_at_s = now
        # Partitions that are new since then are read from their beginning.
        return self._find(replace(self.options, start=EARLIEST, missing_partitions="skip"))

    def _find(self, options: ScanOptions) -> dict[TableBucket, int]:
        options = replace(options, lake=LakeUse.OFF)
        found: dict[TableBucket, int] = {}
        for split in plan_scan(self.table, replace(self._shape, options=options)).splits:
            bucket = split.bucket
            if bucket in self.offsets:
                continue
            found[bucket] = split.start
            self._builders[bucket] = OutputBuilder(split.output, self.schema, split.partition_name)
        self.offsets |= found
        return found

    def forget_partitions(self) -> list[TableBucket]:
        """The buckets of partitions that were dropped, which are not read any more."""
        table = self.table
        admin = admin_of(table.connection)
        listed = table.connection.engine.run(admin.list_partition_infos(table.info.table_path))
        there = {each.partition_id for each in listed}
        gone = [each for each in self.offsets if each.partition_id not in there]
        for bucket in gone:
            del self.offsets[bucket]
        return gone

    # --- rows ---------------------------------------------------------------------------------

    def read(self, decoder: Decoder, fetched: Fetched) -> list[Ready]:
        """Decode fetched bytes.

        Raises:
            CorruptDataError: The bytes are damaged.
        """
        ready = []
        for decoded in decoder.decode(fetched):
            rows = self._kept(decoded)
            if rows is None:
                continue
            batch = self._builders[decoded.bucket].finish(rows)
            next_offset = decoded.last_offset + 1
            ready.append(Ready(bucket=decoded.bucket, next_offset=next_offset, batch=batch))
        headers = read_headers(fetched.data, magic_1=self.table.connection.magic_1)
        if headers.next_offset is not None:
            # The cursor advances even if a filter leaves no row.
            end = headers.next_offset
            ready.append(Ready(bucket=fetched.bucket, next_offset=end, batch=None))
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


def by_place(offsets: Mapping[TableBucket, int]) -> dict[tuple[int, int], int]:
    """Offsets of buckets of partitions, by (partition id, bucket)."""
    return {
        (bucket.partition_id, bucket.bucket_id): offset
        for bucket, offset in offsets.items()
        if bucket.partition_id is not None
    }
