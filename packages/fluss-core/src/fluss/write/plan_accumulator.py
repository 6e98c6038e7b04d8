"""The batches that wait to be sent, bucket by bucket, in the order in which they were sealed.

A queue knows what waits, what is in flight and what holds it back, and decides which batch may be
sent next. Leaders, requests and answers are in `write.plan_sender`. `BatchSizes` decides how large
batches grow.
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
_LARGE_FRAME: Final = 0.25
_NEARLY_FULL: Final = 0.8
_HALF_EMPTY: Final = 0.5


class QueueKey(NamedTuple):
    """A bucket by the name of its partition, which may not have an id yet."""

    table_id: int
    path: PhysicalTablePath
    bucket_id: int


class Repair(Enum):
    """What must happen to the sequence of a bucket before it sends more."""

    CLOSE_GAPS = auto()  # a batch is certainly not written: the later ones move up
    NEW_WRITER = auto()  # the bucket has lost track of the writer


class BucketQueue:
    """The batches of one bucket, in an order that no retry changes."""

    def __init__(self, key: QueueKey, *, now: float) -> None:
        self.key = key
        self.sequences = BucketSequences()
        self.partition_id: int | None = None
        # The partition's own name, while its rows go to the partition of history.
        self.original: str | None = None
        self.waiting: deque[WriteBatch] = deque()
        # Whether batches may wait that were placed by different bucket counts.
        self._is_mixed = False
        self.in_flight: list[WriteBatch] = []
        self.repair: Repair | None = None
        self.not_before = 0.0
        self.progress_at = now
        self.last_error: FlussError | None = None

    @property
    def bucket(self) -> TableBucket:
        """The bucket by its ids; that of the partition must be known."""
        key = self.key
        return TableBucket.with_partition(key.table_id, self.partition_id, key.bucket_id)

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to do for this bucket."""
        return not self.waiting and not self.in_flight

    def add(self, batch: WriteBatch, *, now: float) -> None:
        """Queue a new batch after all others."""
        if self.is_idle:
            self.progress_at = now
        batch.queued_at = now
        if self.waiting and self.waiting[-1].bucket_count != batch.bucket_count:
            self._is_mixed = True
        self.waiting.append(batch)

    def has_misplaced(self, bucket_count: int) -> bool:
        """Whether a batch waits that was placed by another bucket count."""
        if not self._is_mixed:
            return bool(self.waiting) and self.waiting[0].bucket_count != bucket_count
        counts = {each.bucket_count for each in self.waiting}
        self._is_mixed = len(counts) > 1
        return bool(counts - {bucket_count})

    def insert(self, batch: WriteBatch, *, now: float) -> None:
        """Queue a batch before those whose rows came later."""
        if self.is_idle:
            self.progress_at = now
        self._is_mixed = True
        place = sum(each.order <= batch.order for each in self.waiting)
        self.waiting.insert(place, batch)

    def take_back(self, batch: WriteBatch) -> None:
        """Queue a batch that must be retried, before all that came after it."""
        self._is_mixed = True
        earlier = [each for each in self.waiting if each.order < batch.order]
        for _ in earlier:
            self.waiting.popleft()
        self.waiting.appendleft(batch)
        self.waiting.extendleft(reversed(earlier))

    def next_batch(self, settings: WriterSettings, *, now: float) -> WriteBatch | None:
        """The batch that may be sent now, if any.

        A batch that is retried is sent alone: those after it get error 31 as long as it is not
        written, and more of them in flight would only multiply these errors.
        """
        if not self.waiting or now < self.not_before or self.repair is not None:
            return None
        first = self.waiting[0]
        in_flight_max = 1 if first.attempts else settings.in_flight_max
        return first if len(self.in_flight) < in_flight_max else None

    def send(self, batch: WriteBatch) -> None:
        """Note that the first waiting batch is in flight."""
        if self.waiting.popleft() is not batch:
            raise AssertionError(f"{batch} is not the first in its queue")
        batch.attempts += 1
        batch.partition_id = self.partition_id
        batch.original = self.original
        self.in_flight.append(batch)

    def numbered(self) -> list[WriteBatch]:
        """The waiting batches that have a sequence, in order."""
        return [each for each in self.waiting if each.sequence != NO_SEQUENCE]

    def deadline_of(self, batch: WriteBatch, settings: WriterSettings) -> float:
        """When a batch expires: a bucket that makes progress keeps its batches alive."""
        return max(batch.queued_at, self.progress_at) + settings.delivery_timeout_ms / 1_000


class BatchSizes:
    """The target size of a writer's batches: it falls where they never fill, up to the limit.

    After a pause, when servers have nothing to do, it starts small and doubles with each batch
    that fills: the servers write the first rows while the caller makes the next ones.
    """

    __slots__ = ("_is_dynamic", "_largest", "_smallest", "_start", "_steady")

    def __init__(self, settings: WriterSettings) -> None:
        self._is_dynamic = settings.has_dynamic_batches
        self._largest = settings.batch_bytes_max
        self._smallest = min(settings.batch_bytes_min, settings.batch_bytes_max)
        self._steady = settings.batch_bytes_max
        self._start = self._largest
        self.pause()

    @property
    def target_bytes(self) -> int:
        """The size from which on the next batch is full."""
        return min(self._steady, self._start)

    @property
    def large_frame_bytes(self) -> int:
        """The size from which on a frame is a batch of its own, also after a pause.

        Frames that became batches while the sizes are small would stay as small as they are:
        10 000 rows at a time took 1.28 times the processor time.
        """
        return int(self._steady * _LARGE_FRAME)

    def pause(self) -> None:
        """Note that everything is written, and no row waits."""
        if self._is_dynamic:
            self._start = self._smallest

    def observe(self, batch_bytes: int) -> None:
        """Learn from a batch that was sealed."""
        if not self._is_dynamic:
            return
        if batch_bytes > self._steady * _NEARLY_FULL:
            self._steady = min(int(self._steady * _GROW), self._largest)
        elif batch_bytes < min(self._steady * _HALF_EMPTY, self._start):
            self._steady = max(int(self._steady * _SHRINK), self._smallest)
        if batch_bytes >= self._start:
            self._start = min(self._start * 2, self._largest)
