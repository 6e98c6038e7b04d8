"""The settings of writers, and an encoded batch from its sealing until it is completed.

Here a batch is opaque: only its size, its bucket and its result matter. When it is sent is decided
in `write.plan_sender`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Self

from fluss.errors import FlussError
from fluss.model.options.config import Config
from fluss.model.paths import PhysicalTablePath, TableBucket

NO_WRITER_ID: Final = -1
NO_SEQUENCE: Final = -1
ACKS_ALL: Final = -1

# The server waits for its replicas a little less long than the client waits for the server, so that
# the server's answer ends the wait, and not a timeout that leaves the result unknown.
ANSWER_MARGIN_MS: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterSettings:
    """How the writers of one connection write.

    Attributes:
        acks: -1 for all replicas, 1 for the leader, 0 for none.
        retries_max: The most retries of a batch.
        request_bytes_max: The largest request, and therefore the largest batch.
        batch_bytes_max: How large a batch may grow before it is sent.
        batch_bytes_min: How small the batches of a table with little traffic may become.
        has_dynamic_batches: Whether batches adapt between the two.
        linger_ms: How long rows wait to be batched with others when no caller waits for them.
        buffer_bytes_max: How many encoded bytes may be queued or in flight before writing blocks.
        buffer_wait_ms: How long writing blocks at most.
        in_flight_max: How many batches of one bucket may be in flight.
        is_idempotent: Whether batches carry a writer id and a sequence.
        throttle_ms_max: The longest pause for a bucket whose server reports backpressure.
        creates_partitions: Whether a missing partition is created.
        is_round_robin: How rows without a bucket key are spread: one by one, or in batches.
        delivery_timeout_ms: How long a bucket may make no progress before its batches fail.
        request_timeout_ms: How long a server may take to answer.
    """

    acks: int = ACKS_ALL
    retries_max: int = 2**31 - 1
    request_bytes_max: int = 10 * 1024 * 1024
    batch_bytes_max: int = 2 * 1024 * 1024
    batch_bytes_min: int = 256 * 1024
    has_dynamic_batches: bool = True
    linger_ms: int = 100
    buffer_bytes_max: int = 64 * 1024 * 1024
    buffer_wait_ms: int = 2**63 - 1
    in_flight_max: int = 5
    is_idempotent: bool = True
    throttle_ms_max: int = 3_000
    creates_partitions: bool = True
    is_round_robin: bool = False
    delivery_timeout_ms: int = 120_000
    request_timeout_ms: int = 30_000

    @classmethod
    def of(cls, config: Config) -> Self:
        """The settings of a user's config.

        Raises:
            ConfigError: Settings contradict each other.
        """
        config.check()
        return cls(
            acks=ACKS_ALL if config.writer_acks == "all" else int(config.writer_acks),
            retries_max=config.writer_retries,
            request_bytes_max=config.writer_request_max_size,
            batch_bytes_max=min(config.writer_batch_size, config.writer_request_max_size),
            batch_bytes_min=min(config.writer_dynamic_batch_size_min, config.writer_batch_size),
            has_dynamic_batches=config.writer_dynamic_batch_size_enabled,
            linger_ms=config.writer_batch_timeout_ms,
            buffer_bytes_max=config.writer_buffer_memory_size,
            buffer_wait_ms=config.writer_buffer_wait_timeout_ms,
            in_flight_max=config.writer_max_inflight_requests_per_bucket,
            is_idempotent=config.writer_enable_idempotence,
            throttle_ms_max=config.writer_kv_backpressure_max_throttle_ms,
            creates_partitions=config.writer_dynamic_create_partition_enabled,
            is_round_robin=config.writer_bucket_no_key_assigner == "round_robin",
            delivery_timeout_ms=config.operation_timeout_ms,
            request_timeout_ms=config.request_timeout_ms,
        )

    @property
    def replica_wait_ms(self) -> int:
        """How long a server shall wait for its replicas."""
        margin = min(ANSWER_MARGIN_MS, self.request_timeout_ms // 2)
        return max(self.request_timeout_ms - margin, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """What the batches of one request have in common.

    Attributes:
        table_id: The table.
        is_kv: PUT_KV, or PRODUCE_LOG.
        schema_id: The schema that the rows were encoded with.
        target_columns: The columns of a partial update, by position; empty for all.
        agg_mode: How an aggregating table merges the rows; None for its default.
    """

    table_id: int
    is_kv: bool
    schema_id: int
    target_columns: tuple[int, ...] = ()
    agg_mode: int | None = None


@dataclass(slots=True, eq=False, kw_only=True)
class WriteBatch:
    """One encoded batch of one bucket, from its sealing until it is completed.

    Attributes:
        route: The kind of request it travels in.
        path: The table or partition.
        bucket_id: The bucket.
        body: The encoded records; opaque here.
        row_count: How many rows they are.
        size_bytes: How long they are, with their header.
        bucket_count: How many buckets the table or partition has, as far as was known when the
            rows were placed; 0 where it was not noted.
        place_again: Encodes the rows for the buckets in which they belong by now; None where the
            rows have no key, so that any bucket will do. Holds the rows.
        queued_at: When it was queued.
        order: Its place among the batches of its bucket, independent of its sequence.
        attempts: How many attempts at sending it there were.
        is_sent: Whether a request with it has left for a server.
        writer_id: The writer id that it was sent with.
        sequence: Its sequence in the bucket; assigned when it is first sent.
        acked_before: The last sequence of its bucket that was acknowledged when it was last sent.
        in_doubt: Whether an attempt ended without it being known whether it was written.
        partition_id: The partition that it was sent to.
        original: The name of its own partition, where that was the partition of history.
        offset: Where it was written (PRODUCE_LOG: its first offset; PUT_KV: the end of the
            bucket's changelog after it); None where the server did not report it.
        error: Why it was not written.
        is_completed: Whether it was written or has failed.
        waiters: Called when it is completed; only the engine thread touches them.
    """

    route: Route
    path: PhysicalTablePath
    bucket_id: int
    body: Any
    row_count: int
    size_bytes: int
    bucket_count: int = 0
    place_again: Callable[[], list[WriteBatch]] | None = None
    queued_at: float = 0.0
    order: int = 0
    attempts: int = 0
    writer_id: int = NO_WRITER_ID
    sequence: int = NO_SEQUENCE
    acked_before: int = NO_SEQUENCE
    is_sent: bool = False
    in_doubt: bool = False
    partition_id: int | None = None
    original: str | None = None
    offset: int | None = None
    error: FlussError | None = None
    is_completed: bool = False
    waiters: list[Callable[[WriteBatch], None]] = field(default_factory=list)

    @property
    def bucket(self) -> TableBucket:
        """The bucket by its ids; that of the partition may be missing."""
        return TableBucket.with_partition(self.route.table_id, self.partition_id, self.bucket_id)

    def __str__(self) -> str:
        return f"{self.row_count} rows for bucket {self.bucket_id} of {self.path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchResult:
    """The end of a batch: written at `offset`, or failed with `error`."""

    batch: WriteBatch
    offset: int | None = None
    error: FlussError | None = None
