"""Reads the part of a scan that is in a lake: rows of a bucket, up to where its log takes over."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from fluss.lake.lake_format import LakePart, LakeRows, the_format
from fluss.log.decode import DecodedBatch
from fluss.records.arrow.numpy_arrays import from_numpy
from fluss.records.filter.row_filter import RowFilter
from fluss.rows.buffers.columns import BoolArray
from fluss.scan.log_reader import Piece
from fluss.scan.metadata_arrays import MetadataFilter, OutputBuilder, columns_to_read, output_schema
from fluss.scan.plan_scan import Span
from fluss.scan.split import ScanSplit
from fluss.scan.state_reader import SplitPieces


class LakeReader(SplitPieces):
    """Reads the rows of one split that a lake has."""

    def __iter__(self) -> Iterator[Piece]:
        split, schema = self._split, self._table.info.schema
        names = columns_to_read(split, schema)
        row_filter = None if split.filter is None else RowFilter(split.filter, schema)
        looked_at = () if row_filter is None else row_filter.columns
        read = [*names, *(schema.column_names[each] for each in looked_at)]
        arrow = output_schema(split.output, schema.to_arrow())
        builder = OutputBuilder(split.output, arrow, split.partition_name)
        conditions = MetadataFilter.of(split, schema)
        for rows in self._rows(list(dict.fromkeys(read))):
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

    def _rows(self, columns: list[str]) -> Iterator[LakeRows]:
        split, part = self._split, part_of(self._split)
        reading = the_format(part.format).read(
            self._table.info,
            part,
            columns=columns,
            start=split.start,
            stop=split.stop,
            settings={},
        )
        for rows in reading:
            self._cancellation.check()
            self._stats.add(
                rows_read=rows.batch.num_rows, batches_read=1, bytes_read=rows.batch.nbytes
            )
            yield rows

    def _decoded(self, rows: LakeRows, row_filter: RowFilter | None) -> DecodedBatch | None:
        """The rows that belong to the split and fulfil its filter; None where no row does."""
        kept = is_in_split(self._split, rows)
        batch = rows.batch
        places = np.flatnonzero(kept)
        if row_filter is not None and len(places):
            places = np.intersect1d(places, row_filter.matching(batch), assume_unique=True)
        if not len(places):
            return None
        if len(places) < batch.num_rows:
            batch = batch.take(from_numpy(places))
        offsets, timestamps = rows.offsets[places], rows.timestamps[places]
        return DecodedBatch(
            batch=batch,
            bucket=self._split.bucket,
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


def is_in_split(split: ScanSplit, rows: LakeRows) -> BoolArray:
    """Which rows are between the offsets and the times of a split."""
    kept: BoolArray = (rows.offsets >= split.start) & (rows.offsets < split.stop)
    window = split.window
    if window is not None and window.start_ms is not None:
        kept &= rows.timestamps >= window.start_ms
    if window is not None and window.end_ms is not None:
        kept &= rows.timestamps < window.end_ms
    return kept
