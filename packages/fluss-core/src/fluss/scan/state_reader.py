"""Readers of states, of rows by keys, and of changes as rows before and after.

`state` finds the rows of a state and `lookup` those of keys; here they become pieces of a scan, as
the rows of a log do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from fluss.connection.connection import TableHandle
from fluss.errors import PartitionNotFoundError
from fluss.log.decode import DecodedBatch, Decoder
from fluss.lookup.frame_lookups import FOUND, lookup_frame, prefix_lookup_frame
from fluss.net.cancellation import Cancellation
from fluss.records.arrow.numpy_arrays import from_numpy
from fluss.records.filter.row_filter import RowFilter
from fluss.scan.log_reader import LogPieces, Piece
from fluss.scan.metadata_arrays import MetadataFilter, OutputBuilder, columns_to_read, output_schema
from fluss.scan.scan_stats import ScanStats
from fluss.scan.split import ScanSplit
from fluss.state.changelog import Binlog
from fluss.state.state_at_offset import read_state

# How many bytes of changed rows a state keeps in memory; the others wait on disk.
STATE_BYTES_MAX = 4 * 1024 * 1024


class SplitPieces:
    """The rows of one split that does not read a log."""

    def __init__(
        self, table: TableHandle, split: ScanSplit, index: int, *, stats: ScanStats
    ) -> None:
        self._table, self._split, self._index, self._stats = table, split, index, stats
        self._cancellation = Cancellation()

    def close(self) -> None:
        """Read no more; a thread that waits for a server gets an error. Any thread may call it."""
        self._cancellation.cancel()


class StateReader(SplitPieces):
    """Reads the state of one bucket at the offset of the split, within a budget of memory."""

    def __iter__(self) -> Iterator[Piece]:
        split, info = self._split, self._table.info
        if split.state is None:
            raise AssertionError("the split of a state has a plan of it")
        schema = info.schema
        arrow = output_schema(split.output, schema.to_arrow())
        builder = OutputBuilder(split.output, arrow, split.partition_name)
        batches = read_state(
            self._table,
            split.state,
            list(schema.column_indexes(columns_to_read(split, schema))),
            None if split.filter is None else RowFilter(split.filter, schema),
            memory_bytes_max=STATE_BYTES_MAX,
            cancellation=self._cancellation,
            predicate=split.filter,
            note=lambda count: self._stats.add(row_groups_pruned=count),
        )
        conditions = MetadataFilter.of(split, schema)
        try:
            for batch in batches:
                self._stats.add(rows_read=batch.num_rows, batches_read=1)
                rows: DecodedBatch | None = DecodedBatch(batch=batch, bucket=split.bucket)
                if conditions is not None and rows is not None:
                    rows = conditions.kept(rows, split.partition_name)
                if rows is not None:
                    yield Piece(index=self._index, batch=builder.finish(rows))
        except PartitionNotFoundError:
            if not split.skips_missing:
                raise


class LookupReader(SplitPieces):
    """Looks up the rows of the split's keys, as they are now."""

    def __iter__(self) -> Iterator[Piece]:
        split, schema = self._split, self._table.info.schema
        names = split.prefix_columns or self._table.info.primary_keys
        keys = [dict(zip(names, each, strict=True)) for each in split.keys or ()]
        row_filter = None if split.filter is None else RowFilter(split.filter, schema)
        columns = [*split.output.table_columns]
        if row_filter is not None:
            looked_at = (schema.column_names[each] for each in row_filter.columns)
            columns += [each for each in looked_at if each not in columns]
        look_up = prefix_lookup_frame if split.prefix_columns else lookup_frame
        found = look_up(self._table, keys, columns=columns, cancellation=self._cancellation)
        # FOUND stays until the end: batches that lose their last column lose their rows with it.
        rows = found.filter(found.column(FOUND))
        self._stats.add(rows_read=rows.num_rows)
        schema_given = output_schema(split.output, schema.to_arrow())
        for batch in rows.combine_chunks().to_batches():
            kept = batch
            if row_filter is not None:
                kept = batch.take(from_numpy(row_filter.matching(batch)))
            if kept.num_rows:
                chosen = kept.select(schema_given.names)
                # Arrow's cast of a batch without columns forgets how many rows it has.
                given = chosen.cast(schema_given) if schema_given.names else chosen
                yield Piece(index=self._index, batch=given)


class BinlogReader(LogPieces):
    """Reads the changes of some buckets, each with the row before it and the row after it."""

    def _prepared(self, table: TableHandle, splits: Sequence[ScanSplit]) -> Decoder:
        first = splits[0]
        schema, names = table.info.schema, first.output.names
        self._names = first.change_columns
        self._binlog = Binlog(
            pa.schema([schema.to_arrow().field(name) for name in names]), self._names
        )
        self._chosen = first.chosen
        is_whole = names == schema.column_names
        return Decoder(table, None if is_whole else list(schema.column_indexes(names)))

    def __iter__(self) -> Iterator[Piece]:
        for decoded in self._decoded():
            batch = self._binlog.batch(decoded)
            if batch is not None:
                yield Piece(
                    index=self._index_of[decoded.bucket],
                    batch=batch if self._chosen is None else batch.select(self._chosen),
                    timestamp_ms=batch.column(self._names.commit_timestamp)[0].value,
                    offset=batch.column(self._names.log_offset)[0].as_py(),
                )

    def _decoded(self) -> Iterator[DecodedBatch]:
        for fetched in self._source:
            self._stats.add(bytes_read=len(fetched.data))
            for decoded in self._decoder.decode(fetched):
                self._stats.add(rows_read=decoded.num_rows, batches_read=1)
                if self._is_in_time(decoded):
                    yield decoded
