"""The send plan for batches whose writer id and sequence are decided before they are queued.

Leaders, requests, order and retries are those of `write.plan_sender`. The differences: a bucket
that has lost track of the writer never gets another id here, and no sequence moves up after a batch
that failed. All batches that wait for such a bucket fail. The caller, who chose the sequences,
finds out what became of them before sending more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from fluss.errors import FlussError, WriterStateError
from fluss.model.paths import PhysicalTablePath
from fluss.net.plan_retry import RetryPolicy
from fluss.write.plan_accumulator import BucketQueue, QueueKey
from fluss.write.plan_idempotence import SequenceVerdict
from fluss.write.plan_sender import ProduceRequests, SendPlan
from fluss.write.write_batch import BatchResult, WriteBatch, WriterSettings


class PinnedSendPlan(SendPlan):
    """Sends batches that have their writer id and sequence already."""

    writes_history: ClassVar[bool] = False

    def __init__(self, settings: WriterSettings, *, policy: RetryPolicy | None = None) -> None:
        super().__init__(settings, policy=policy)
        self._stopped: dict[QueueKey, FlussError] = {}

    def add(self, batch: WriteBatch, *, now: float) -> None:
        """Queue a batch; in a bucket without batches it may have any sequence."""
        super().add(batch, now=now)
        queue = self._queue_of(batch)
        if len(queue.waiting) == 1 and not queue.in_flight:
            self._stopped.pop(queue.key, None)
            sequences = queue.sequences
            sequences.writer_id = batch.writer_id
            sequences.last_acked = batch.sequence - 1
            queue.not_before = 0.0

    def _take_misplaced(self, path: PhysicalTablePath, count: int, found: ProduceRequests) -> None:
        """Fail the batches: their sequences belong to the buckets that they were placed in."""
        for queue in [each for each in self._busy.values() if each.key.path == path]:
            error = WriterStateError(
                f"The partition {path.partition_name!r} of {path.table_path} was dropped and "
                f"created again with {count} buckets.",
                hint="Begin with a new checkpoint.",
                table=str(path.table_path),
                partition=path.partition_name,
            )
            while queue.waiting:
                found.results.append(self._fail(queue, queue.waiting.popleft(), error))
            self._retire(queue)

    def _has_writer_id(self, queue: BucketQueue, found: ProduceRequests) -> bool:  # noqa: ARG002 - every batch has one
        return True

    def _settle_sequence(
        self, batch: WriteBatch, error: FlussError, *, now: float
    ) -> list[BatchResult]:
        queue = self._queue_of(batch)
        if queue.key not in self._stopped:
            verdict = queue.sequences.judge(batch, error)
            if verdict in {SequenceVerdict.LANDED, SequenceVerdict.TOO_EARLY}:
                return super()._settle_sequence(batch, error, now=now)
        result = self._fail(self._queue_without(batch), batch, error)
        self._retire(queue)
        return [result]

    def _fail(self, queue: BucketQueue, batch: WriteBatch, error: FlussError) -> BatchResult:
        self._stopped.setdefault(queue.key, error)
        return BatchResult(batch=batch, error=error)

    def _repair(self, queue: BucketQueue) -> list[BatchResult]:
        error = self._stopped.get(queue.key)
        return [] if error is None else list(self._all_failed(queue, error))

    def _all_failed(self, queue: BucketQueue, error: FlussError) -> Iterator[BatchResult]:
        while queue.waiting:
            yield BatchResult(batch=queue.waiting.popleft(), error=error)
