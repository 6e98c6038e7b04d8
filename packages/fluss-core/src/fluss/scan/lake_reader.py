"""Reads the part of a scan that is in a lake: rows of a bucket, up to where its log takes over."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import pairwise

import numpy as np

from fluss.connection.connection import TableHandle
from fluss.lake.file_decoder import FileDecoder
from fluss.lake.lake_format import LakePart, LakeRows, the_format
from fluss.log.decode import DecodedBatch
from fluss.model.predicates.predicate import Predicate
from fluss.records.arrow.numpy_arrays import from_numpy
from fluss.records.filter.row_filter import RowFilter
from fluss.rows.buffers.columns import BoolArray
from fluss.scan.log_reader import Piece
from fluss.scan.metadata_arrays import MetadataFilter, OutputBuilder, columns_to_read, output_schema
from fluss.scan.plan_scan import Span
from fluss.scan.scan_stats import ScanStats
from fluss.scan.split import ScanSplit
from fluss.scan.state_reader import SplitPieces


class LakeReader(SplitPieces):
    """Reads the rows of one split that a lake has.

    Args:
        table: The table.
        split: The split.
        index: Its number among those that are read together.
        stats: Counts what is read.
        in_order: Whether the rows must come in the order of offsets.
        as_views: Whether strings and bytes may be views.
        dictionaries: The columns whose strings may be dictionaries.
        decoder: Decodes files, where views are given.
    """

    def __init__(
        self,
        table: TableHandle,
        split: ScanSplit,
        index: int,
        *,
        stats: ScanStats,
        in_order: bool = True,
        as_views: bool = False,
        dictionaries: Collection[str] = (),
        decoder: FileDecoder | None = None,
    ) -> None:
        super().__init__(table, split, index, stats=stats)
        self._needs_places = in_order or _looks_at_places(split)
        # Views cannot be filtered: only rows that are all given come as views.
        self._as_views = as_views and not self._needs_places and split.filter is None
        self._dictionaries = frozenset() if self._needs_places else frozenset(dictionaries)
        self._decoder = decoder

    def __iter__(self) -> Iterator[Piece]:
        split, schema = self._split, self._table.info.schema
        names = columns_to_read(split, schema)
        row_filter = None if split.filter is None else RowFilter(split.filter, schema)
        looked_at = () if row_filter is None else row_filter.columns
        compared = [schema.column_names[each] for each in looked_at]
        read = [*names, *compared]
        arrow = output_schema(split.output, schema.to_arrow())
        builder = OutputBuilder(split.output, arrow, split.partition_name)
        conditions = MetadataFilter.of(split, schema)
        for rows in self._rows(
            list(dict.fromkeys(read)),
            predicate=split.filter,
            with_places=self._needs_places,
            dictionaries=self._dictionaries.difference(compared),
        ):
            decoded: DecodedBatch | None = self._decoded(rows, row_filter)
            if decoded is not None and conditions is not None:
                decoded = conditions.kept(decoded, split.partition_name)
            if decoded is None:
                continue
            if len(names) < decoded.batch.num_columns:
                decoded = decoded.with_columns(len(names))
            yield Piece(
                index=self._index,
                batch=builder.finish(decoded),
                timestamp_ms=decoded.timestamp,
                offset=decoded.base_offset,
            )

    def count(self) -> int:
        """Count the rows of a split without a filter; by what its files say, where they can."""
        split, part = self._split, part_of(self._split)
        is_all = split.start <= part.first_offset and part.end <= split.stop
        if part.is_whole and is_all and split.window is None:
            return part.rows_max
        return sum(int(is_in_split(split, rows).sum()) for rows in self._rows([]))

    def spans(self) -> list[Span]:
        """The rows of the split, without its filter, as runs that were committed together."""
        found = []
        for rows in self._rows([]):
            kept = is_in_split(self._split, rows)
            offsets, timestamps = rows.offsets[kept], rows.timestamps[kept]
            is_new = (np.diff(timestamps) != 0) | (np.diff(offsets) != 1)
            begins = np.concatenate([[0], np.flatnonzero(is_new) + 1, [len(offsets)]])
            found += [
                Span(
                    base_offset=int(offsets[begin]),
                    rows=int(end - begin),
                    timestamp_ms=int(timestamps[begin]),
                )
                for begin, end in pairwise(begins)
                if begin < end
            ]
        return found

    def _rows(
        self,
        columns: list[str],
        *,
        predicate: Predicate | None = None,
        with_places: bool = True,
        dictionaries: Collection[str] = (),
    ) -> Iterator[LakeRows]:
        split, part = self._split, part_of(self._split)
        reading = the_format(part.format, self._table.info).read(
            self._table.info,
            part,
            columns=columns,
            start=split.start,
            stop=split.stop,
            settings=self._table.connection.lake_settings(),
            predicate=predicate,
            with_places=with_places,
            as_views=self._as_views and not with_places,
            dictionaries=dictionaries,
            decoder=self._decoder,
            note=lambda count: self._stats.add(row_groups_pruned=count),
        )
        for rows in reading:
            self._cancellation.check()
            self._stats.add(
                rows_read=rows.batch.num_rows, batches_read=1, bytes_read=rows.batch.nbytes
            )
            yield rows

    def _decoded(self, rows: LakeRows, row_filter: RowFilter | None) -> DecodedBatch | None:
        """The rows that belong to the split and fulfil its filter; None where no row does."""
        batch, bucket = rows.batch, self._split.bucket
        kept = is_in_split(self._split, rows) if self._needs_places else None
        places = None if kept is None or kept.all() else np.flatnonzero(kept)
        if row_filter is not None and batch.num_rows:
            matching = row_filter.matching(batch)
            if places is None:
                places = matching
            elif kept is not None:
                places = matching[kept[matching]]
        if places is not None and len(places) < batch.num_rows:
            batch = batch.take(from_numpy(places))
        if not batch.num_rows:
            return None
        if not self._needs_places:
            return DecodedBatch(batch=batch, bucket=bucket)
        offsets, timestamps = rows.offsets, rows.timestamps
        if places is not None:
            offsets, timestamps = offsets[places], timestamps[places]
        return DecodedBatch(
            batch=batch,
            bucket=bucket,
            base_offset=int(offsets[0]),
            timestamp=int(timestamps[0]),
            offsets=offsets,
            timestamps=timestamps,
        )


def part_of(split: ScanSplit) -> LakePart:
    """The files of a split that a lake has."""
    if split.lake is None:
        raise AssertionError("the split of a lake has a part of it")
    return split.lake


def _looks_at_places(split: ScanSplit) -> bool:
    """Whether offsets or times decide which rows of its files belong to a split, or are given."""
    part = part_of(split)
    is_whole = split.start <= part.first_offset and part.end <= split.stop
    is_by_time = split.window is not None or split.metadata_filter is not None
    return not is_whole or is_by_time or any(split.output.metadata)


def is_in_split(split: ScanSplit, rows: LakeRows) -> BoolArray:
    """Which rows are between the offsets and the times of a split."""
    kept: BoolArray = (rows.offsets >= split.start) & (rows.offsets < split.stop)
    window = split.window
    if window is not None and window.start_ms is not None:
        kept &= rows.timestamps >= window.start_ms
    if window is not None and window.end_ms is not None:
        kept &= rows.timestamps < window.end_ms
    return kept
