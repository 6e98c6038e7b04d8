"""Rows and marks of deletes that were collected piece by piece, as they are encoded together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.convert.numpy_columns import to_batch, to_columns
from fluss.rows.buffers.columns import BoolArray
from fluss.write.wire_rows import RowPartitions, WireRows


def marks_of(deletes: Sequence[tuple[int, int]], count: int) -> BoolArray:
    """Mark the rows of these stretches among `count` rows."""
    marks = np.zeros(count, dtype=np.bool_)
    for first, stop in deletes:
        marks[first:stop] = True
    return marks


def runs_of(marks: BoolArray) -> list[tuple[int, int]]:
    """The stretches of rows that are marked."""
    edges = np.flatnonzero(np.diff(marks, prepend=False, append=False)).tolist()
    return list(zip(edges[::2], edges[1::2], strict=True))


def joined_rows(frames: Sequence[WireRows], layout: BatchLayout) -> WireRows:
    """Join rows in wire form."""
    if len(frames) == 1:
        return frames[0]
    # Wire form leaves names of nested fields, zones and nullability open; one table does not.
    same = [
        frame.batch
        if frame.batch.schema.equals(layout.wire_schema)
        else to_batch(to_columns(frame.batch, layout.types), layout.wire_schema)
        for frame in frames
    ]
    known = [
        (frame.partitions, frame.batch.num_rows) for frame in frames if frame.partitions is not None
    ]
    return WireRows(
        batch=pa.Table.from_batches(same).combine_chunks().to_batches()[0],
        partitions=RowPartitions.joined(known) if len(known) == len(frames) else None,
    )
