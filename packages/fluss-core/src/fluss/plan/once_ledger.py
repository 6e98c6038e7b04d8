"""What has landed of one task in one bucket, and what goes there next; fed with what was seen.

The batches of a task in a bucket are counted 0, 1, 2, … as its rows come; on the wire they are
numbered from the claim's `first` on. A first attempt sends them all. Any other one is told what
stands in the log behind the claim's anchor and which number the server knows last, and finds for
each batch one of three answers: it is there, it is to be sent, or another attempt has sent it and
it cannot be seen yet.

A server forgets a writer after a week. Where rows have landed and the server does not know their
writer any more, the batches go on under a new generation of the id: numbers of the old one may not
begin at 0 again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from fluss.errors import WriterStateError
from fluss.model.paths import TableBucket
from fluss.plan.once import ClaimedBucket, rows_gone

GENERATIONS_MAX: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Landed:
    """A batch in the log, as its header says.

    Args:
        writer_id: Whose it is.
        sequence: Its number.
        base_offset: The offset of its first row.
        row_count: How many rows it has.
        crc: The checksum that its writer gave it.
    """

    writer_id: int
    sequence: int
    base_offset: int
    row_count: int
    crc: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """The batch is to be sent, with this writer id and number."""

    writer_id: int
    sequence: int


class Hidden(Enum):
    """Another attempt has sent the batch, and it is not yet certain that it stays."""

    WAIT = auto()


WAIT: Final = Hidden.WAIT


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
        self._landed: list[Landed] = []
        self._last_known = claimed.first - 1
        self._written = 0

    @property
    def writer_ids(self) -> dict[int, int]:
        """The ids to look for in the log, and their generations."""
        return {self._writer_id_of(each): each for each in range(GENERATIONS_MAX)}

    @property
    def writer_id(self) -> int:
        """The id that batches are sent with now."""
        return self._writer_id_of(len(self._firsts) - 1)

    def place(self, index: int) -> Landed | Send | Hidden:
        """What is to be done with the batch of this number, counted from 0."""
        if index < len(self._landed):
            return self._landed[index]
        sequence = self._firsts[-1] + index - self._bases[-1]
        if sequence <= self._last_known:
            return WAIT
        return Send(writer_id=self.writer_id, sequence=sequence)

    def surplus(self, count: int) -> Landed | None:
        """A batch that stands behind the last of a task that has so many, if there is one.

        Another attempt had more rows; or this one is late, and they are those of the next step.
        """
        return self._landed[count] if len(self._landed) > count else None

    def written(self, index: int, end: int | None) -> None:
        """A server has acknowledged the batch, which ends at this offset where that is known."""
        self._written = max(self._written, index + 1)
        if end is not None:
            self.end = max(self.end, end)

    def look_again(self, *, earliest: int, end: int, found: Iterable[Landed]) -> None:
        """Take in what the log holds of the task.

        Args:
            earliest: Where the log begins.
            end: Its high watermark, as the leader says.
            found: The batches with one of `writer_ids` from the anchor to the end.

        Raises:
            WriterStateError: Rows are gone that had been acknowledged, or cannot be looked at.
        """
        if end < self.anchor:
            raise rows_gone(self.bucket, end=end, needed=self.anchor)
        if earliest > self.anchor:
            raise self._lost(
                f"its log begins at {earliest} by now, behind the {self.anchor} where this task "
                "began, so that nobody can see what was written",
                "The table keeps its log too short for this query ('table.log.ttl').",
            )
        by_generation: dict[int, dict[int, Landed]] = {}
        generations = self.writer_ids
        for each in found:
            by_generation.setdefault(generations[each.writer_id], {})[each.sequence] = each
        self._firsts, self._bases = self._firsts[:1], self._bases[:1]
        self._landed = []
        for generation in range(max(by_generation, default=0) + 1):
            if generation:
                self._firsts.append(0)
                self._bases.append(len(self._landed))
            self._take(by_generation.get(generation, {}))
        if len(self._landed) < self._written:
            raise self._lost(
                f"{self._written} batches were acknowledged and {len(self._landed)} are there"
            )
        if self._landed:
            self.end = max(self.end, self._landed[-1].base_offset + self._landed[-1].row_count)

    def _take(self, numbered: dict[int, Landed]) -> None:
        # What another step has written under the same id has other numbers.
        sequence = self._firsts[-1]
        while sequence in numbered:
            self._landed.append(numbered[sequence])
            sequence += 1
        later = [each for each in numbered if each > sequence]
        if later:
            raise self._lost(f"batch {sequence} is missing, and {min(later)} is there")

    def ask_again(self, last_known: int | None) -> None:
        """Take in which number the server knows last of `writer_id`; asked behind `look_again`.

        Args:
            last_known: -1 where it knows the writer not; None where it cannot be asked.

        Raises:
            WriterStateError: The server knows less than the log holds, or than was acknowledged.
        """
        expected = self._firsts[-1] + len(self._landed) - self._bases[-1] - 1
        if last_known is None:
            self._last_known = expected
            return
        if last_known >= expected:
            self._last_known = last_known
            return
        if last_known >= 0:
            raise self._lost(f"batch {expected} has been there, and the server knows {last_known}")
        # Asked after the log was read: what landed before had been known, so it was forgotten.
        if len(self._firsts) == GENERATIONS_MAX:
            raise self._lost(f"its writer has been forgotten {GENERATIONS_MAX} times")
        self._firsts.append(0)
        self._bases.append(len(self._landed))
        self._last_known = -1

    def _lost(self, why: str, hint: str | None = None) -> WriterStateError:
        return WriterStateError(
            f"What this task wrote to {self.bucket} is not what there is: {why}.",
            hint=hint
            or "Rows that were acknowledged are gone: all replicas of the bucket must have failed "
            "at once. Compare the table with its source; then begin with a new checkpoint.",
            bucket=self.bucket.bucket_id,
        )
