"""Reads splits: a reader for each kind of them, fanned in, ordered, cut, and counted.

Several splits are read in parallel and ahead of the caller. Together they hold at most
`UNREAD_BYTES_MAX` of undecoded or changed rows, and `READY_BYTES_MAX` of rows to give out, however
many splits there are and however slow the caller is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from functools import partial
from itertools import chain, islice

import pyarrow as pa

from fluss.connection.connection import TableHandle
from fluss.doors import at_door
from fluss.errors import TableNotFoundError, UnsupportedOperationError
from fluss.hints import Door
from fluss.lake.file_decoder import FileDecoder
from fluss.model.options.scan_options import PARALLEL_MAX, Mode, Order
from fluss.model.paths import TableBucket
from fluss.net.cancellation import Cancellation
from fluss.records.arrow.dictionaries import (
    dictionary_schema,
    with_dictionaries,
    without_dictionaries,
)
from fluss.records.arrow.views import view_schema, with_views
from fluss.scan.fan_in import BatchSource, FanIn, merged
from fluss.scan.lake_reader import LakeReader
from fluss.scan.log_reader import LogReader, Piece
from fluss.scan.scan_stats import ScanStats
from fluss.scan.shape import split_schema
from fluss.scan.split import ScanSplit
from fluss.scan.state_reader import BinlogReader, LookupReader, StateReader

PARALLEL = 4
UNREAD_BYTES_MAX = 32 * 1024 * 1024
UNREAD_BYTES_MIN = 4 * 1024 * 1024
READY_BYTES_MAX = 8 * 1024 * 1024
# The batches of a binlog are the largest, and made one by one.
BINLOG_UNREAD_BYTES_MAX = 16 * 1024 * 1024
# These hold the rows or changes of a bucket in memory and work on them in the interpreter: a third
# one in parallel adds to the memory and nothing to the speed.
HEAVY_STRATEGIES = frozenset({"limit_scan", "changelog"})
HEAVY_PARALLEL_MAX = 2
# Engines work batch by batch; below this, the work per batch outweighs the work per row.
ROWS_USEFUL = 16 * 1024
BYTES_USEFUL = 4 * 1024 * 1024
ROWS_MAX = 128 * 1024
# Engines that take views only refer to the rows of a batch, so there it costs more than its rows.
ROWS_OF_VIEWS_MAX = 512 * 1024


class SplitReader:
    """Splits being read: iterate it once for pieces, or take `reader()`.

    Args:
        table: The table that all of them are of.
        splits: The splits.
        schema: The columns of the rows; None for those of the first split.
        order: In which order the rows come.
        max_parallel: How many are read concurrently.
        stats: Counts what is read.
        cancellation: Ends the reading from another thread.
        may_stop_soon: Whether the caller may stop after the first rows, without a limit.
            So little of a log is fetched first, for one more round trip if it reads on.
        takes_all: Whether the caller reads to the end in any case.
        as_views: Whether `reader()` gives strings and bytes as views.
        dictionaries: The columns whose strings `reader()` gives as dictionaries, where they are no
            views.
        decoder: Decodes files of a lake, where views are given.
    """

    def __init__(
        self,
        table: TableHandle,
        splits: Sequence[ScanSplit],
        *,
        schema: pa.Schema | None = None,
        order: Order = Order.NONE,
        max_parallel: int | None = None,
        stats: ScanStats | None = None,
        cancellation: Cancellation | None = None,
        may_stop_soon: bool = False,
        takes_all: bool = False,
        as_views: bool = False,
        dictionaries: Collection[str] = (),
        decoder: FileDecoder | None = None,
    ) -> None:
        for split in splits:
            check_same_table(table, split)
        self._table = table
        self._splits = splits
        self._order = order
        self._parallel = max_parallel or PARALLEL
        # One reader already has a fetch in flight on every server, and several workers decode for
        # it; further threads would only take the interpreter from each other.
        self._log_lanes = max_parallel or 1
        self._stats = stats if stats is not None else ScanStats(splits=len(splits))
        self._cancellation = cancellation or Cancellation()
        self._may_stop_soon = may_stop_soon
        self._takes_all = takes_all
        self._as_views = as_views
        self._dictionaries = () if as_views else dictionaries
        self._decoder = decoder
        self._limit = min((each.limit for each in splits if each.limit is not None), default=None)
        self.schema = split_schema(table.info, splits[0]) if schema is None else schema

    def reader(self) -> pa.RecordBatchReader:
        """The rows as a stream of batches of a useful size."""
        batches = (each.batch for each in self)
        first = islice(batches, 1 if self._may_stop_soon else 0)  # it may be enough
        rows_max = ROWS_OF_VIEWS_MAX if self._as_views else ROWS_MAX
        useful = chain(first, coalesced(batches, self.schema, rows_max))
        if self._as_views:
            schema = view_schema(self.schema)
            return pa.RecordBatchReader.from_batches(schema, map(with_views, useful))
        if self._dictionaries:
            schema = dictionary_schema(self.schema, self._dictionaries)
            laid_out = (with_dictionaries(each, schema) for each in useful)
            return pa.RecordBatchReader.from_batches(schema, laid_out)
        return pa.RecordBatchReader.from_batches(self.schema, useful)

    @at_door(Door.SESSION)
    def __iter__(self) -> Iterator[Piece]:
        self._cancellation.check()
        left = self._limit
        pieces = self._pieces()
        try:
            for piece in pieces:
                self._cancellation.check()
                taken = piece
                if left is not None:
                    if piece.batch.num_rows > left:
                        taken = Piece(index=piece.index, batch=piece.batch.slice(0, left))
                    left -= taken.batch.num_rows
                self._stats.add(rows_returned=taken.batch.num_rows, batches_returned=1)
                yield taken
                if left == 0:
                    break  # the rest would only be thrown away
        except Exception:
            self._cancellation.check()  # an error that follows from cancelling is reported as such
            raise
        finally:
            pieces.close()

    # --- sources ------------------------------------------------------------------------------

    def _pieces(self) -> Generator[Piece, None, None]:
        groups = self._groups()
        if not groups or self._limit == 0:
            return
        source_bytes_max = max(
            UNREAD_BYTES_MIN, UNREAD_BYTES_MAX // min(self._parallel, len(groups))
        )
        sources = [partial(self._source, group, source_bytes_max) for group in groups]
        parallel = self._parallel_of(len(sources))
        if parallel == 1:
            for source in sources:
                yield from self._alone(source)
            return
        fan_in = FanIn(
            sources,
            parallel_max=parallel,
            bytes_max=READY_BYTES_MAX,
            size_of=lambda piece: int(piece.batch.nbytes),
            in_order=self._order is not Order.NONE,
        )
        forget = self._cancellation.listen(fan_in.stop)
        try:
            if self._order is Order.TIMESTAMP:
                yield from merged(fan_in, len(sources), _place_in_time)
            else:
                yield from fan_in
        finally:
            forget()

    def _parallel_of(self, sources: int) -> int:
        """How many sources are read concurrently: no more than a limit is likely to need."""
        if self._order is Order.TIMESTAMP:
            return sources
        first = self._splits[0]
        if first.state is not None and first.state.strategy in HEAVY_STRATEGIES:
            sources = min(sources, HEAVY_PARALLEL_MAX)
        is_whole = first.mode in {Mode.LOG, Mode.CHANGELOG} and not first.is_filtered
        if self._limit is None or not is_whole:
            return min(self._parallel, sources)
        rows = 0
        for count, split in enumerate(self._splits, start=1):
            rows += split.rows_max
            if rows >= self._limit:
                return min(count, self._parallel, sources)
        return min(self._parallel, sources)

    def _alone(self, make: Callable[[], BatchSource[Piece]]) -> Iterator[Piece]:
        source = make()
        forget = self._cancellation.listen(source.close)
        try:
            yield from source
        finally:
            forget()
            source.close()

    def _groups(self) -> list[list[int]]:
        """The splits that are read together: in lanes where the order is free, otherwise alone."""
        is_log = bool(self._splits) and self._splits[0].mode is not Mode.STATE
        indexes = [
            index
            for index, each in enumerate(self._splits)
            if not is_log or each.start < each.stop  # the others have no rows
        ]
        if self._order is Order.TIMESTAMP and len(indexes) > PARALLEL_MAX:
            raise UnsupportedOperationError(
                f"{len(indexes)} buckets cannot be merged by time: all would be open concurrently, "
                f"and {PARALLEL_MAX} may be.",
                hint="choose partitions, or sort by _commit_timestamp afterwards",
            )
        if self._order is Order.NONE and is_log:
            in_lake = [index for index in indexes if self._splits[index].lake is not None]
            groups = [[index] for index in in_lake]
            in_log = [index for index in indexes if self._splits[index].lake is None]
            for apart in self._each_bucket_once(in_log):
                lanes = min(self._log_lanes, len(apart))
                groups += [apart[lane::lanes] for lane in range(lanes)]
            return groups
        return [[index] for index in indexes]

    def _each_bucket_once(self, indexes: Sequence[int]) -> list[list[int]]:
        """Rounds with each bucket once: a reader is at one place of a bucket at a time."""
        rounds: list[list[int]] = []
        seen: Counter[TableBucket] = Counter()
        for index in indexes:
            bucket = self._splits[index].bucket
            if seen[bucket] == len(rounds):
                rounds.append([])
            rounds[seen[bucket]].append(index)
            seen[bucket] += 1
        return rounds

    def _source(self, indexes: Sequence[int], unread_bytes_max: int) -> BatchSource[Piece]:
        splits = [self._splits[each] for each in indexes]
        first, index = splits[0], indexes[0]
        if first.keys is not None:
            return LookupReader(self._table, first, index, stats=self._stats)
        if first.lake is not None:
            in_order = self._order is not Order.NONE
            return LakeReader(
                self._table,
                first,
                index,
                stats=self._stats,
                in_order=in_order,
                as_views=self._as_views,
                dictionaries=self._dictionaries,
                decoder=self._decoder,
            )
        if first.mode is Mode.STATE:
            return StateReader(self._table, first, index, stats=self._stats)
        reader: type[BinlogReader | LogReader] = LogReader
        if first.mode is Mode.BINLOG:
            reader, unread_bytes_max = BinlogReader, min(unread_bytes_max, BINLOG_UNREAD_BYTES_MAX)
        return reader(
            self._table,
            splits,
            indexes,
            stats=self._stats,
            unread_bytes_max=unread_bytes_max,
            may_stop_soon=self._may_stop_soon,
            takes_all=self._takes_all,
        )


def check_same_table(table: TableHandle, split: ScanSplit) -> None:
    """Refuse a split of a table that was dropped and created again.

    Raises:
        TableNotFoundError: The table has another id than the split.
    """
    if table.info.table_id != split.bucket.table_id:
        raise TableNotFoundError(
            f"Table '{split.table_path}' was dropped and created again since the scan was planned.",
            hint="Plan the scan again.",
            table=str(split.table_path),
        )


def coalesced(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema, rows_max: int = ROWS_MAX
) -> Iterator[pa.RecordBatch]:
    """Give the same rows in batches of a useful size: join small ones, cut huge ones.

    A batch that follows small ones and is of a useful size itself is not joined with them.
    """
    small: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        is_useful = _is_useful(batch)
        if is_useful and rows:  # joining would copy it, and make texts of its dictionaries
            yield _joined(small, schema)
            small, rows, size = [], 0, 0
        small.append(batch)
        rows += batch.num_rows
        size += 0 if is_useful else batch.nbytes
        if is_useful or rows >= ROWS_USEFUL or size >= BYTES_USEFUL:
            yield from _cut(_joined(small, schema), rows_max)
            small, rows, size = [], 0, 0
    if rows:
        yield _joined(small, schema)


def _is_useful(batch: pa.RecordBatch) -> bool:
    return bool(batch.num_rows >= ROWS_USEFUL or batch.nbytes >= BYTES_USEFUL)


def _joined(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    if not schema.names:
        return _without_columns(batches)
    # Joining dictionaries would compare texts, and small ones need none.
    batches = [without_dictionaries(each) for each in batches]
    if any(each.schema != batches[0].schema for each in batches):
        batches = [with_views(each) for each in batches]  # only those of a lake were views
    return pa.concat_batches(batches)


def _without_columns(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    rows = sum(each.num_rows for each in batches)
    return pa.RecordBatch.from_arrays([pa.nulls(rows)], ["rows"]).select([])


def _cut(batch: pa.RecordBatch, rows_max: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, batch.num_rows, rows_max):
        yield batch.slice(start, rows_max)


def _place_in_time(piece: Piece) -> tuple[int, ...]:
    return (piece.timestamp_ms, piece.index, piece.offset)
