"""Counts what became of the rows of one writer: acknowledged, in doubt, or not written.

A frame that was written is reported by a `WriteReport`, one that failed by a `WriteProgress`.

The hint of a failed write follows from the count.

Rows are numbered in the order in which the writer took them. Parts that are fully acknowledged are
only counted; the others are kept, so that a failure can name its rows.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from fluss.errors import FlussError
from fluss.hints import Hint, HintKey
from fluss.model.paths import TableBucket
from fluss.model.tables.table_info import TableInfo
from fluss.model.tables.table_options import MergeEngine
from fluss.rows.buffers.columns import Int64Array
from fluss.write.plan_sender import LOOK_FIRST, WRITE_AGAIN
from fluss.write.write_batch import WriteBatch
from fluss.write.write_result import Chunk

# Older parts are only counted, and their rows no longer named.
PARTS_MAX: Final = 4_096
_ACKNOWLEDGED, _IN_DOUBT, _NOT_WRITTEN, _IN_FLIGHT = range(4)
_FATES: Final = 4

Fates: TypeAlias = npt.NDArray[np.uint8]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteProgress:
    """How far a failed write came; the attribute `progress` of its error.

    Rows are counted from 0, in the order of the frame, or of the calls of the writer.

    Attributes:
        acknowledged: How many rows were acknowledged.
        in_doubt: How many rows were sent and may have been written or not.
        not_written: How many rows were certainly not written.
        first_missing: The first row that is not acknowledged: every row before it is.
        first_untaken: The first row that was not taken: from it on nothing was sent.
        rows: How many rows the frame has; None for a stream.
        doubtful: The numbers of the rows that may have been written or not.
        missing: The numbers of the rows before `first_untaken` that were certainly not written.
        last_offsets: The offset of the last acknowledged row of each bucket, as in `WriteReport`.
    """

    acknowledged: int
    in_doubt: int
    not_written: int
    first_missing: int
    first_untaken: int
    rows: int | None = None
    doubtful: Int64Array
    missing: Int64Array
    last_offsets: Mapping[TableBucket, int]

    def rows_to_write(self) -> Int64Array:
        """The numbers of the rows that were certainly not written, to the end of the frame."""
        left = np.arange(self.first_untaken, max(self.rows or 0, self.first_untaken))
        return np.concatenate([self.missing, left])

    @property
    def total(self) -> int:
        """The number of all rows."""
        return self.acknowledged + self.in_doubt + self.not_written

    @classmethod
    def joined(cls, parts: Sequence[WriteProgress]) -> WriteProgress:
        """The progress of rows that several writers of one table took, and numbered together."""
        if len(parts) == 1:
            return parts[0]
        offsets: dict[TableBucket, int] = {}
        for part in parts:
            for bucket, offset in part.last_offsets.items():
                offsets[bucket] = max(offset, offsets.get(bucket, -1))
        untaken = max(each.first_untaken for each in parts)
        missing = [each.first_missing for each in parts if each.in_doubt or each.not_written]
        return cls(
            acknowledged=sum(each.acknowledged for each in parts),
            in_doubt=sum(each.in_doubt for each in parts),
            not_written=sum(each.not_written for each in parts),
            first_missing=min(missing, default=untaken),
            first_untaken=untaken,
            doubtful=np.sort(np.concatenate([each.doubtful for each in parts])),
            missing=np.sort(np.concatenate([each.missing for each in parts])),
            last_offsets=offsets,
        )

    def of(self, rows: int | None) -> Self:
        """The progress of a frame with so many rows, of which the last were never taken."""
        untaken = 0 if rows is None else max(rows - self.first_untaken, 0)
        return replace(self, rows=rows, not_written=self.not_written + untaken)

    def __str__(self) -> str:
        parts = [f"{self.acknowledged:,} rows acknowledged"]
        if self.in_doubt:
            parts.append(f"{self.in_doubt:,} in doubt (sent, without an answer)")
        return f"{', '.join(parts)} and {self.not_written:,} not written"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Rows that were sealed together, from the writer's row `first` on."""

    first: int
    count: int
    chunk: Chunk

    def fates(self) -> Fates:
        """The fate of each row."""
        chunk = self.chunk
        if chunk.error is not None:
            return np.full(self.count, _NOT_WRITTEN, np.uint8)
        if chunk.batches is None:
            return np.full(self.count, _IN_FLIGHT, np.uint8)
        fates = np.array([_fate(each) for each in chunk.batches], np.uint8)
        if chunk.batch_of_row is None:
            return np.full(self.count, fates[0], np.uint8)
        return fates[chunk.batch_of_row]

    @property
    def is_acknowledged(self) -> bool:
        """Whether all of it is acknowledged."""
        batches = self.chunk.batches
        return batches is not None and all(_fate(each) == _ACKNOWLEDGED for each in batches)

    @property
    def is_in_flight(self) -> bool:
        """Whether some of it is neither written nor failed yet."""
        chunk = self.chunk
        if chunk.error is not None:
            return False
        return chunk.batches is None or any(not each.is_completed for each in chunk.batches)

    def note_offsets(self, last_offsets: dict[TableBucket, int]) -> None:
        """Raise the last offsets of buckets to those of its acknowledged rows."""
        for batch in self.chunk.batches or ():
            if _fate(batch) == _ACKNOWLEDGED and batch.offset is not None:
                # A log reports where the batch begins, a changelog where it ends after the batch.
                end = batch.offset + (0 if batch.route.is_kv else batch.row_count)
                if end > last_offsets.get(batch.bucket, -1) + 1:
                    last_offsets[batch.bucket] = end - 1


class WriteTally:
    """Counts the rows of one writer. Any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parts: deque[_Part] = deque()
        self._taken = 0
        # Of parts that are no longer kept.
        self._counts = [0] * _FATES
        self._last_offsets: dict[TableBucket, int] = {}

    def add(self, first: int, count: int, chunk: Chunk) -> None:
        """Note rows that are being sealed. Idempotent for the last ones."""
        with self._lock:
            if self._parts and self._parts[-1].chunk is chunk:
                return
            self._parts.append(_Part(first=first, count=count, chunk=chunk))
            self._taken = first + count
            while self._parts and (self._parts[0].is_acknowledged or len(self._parts) > PARTS_MAX):
                part = self._parts.popleft()
                self._counts = _added(self._counts, part.fates())
                part.note_offsets(self._last_offsets)

    def report(self) -> WriteProgress:
        """What became of the rows since the last `reset`."""
        with self._lock:
            counts, parts, taken = self._counts, list(self._parts), self._taken
            last_offsets = dict(self._last_offsets)
        found: dict[int, list[Int64Array]] = {_IN_DOUBT: [], _NOT_WRITTEN: []}
        first_missing = taken
        for part in parts:
            fates = part.fates()
            is_missing = fates != _ACKNOWLEDGED
            if is_missing.any():
                first_missing = min(first_missing, part.first + int(is_missing.argmax()))
            for fate, positions in found.items():
                positions.append(part.first + np.flatnonzero(fates == fate))
            counts = _added(counts, fates)
            part.note_offsets(last_offsets)
        return WriteProgress(
            acknowledged=counts[_ACKNOWLEDGED],
            in_doubt=counts[_IN_DOUBT],
            not_written=counts[_NOT_WRITTEN],
            first_missing=first_missing,
            first_untaken=taken,
            doubtful=_joined(found[_IN_DOUBT]),
            missing=_joined(found[_NOT_WRITTEN]),
            last_offsets=last_offsets,
        )

    @property
    def is_empty(self) -> bool:
        """Whether no row was taken since the last `reset`, and none is in flight."""
        return not self._parts and not any(self._counts)

    def reset(self) -> None:
        """Count from here on; parts in flight are kept."""
        with self._lock:
            self._parts = deque(each for each in self._parts if each.is_in_flight)
            self._counts = [0] * _FATES
            self._last_offsets = {}


def _added(counts: list[int], fates: Fates) -> list[int]:
    added: list[int] = np.add(counts, np.bincount(fates, minlength=_FATES)).tolist()
    return added


def _fate(batch: WriteBatch) -> int:
    if not batch.is_completed:
        return _IN_FLIGHT
    if batch.error is None:
        return _ACKNOWLEDGED
    return _IN_DOUBT if batch.in_doubt else _NOT_WRITTEN


def _joined(positions: list[Int64Array]) -> Int64Array:
    return np.concatenate(positions) if positions else np.zeros(0, np.int64)


_OF_ONE_BATCH: Final = frozenset({LOOK_FIRST, WRITE_AGAIN})


def failed_write(
    table: TableInfo, failure: FlussError, progress: WriteProgress, *, is_whole_again: bool = False
) -> FlussError:
    """The error of a write, from the error of one of its batches.

    Args:
        table: The table.
        failure: Why a batch failed.
        progress: What became of all rows.
        is_whole_again: Whether all rows may be written again, in any table.
    """
    error = failure.without_context()
    known = [each for each in error.hints if each not in _OF_ONE_BATCH]
    error.facts |= {
        "table": str(table.table_path),
        "progress": progress,
        "in_doubt": progress.in_doubt > 0,
    }
    return error.add_context(
        during=f"Writing to {table.table_path} failed, with {progress}",
        hint=(_what_next(table, progress, is_whole_again=is_whole_again), *known),
    )


def _what_next(table: TableInfo, progress: WriteProgress, *, is_whole_again: bool) -> Hint:
    adds_up = table.options.merge_engine is MergeEngine.AGGREGATION
    if is_whole_again or (table.has_primary_key() and not adds_up):
        return Hint(HintKey.WRITE_ALL_AGAIN)
    if not progress.acknowledged and not progress.in_doubt:
        return Hint(HintKey.WRITE_NOTHING_IS_THERE)
    key = HintKey.WRITE_THE_REST_AND_LOOK if progress.in_doubt else HintKey.WRITE_THE_REST
    return Hint(key, first=progress.first_missing)
