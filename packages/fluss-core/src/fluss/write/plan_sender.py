"""Which batches are sent now, and what follows from the answers.

One plan serves all writers of a connection, because they share its writer id. Batches are taken
from the queues of their buckets, at most one of a bucket into one request (a server that knows one
batch of several drops all of them), grouped by leader and route, up to the size of a request.

An answer either completes a batch or returns it to its place in the queue. A batch that fails for
good leaves a gap in the sequence of its bucket. The plan repairs that once nothing of the bucket is
in flight, and knows of each batch whether it may have been written. The plan neither sends nor
waits: `write.sender` does.

Rows of a partition that was not known were placed by a guess of its bucket count. Where the guess
was wrong, their batches are returned to be placed again. Until that is done, and until nothing that
was placed wrongly is in flight, nothing of the partition is sent, so that the rows of a key keep
their order.

The rows of expired partitions may go to the partition of history, where several partitions share a
bucket. Each of them writes it with a writer id of its own, because each has its own sequence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set as AbstractSet
from dataclasses import dataclass, field
from typing import ClassVar, Final, TypeAlias

from fluss.error_codes import ErrorCode
from fluss.errors import FlussError, RequestTimeoutError, WriterStateError
from fluss.model.paths import PhysicalTablePath, TableBucket, TablePath
from fluss.model.tables.auto_partition_names import historical_path
from fluss.net.plan_retry import RetryPolicy, decide_retry
from fluss.net.plan_routing import ClusterView
from fluss.write.plan_accumulator import BucketQueue, QueueKey, Repair
from fluss.write.plan_idempotence import SequenceVerdict, is_certainly_unwritten
from fluss.write.write_batch import (
    NO_SEQUENCE,
    NO_WRITER_ID,
    BatchResult,
    Route,
    WriteBatch,
    WriterSettings,
)

# How long after the deadline of its batches an answer is still awaited: it reports what became of
# them.
LATE_S_MAX = 1.0
# The batches that replace a misplaced one get the numbers after its own.
ORDER_STEP: Final = 1 << 20
# The hints for the rows of one batch.
LOOK_FIRST: Final = "Look what the table holds before you write these rows again."
WRITE_AGAIN: Final = "They can be written again."
SEQUENCE_ERRORS = frozenset({
    ErrorCode.OUT_OF_ORDER_SEQUENCE_EXCEPTION,
    ErrorCode.UNKNOWN_WRITER_ID_EXCEPTION,
})  # fmt: skip


# Server, route, and whether the batches go to the partition of history.
_RequestKey: TypeAlias = tuple[int, Route, bool]


@dataclass(slots=True, kw_only=True)
class ProduceRequest:
    """One request to one server; each batch is of another bucket, or of another partition."""

    server_id: int
    route: Route
    batches: list[WriteBatch] = field(default_factory=list)
    size_bytes: int = 0

    def add(self, batch: WriteBatch) -> None:
        """Send a batch with the others."""
        self.batches.append(batch)
        self.size_bytes += batch.size_bytes


@dataclass(slots=True, kw_only=True)
class ProduceRequests:
    """What the sender has to do now.

    Attributes:
        requests: The requests to send, in this order.
        results: Batches that are completed without being sent (again).
        paths_unknown: Tables and partitions whose leaders or ids must be looked up.
        misplaced: Batches to be encoded again, in their order, by partition; each list is answered
            by `placed_again`.
        needs_writer_id: Whether batches wait for a new writer id.
        wake_at: When to call the plan again, if nothing happens before.
    """

    requests: list[ProduceRequest] = field(default_factory=list)
    results: list[BatchResult] = field(default_factory=list)
    paths_unknown: set[PhysicalTablePath] = field(default_factory=set)
    misplaced: list[list[WriteBatch]] = field(default_factory=list)
    needs_writer_id: bool = False
    wake_at: float | None = None

    def wake_by(self, at: float) -> None:
        """Call the plan again at `at`, or before."""
        self.wake_at = at if self.wake_at is None else min(self.wake_at, at)


class SendPlan:
    """The batches of all writers of one connection. Not thread-safe: the engine owns it."""

    # Whether batches may go to the partition of history, where writers need ids of their own.
    writes_history: ClassVar[bool] = True

    def __init__(self, settings: WriterSettings, *, policy: RetryPolicy | None = None) -> None:
        self.settings = settings
        self.writer_id = NO_WRITER_ID
        self._policy = policy or RetryPolicy()
        # Queues live as long as the plan: they hold the sequences, which must never start again.
        self._queues: dict[QueueKey, BucketQueue] = {}
        # Those with something to do, the least recently served first.
        self._busy: dict[QueueKey, BucketQueue] = {}
        self._writer_ids_seen: set[int] = set()
        self._replacing: dict[PhysicalTablePath, list[WriteBatch]] = {}
        self._orders = 0
        # Partitions whose rows go to that of history; the sender knows them.
        self.in_history: AbstractSet[PhysicalTablePath] = frozenset()
        self._history_writer_ids: dict[TableBucket, set[int]] = {}

    def add(self, batch: WriteBatch, *, now: float) -> None:
        """Queue a batch after all others of its bucket."""
        self._orders += ORDER_STEP
        batch.order = self._orders
        queue = self._queue_for(batch, now=now)
        queue.add(batch, now=now)
        self._busy[queue.key] = queue

    def _queue_for(self, batch: WriteBatch, *, now: float) -> BucketQueue:
        key = _key_of(batch)
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = BucketQueue(key, now=now)
        return queue

    @property
    def is_idle(self) -> bool:
        """Whether every batch is completed."""
        return not self._busy and not self._replacing

    def incomplete(self) -> Iterator[WriteBatch]:
        """Every batch that is queued, in flight, or being placed again."""
        for batches in self._replacing.values():
            yield from batches
        for queue in self._busy.values():
            yield from queue.in_flight
            yield from queue.waiting

    def take_writer_id(self, writer_id: int) -> None:
        """Use a writer id from now on, in the buckets that need one.

        Raises:
            WriterStateError: The cluster gave it out before.
        """
        if writer_id in self._writer_ids_seen:
            raise WriterStateError(
                f"The cluster gave out the writer id {writer_id} a second time.",
                hint="Rows written with it could be taken for others; has the cluster lost its metadata?",
            )
        self._writer_ids_seen.add(writer_id)
        self.writer_id = writer_id

    # --- sending ------------------------------------------------------------------------------

    def next_requests(self, view: ClusterView, *, now: float) -> ProduceRequests:
        """Decide what to send now; the batches in `requests` count as in flight."""
        found = ProduceRequests()
        open_requests: dict[_RequestKey, ProduceRequest] = {}
        ready = self._ready(view, found, now=now)
        while ready:
            # One round takes at most one batch of each bucket, so that no request of a round has
            # two. Further batches of a bucket go into the requests of the next round.
            ready = [
                (queue, server_id)
                for queue, server_id in ready
                if self._take(queue, server_id, open_requests, found, now=now)
            ]
            found.requests += open_requests.values()
            open_requests.clear()
        return found

    def _ready(
        self, view: ClusterView, found: ProduceRequests, *, now: float
    ) -> list[tuple[BucketQueue, int]]:
        ready = []
        held = self._hold_misplaced(view, found)
        for queue in list(self._busy.values()):
            found.results += self._expire(queue, now=now)
            found.results += self._repair(queue)
            if queue.repair is Repair.NEW_WRITER and not queue.in_flight and queue.waiting:
                found.needs_writer_id = True
            if not queue.waiting:
                self._retire(queue)
                continue
            found.wake_by(queue.deadline_of(queue.waiting[0], self.settings))
            if now < queue.not_before:
                found.wake_by(queue.not_before)
                continue
            if queue.key.path in held:
                continue
            server_id = self._leader(queue, view)
            if server_id is None:
                found.paths_unknown.add(queue.key.path)
            elif self._has_writer_id(queue, found):
                ready.append((queue, server_id))
        return ready

    def _leader(self, queue: BucketQueue, view: ClusterView) -> int | None:
        path = queue.key.path
        if path.partition_name is not None:
            partition_id, original = self._partition(path, view)
            if partition_id is None:
                return None
            if original != queue.original and queue.sequences.writer_id != NO_WRITER_ID:
                # Its sequence belongs to the bucket that its batches went to before.
                queue.repair = Repair.NEW_WRITER
            queue.partition_id, queue.original = partition_id, original
        leader = view.leader_of(queue.bucket)
        return None if leader is None else leader.server_id

    def _partition(
        self, path: PhysicalTablePath, view: ClusterView
    ) -> tuple[int | None, str | None]:
        """Where the rows of a partition go, and its name where that is the partition of history."""
        partition_id = view.partition_id(path)
        if partition_id is not None or path not in self.in_history:
            return partition_id, None
        return view.partition_id(historical_path(path)), path.partition_name

    def _has_writer_id(self, queue: BucketQueue, found: ProduceRequests) -> bool:
        if queue.repair is Repair.NEW_WRITER:
            found.needs_writer_id = found.needs_writer_id or not queue.in_flight
            return False
        if not self.settings.is_idempotent or queue.sequences.writer_id != NO_WRITER_ID:
            return True
        if not self._begin(queue):
            found.needs_writer_id = True
            return False
        return True

    def _begin(self, queue: BucketQueue) -> bool:
        """Write a bucket with the present writer id from now on, if that is new there."""
        if self.writer_id in (NO_WRITER_ID, queue.sequences.writer_id):
            return False
        if queue.original is not None:
            used = self._history_writer_ids.setdefault(queue.bucket, set())
            if self.writer_id in used:
                return False
            used.add(self.writer_id)
        queue.sequences.begin(self.writer_id)
        return True

    def _take(
        self,
        queue: BucketQueue,
        server_id: int,
        requests: dict[_RequestKey, ProduceRequest],
        found: ProduceRequests,
        *,
        now: float,
    ) -> bool:
        batch = queue.next_batch(self.settings, now=now)
        if batch is None:
            return False
        # Batches for history are never in one request with others, as from Java's client.
        route_key = (server_id, batch.route, queue.original is not None)
        request = requests.get(route_key)
        bytes_max = self.settings.request_bytes_max
        if request is not None and request.size_bytes + batch.size_bytes > bytes_max:
            found.requests.append(request)
            request = None
        if request is None:
            request = ProduceRequest(server_id=server_id, route=batch.route)
            requests[route_key] = request
        queue.send(batch)
        if self.settings.is_idempotent and batch.sequence == NO_SEQUENCE:
            queue.sequences.number(batch)
        batch.acked_before = queue.sequences.last_acked
        request.add(batch)
        self._busy[queue.key] = self._busy.pop(queue.key)
        return True

    def give_up_at(self, request: ProduceRequest, *, now: float) -> float:
        """The deadline for the answer to a request that is sent now."""
        deadlines = (
            self._queue_of(each).deadline_of(each, self.settings) for each in request.batches
        )
        return max(min(deadlines), now) + LATE_S_MAX

    # --- answers ------------------------------------------------------------------------------

    def written(self, batch: WriteBatch, *, offset: int | None, now: float) -> BatchResult:
        """Complete a batch that was written, by this attempt or by one before."""
        queue = self._completed(batch, now=now)
        self._retire(queue)
        return BatchResult(batch=batch, offset=offset)

    def note_pressure(self, batch: WriteBatch, pressure: float, *, now: float) -> None:
        """Pause a bucket whose server reports backpressure (0 to 1); higher is longer."""
        pause_ms = self.settings.throttle_ms_max * min(max(pressure, 0.0), 1.0) ** 2
        queue = self._queue_of(batch)
        queue.not_before = max(queue.not_before, now + pause_ms / 1_000)

    def unsent(
        self, batch: WriteBatch, error: FlussError, *, now: float, jitter: float
    ) -> list[BatchResult]:
        """Retry or fail a batch that could not be sent: no connection to its server."""
        return self._retry_or_fail(batch, error, now=now, jitter=jitter)

    def failed(
        self, batch: WriteBatch, error: FlussError, *, now: float, jitter: float
    ) -> list[BatchResult]:
        """Retry or complete a batch after a failed attempt: an error of the server or a timeout."""
        code = error.error_code
        if code == ErrorCode.DUPLICATE_SEQUENCE_EXCEPTION:
            return [self.written(batch, offset=None, now=now)]
        if code in SEQUENCE_ERRORS and batch.sequence != NO_SEQUENCE:
            return self._settle_sequence(batch, error, now=now)
        if not is_certainly_unwritten(error):
            batch.in_doubt = True
        if code == ErrorCode.STORAGE_BACKPRESSURE_EXCEPTION:
            self.note_pressure(batch, 1.0, now=now)
        return self._retry_or_fail(batch, error, now=now, jitter=jitter)

    def give_up(self, batches: Iterable[WriteBatch], error: FlussError) -> list[BatchResult]:
        """Fail batches that wait; those in flight are left to their answers."""
        results = []
        for batch in batches:
            if batch in self._replacing.get(batch.path, ()):
                self._replacing[batch.path].remove(batch)
                results.append(BatchResult(batch=batch, error=_failure(batch, error)))
                continue
            queue = self._queue_of(batch)
            if batch in queue.waiting:
                queue.waiting.remove(batch)
                results.append(self._fail(queue, batch, error))
                self._retire(queue)
        return results

    def waiting_for(self, path: PhysicalTablePath | TablePath) -> list[WriteBatch]:
        """The batches that wait for a table with all its partitions, or for one of them."""
        return [
            batch
            for key, queue in self._busy.items()
            if path in (key.path, key.path.table_path)
            for batch in queue.waiting
        ]

    # --- bucket counts --------------------------------------------------------------------------

    def _hold_misplaced(self, view: ClusterView, found: ProduceRequests) -> set[PhysicalTablePath]:
        """Take the batches out that were placed wrongly; returns the partitions that must wait."""
        wrong: set[PhysicalTablePath] = set()
        in_flight: set[PhysicalTablePath] = set()
        for queue in self._busy.values():
            path = queue.key.path
            count = None if path.partition_name is None else view.bucket_count(path)
            if count is None:
                continue
            if any(each.bucket_count != count for each in queue.in_flight):
                in_flight.add(path)
            if queue.has_misplaced(count):
                wrong.add(path)
        for path in wrong - in_flight - self._replacing.keys():
            self._take_misplaced(path, view.bucket_count(path) or 0, found)
        return in_flight | self._replacing.keys()

    def _take_misplaced(self, path: PhysicalTablePath, count: int, found: ProduceRequests) -> None:
        taken: list[WriteBatch] = []
        for queue in [each for each in self._busy.values() if each.key.path == path]:
            for batch in [each for each in queue.waiting if each.bucket_count != count]:
                queue.waiting.remove(batch)
                if batch.in_doubt:
                    # It may be written where it was placed first.
                    reason = queue.last_error or WriterStateError("Its partition is another now.")
                    found.results.append(self._fail(queue, batch, reason))
                    continue
                if batch.sequence != NO_SEQUENCE:
                    queue.repair = queue.repair or Repair.CLOSE_GAPS
                    batch.sequence, batch.writer_id = NO_SEQUENCE, NO_WRITER_ID
                taken.append(batch)
            self._repair(queue)
            self._retire(queue)
        if taken:
            self._replacing[path] = sorted(taken, key=lambda each: each.order)
            found.misplaced.append(list(self._replacing[path]))

    def placed_again(
        self,
        path: PhysicalTablePath,
        parts: Iterable[tuple[WriteBatch, list[WriteBatch]]],
        *,
        now: float,
    ) -> None:
        """Queue what misplaced batches of a partition have become, in their places.

        Args:
            path: The partition.
            parts: The misplaced batches, each with the batches that replace it; a batch that was
                given up meanwhile is left out.
            now: The present.
        """
        del self._replacing[path]
        for whole, batches in parts:
            for place, batch in enumerate(batches):
                batch.order = whole.order + place
                batch.queued_at = whole.queued_at
                queue = self._queue_for(batch, now=now)
                queue.insert(batch, now=now)
                self._busy[queue.key] = queue

    def is_replacing(self, batch: WriteBatch) -> bool:
        """Whether a batch is being placed again, and was not given up meanwhile."""
        return batch in self._replacing.get(batch.path, ())

    def _retry_or_fail(
        self, batch: WriteBatch, error: FlussError, *, now: float, jitter: float
    ) -> list[BatchResult]:
        queue = self._queue_without(batch)
        queue.last_error = error
        retry = decide_retry(
            self._policy,
            error,
            attempt=batch.attempts,
            now=now,
            deadline=queue.deadline_of(batch, self.settings),
            jitter=jitter,
        )
        if retry is not None and batch.attempts <= self.settings.retries_max:
            queue.not_before = max(queue.not_before, retry.at)
            queue.take_back(batch)
            return []
        if queue.sequences.has_passed(batch) and not is_certainly_unwritten(error):
            result = BatchResult(batch=batch)
        else:
            result = self._fail(queue, batch, error)
        self._retire(queue)
        return [result]

    def _settle_sequence(
        self, batch: WriteBatch, error: FlussError, *, now: float
    ) -> list[BatchResult]:
        queue = self._queue_of(batch)
        match queue.sequences.judge(batch, error):
            case SequenceVerdict.LANDED:
                return [self.written(batch, offset=None, now=now)]
            case SequenceVerdict.TOO_EARLY:
                queue.not_before = max(queue.not_before, now + self._policy.delay_first_ms / 1_000)
                self._queue_without(batch).take_back(batch)
                return []
            case SequenceVerdict.UNKNOWN_WRITER:
                queue.repair = Repair.NEW_WRITER
                self._queue_without(batch).take_back(batch)
                return []
            case SequenceVerdict.DATA_LOST:
                error = _data_lost(batch, error)
            case SequenceVerdict.IN_DOUBT:
                pass
        queue.repair = Repair.NEW_WRITER
        result = self._fail(self._queue_without(batch), batch, error)
        self._retire(queue)
        return [result]

    def _completed(self, batch: WriteBatch, *, now: float) -> BucketQueue:
        queue = self._queue_without(batch)
        queue.progress_at = now
        queue.last_error = None
        if batch.sequence != NO_SEQUENCE:
            queue.sequences.acknowledge(batch)
        return queue

    # --- repairs ------------------------------------------------------------------------------

    def _fail(self, queue: BucketQueue, batch: WriteBatch, error: FlussError) -> BatchResult:
        if batch.sequence != NO_SEQUENCE and queue.repair is not Repair.NEW_WRITER:
            queue.repair = Repair.NEW_WRITER if batch.in_doubt else Repair.CLOSE_GAPS
        return BatchResult(batch=batch, error=_failure(batch, error))

    def _repair(self, queue: BucketQueue) -> list[BatchResult]:
        """Repair the sequence of a bucket, once nothing of it is in flight."""
        if queue.repair is None or queue.in_flight:
            return []
        if queue.repair is Repair.CLOSE_GAPS:
            queue.sequences.close_gaps(queue.numbered())
            queue.repair = None
            return []
        return self._renumber(queue)

    def _renumber(self, queue: BucketQueue) -> list[BatchResult]:
        """Give a bucket a new writer id; batches that may be written under the old one fail."""
        results = []
        reason = queue.last_error or WriterStateError("The bucket has lost track of the writer.")
        for batch in queue.numbered():
            if queue.sequences.has_passed(batch):
                queue.waiting.remove(batch)
                results.append(BatchResult(batch=batch))
            elif batch.in_doubt:
                queue.waiting.remove(batch)
                results.append(BatchResult(batch=batch, error=_failure(batch, reason)))
            else:
                batch.sequence, batch.writer_id = NO_SEQUENCE, NO_WRITER_ID
        if self._begin(queue):
            queue.repair = None
        return results

    def _expire(self, queue: BucketQueue, *, now: float) -> list[BatchResult]:
        results = []
        while queue.waiting:
            batch = queue.waiting[0]
            if now < queue.deadline_of(batch, self.settings):
                break
            queue.waiting.popleft()
            if queue.sequences.has_passed(batch):
                results.append(BatchResult(batch=batch))
            else:
                results.append(self._fail(queue, batch, _expired(queue, self.settings)))
        return results

    def _queue_of(self, batch: WriteBatch) -> BucketQueue:
        return self._queues[_key_of(batch)]

    def _queue_without(self, batch: WriteBatch) -> BucketQueue:
        queue = self._queue_of(batch)
        queue.in_flight.remove(batch)
        return queue

    def _retire(self, queue: BucketQueue) -> None:
        if queue.is_idle:
            self._busy.pop(queue.key, None)


def _key_of(batch: WriteBatch) -> QueueKey:
    return QueueKey(batch.route.table_id, batch.path, batch.bucket_id)


def _failure(batch: WriteBatch, error: FlussError) -> FlussError:
    """The error of a batch: which rows, in which bucket, and what became of them."""
    if batch.in_doubt:
        fate = "they were sent and may have been written or not"
        what_next = LOOK_FIRST
    elif batch.is_sent:
        fate, what_next = "they have not been written", None
    else:
        fate, what_next = "they were never sent", WRITE_AGAIN
    facts = {
        "table": str(batch.path.table_path),
        "partition": batch.path.partition_name,
        "bucket": batch.bucket_id,
        "rows": batch.row_count,
        "in_doubt": batch.in_doubt,
    }
    made = error.with_context(during=f"{batch} failed, {fate}", hint=(what_next, *error.hints))
    made.facts.update(facts)  # its text names the bucket
    return made


def _data_lost(batch: WriteBatch, error: FlussError) -> FlussError:
    return WriterStateError(
        "The bucket has lost rows of this writer that it had acknowledged before these: "
        f"{error.message}",
        error.error_code,
        hint="All its replicas must have failed together. Compare what the table holds with what "
        "was written, then write again.",
        server_trace=error.server_trace,
        sequence=batch.sequence,
    )


def _expired(queue: BucketQueue, settings: WriterSettings) -> FlussError:
    seconds = settings.delivery_timeout_ms / 1_000
    last = queue.last_error
    why = "no leader was found" if last is None else last.message
    return RequestTimeoutError(
        f"No batch of the bucket was acknowledged for {seconds:g} s: {why}",
        hint="Are all tablet servers running?" if last is None else last.hint,
    )
