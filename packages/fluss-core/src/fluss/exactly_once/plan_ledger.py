"""Decides which rows of one task are in one bucket, and which are sent there next.

The rows of a task in a bucket are counted 0, 1, 2, … as they come; their batches are numbered from
the claim's `first` on. A first attempt sends them all. Any other attempt is given the batches in
the log after the claim's anchor and the last number that the server knows, and gets for its next
rows one of three answers: they are in the log, they are to be sent, or another attempt has sent
rows that are not visible yet.

Rows are matched with rows and not batches with batches, because an attempt whose rows broke off has
ended with a shorter batch than its successor would make there. While both are in flight, a server
takes the shorter for the longer: they have the same number. So an attempt that was not alone has to
find each acknowledged batch again, as it was sent.

A server forgets a writer after a week. Where rows are in the log and the server does not know their
writer any more, the batches continue under a new generation of the id: numbers of the old one may
not begin at 0 again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from fluss.errors import WriterStateError
from fluss.exactly_once.plan_claims import ClaimedBucket, rows_gone
from fluss.model.paths import TableBucket

GENERATIONS_MAX: Final = 16
NO_OFFSET: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedBatch:
    """The header of a batch in the log.

    Args:
        writer_id: Its writer.
        sequence: Its number.
        base_offset: The offset of its first row; `NO_OFFSET` where it is not known.
        row_count: How many rows it has.
        crc: The checksum that its writer gave it.
        schema_id: The schema that its rows were written with.
    """

    writer_id: int
    sequence: int
    base_offset: int
    row_count: int
    crc: int
    schema_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Rows of one batch in the log.

    Args:
        landed: The batch.
        skipped: How many of its rows lie before these.
        row_count: How many rows there are.
    """

    landed: LoggedBatch
    skipped: int
    row_count: int

    @property
    def offset(self) -> int:
        """The offset of the first row."""
        return self.landed.base_offset + self.skipped


@dataclass(frozen=True, slots=True, kw_only=True)
class AlreadyWritten:
    """The rows, or the first of them, are in the log."""

    pieces: tuple[Piece, ...]

    @property
    def row_count(self) -> int:
        """How many of the rows are in the log."""
        return sum(each.row_count for each in self.pieces)


@dataclass(frozen=True, slots=True, kw_only=True)
class SendNext:
    """The rows are to be sent as one batch, with this writer id and number."""

    writer_id: int
    sequence: int


class NotVisibleYet(Enum):
    """Another attempt has sent rows that are not visible yet, and may not stay."""

    WAIT = auto()


WAIT: Final = NotVisibleYet.WAIT


class BucketLedger:
    """One task's batches in one bucket.

    Args:
        bucket: The bucket.
        claimed: The bucket in the task's claim.
        writer_id: The task's writer id, by generation.
    """

    def __init__(
        self, bucket: TableBucket, claimed: ClaimedBucket, writer_id: Callable[[int], int]
    ) -> None:
        self.bucket = bucket
        self.anchor = claimed.anchor
        self.end = claimed.anchor
        self._firsts = [claimed.first]
        self._bases = [0]  # which batch has the first number of each generation
        self._writer_id_of = writer_id
        self._landed: list[LoggedBatch] = []
        self._edges = [0]  # how many rows lie before each of them, and before the end
        self._next = claimed.first
        self._is_hidden = False
        self._acknowledged: dict[int, tuple[int, int]] = {}  # rows and checksum, by first row
        self._certain = 0  # how many rows of the task are certainly there

    @property
    def writer_ids(self) -> dict[int, int]:
        """The ids to look for in the log, and their generations."""
        return {self._writer_id_of(each): each for each in range(GENERATIONS_MAX)}

    @property
    def writer_id(self) -> int:
        """The id that batches are sent with now."""
        return self._writer_id_of(len(self._firsts) - 1)

    def place(self, start: int, rows: int) -> AlreadyWritten | SendNext | NotVisibleYet:
        """Decide what happens to the next rows. Call it in their order: `SendNext` takes a number.

        Args:
            start: How many rows of the task come before them.
            rows: How many rows there are.
        """
        if start < self._edges[-1]:
            self._certain = max(self._certain, min(start + rows, self._edges[-1]))
            return AlreadyWritten(pieces=tuple(self._pieces(start, start + rows)))
        if self._is_hidden:
            return WAIT
        self._next += 1
        return SendNext(writer_id=self.writer_id, sequence=self._next - 1)

    def _pieces(self, start: int, stop: int) -> Iterator[Piece]:
        place = bisect_right(self._edges, start) - 1
        while place < len(self._landed) and self._edges[place] < stop:
            first = max(start, self._edges[place])
            last = min(stop, self._edges[place + 1])
            yield Piece(
                landed=self._landed[place],
                skipped=first - self._edges[place],
                row_count=last - first,
            )
            place += 1

    def surplus(self, rows: int) -> Piece | None:
        """The rows after the last row of a task that has this many, if there are any.

        Another attempt had more rows; or this one is late, and they belong to the next step.
        """
        return next(self._pieces(rows, rows + 1), None)

    def written(self, start: int, batch: LoggedBatch) -> None:
        """Record that a server has acknowledged a batch.

        Args:
            start: How many rows of the task come before it.
            batch: The batch as it was sent.
        """
        self._acknowledged[start] = (batch.row_count, batch.crc)
        self._certain = max(self._certain, start + batch.row_count)
        if batch.base_offset != NO_OFFSET:
            self.end = max(self.end, batch.base_offset + batch.row_count)

    def look_again(self, *, earliest: int, end: int, found: Iterable[LoggedBatch]) -> None:
        """Take the batches of the task that the log holds.

        Args:
            earliest: Where the log begins.
            end: Its high watermark, as the leader reports it.
            found: The batches with one of `writer_ids` from the anchor to the end.

        Raises:
            WriterStateError: Acknowledged rows are gone, or were trimmed, or others are in their
                place.
        """
        if end < self.anchor:
            raise rows_gone(self.bucket, end=end, needed=self.anchor)
        if earliest > self.anchor:
            raise self._lost(
                f"its log begins at {earliest} by now, after the {self.anchor} where this task "
                "began, so that its rows cannot be read",
                "The table keeps its log too short for this query ('table.log.ttl').",
            )
        by_generation: dict[int, dict[int, LoggedBatch]] = {}
        generations = self.writer_ids
        for batch in found:
            by_generation.setdefault(generations[batch.writer_id], {})[batch.sequence] = batch
        self._firsts, self._bases = self._firsts[:1], self._bases[:1]
        self._landed, self._edges = [], [0]
        for generation in range(max(by_generation, default=0) + 1):
            if generation:
                self._firsts.append(0)
                self._bases.append(len(self._landed))
            self._take(by_generation.get(generation, {}))
        self._check_acknowledged()
        if self._landed:
            self.end = max(self.end, self._landed[-1].base_offset + self._landed[-1].row_count)

    def _take(self, numbered: dict[int, LoggedBatch]) -> None:
        # The batches of another step under the same id have other numbers.
        sequence = self._firsts[-1]
        while sequence in numbered:
            self._landed.append(numbered[sequence])
            self._edges.append(self._edges[-1] + numbered[sequence].row_count)
            sequence += 1
        later = [each for each in numbered if each > sequence]
        if later:
            raise self._lost(f"batch {sequence} is missing, and {min(later)} is there")

    def _check_acknowledged(self) -> None:
        there = {
            edge: (each.row_count, each.crc)
            for edge, each in zip(
                self._edges, self._landed, strict=False
            )  # the last edge is the end
        }
        for start, sent in self._acknowledged.items():
            if start < self._edges[-1] and there.get(start) != sent:
                raise self._replaced(start, sent[0])
        if self._edges[-1] < self._certain:
            raise self._lost(
                f"{self._certain} rows were acknowledged and {self._edges[-1]} are there"
            )

    def ask_again(self, last_known: int | None) -> None:
        """Take the last number that the server knows of `writer_id`; read after `look_again`.

        Args:
            last_known: -1 where it does not know the writer; None where it cannot be asked.

        Raises:
            WriterStateError: The server knows less than the log holds, or than was acknowledged.
        """
        expected = self._firsts[-1] + len(self._landed) - self._bases[-1] - 1
        self._next = expected + 1
        self._is_hidden = last_known is not None and last_known > expected
        if last_known is None or last_known >= expected:
            return
        if last_known >= 0:
            raise self._lost(f"batch {expected} has been there, and the server knows {last_known}")
        # Read after the log: the server knew the batches in it, and has forgotten the writer.
        if len(self._firsts) == GENERATIONS_MAX:
            raise self._lost(f"its writer has been forgotten {GENERATIONS_MAX} times")
        self._firsts.append(0)
        self._bases.append(len(self._landed))
        self._next = 0

    def _replaced(self, start: int, rows: int) -> WriterStateError:
        [piece] = self._pieces(start, start + 1)
        return WriterStateError(
            f"Another attempt at this task was running, and has written {piece.landed.row_count} "
            f"rows at offset {piece.landed.base_offset} of {self.bucket} in place of {rows} of this "
            "one: its rows were others, or broke off.",
            hint="Nothing is counted as written; repeat the task when no other attempt at it runs.",
            bucket=self.bucket.bucket_id,
            offset=piece.landed.base_offset,
        )

    def _lost(self, why: str, hint: str | None = None) -> WriterStateError:
        return WriterStateError(
            f"The rows that this task wrote to {self.bucket} are not all there: {why}.",
            hint=hint
            or "Rows that were acknowledged are gone: all replicas of the bucket must have failed "
            "together. Compare the table with its source; then begin with a new checkpoint.",
            bucket=self.bucket.bucket_id,
        )
