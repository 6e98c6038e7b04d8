"""The batches that wait for their turn, bucket by bucket, in the order in which they were sealed.

A queue knows what waits, what is under way and what holds it back; which batch it lets go next is
its own decision, and the only one made here. Who leads a bucket, how batches are put together into
requests and what an answer means is in `write.plan_sender`. `BatchSizes` decides how large batches
grow.
"""

from __future__ import annotations

from collections import deque
from enum import Enum, auto
from typing import Final, NamedTuple

from fluss.errors import FlussError
from fluss.model.paths import PhysicalTablePath, TableBucket
from fluss.write.plan_idempotence import BucketSequences
from fluss.write.write_batch import NO_SEQUENCE, WriteBatch, WriterSettings

_GROW: Final = 1.1
_SHRINK: Final = 0.95
_NEARLY_FULL: Final = 0.8
_HALF_EMPTY: Final = 0.5


class QueueKey(NamedTuple):
    """A bucket as writers know it: by name, before its partition has an id."""

    table_id: int
    path: PhysicalTablePath
    bucket_id: int


class Repair(Enum):
    """What must happen to the numbers of a bucket before it goes on."""

    CLOSE_GAPS = auto()  # a batch was refused for certain: the later ones move up
    NEW_WRITER = auto()  # the bucket has lost track of the writer


class BucketQueue:
    """The batches of one bucket. Order is kept under every retry."""

    def __init__(self, key: QueueKey, *, now: float) -> None:
        self.key = key
        self.sequences = BucketSequences()
        self.partition_id: int | None = None
        self.waiting: deque[WriteBatch] = deque()
        self.in_flight: list[WriteBatch] = []
        self.repair: Repair | None = None
        self.not_before = 0.0
        self.progress_at = now
        self.last_error: FlussError | None = None
        self._orders = 0

    @property
    def bucket(self) -> TableBucket:
        """The bucket by its ids; the partition's must be known."""
        key = self.key
        return TableBucket.with_partition(key.table_id, self.partition_id, key.bucket_id)

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to do for this bucket."""
        return not self.waiting and not self.in_flight

    def add(self, batch: WriteBatch, *, now: float) -> None:
        """Queue a new batch behind all others."""
        if self.is_idle:
            self.progress_at = now
        self._orders += 1
        batch.order = self._orders
        batch.queued_at = now
        self.waiting.append(batch)

    def take_back(self, batch: WriteBatch) -> None:
        """Queue a batch that must be sent again, in front of all that came after it."""
        behind = [each for each in self.waiting if each.order < batch.order]
        for _ in behind:
            self.waiting.popleft()
        self.waiting.appendleft(batch)
        self.waiting.extendleft(reversed(behind))

    def next_batch(self, settings: WriterSettings, *, now: float) -> WriteBatch | None:
        """The batch that may go now, if any.

        A batch that is sent again goes alone: what was under way behind it is answered with error
        31 as long as it has not been written, and several on their way would only multiply that.
        """
        if not self.waiting or now < self.not_before or self.repair is not None:
            return None
        first = self.waiting[0]
        room = 1 if first.attempts else settings.in_flight_max
        return first if len(self.in_flight) < room else None

    def send(self, batch: WriteBatch) -> None:
        """Note that the first batch that waited is under way."""
        if self.waiting.popleft() is not batch:
            raise AssertionError(f"{batch} is not the first in its queue")
        batch.attempts += 1
        batch.partition_id = self.partition_id
        self.in_flight.append(batch)

    def numbered(self) -> list[WriteBatch]:
        """What waits and has a number, in order."""
        return [each for each in self.waiting if each.sequence != NO_SEQUENCE]

    def deadline_of(self, batch: WriteBatch, settings: WriterSettings) -> float:
        """When to give up: a bucket that makes progress keeps its batches alive."""
        return max(batch.queued_at, self.progress_at) + settings.delivery_timeout_ms / 1_000


class BatchSizes:
    """How large the batches of one table grow: smaller where they never fill, up to the limit."""

    __slots__ = ("_is_dynamic", "_largest", "_smallest", "target_bytes")

    def __init__(self, settings: WriterSettings) -> None:
        self._is_dynamic = settings.has_dynamic_batches
        self._largest = settings.batch_bytes_max
        self._smallest = min(settings.batch_bytes_min, settings.batch_bytes_max)
        self.target_bytes = settings.batch_bytes_max

    def observe(self, batch_bytes: int) -> None:
        """Learn from a batch that was sealed."""
        if not self._is_dynamic:
            return
        if batch_bytes > self.target_bytes * _NEARLY_FULL:
            self.target_bytes = min(int(self.target_bytes * _GROW), self._largest)
        elif batch_bytes < self.target_bytes * _HALF_EMPTY:
            self.target_bytes = max(int(self.target_bytes * _SHRINK), self._smallest)
