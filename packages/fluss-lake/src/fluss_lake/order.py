"""Merges the rows of files whose offset ranges overlap, as a compaction may leave them.

One batch of each file is in memory. Rows are returned up to the smallest of the last offsets of
these batches; then the next batch is read. The rows of each file are sorted by offset.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from fluss.errors import LimitExceededError, UnsupportedOperationError
from fluss.records.arrow.numpy_arrays import to_numpy
from fluss_lake.file_plan import OFFSET, DataFile

# One batch of each file is in memory during a merge.
FILES_MAX = 256


def overlapping(files: Sequence[DataFile]) -> Iterator[list[DataFile]]:
    """Runs of files whose ranges of offsets overlap; most runs are one file."""
    run: list[DataFile] = []
    last = -1
    for file in files:
        if run and file.offsets[0] > last:
            yield run
            run = []
        run.append(file)
        last = max(last, file.offsets[1])
    if run:
        yield run


def in_order(files: Sequence[Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    """Merge the rows of files by offset.

    Raises:
        LimitExceededError: More than `FILES_MAX` files overlap.
        UnsupportedOperationError: The rows of a file are not sorted by offset.
    """
    if len(files) > FILES_MAX:
        raise LimitExceededError(
            f"{len(files)} files of one bucket in the lake have offsets that overlap, and at most "
            f"{FILES_MAX} are merged.",
            hint="Read without order, offsets and times, or compact the table.",
            limit=FILES_MAX,
        )
    sources = [_Source(each) for each in files]
    sources = [each for each in sources if each.advance()]
    while sources:
        bound = min(each.last for each in sources)
        pieces = [piece for each in sources if (piece := each.up_to(bound)).num_rows]
        if len(pieces) == 1:
            yield pieces[0]
        elif pieces:
            names = pieces[0].schema.names
            yield _sorted(pa.Table.from_batches([each.select(names) for each in pieces]))
        sources = [each for each in sources if each.rows.num_rows or each.advance()]


class _Source:
    """The rows of one file that were read and not returned yet."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._last_given = -1
        self.rows: pa.RecordBatch

    @property
    def last(self) -> int:
        return int(self._offsets[-1])

    @property
    def _offsets(self) -> np.ndarray:
        return to_numpy(self.rows.column(OFFSET))

    def advance(self) -> bool:
        """Read the next batch; False at the end of the file."""
        rows = next(self._batches, None)
        if rows is None:
            return False
        self.rows = rows
        offsets = self._offsets
        if int(offsets.min()) < self._last_given:
            raise UnsupportedOperationError(
                "The rows of a file of the lake are not in the order of their offsets.",
                hint="Read without order, offsets and times, or rewrite the table in its sort order.",
            )
        if (np.diff(offsets) < 0).any():
            self.rows = _sorted(pa.Table.from_batches([rows]))
        return True

    def up_to(self, bound: int) -> pa.RecordBatch:
        """Take the rows with offsets up to this one, inclusive."""
        count = int(np.searchsorted(self._offsets, bound, side="right"))
        taken, self.rows = self.rows.slice(0, count), self.rows.slice(count)
        if count:
            self._last_given = int(to_numpy(taken.column(OFFSET))[-1])
        return taken


def _sorted(table: pa.Table) -> pa.RecordBatch:
    (batch,) = table.sort_by(OFFSET).combine_chunks().to_batches() or [None]
    return batch
