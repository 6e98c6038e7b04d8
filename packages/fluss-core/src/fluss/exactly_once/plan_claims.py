"""Decides who claims what for a task that is repeated, and under which names.

A task writes its rows under a writer id that every other attempt at the same task computes as well.
So that an attempt knows where to look for the rows of another one, the first attempt registers a
*claim* before its first row: for every bucket the end of its log, after which all rows of the task
will be, and the number of the task's first batch. The first claim counts, and later attempts take
it over. A finished step is registered as a *step*, which names the claims to delete when the next
step is finished, and the offsets at which logs must at least end from then on.

    run     continues after crashes: a query with a checkpoint
    step    one of its micro-batches; when it begins, the one before has been committed for good
    part    one task of a step; all attempts at it have the same rows in the same order
    shared  there is more than one attempt at a task; the first attempt reads nothing as long as no
            other comes before all of its rows are acknowledged
    epoch   the step whose writer ids are used: a writer id serves all steps of some minutes, which
            keeps servers from remembering one for every task of every step

Here are the names, the numbers that are registered, and the decisions about them; no server is
asked. `exactly_once.plan_ledger` decides which rows of a task are in a bucket, and which go there
next.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, Self

from fluss.errors import InvalidValueError, ProtocolError, WriterStateError
from fluss.model.paths import TableBucket

# Servers forget a writer after 7 days (`server.writer-id.expiration-time`); an id that starts at 0
# a second time keeps a tablet server of 0.9.1 from starting. So no id is used for long.
EPOCH_MS_MAX: Final = 10 * 60 * 1_000
# A query that pauses for longer than this cannot continue exactly once.
REGISTERED_MS: Final = 365 * 24 * 3_600 * 1_000
# Used by running attempts only; the entry of an attempt that came too late is never deleted.
SHARED_MS: Final = 7 * 24 * 3_600 * 1_000

_FORMAT: Final = 1
# Claims of the first kind have no schema; they are read, and no longer written.
_OLD_CLAIM, _STEP, _START, _SHARED, _CLAIM = range(5)
_RUN: Final = re.compile(r"[A-Za-z0-9_-]{1,120}")
# Ids that servers give out count from 0; these cannot meet them.
_ID_BASE: Final = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One task, the same for all attempts at it.

    Args:
        run: The name of the run; ASCII letters, digits, `-` and `_`.
        step: The step of the run, from 0.
        part: The task's number in its step.
        is_chained: Whether steps follow each other; a run of one step has none before it.
    """

    run: str
    step: int
    part: int
    is_chained: bool = True

    def __post_init__(self) -> None:
        if not _RUN.fullmatch(self.run) or self.step < 0 or self.part < 0:
            raise InvalidValueError(
                f"{self.run[:40]!r}, {self.step}, {self.part} name no task: a run has 1 to 120 "
                "ASCII letters, digits, '-' and '_', steps and parts count from 0."
            )

    def claim_id(self, number: int) -> str:
        """The name under which a claim is registered."""
        return f"{self.run}_{self.step}_{self.part}_{number}"

    @property
    def shared_id(self) -> str:
        """The name under which it is registered that there is more than one attempt."""
        return f"{self.run}_{self.step}_{self.part}_shared"

    def writer_id(self, epoch: int, generation: int = 0) -> int:
        """The writer id of an epoch; another generation of it where servers forgot the last one."""
        name = f"{self.run}\n{epoch}\n{self.part}\n{generation}"
        digest = blake2b(name.encode(), digest_size=8).digest()
        return _ID_BASE | int.from_bytes(digest) >> 2


def step_id(run: str, step: int) -> str:
    """The name under which a step is registered."""
    return f"{run}_{step}"


def start_id(run: str) -> str:
    """The name under which the first step of a run is registered."""
    return f"{run}_start"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedBucket:
    """One bucket of a claim.

    Args:
        anchor: Where its log certainly ended; no row of the task lies before.
        first: The number of the task's first batch in it.
    """

    anchor: int
    first: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The claim that the first attempt at a task registers before its first row.

    Args:
        table_id: The table; one that was dropped and created again is another one.
        epoch: The step whose writer ids are used.
        began_ms: When that epoch began.
        buckets: Every bucket that may be written to.
        schema_id: The schema that the attempt knew; None in claims of the first kind.
    """

    table_id: int
    epoch: int
    began_ms: int
    buckets: Mapping[TableBucket, ClaimedBucket]
    schema_id: int | None = None

    def to_numbers(self) -> list[int]:
        """Encode it as one list of numbers, none of them negative."""
        numbers = [_FORMAT, _OLD_CLAIM, self.epoch, self.began_ms]
        if self.schema_id is not None:
            numbers[1:] = [_CLAIM, self.epoch, self.began_ms, self.schema_id]
        for bucket, claimed in self.buckets.items():
            numbers += [*_place(bucket), claimed.anchor, claimed.first]
        return numbers

    @classmethod
    def of_numbers(cls, table_id: int, numbers: Sequence[int]) -> Self:
        """Decode the numbers that were registered.

        Raises:
            ProtocolError: The numbers are no claim.
        """
        is_old = list(numbers[:2]) == [_FORMAT, _OLD_CLAIM]
        read = _Numbers(numbers, _OLD_CLAIM if is_old else _CLAIM, "a claim")
        epoch, began_ms = read.take(2)
        schema_id = None if is_old else read.take(1)[0]
        buckets = {
            bucket: ClaimedBucket(anchor=anchor, first=first)
            for bucket, (anchor, first) in read.buckets(table_id, 2)
        }
        return cls(
            table_id=table_id,
            epoch=epoch,
            began_ms=began_ms,
            buckets=buckets,
            schema_id=schema_id,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The rows that a task has written, for the commit of its step. Small and picklable.

    Args:
        rows: How many rows.
        part: The task.
        claims: How many claims it has.
        epoch: The epoch of its writer id; None where it had no rows.
        began_ms: When the epoch began.
        ends: One past its last row in each bucket.
        again: How many of the rows another attempt had written before.
        is_shared: Whether other attempts were known.
    """

    rows: int
    part: int
    claims: int = 0
    epoch: int | None = None
    began_ms: int = 0
    ends: Mapping[TableBucket, int]
    again: int = 0
    is_shared: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A finished step.

    Args:
        table_id: The table that it wrote to.
        epoch: The epoch that the next step may continue.
        began_ms: When the epoch began.
        claims: How many claims each of its tasks has, by part.
        ends: Where logs must at least end from now on.
    """

    table_id: int
    epoch: int
    began_ms: int
    claims: Mapping[int, int]
    ends: Mapping[TableBucket, int]

    @classmethod
    def of_receipts(
        cls, table_id: int, step: int, receipts: Sequence[Receipt], previous: Step | None
    ) -> Self:
        """The step of these receipts; a step without rows continues the epoch of the one before."""
        epochs = [(each.epoch, each.began_ms) for each in receipts if each.epoch is not None]
        if previous is not None:
            epochs.append((previous.epoch, previous.began_ms))
        epoch, began_ms = max(epochs, default=(step, 0))
        ends: dict[TableBucket, int] = {}
        for receipt in receipts:
            for bucket, end in receipt.ends.items():
                ends[bucket] = max(end, ends.get(bucket, 0))
        claims = {each.part: each.claims for each in receipts if each.claims}
        return cls(table_id=table_id, epoch=epoch, began_ms=began_ms, claims=claims, ends=ends)

    def to_numbers(self) -> list[int]:
        """Encode it as it is registered."""
        numbers = [_FORMAT, _STEP, self.epoch, self.began_ms, len(self.claims)]
        for part, count in self.claims.items():
            numbers += [part, count]
        for bucket, end in self.ends.items():
            numbers += [*_place(bucket), end]
        return numbers

    @classmethod
    def of_numbers(cls, table_id: int, numbers: Sequence[int]) -> Self:
        """Decode the numbers that were registered.

        Raises:
            ProtocolError: The numbers are no step.
        """
        read = _Numbers(numbers, _STEP, "a step")
        epoch, began_ms, count = read.take(3)
        claims = {}
        for _ in range(count):
            part, claimed = read.take(2)
            claims[part] = claimed
        ends = {bucket: end for bucket, (end,) in read.buckets(table_id, 1)}
        return cls(table_id=table_id, epoch=epoch, began_ms=began_ms, claims=claims, ends=ends)


def start_numbers(step: int) -> list[int]:
    """Encode the first step of a run as it is registered."""
    return [_FORMAT, _START, step]


def shared_numbers() -> list[int]:
    """Encode that there is more than one attempt as it is registered."""
    return [_FORMAT, _SHARED]


def read_start(numbers: Sequence[int]) -> int:
    """Decode the first step of a run.

    Raises:
        ProtocolError: The numbers are not those of a first step.
    """
    return _Numbers(numbers, _START, "the start of a run").take(1)[0]


def decide_epoch(task: Task, previous: Step | None, *, now_ms: int) -> tuple[int, int]:
    """Decide the epoch of a new claim, and when it began.

    The epoch of the step before continues, unless it began too long ago.
    """
    if previous is None or not 0 <= now_ms - previous.began_ms < EPOCH_MS_MAX:
        return task.step, now_ms
    return previous.epoch, previous.began_ms


def overtaken(task: Task) -> WriterStateError:
    """The error for an attempt that may not claim anything: its step is not due.

    An attempt that resumes long after its step was finished finds neither its claim nor the step
    before, because both have been deleted since.
    """
    return WriterStateError(
        f"Step {task.step} of {task.run} has no step before it: this attempt is an old one whose "
        "step has been done since, or what was registered has expired or been deleted.",
        hint="An old attempt is of no use any more. A query that has rested for a year, or that "
        "wrote without exactly once in between, begins again with a new checkpoint.",
        step=task.step,
    )


def more_tasks(task: Task) -> WriterStateError:
    """The error for a repeated step that is cut into fewer tasks than before."""
    return WriterStateError(
        f"Step {task.step} of {task.run} has been begun with more tasks than the {task.part} of this "
        "attempt at it: what the others wrote is there, and may be there twice.",
        hint="A step that comes again must be cut as before: give back 'maxPartitions', or the "
        "number of shuffle partitions, that it had. Where rows are there twice already, compare the "
        "table with its source, and begin with a new checkpoint.",
        step=task.step,
    )


def other_table(claimed: int, table_id: int) -> WriterStateError:
    """The error for a checkpoint that belongs to another table."""
    return WriterStateError(
        f"This query has written to the table with the id {claimed}, and this one has {table_id}: "
        "the table was dropped and created again, or the checkpoint is that of another table.",
        hint="Begin with a new checkpoint.",
        table_id=table_id,
    )


def rows_gone(bucket: TableBucket, *, end: int, needed: int) -> WriterStateError:
    """The error for a log that ends before rows that it is known to have held."""
    return WriterStateError(
        f"The log of {bucket} ends at {end}, and it has been at {needed}: rows that the servers had "
        "acknowledged are gone.",
        hint="All replicas of the bucket must have failed together, or it has one only. Compare the "
        "table with its source; then begin with a new checkpoint.",
        bucket=bucket.bucket_id,
        offset=end,
    )


class _Numbers:
    """Reads registered numbers from front to back."""

    def __init__(self, numbers: Sequence[int], kind: int, what: str) -> None:
        self._numbers = numbers
        self._what = what
        self._at = 0
        found = tuple(self.take(2))
        if found != (_FORMAT, kind):
            raise self._refused(f"it begins with {found}")

    def take(self, count: int) -> Sequence[int]:
        taken = self._numbers[self._at : self._at + count]
        if len(taken) < count:
            raise self._refused(f"it ends after {len(self._numbers)} numbers")
        self._at += count
        return taken

    def buckets(self, table_id: int, count: int) -> Iterator[tuple[TableBucket, Sequence[int]]]:
        """The remaining numbers: buckets, with this many numbers each."""
        while self._at < len(self._numbers):
            partition, bucket, *numbers = self.take(2 + count)
            yield _bucket(table_id, partition, bucket), numbers

    def _refused(self, why: str) -> ProtocolError:
        return ProtocolError(
            f"What is registered with the coordinator is not {self._what}: {why}.",
            what=self._what,
            at=self._at,
            why=why,
        )


def _place(bucket: TableBucket) -> tuple[int, int]:
    # 0 for a table without partitions; no number may be negative.
    return (0 if bucket.partition_id is None else bucket.partition_id + 1, bucket.bucket_id)


def _bucket(table_id: int, partition: int, bucket: int) -> TableBucket:
    return TableBucket.with_partition(table_id, partition - 1 if partition else None, bucket)
