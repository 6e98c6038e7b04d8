"""What has landed of one task in one bucket, and what goes there next; fed with what was seen.

The rows of a task in a bucket are counted 0, 1, 2, … as they come; the batches they go in are
numbered from the claim's `first` on. A first attempt sends them all. Any other one is told what
stands in the log behind the claim's anchor and which number the server knows last, and finds for
the rows it has next one of three answers: they are there, they are to be sent, or another attempt
has sent something that cannot be seen yet.

Rows are matched with rows and not batches with batches, because an attempt whose rows broke off
somewhere has ended with a shorter batch than its successor would make there. While both are under
way, a server takes the shorter for the longer: they have the same number. So each batch that was
acknowledged has to be found again, as it was sent, by whoever was not alone.

A server forgets a writer after a week. Where rows have landed and the server does not know their
writer any more, the batches go on under a new generation of the id: numbers of the old one may not
begin at 0 again.
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
    """A batch in the log, as its header says.

    Args:
        writer_id: Whose it is.
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
        skipped: How many of its rows lie before them.
        row_count: How many they are.
    """

    landed: LoggedBatch
    skipped: int
    row_count: int

    @property
    def offset(self) -> int:
        """The offset of the first of them."""
        return self.landed.base_offset + self.skipped


@dataclass(frozen=True, slots=True, kw_only=True)
class AlreadyWritten:
    """The rows, or the first of them, are in the log."""

    pieces: tuple[Piece, ...]

    @property
    def row_count(self) -> int:
        """How many of the rows are there."""
        return sum(each.row_count for each in self.pieces)


@dataclass(frozen=True, slots=True, kw_only=True)
class SendNext:
    """The rows are to be sent as one batch, with this writer id and number."""

    writer_id: int
    sequence: int


class NotVisibleYet(Enum):
    """Another attempt has sent rows, which ones cannot be seen, nor whether they stay."""

    WAIT = auto()


WAIT: Final = NotVisibleYet.WAIT


class BucketLedger:
    """One task's batches in one bucket.

    Args:
        bucket: The bucket.
        claimed: What the task's claim says of it.
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
        self._edges = [0]  # how many rows lie before each of them, and behind the last
        self._next = claimed.first
        self._is_hidden = False
        self._acknowledged: dict[int, tuple[int, int]] = {}  # rows and checksum, by first row
        self._certain = 0  # so many rows of the task are there

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
            rows: How many they are.
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
        """What stands behind the last row of a task that has so many, if anything does.

        Another attempt had more rows; or this one is late, and they are those of the next step.
        """
        return next(self._pieces(rows, rows + 1), None)

    def written(self, start: int, batch: LoggedBatch) -> None:
        """A server has acknowledged a batch.

        Args:
            start: How many rows of the task come before it.
            batch: As it was sent.
        """
        self._acknowledged[start] = (batch.row_count, batch.crc)
        self._certain = max(self._certain, start + batch.row_count)
        if batch.base_offset != NO_OFFSET:
            self.end = max(self.end, batch.base_offset + batch.row_count)

    def look_again(self, *, earliest: int, end: int, found: Iterable[LoggedBatch]) -> None:
        """Take in what the log holds of the task.

        Args:
            earliest: Where the log begins.
            end: Its high watermark, as the leader says.
            found: The batches with one of `writer_ids` from the anchor to the end.

        Raises:
            WriterStateError: Rows are gone that had been acknowledged, or cannot be looked at, or
                others stand in their place.
        """
        if end < self.anchor:
            raise rows_gone(self.bucket, end=end, needed=self.anchor)
        if earliest > self.anchor:
            raise self._lost(
                f"its log begins at {earliest} by now, behind the {self.anchor} where this task "
                "began, so that nobody can see what was written",
                "The table keeps its log too short for this query ('table.log.ttl').",
            )
        by_generation: dict[int, dict[int, LoggedBatch]] = {}
        generations = self.writer_ids
        for each in found:
            by_generation.setdefault(generations[each.writer_id], {})[each.sequence] = each
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
        # What another step has written under the same id has other numbers.
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
            for edge, each in zip(self._edges, self._landed, strict=False)  # one edge is behind all
        }
        for start, sent in self._acknowledged.items():
            if start < self._edges[-1] and there.get(start) != sent:
                raise self._replaced(start, sent[0])
        if self._edges[-1] < self._certain:
            raise self._lost(
                f"{self._certain} rows were acknowledged and {self._edges[-1]} are there"
            )

    def ask_again(self, last_known: int | None) -> None:
        """Take in which number the server knows last of `writer_id`; asked behind `look_again`.

        Args:
            last_known: -1 where it knows the writer not; None where it cannot be asked.

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
        # Asked after the log was read: what landed before had been known, so it was forgotten.
        if len(self._firsts) == GENERATIONS_MAX:
            raise self._lost(f"its writer has been forgotten {GENERATIONS_MAX} times")
        self._firsts.append(0)
        self._bases.append(len(self._landed))
        self._next = 0

    def _replaced(self, start: int, rows: int) -> WriterStateError:
        [piece] = self._pieces(start, start + 1)
        return WriterStateError(
            f"Another attempt at this task was under way, and has written {piece.landed.row_count} "
            f"rows at offset {piece.landed.base_offset} of {self.bucket} in place of {rows} of this "
            "one: its rows were others, or broke off.",
            hint="Nothing is counted as written; repeat the task when no other attempt at it runs.",
            bucket=self.bucket.bucket_id,
            offset=piece.landed.base_offset,
        )

    def _lost(self, why: str, hint: str | None = None) -> WriterStateError:
        return WriterStateError(
            f"What this task wrote to {self.bucket} is not what there is: {why}.",
            hint=hint
            or "Rows that were acknowledged are gone: all replicas of the bucket must have failed "
            "at once. Compare the table with its source; then begin with a new checkpoint.",
            bucket=self.bucket.bucket_id,
        )
