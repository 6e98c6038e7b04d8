"""The report on a written frame: how many rows were written, and the last offset of each bucket.

Handles are dropped as soon as they are completed, so a stream of any length takes only the memory
of what is in flight.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fluss.errors import FlussError
from fluss.model.paths import TableBucket
from fluss.net.handoff import BlockingSink
from fluss.write.write_result import JoinedResult, WriteOutcome, WriteResultHandle

HANDLES_KEPT = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteReport:
    """What was written.

    Attributes:
        rows: How many rows were written. In a changelog, rows before an update are not.
        counts: How many rows were given of each kind: `append`, `upsert`, `delete` or `update`,
            and in a changelog `insert`, `update_before`, `update_after` and `delete`.
        last_offsets: The offset of the last row of each bucket that was written to; in a
            primary-key table, of the last change in its changelog. Buckets whose server did not
            report it are missing.
    """

    rows: int
    counts: Mapping[str, int]
    last_offsets: Mapping[TableBucket, int]

    @property
    def next_offsets(self) -> dict[TableBucket, int]:
        """The offsets from which to read only what came later."""
        return {bucket: offset + 1 for bucket, offset in self.last_offsets.items()}


class Outcomes:
    """The handles of rows in flight, of one writing thread."""

    def __init__(self) -> None:
        self.rows_written = 0
        self.last_offsets: dict[TableBucket, int] = {}
        self._pending: deque[tuple[WriteResultHandle, int]] = deque()

    def add(self, result: WriteResultHandle, rows: int) -> None:
        """Add the handle of rows that were taken."""
        self._pending.append((result, rows))
        if len(self._pending) >= HANDLES_KEPT:
            self._fold_done()

    def finish(self) -> None:
        """Wait for everything that is in flight.

        Raises:
            FlussError: Rows could not be written; the others are counted nevertheless.
        """
        left, self._pending = list(self._pending), deque()
        self._fold(left)

    def _fold_done(self) -> None:
        done = []
        while self._pending and self._pending[0][0].done:
            done.append(self._pending.popleft())
        self._fold(done)

    def _fold(self, handles: Sequence[tuple[WriteResultHandle, int]]) -> None:
        if not handles:
            return
        try:
            outcome = _outcome([each for each, _ in handles])
        except FlussError:
            if len(handles) == 1:
                raise
            self._fold_one_by_one(handles)
            return
        self.rows_written += sum(rows for _, rows in handles)
        for batch in outcome.batches:
            end = batch.log_end_offset
            if batch.base_offset is not None:
                end = batch.base_offset + batch.row_count
            if end is not None and end > 0:
                last = self.last_offsets.get(batch.bucket, -1)
                self.last_offsets[batch.bucket] = max(last, end - 1)

    def _fold_one_by_one(self, handles: Sequence[tuple[WriteResultHandle, int]]) -> None:
        failed: FlussError | None = None
        for handle in handles:
            try:
                self._fold([handle])
            except FlussError as error:
                failed = failed or error
        if failed is not None:
            raise failed


def _outcome(results: Sequence[WriteResultHandle]) -> WriteOutcome:
    caller: BlockingSink[WriteOutcome] = BlockingSink()
    JoinedResult(results).subscribe(caller)
    caller.wait()  # ends: a batch is delivered or fails in its time
    return caller.result()
